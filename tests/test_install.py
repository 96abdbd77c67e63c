"""An install where there is no compiler: it works, gives the same results, and says what it lacks."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

import rangevote
from tests.wheels import CONSTRAINED, LEFT_OUT, ROOT, done

# An editable install of the package under test must not answer for the copy in `target`.
ALONE = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
sys.path.insert(0, {target!r})
import rangevote, rangevote.kernel
assert rangevote.__file__.startswith({target!r}), rangevote.__file__
print(rangevote.kernel.COMPILED)
print(rangevote.kernel.WHY_PLAIN)
print(rangevote.elect(["a b", "a c", "a b c"], [-1.0, -1.5, -2.0]).scores.tolist())
"""


@pytest.fixture(scope="module")
def without_compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, installed from a copy of the sources with every compiler hidden."""
    place = tmp_path_factory.mktemp("install")
    tools, target, source = place / "bin", place / "target", place / "source"
    tools.mkdir()
    for name in ("bash", "sh", "env", "uname"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*LEFT_OUT))
    hidden = {"PATH": str(tools), "CXX": "/nonexistent/c++", "CC": "/nonexistent/cc"}
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, source]
    done(pip, env={**CONSTRAINED, **hidden})
    return target


def test_an_install_without_a_compiler_works_and_says_what_it_lacks(without_compiler):
    assert not list(without_compiler.glob("rangevote/_kernels*.so"))
    code = ALONE.format(target=str(without_compiler))
    said = done([sys.executable, "-c", code], env={**os.environ, "RANGEVOTE_PURE": "0"})
    compiled, why, scores = said.splitlines()
    assert compiled == "False"
    assert "Install a C++17 compiler and reinstall" in why
    ours = rangevote.elect(["a b", "a c", "a b c"], [-1.0, -1.5, -2.0]).scores.tolist()
    assert scores == str(ours)  # the same bits
