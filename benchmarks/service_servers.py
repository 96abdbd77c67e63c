"""The servers that are measured, each a process of its own: rangevote's, optillm's, the model's."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from common import HERE, ROOT, SCRATCH, command_line, environment

OPTILLM = ROOT / ".venv-optillm" / "bin"
LOGS = SCRATCH / "service"
#: Seconds after which a server that does not answer counts as failed.
PATIENCE = 120.0


class Server(NamedTuple):
    """A server that answers."""

    port: int
    pid: int

    @property
    def memory(self) -> float:
        """Megabytes in use."""
        return self._status("VmRSS")

    @property
    def peak(self) -> float:
        """The most megabytes that ever were."""
        return self._status("VmHWM")

    @property
    def cpu(self) -> float:
        """Seconds of all its threads so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _status(self, name: str) -> float:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


@contextmanager
def upstream(delay: float = 0.0, words: int = 100, lists: int = 32) -> Iterator[Server]:
    """The model's server, which has its answers ready."""
    port = free_port()
    options = ["--delay", str(delay), "--words", str(words), "--lists", str(lists)]
    command = [sys.executable, HERE / "service_upstream.py", str(port), *options]
    with started(command, port, "/v1/models") as server:
        yield server


@contextmanager
def rangevote(model: Server, samples: int = 16, limits: str = "") -> Iterator[Server]:
    """`rangevote serve`, as it comes; `limits` are lines of its configuration."""
    port = free_port()
    LOGS.mkdir(parents=True, exist_ok=True)
    config = LOGS / f"{port}.toml"
    config.write_text(
        f'upstream = "http://127.0.0.1:{model.port}/v1"\n[limits]\n{limits}\n', encoding="utf-8"
    )
    options = ["--config", config, "--samples", str(samples), "--port", str(port)]
    with started([*command_line(), "serve", *options], port, "/readyz") as server:
        yield server


@contextmanager
def optillm(model: Server, approach: str, samples: int = 16) -> Iterator[Server]:
    """optillm with one of its approaches; its self-consistency draws five samples, whatever is said."""
    if not (OPTILLM / "optillm").exists():
        raise RuntimeError("not installed: run benchmarks/setup_optillm.sh")
    port = free_port()
    options = ["--approach", approach, "--best-of-n", str(samples), "--log", "warning"]
    place = ["--host", "127.0.0.1", "--port", str(port), "--base-url", f"http://127.0.0.1:{model.port}/v1"]
    with started([OPTILLM / "optillm", *options, *place], port, "/health", OPENAI_API_KEY="unused") as server:
        yield server


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextmanager
def started(command: Sequence[str | Path], port: int, path: str, **variables: str) -> Iterator[Server]:
    """A command that serves on a port, from its first answer at `path` on."""
    LOGS.mkdir(parents=True, exist_ok=True)
    seen = environment() | {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"} | variables
    with (LOGS / f"{port}.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=LOGS, env=seen)
    try:
        _answered(process, port, path)
        yield Server(port, process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answered(process: subprocess.Popen[bytes], port: int, path: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(
                f"the server ended before it answered; .benchmarks/service/{port}.log says why"
            )
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.05)
    raise RuntimeError(f"the server did not answer within {PATIENCE:.0f} s")
