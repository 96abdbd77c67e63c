"""Run steps in order, several at a time; what is there already is kept.

Each step runs on `threads` threads of torch, several steps in processes of their own: two trainings on a
thread each are quicker than one after the other on two, and a step's result does not depend on the others.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

from experiments.stage import Stage

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
