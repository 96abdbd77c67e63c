"""A step of an experiment, and how steps run: in order, several at a time, keeping what is there already.

A step is a function, options that JSON can hold, and the outputs of other steps. The function is called as
`work(output, **options, **needs)` and is given nothing else, so the fingerprint over these covers whatever
it can depend on (but for the libraries). Beside a finished output is a file `.done` with the fingerprint:
an output whose fingerprint is not the one wanted is made again.

Each step runs on `threads` threads of torch, several steps in processes of their own: two trainings on a
thread each are quicker than one after the other on two, and a step's result does not depend on the others.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rangevote import __version__
from rangevote.text import write_atomically

#: Raised by hand when a step's own code changes what it writes.
FORMAT = 1


@dataclass(frozen=True, eq=False)
class InputFile:
    """A file that is there already, known by its contents."""

    output: Path

    @cached_property
    def key(self) -> str:
        """A fingerprint of the contents."""
        with self.output.open("rb") as file:
            digest = hashlib.sha256()
            while block := file.read(2**20):
                digest.update(block)
        return digest.hexdigest()[:32]


@dataclass(frozen=True, eq=False)
class Stage:
    """A step: `name` for people, `kind` what it does, `seed` 0 where it serves all seeds.

    `needs` are other steps (or lists of them), by the name under which `work` takes their outputs. A `keyed`
    output has the fingerprint in its name, for what must never be mixed with an earlier one's files. A step
    with a `draft` is given a folder of that name, its own, in which an interrupted run can find its parts.
    """

    name: str
    kind: str
    path: Path
    work: Callable[..., None]
    options: Mapping[str, Any]
    needs: Mapping[str, Stage | InputFile | Sequence[Stage]] = field(default_factory=dict)
    seed: int = 0
    keyed: bool = False
    draft: bool = False

    @cached_property
    def key(self) -> str:
        """A fingerprint of the work, its options and everything before it."""
        before = {
            name: [one.key for one in need] if isinstance(need, Sequence) else need.key
            for name, need in self.needs.items()
        }
        known = {
            "work": self.work.__qualname__,
            "options": self.options,
            "needs": before,
            "format": FORMAT,
            "rangevote": __version__,
        }
        return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:32]

    @cached_property
    def output(self) -> Path:
        """What the step makes, a file or a folder."""
        return self.path.with_name(f"{self.path.name}-{self.key[:8]}") if self.keyed else self.path

    @property
    def before(self) -> list[Stage]:
        """The steps that must be done first."""
        listed = [need if isinstance(need, Sequence) else [need] for need in self.needs.values()]
        return [one for several in listed for one in several if isinstance(one, Stage)]

    @property
    def mark(self) -> Path:
        """The file that says the output is complete."""
        return self.output.with_name(f"{self.output.name}.done")

    @property
    def seconds(self) -> float | None:
        """How long the work took; None if it is still to be done."""
        try:
            found = json.loads(self.mark.read_bytes())
        except (OSError, ValueError):
            return None
        if found.get("key") != self.key or not self.output.exists():
            return None
        return float(found["seconds"])

    @property
    def done(self) -> bool:
        """Whether the output is there and the right one."""
        return self.seconds is not None

    def run(self) -> float:
        """Do the work, and say how many seconds it took."""
        self.output.parent.mkdir(parents=True, exist_ok=True)
        self.mark.unlink(missing_ok=True)  # first: no mark may ever stand beside another's output
        began = time.monotonic()
        paths: dict[str, Any] = {
            name: [one.output for one in need] if isinstance(need, Sequence) else need.output
            for name, need in self.needs.items()
        }
        if self.draft:
            paths["draft"] = self.output.with_name(f"{self.output.name}.{self.key[:8]}.draft")
            paths["draft"].mkdir(exist_ok=True)
        self.work(self.output, **self.options, **paths)
        seconds = time.monotonic() - began
        if self.draft:
            shutil.rmtree(paths["draft"])
        write_json(self.mark, {"key": self.key, "seconds": round(seconds, 2), "step": self.name})
        return seconds


def write_table(table: str, page: Path, begin: str, end: str) -> None:
    """Put a table between its marks on a page."""
    head, _, rest = page.read_text(encoding="utf-8").partition(begin)
    tail = rest.partition(end)[2]
    with write_atomically(page) as file:
        file.write(f"{head}{begin}\n\n{table.strip()}\n\n{end}{tail}".encode())


def write_json(path: Path, data: Any) -> None:
    """Plain data to a file (.gz: packed) that gets its name when it is complete."""
    with write_atomically(path) as file:
        file.write(json.dumps(data, indent=1, ensure_ascii=False).encode() + b"\n")


Say = Callable[[str], None]


def say(line: str) -> None:
    """A line for whoever watches."""
    print(line, file=sys.stderr, flush=True)


def wanted(stages: Sequence[Stage]) -> list[Stage]:
    """These steps and all before them, each after what it needs."""
    found: dict[Stage, None] = {}

    def visit(stage: Stage) -> None:
        if stage not in found:
            for before in stage.before:
                visit(before)
            found[stage] = None

    for stage in stages:
        visit(stage)
    return list(found)


def run(stages: Sequence[Stage], *, jobs: int = 1, threads: int = 1, tell: Say = say) -> None:
    """Do what is not done; the first error ends the run, and the next one goes on from there."""
    everything = wanted(stages)
    todo = [stage for stage in everything if not stage.done]
    kept = len(everything) - len(todo)
    if kept:
        tell(f"{kept} steps are done already")
    # a step whose needs are made anew is not done either, since its fingerprint tells them apart
    finished = _in_turn(todo, threads) if jobs == 1 else _side_by_side(todo, jobs, threads)
    for number, (stage, seconds) in enumerate(finished, 1):
        tell(f"[{number}/{len(todo)}] {stage.name}: {seconds:.1f} s")


def _in_turn(todo: Sequence[Stage], threads: int) -> Iterator[tuple[Stage, float]]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for stage in todo:
            yield stage, stage.run()
    finally:
        torch.set_num_threads(before)


def _side_by_side(todo: Sequence[Stage], jobs: int, threads: int) -> Iterator[tuple[Stage, float]]:
    """Whatever has all it needs may run; trainings first, since most waits for them."""
    left = sorted(todo, key=lambda stage: stage.kind != "train")
    not_done = set(todo)
    running: dict[Future[float], Stage] = {}
    context = multiprocessing.get_context("spawn")  # a fork of a process with torch's threads may hang
    with ProcessPoolExecutor(jobs, context, _begin, (threads,)) as pool:
        try:
            while left or running:
                ready = [s for s in left if not_done.isdisjoint(s.before)]
                for stage in ready[: jobs - len(running)]:
                    left.remove(stage)
                    running[pool.submit(stage.run)] = stage
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    stage = running.pop(future)
                    seconds = future.result()
                    not_done.discard(stage)
                    yield stage, seconds
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin(threads: int) -> None:
    """What a process does first."""
    import torch

    torch.set_num_threads(threads)
