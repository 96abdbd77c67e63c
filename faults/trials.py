"""What is done to runs of `rangevote vote`, and what counts as lost.

A trial returns None if the fault could not be brought about, otherwise what was lost. Afterwards the run is
continued as a user would, with `--resume`, or `--force` if the message says so; the output must then equal
that of an undisturbed run, byte for byte, with no other file beside it.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

#: Seconds after which a run that has not ended hangs.
LIMIT = 300.0


class Way(NamedTuple):
    """One way to vote on the same file."""

    name: str
    options: tuple[str, ...] = ()
    output: str = "out.jsonl"
    processes: bool = False


WAYS = (
    Way("one process"),
    Way("2 workers", ("--workers", "2"), processes=True),
    Way("Parquet", ("--workers", "2"), "out.parquet", processes=True),
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
        """The output of an undisturbed run. The second is timed: the first may read all from the disk."""
        if way.name not in self.expected:
            for _ in range(2):
                began, out = time.monotonic(), self.new_output(way)
                code, messages = self.run(way, out)
                assert code == 0, messages
                self.seconds[way.name] = time.monotonic() - began
            self.expected[way.name] = out.read_bytes()
        return self.expected[way.name]

    def new_output(self, way: Way) -> Path:
        folder = self.folder / f"{self.random.getrandbits(64):016x}"
        folder.mkdir()
        return folder / way.output

    def wait(self, way: Way, share: float = 1.1) -> None:
        """Until a random point of a run, or a little beyond its end."""
        self.whole(way)
        time.sleep(self.random.uniform(0.0, share * self.seconds[way.name]))

    def start(self, way: Way, out: Path, *options: str, data: Path | None = None) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "rangevote", "vote", str(data or self.data), "-o", str(out), "-q"]
        return subprocess.Popen(
            [*command, *way.options, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self, way: Way, out: Path, *options: str, data: Path | None = None) -> tuple[int, str]:
        """Exit code and messages of a run."""
        return end(self.start(way, out, *options, data=data))


def end(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, messages = process.communicate(timeout=LIMIT)
    return process.returncode, messages.decode()


def kill(process: subprocess.Popen[bytes]) -> bool:
    """kill -9; False if the run had ended before."""
    running = process.poll() is None
    if running:
        process.kill()
    end(process)
    return running


#: None: the fault did not happen. Else a sentence for everything that went wrong.
Outcome = list[str] | None


def killed(bench: Bench, way: Way) -> Outcome:
    """kill -9 at a random point, up to three times in a row."""
    out, happened = bench.new_output(way), False
    for _ in range(bench.random.randint(1, 3)):
        process = bench.start(way, out, *resume_option(out))
        bench.wait(way)
        happened |= kill(process)
        if out.exists():
            break
    return finished(bench, way, out) if happened else None


def worker_killed(bench: Bench, way: Way) -> Outcome:
    """kill -9 of one worker process, at a random point from its start on."""
    out = bench.new_output(way)
    process = bench.start(way, out)
    while not worker_processes(process.pid) and process.poll() is None:
        time.sleep(0.01)
    bench.wait(way, 0.3)
    workers = worker_processes(process.pid)
    if not workers:
        kill(process)
        return None
    os.kill(bench.random.choice(workers), signal.SIGKILL)
    code, _ = end(process)
    return _unless(code in (0, 5), f"exit code {code} instead of 5") + finished(bench, way, out)


def disk_full(bench: Bench, way: Way) -> Outcome:
    """A disk (tmpfs) that has room for a random part of the output; later there is more room."""
    expected = bench.whole(way)
    disk = bench.new_output(way).parent
    room = bench.random.randrange(4096, max(8192, len(expected)))
    if not _mount(disk, room):
        return None
    try:
        code, _ = bench.run(way, disk / way.output)
        wrong = _unless(code == 5, f"exit code {code} instead of 5")
        wrong += [f"{path.name} was left behind" for path in disk.iterdir()]
        subprocess.run(["mount", "-o", f"remount,size={4 * len(expected) + 2**20}", str(disk)], check=True)
        return wrong + finished(bench, way, disk / way.output)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def input_cut_off(bench: Bench, way: Way) -> Outcome:
    """The input ends in the middle of a line; later the rest of it is there."""
    whole = bench.data.read_bytes()
    cut = bench.random.randrange(1, len(whole))
    if b"\n" in whole[cut - 1 : cut + 1]:
        return None
    out = bench.new_output(way)
    data = out.parent.with_suffix(".jsonl")
    data.write_bytes(whole[:cut])
    code, _ = bench.run(way, out, data=data)
    wrong = _unless(code == 3, f"exit code {code} instead of 3")
    wrong += _unless(not out.exists(), "half a result under the final name")
    data.write_bytes(whole)
    return wrong + finished(bench, way, out, data)


def checkpoint_damaged(bench: Bench, way: Way) -> Outcome:
    """After a kill, one of the files that the next run goes on from is cut off, or garbled, somewhere."""
    out = bench.new_output(way)
    process = bench.start(way, out)
    bench.wait(way)
    kill(process)
    kept = [path for path in out.parent.iterdir() if path != out and path.stat().st_size]
    if not kept:
        return None
    damaged = bench.random.choice(kept)
    content = damaged.read_bytes()
    at = bench.random.randrange(len(content))
    # cut anywhere, as a crash leaves it; the options may also hold anything
    garble = damaged.suffix == ".json" and bench.random.random() < 0.5
    damaged.write_bytes(content[:at] + (bench.random.randbytes(len(content) - at) if garble else b""))
    return finished(bench, way, out)


def two_at_once(bench: Bench, way: Way) -> Outcome:
    """A second run on the same output begins at a random point of the first."""
    out = bench.new_output(way)
    first = bench.start(way, out)
    bench.wait(way, 0.55)  # the second takes its time to start, too
    second = bench.run(way, out, *(["--resume"] if bench.random.random() < 0.5 else []))
    codes, messages = zip(end(first), second, strict=True)
    if "another run is writing" not in "".join(messages):
        return None  # one after the other
    right = sorted(codes) == [0, 5]
    return _unless(right, f"exit codes {codes} instead of one run and one refusal") + finished(
        bench, way, out
    )


#: Each fault, and how often it is to happen over all ways to vote.
TRIALS: dict[str, tuple[Callable[[Bench, Way], Outcome], int]] = {
    "killed": (killed, 120),
    "worker killed": (worker_killed, 30),
    "disk full": (disk_full, 20),
    "input cut off": (input_cut_off, 20),
    "checkpoint damaged": (checkpoint_damaged, 40),
    "two at once": (two_at_once, 20),
}


class Count(NamedTuple):
    """Of one fault: how often it was tried and happened, and what was lost."""

    tried: int
    happened: int
    lost: list[str]


def repeat(bench: Bench, name: str, number: int, ways: tuple[Way, ...] = WAYS) -> Count:
    """One fault, the ways to vote in turn, until it has happened `number` times or does not come about."""
    tried = happened = 0
    lost: list[str] = []
    ways = tuple(way for way in ways if way.processes or name != "worker killed")
    while happened < number and tried < 3 * number + 5:
        way = ways[tried % len(ways)]
        outcome = TRIALS[name][0](bench, way)
        tried += 1
        if outcome is not None:
            happened += 1
            lost += [f"{name}, {way.name}: {problem}" for problem in outcome]
    return Count(tried, happened, lost)


def table(counts: Mapping[str, Count]) -> str:
    """Markdown."""
    lines = ["| fault | tried | happened | lost |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {c.tried} | {c.happened} | {len(c.lost)} |" for name, c in counts.items()]
    tried, happened = sum(c.tried for c in counts.values()), sum(c.happened for c in counts.values())
    lost = [problem for c in counts.values() for problem in c.lost]
    lines.append(f"| **all** | {tried} | {happened} | **{len(lost)}** |")
    return "\n".join([*lines, *(["", *(f"* {problem}" for problem in lost)] if lost else [])]) + "\n"


def finished(bench: Bench, way: Way, out: Path, data: Path | None = None) -> list[str]:
    """Continue to the end; return what is wrong with the result."""
    if out.exists() and len(list(out.parent.iterdir())) > 1:
        bench.run(way, out, "--resume", data=data)  # stopped when all was done but tidying up
    if not out.exists():
        code, messages = bench.run(way, out, *resume_option(out), data=data)
        if code == 5 and "--force" in messages:
            code, messages = bench.run(way, out, "--force", data=data)
        if code != 0:
            return [f"could not be continued: exit code {code}: {messages[-300:]}"]
    wrong = _unless(out.read_bytes() == bench.whole(way), "the output differs from an undisturbed run's")
    return wrong + [f"{path.name} was left behind" for path in out.parent.iterdir() if path != out]


def resume_option(out: Path) -> list[str]:
    return ["--resume"] if any(out.parent.iterdir()) else []


def worker_processes(pid: int) -> list[int]:
    """The worker processes of a run, so far as the system tells."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(child) for child in children if is_worker(int(child))]


def is_worker(pid: int) -> bool:
    """Whether a process is there and is a worker."""
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _unless(right: bool, problem: str) -> list[str]:
    return [] if right else [problem]


def _mount(folder: Path, size: int) -> bool:
    """A file system of so many bytes, where we may mount one."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
