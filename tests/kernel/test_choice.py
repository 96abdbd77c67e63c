"""Which kernel is used; tests/election/test_frozen_ballots.py shows that the choice changes no result."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.kernel.both import needs_compiled

SCRIPT = """
import rangevote
from rangevote import kernel
print(kernel.COMPILED, repr(kernel.WHY_PLAIN), kernel.Index.__module__)
print(rangevote.elect(["a man", "a man sits", "x"]).index)
"""


def run(script: str = SCRIPT, **environment: str) -> list[str]:
    clean = {k: v for k, v in os.environ.items() if k != "RANGEVOTE_PURE"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=clean | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@needs_compiled
def test_the_compiled_kernel_is_used_where_it_was_built():
    assert run()[0] == "True '' rangevote._kernels"


@pytest.mark.parametrize("value", ["1", "yes"])
def test_the_environment_chooses_the_plain_kernel(value):
    assert run(RANGEVOTE_PURE=value)[0] == "False 'RANGEVOTE_PURE is set' rangevote.kernel.plain"


def test_an_install_without_the_compiled_kernel_says_what_it_lacks():
    hide = "import sys; sys.modules['rangevote._kernels'] = None\n"
    line, index = run(hide + SCRIPT)
    assert line.startswith("False 'the package was installed without its compiled kernels")
    assert "Install a C++17 compiler and reinstall" in line
    assert index == "1"
