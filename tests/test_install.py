"""An install where there is no compiler: it works, gives the same results, and says what it lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

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
    ignore = shutil.ignore_patterns(
        ".git", ".venv*", "build", "*.so", "__pycache__", ".*_cache", ".experiments", "tests", "benchmarks"
    )
    shutil.copytree(ROOT, source, ignore=ignore)
    environment = {
        **os.environ,
        "PATH": str(tools),
        "CXX": "/nonexistent/c++",
        "CC": "/nonexistent/cc",
        "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
    }
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(target),
        str(source),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def test_an_install_without_a_compiler_works_and_says_what_it_lacks(without_compiler):
    assert not list(without_compiler.glob("rangevote/_kernels*.so"))
    code = ALONE.format(target=str(without_compiler))
    environment = {**os.environ, "RANGEVOTE_PURE": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    compiled, why, scores = done.stdout.splitlines()
    assert compiled == "False"
    assert "Install a C++17 compiler and reinstall" in why

    import rangevote

    ours = rangevote.elect(["a b", "a c", "a b c"], [-1.0, -1.5, -2.0]).scores.tolist()
    assert scores == str(ours)  # the same bits
