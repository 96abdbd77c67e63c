"""What is done to a run. A trial returns None where the fault could not be brought about, else what was lost.

Afterwards the run is gone on with as a user would, with `--resume`, or `--force` where that is refused in so
many words; the output then has to be that of an undisturbed run, byte for byte, with no other file beside it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from faults.runs import PATIENCE, Bench, Way, kill, workers_of

#: None: the fault did not happen. Else a sentence for everything that went wrong.
Outcome = list[str] | None
Trial = Callable[[Bench, Way], Outcome]


def killed(bench: Bench, way: Way) -> Outcome:
    """kill -9 at a random point, up to three times in a row."""
    out, happened = bench.fresh(way), False
    for _ in range(bench.random.randint(1, 3)):
        process = bench.start(way, out, *go_on(out))
        time.sleep(bench.moment(way))
        happened |= kill(process)
        if out.exists():
            break
    return finished(bench, way, out) if happened else None


def worker_killed(bench: Bench, way: Way) -> Outcome:
    """kill -9 of one worker process at a random point."""
    out = bench.fresh(way)
    process = bench.start(way, out)
    time.sleep(bench.moment(way))
    workers = workers_of(process)
    if not workers:
        kill(process)
        return None
    os.kill(bench.random.choice(workers), signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    wrong = [] if process.returncode in (0, 5) else [f"exit code {process.returncode} instead of 5"]
    return wrong + finished(bench, way, out)


def disk_full(bench: Bench, way: Way) -> Outcome:
    """A disk (tmpfs) that has room for a random part of the output; later there is more room."""
    expected = bench.whole(way)
    disk = bench.fresh(way).parent
    room = bench.random.randrange(4096, max(8192, len(expected)))
    if not _mount(disk, room):
        return None
    try:
        done = bench.run(way, disk / way.output)
        wrong = [] if done.returncode == 5 else [f"exit code {done.returncode} instead of 5"]
        wrong += [f"{path.name} was left behind" for path in disk.iterdir()]
        subprocess.run(["mount", "-o", f"remount,size={4 * len(expected) + 2**20}", str(disk)], check=True)
        return wrong + finished(bench, way, disk / way.output)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def input_cut_off(bench: Bench, way: Way) -> Outcome:
    """The input ends in the middle of a line; later the rest of it is there."""
    whole = bench.data.read_bytes()
    cut = bench.random.randrange(1, len(whole))
    if whole[cut - 1 : cut] == b"\n" or whole[cut : cut + 1] == b"\n":
        return None
    out = bench.fresh(way)
    data = out.parent.with_suffix(".jsonl")
    data.write_bytes(whole[:cut])
    done = bench.run(way, out, data=data)
    wrong = [] if done.returncode == 3 else [f"exit code {done.returncode} instead of 3"]
    wrong += ["half a result under the final name"] if out.exists() else []
    data.write_bytes(whole)
    return wrong + finished(bench, way, out, data)


def checkpoint_damaged(bench: Bench, way: Way) -> Outcome:
    """After a kill, one of the files that the next run goes on from is cut off, or garbled, somewhere."""
    out = bench.fresh(way)
    process = bench.start(way, out)
    time.sleep(bench.moment(way))
    kill(process)
    kept = [path for path in out.parent.iterdir() if path != out and path.stat().st_size]
    if not kept:
        return None
    damaged = bench.random.choice(kept)
    content = damaged.read_bytes()
    at = bench.random.randrange(len(content))
    # Cut anywhere, as a crash leaves it; notes may also hold anything.
    notes = damaged.suffix == ".json" and bench.random.random() < 0.5
    damaged.write_bytes(content[:at] + (bench.random.randbytes(len(content) - at) if notes else b""))
    return finished(bench, way, out)


def two_at_once(bench: Bench, way: Way) -> Outcome:
    """A second run on the same output begins at a random point of the first."""
    out = bench.fresh(way)
    first = bench.start(way, out)
    time.sleep(bench.moment(way) / 2)  # the second takes its time to start, too
    second = bench.run(way, out, *(["--resume"] if bench.random.random() < 0.5 else []))
    _, told = first.communicate(timeout=PATIENCE)
    if b"another run is writing" not in told + second.stderr:
        return None  # one after the other
    codes = sorted([first.returncode, second.returncode])
    wrong = [] if codes == [0, 5] else [f"exit codes {codes} instead of one run and one refusal"]
    return wrong + finished(bench, way, out)


TRIALS: dict[str, Trial] = {
    "killed": killed,
    "worker killed": worker_killed,
    "disk full": disk_full,
    "input cut off": input_cut_off,
    "checkpoint damaged": checkpoint_damaged,
    "two at once": two_at_once,
}


def finished(bench: Bench, way: Way, out: Path, data: Path | None = None) -> list[str]:
    """Go on to the end; what is wrong with the result."""
    if out.exists() and len(list(out.parent.iterdir())) > 1:
        bench.run(way, out, "--resume", data=data)  # stopped when all was done but tidying up
    if not out.exists():
        done = bench.run(way, out, *go_on(out), data=data)
        if done.returncode == 5 and b"--force" in done.stderr:  # it says that it cannot go on, and what to do
            done = bench.run(way, out, "--force", data=data)
        if done.returncode != 0:
            return [f"could not be gone on with: exit code {done.returncode}: {done.stderr.decode()[-300:]}"]
    expected = bench.whole(way)
    wrong = [] if out.read_bytes() == expected else ["the output differs from an undisturbed run's"]
    return wrong + [f"{path.name} was left behind" for path in out.parent.iterdir() if path != out]


def go_on(out: Path) -> list[str]:
    """The option of a run that finds files of an earlier one."""
    return ["--resume"] if any(out.parent.iterdir()) else []


def _mount(place: Path, size: int) -> bool:
    """A file system of so many bytes, where we may mount one."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
