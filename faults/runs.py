"""Runs of `rangevote vote` that are disturbed, and what is left of them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

#: Seconds after which a run that has not ended hangs.
PATIENCE = 300.0


@dataclass(frozen=True)
class Way:
    """One way to vote on the same file: its options, and the name of its output."""

    name: str
    options: tuple[str, ...] = ()
    output: str = "out.jsonl"


WAYS = (
    Way("one process"),
    Way("2 threads", ("--threads", "2")),
    Way("2 workers", ("--workers", "2")),
    Way("Parquet", ("--workers", "2"), "out.parquet"),
)


@dataclass
class Bench:
    """A folder with an input, and what an undisturbed run makes of it in each way."""

    folder: Path
    data: Path
    random: random.Random
    expected: dict[str, bytes] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def whole(self, way: Way) -> bytes:
        """The output of an undisturbed run; the first one is timed."""
        if way.name not in self.expected:
            began, out = time.monotonic(), self.fresh(way)
            done = self.run(way, out)
            assert done.returncode == 0, done.stderr.decode()
            self.seconds[way.name] = time.monotonic() - began
            self.expected[way.name] = out.read_bytes()
        return self.expected[way.name]

    def fresh(self, way: Way) -> Path:
        """A new place for an output."""
        place = self.folder / f"{self.random.getrandbits(64):016x}"
        place.mkdir()
        return place / way.output

    def moment(self, way: Way) -> float:
        """Seconds into a run, from its start to a little beyond its end."""
        self.whole(way)
        return self.random.uniform(0.0, 1.1 * self.seconds[way.name])

    def start(self, way: Way, out: Path, *options: str, data: Path | None = None) -> subprocess.Popen[bytes]:
        """Begin a run, in a process group of its own."""
        command = [sys.executable, "-m", "rangevote", "vote", str(data or self.data), "-o", str(out), "-q"]
        return subprocess.Popen(
            [*command, *way.options, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def run(
        self, way: Way, out: Path, *options: str, data: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """A run from start to end."""
        process = self.start(way, out, *options, data=data)
        stdout, stderr = process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def kill(process: subprocess.Popen[bytes]) -> bool:
    """End a run and its workers as `kill -9` does; False if it had ended before."""
    before = process.poll() is None
    if before:
        os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    return before


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    """The worker processes of a run, so far as the system tells."""
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    except OSError:
        return []
    return [int(pid) for pid in children if _is_worker(int(pid))]


def _is_worker(pid: int) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
