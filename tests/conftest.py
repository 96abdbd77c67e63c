"""How the tests run: Hypothesis draws the same examples every time, without a clock and without files; one
wheel serves all tests that install it."""

from __future__ import annotations

import importlib.util
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from rangevote import kernel
from tests.wheels import built

settings.register_profile(
    "rangevote",
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("rangevote")

# Background jobs of a shell ignore Ctrl-C, and SIGHUP under nohup. Processes that tests start must not.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):  # not on Windows
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Without compiled kernels commands say so, unless plain ones were asked for: tests of messages ask.
if kernel.WHY_PLAIN:
    os.environ["RANGEVOTE_PURE"], kernel.PURE = "1", True


def pytest_configure(config: pytest.Config) -> None:
    """Without torch, modules that need it have no doctests to offer; with it an import error is an error."""
    if importlib.util.find_spec("torch") is None:
        config.option.doctest_ignore_import_errors = True


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, the same for all processes of a run."""
    base = tmp_path_factory.getbasetemp()
    return built((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "wheel")
