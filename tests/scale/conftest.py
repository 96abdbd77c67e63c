"""A real Ray for the slow tests, started once for a module, and a limit for everything they wait for."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from faults.cluster import Cluster
from faults.cluster import cluster as ray_cluster
from rangevote.errors import SetupError

#: Seconds that a slow test may take, and the start of Ray; on a quiet machine it is a tenth of them.
PATIENCE = 240
#: More than there are: actors and readers that wait for each other's CPU would do so for ever.
CPUS = 6


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Nothing hangs for ever: what takes longer is a failure."""

    def late(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def _limited(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.node.get_closest_marker("slow") is None:
        yield
        return
    with within(PATIENCE):
        yield


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Ray on this machine; without one, tests are skipped, or fail if RANGEVOTE_NEEDS_RAY is set."""
    with ExitStack() as stack:
        try:
            started = stack.enter_context(ray_cluster(CPUS))
        except SetupError as error:
            if os.environ.get("RANGEVOTE_NEEDS_RAY"):  # in CI one that is missing is a failure
                raise
            pytest.skip(str(error))
        yield started


@pytest.fixture(scope="module")
def ray(cluster: Cluster) -> Iterator[Any]:
    """Ray, connected to it, so that commands in this process need not do so each for themselves."""
    from rangevote.scale.ray.session import session

    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        for name, value in cluster.environment.items():
            patch.setenv(name, value)
        with within(PATIENCE):
            connected = stack.enter_context(session(cluster.address))
        yield connected
        with within(PATIENCE):
            stack.close()
