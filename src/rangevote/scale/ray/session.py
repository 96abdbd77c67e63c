"""A Ray to work with: a running cluster by its address, or one of our own, for this machine alone."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rangevote.errors import SetupError, need
from rangevote.scale.ray.places import PURPOSE

#: Bytes that our own Ray keeps for passing objects around; units bring their ballots themselves.
OBJECT_STORE = 128 * 2**20


def check_installed() -> None:
    """Say what to install if there is no Ray, without importing it."""
    try:
        there = importlib.util.find_spec("ray") is not None
    except ValueError:  # a module without a specification
        there = False
    if not there:
        need("ray", "ray", PURPOSE)


@contextmanager
def session(address: str | None, cpus: int | None = None) -> Iterator[Any]:
    """Ray, connected. What was connected before stays so afterwards."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nothing is reported to anyone
    address = address or os.environ.get("RAY_ADDRESS")
    if address is None:
        # As where Ray makes no clusters: it listens on the loopback device only. Read when it is imported.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray = need("ray", "ray", PURPOSE)
    need("ray.data", "ray", PURPOSE)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if ray.is_initialized():
        yield ray
        return
    try:
        _connect(ray, address, cpus)
    except (ConnectionError, OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        where = f" at {address}" if address else ""
        raise SetupError(f"cannot use Ray{where}: {' '.join(str(error).split())[:300]}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str | None, cpus: int | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
    if address is not None:
        ray.init(address=address, **quiet)
        return
    ray.init(
        address="local",
        num_cpus=cpus,
        include_dashboard=False,
        object_store_memory=OBJECT_STORE,
        _node_ip_address="127.0.0.1",
        **quiet,
    )
