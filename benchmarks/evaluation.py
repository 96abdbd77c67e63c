"""Bootstrap against sacrebleu's, and tuning against separate elections."""

from __future__ import annotations

import logging
import random
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import generate
from common import Row, chapter, say, versions
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

import rangevote as rv
from rangevote.evaluation.evaluate import compare
from rangevote.tuning.grid import grid
from rangevote.tuning.tune import tune

K = 100
#: A part of the elections is enough to tell what all of them one by one would take.
SEPARATE = 20


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """CPU seconds, wall seconds, and what came out."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return time.process_time() - cpu, time.perf_counter() - wall, result


def ballots(sentences: int) -> list[rv.Ballot]:
    """Generated lists; the reference is one of the ten most probable texts, with a word left out."""
    chance = random.Random(1)
    generated = []
    for number in range(sentences):
        made = generate.ballot(K, number)
        words = made.texts[chance.randrange(10)].split()
        words.pop(chance.randrange(len(words)))
        pairs = zip(made.texts, made.logprobs, strict=True)
        listed = [rv.Hypothesis(text, logprob=logprob) for text, logprob in pairs]
        generated.append(rv.Ballot(listed, id=number, references=[" ".join(words)]))
    return generated


def bootstrap(listed: list[rv.Ballot], rounds: int) -> tuple[Row, str]:
    """Two systems, 1,000 resamples: all that `compare` does, against sacrebleu's test."""
    references = [ballot.references[0] for ballot in listed]
    first = [ballot.candidates[0].text or "" for ballot in listed]
    second = [rv.elect(ballot).winner for ballot in listed]
    systems = {"most likely": first, "overlap_2": second}
    named = list(systems.items())
    ours, theirs = [], []
    for _ in range(rounds):
        cpu, _, comparison = timed(lambda: compare(systems, references, metrics=["bleu"], resamples=1_000))
        ours.append(cpu)
        cpu, _, other = timed(
            lambda: PairedTest(named, {"BLEU": BLEU(references=[references])}, None, "bs", 1_000)()
        )
        theirs.append(cpu)
    mine, peer = comparison.systems[1].scores["bleu"].value, other[1]["BLEU"][1].score
    ratio = statistics.median(theirs) / statistics.median(ours)
    row = Row(
        "paired bootstrap of BLEU, 2 systems, statistics of sentences included",
        "< 1 s",
        f"{statistics.median(ours):.2f} s; sacrebleu {statistics.median(theirs):.2f} s ({ratio:.1f} x)",
        statistics.median(ours) < 1.0,
    )
    return row, f"BLEU of the second system: {mine:.4f} here, {peer:.4f} by sacrebleu."


def tuning(listed: list[rv.Ballot], rounds: int) -> tuple[Row, str]:
    """All settings on all ballots, against as many separate elections (a part of them, scaled up)."""
    ours, walls = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(rounds):
            cpu, wall, tuned = timed(lambda: tune(listed, metric="bleu"))
            ours.append(cpu)
            walls.append(wall)
    settings = grid()
    part = listed[:: len(listed) // SEPARATE]

    def separately() -> list[list[int]]:
        return [[rv.elect(ballot, **one.options).index for ballot in part] for one in settings]

    cpu, _, _ = timed(separately)
    whole = cpu * len(listed) / len(part)
    row = Row(
        f"rangevote.tune, {len(settings)} settings x {len(listed):,} ballots of k = {K}, one thread",
        "< 60 s on 2 cores",
        f"{statistics.median(ours):.2f} s; elections alone, one by one: {whole:.1f} s",
        statistics.median(ours) < 60.0,
    )
    return row, f"Wall time of the last tuning: {walls[-1]:.1f} s. Chosen: {tuned.chosen.setting.name}."


def measure(quick: bool) -> dict[str, Any]:
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    sentences, rounds = (SEPARATE, 1) if quick else (1_000, 3)
    say("lists")
    listed = ballots(sentences)
    say("bootstrap")
    first, note = bootstrap(listed, rounds)
    say("tuning")
    second, other = tuning(listed, rounds)
    about = f"CPU time, median of {rounds} rounds, on generated lists ({sentences:,} ballots, `generate.py`)."
    return {
        "rows": [first, second],
        "about": " ".join([about, note, other]),
        "versions": versions("rangevote", "sacrebleu"),
    }


def page(data: dict[str, Any]) -> str:
    rows = [Row(*row) for row in data["rows"]]
    return chapter("How fast are evaluation and tuning?", data["about"], data, {"": rows})
