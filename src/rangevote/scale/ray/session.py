"""A Ray to work with: a running cluster by its address, or one of our own, for this machine alone."""

from __future__ import annotations

import importlib.util
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from rangevote.errors import SetupError, need
from rangevote.scale.ray.places import PURPOSE

#: Bytes that our own Ray keeps for passing objects around; units bring their ballots themselves.
OBJECT_STORE = 128 * 2**20
#: Seconds within which a cluster must take a connection.
PATIENCE = 10.0


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
    if address is None or _within_this_machine(address):
        # As where Ray makes no clusters: it listens on the loopback device only, and takes an address of
        # that device as it is given. Read when it is imported.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray = need("ray", "ray", PURPOSE)
    need("ray.data", "ray", PURPOSE)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if ray.is_initialized():
        yield ray
        return
    try:
        _connect(ray, address, cpus)
    except Exception as error:  # one that starts too slowly raises just that
        where = f" at {address}" if address else ""
        hint = " If it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN." if address else ""
        raise SetupError(f"cannot use Ray{where}: {' '.join(str(error).split())[:300]}{hint}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _within_this_machine(address: str) -> bool:
    """Whether the cluster at this address listens on the loopback device alone.

    Refuses one at which nobody listens: Ray itself would go on trying for many minutes.
    """
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return False  # Ray says what is wrong with it
    if host is None or port is None:  # "auto"
        return False
    if (reason := _refused(host, port)) is not None:
        raise SetupError(f"cannot use Ray at {address}: {reason}. Is it running, and is this its address?")
    return host in ("localhost", "127.0.0.1", "::1") and _refused(_own_address(), port) is not None


def _refused(host: str, port: int) -> str | None:
    """Why there is no connection, None if there is one."""
    try:
        socket.create_connection((host, port), timeout=PATIENCE).close()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None


def _own_address() -> str:
    """The address by which others would reach this machine; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"  # there is no network
        return str(probe.getsockname()[0])


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
