"""A Ray in a process of its own, for several runs by its address: it takes ten seconds and more to start."""

from __future__ import annotations

import importlib.util
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from rangevote.errors import SetupError

ROOT = Path(__file__).resolve().parents[1]
#: Seconds within which it must have started, and ended; how often it is tried.
STARTED, ENDED, TIMES = 100.0, 60.0, 3
#: Ray gives its own processes a minute and less, which a machine with other work may not keep.
PATIENT = {
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_worker_register_timeout_seconds": "300",
    "RAY_health_check_failure_threshold": "30",
}


class Cluster(NamedTuple):
    """Where it listens, the process that all of it descends from, and what a driver needs to know of it."""

    address: str
    pid: int
    environment: dict[str, str]


@contextmanager
def cluster(cpus: int = 4) -> Iterator[Cluster]:
    """A Ray for this machine alone; with more CPUs than there are, so that nothing starves."""
    if importlib.util.find_spec("ray") is None:
        raise SetupError("ray is not installed: pip install 'rangevote[ray]'")
    # A secret of its own, which nobody else has and which ends with it.
    secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    why = ""
    for _ in range(TIMES):
        with tempfile.TemporaryFile() as complaints:
            process = _begin(cpus, secret, complaints)
            try:
                if address := _address(process):
                    yield Cluster(address, process.pid, secret)
                    return
            finally:
                _end(process)
            complaints.seek(0)
            why = complaints.read().decode(errors="replace").strip()[-500:] or "it hangs"
    raise SetupError(f"Ray does not start on this machine: {why}")


def _begin(cpus: int, secret: dict[str, str], complaints: IO[bytes]) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    return subprocess.Popen(
        [sys.executable, "-m", "faults.cluster", str(cpus)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        env=environment | PATIENT | secret,
        cwd=ROOT,
        start_new_session=True,
    )


def _address(process: subprocess.Popen[bytes]) -> str:
    """What it tells once it has started; nothing if it does not."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], STARTED)
    return process.stdout.readline().decode().strip() if ready else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(ENDED)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(ENDED)
    process.stdout.close()


def family(pid: int) -> list[int]:
    """A process and those it started, directly or not, so far as the system tells."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            tasks = list(Path(f"/proc/{one}/task").iterdir())
            found += [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return found


def main(cpus: int) -> None:
    """Start, tell the address, and stay until standard input ends."""
    from rangevote.ray_data import ray_session

    try:
        with ray_session(cpus=cpus) as ray:
            print(ray.get_runtime_context().gcs_address, flush=True)
            sys.stdin.read()
    except SetupError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(int(sys.argv[1]))
