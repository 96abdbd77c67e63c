"""Runs of `rangevote vote` that are disturbed, and what is left of them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from faults.cluster import Cluster, family

#: Seconds after which a run that has not ended hangs.
PATIENCE = 300.0


@dataclass(frozen=True)
class Way:
    """One way to vote on the same file: its options, the name of its output, and its environment.

    `like` is another way whose output must be the same.
    """

    name: str
    options: tuple[str, ...] = ()
    output: str = "out.jsonl"
    environment: Mapping[str, str] = field(default_factory=dict)
    like: Way | None = None


WAYS = (
    Way("one process"),
    Way("2 workers", ("--workers", "2")),
    Way("Parquet", ("--workers", "2"), "out.parquet"),
)


@dataclass
class Bench:
    """A folder with an input, what an undisturbed run makes of it in each way; Ray, or why there is none."""

    folder: Path
    data: Path
    random: random.Random
    cluster: Cluster | str = "ray was not asked for"
    expected: dict[str, bytes] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def whole(self, way: Way) -> bytes:
        """The output of an undisturbed run. The second is timed: the first may read all from the disk."""
        if way.name not in self.expected:
            for _ in range(2):
                began, out = time.monotonic(), self.fresh(way)
                done = self.run(way, out)
                assert done.returncode == 0, done.stderr.decode()
                self.seconds[way.name] = time.monotonic() - began
            self.expected[way.name] = out.read_bytes()
            assert way.like is None or self.expected[way.name] == self.whole(way.like), way.name
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
            env={**os.environ, **way.environment},
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
    return b"spawn_main" in command(pid)


def working(pid: int) -> list[int]:
    """Below a process, the workers of Ray that have a task of ours at this moment."""
    return [one for one in family(pid) if command(one).startswith(b"ray::MapBatches(Task)")]


def command(pid: int) -> bytes:
    """What a process was started as, or calls itself; nothing if there is none."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
