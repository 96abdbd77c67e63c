"""Samples of an LLM: how good the elected one is, beside the mean sample.

Game of 24 (100 puzzles, 100 samples of GPT-4 each): the share of right answers when n samples elect one of
them, by the answer that stands behind "Answer:" or by texts, for n from 4 to 100; `samples.py` has more on
answers. Writing (100 tasks, 10 samples each, with given scores from 1 to 10): the score of the elected text,
beside the mean, the best and the longest. The samples are those of tree-of-thought-llm (Yao et al. 2023).

    make reproduce NAME=llm     # writes results/llm.json and RESULTS.md
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.page import write_page
from experiments.settings import HERE, Folders
from experiments.steps import write_json
from rangevote.election.elect import elect
from rangevote.errors import RangevoteError

PUZZLES, WRITING = "game24_gpt4_cot_100samples.json.gz", "writing_gpt4_cot_10samples.json.gz"
NUMBERS = (4, 8, 16, 32, 64, 100)
DRAWS, SEED, RESAMPLES = 50, 1, 2000
ANSWER = "exact:after:Answer:"
PUZZLE_MEASURES = (ANSWER, "overlap_2", "blend", "chrf")
TEXT_MEASURES = (
    *("overlap_1", "overlap_2", "blend", "chrf", "bleu_4", "rouge_l", "edit"),
    *("embedding:universal-sentence-encoder",),
)
CUTOFFS = (None, 0.3, 0.5)

Task = Mapping[str, Any]


def read_tasks(path: Path) -> list[Task]:
    with gzip.open(path, "rb") as file:
        tasks: list[Task] = json.loads(file.read())
    return tasks


def interval(values: Sequence[float]) -> dict[str, Any]:
    """The mean over tasks, with its 95 % interval over tasks drawn again."""
    known = np.asarray(values, dtype=float)
    drawn = np.random.default_rng(SEED).integers(len(known), size=(RESAMPLES, len(known)))
    low, high = np.quantile(known[drawn].mean(axis=1), [0.025, 0.975])
    return {"mean": float(known.mean()), "interval": [float(low), float(high)]}


def right(task: Task) -> list[float]:
    return [float(info["r"]) for info in task["infos"]]


def puzzles(
    tasks: Sequence[Task], measures: Sequence[str] = PUZZLE_MEASURES, numbers: Sequence[int] = NUMBERS
) -> dict[str, Any]:
    """Shares of right answers, in per cent: of the mean sample, and elected among n of them."""
    found: dict[str, Any] = {
        "tasks": len(tasks),
        "sample": interval([100 * np.mean(right(t)) for t in tasks]),
    }
    found["any"] = interval([100 * max(right(task)) for task in tasks])
    elected: dict[str, dict[str, Any]] = {}
    for measure in measures:
        for number in numbers:
            shares = [100 * _share_right(task, i, measure, number) for i, task in enumerate(tasks)]
            elected.setdefault(measure, {})[str(number)] = interval(shares)
    found["elected"] = elected
    return found


def _share_right(task: Task, index: int, measure: str, number: int) -> float:
    """How often the elected one is right, over draws of so many of the samples."""
    marks, texts = right(task), task["ys"]
    draws = 1 if number == len(texts) else DRAWS
    total = 0.0
    for draw in range(draws):
        chosen = np.random.default_rng([SEED, index, draw]).permutation(len(texts))[:number]
        winner = elect([texts[i] for i in chosen], similarity=measure).index
        total += 0.0 if winner is None else marks[chosen[winner]]  # None: no sample has an answer
    return total / draws


def writing(tasks: Sequence[Task], measures: Sequence[str] = TEXT_MEASURES) -> dict[str, Any]:
    """Scores of the elected texts, and of what else might be chosen."""

    def of(choose: Callable[[list[str], list[float]], float]) -> dict[str, Any]:
        return interval([choose(task["ys"], right(task)) for task in tasks])

    found: dict[str, Any] = {
        "tasks": len(tasks),
        "mean": of(lambda texts, scores: float(np.mean(scores))),
        "best": of(lambda texts, scores: max(scores)),
        "longest": of(lambda texts, scores: scores[max(range(len(texts)), key=lambda i: len(texts[i]))]),
    }
    elected: dict[str, Any] = {}
    for measure in measures:
        for cutoff in CUTOFFS:
            options = {} if cutoff is None else {"cutoff": cutoff}
            name = measure if cutoff is None else f"{measure}, cut-off {cutoff}"

            def choose(texts: list[str], scores: list[float], m: str = measure, o: Any = options) -> float:
                return scores[elect(texts, similarity=m, **o).index]

            try:
                elected[name] = of(choose)
            except RangevoteError as error:
                print(f"left out: {name}: {error}", file=sys.stderr)
        elected[f"{measure}, cluster"] = of(
            lambda texts, scores, m=measure: scores[elect(texts, similarity=m, rule="cluster").index]
        )
    found["elected"] = elected
    return found


def main() -> None:
    folders = Folders.usual()
    data = {
        "game24": puzzles(read_tasks(folders.given("llm", PUZZLES))),
        "writing": writing(read_tasks(folders.given("llm", WRITING))),
    }
    write_json(HERE / "results" / "llm.json", data)
    write_page(HERE / "results", HERE)
