"""The frozen elections agree with the equations and sacrebleu, and with the kernels of this machine."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from typing import Any

import pytest

import rangevote as rv
from rangevote.similarity import SIMILARITIES
from tests.election import equations
from tests.election.frozen_ballots import FILE, MEASURES, SIZE

HEADER, *BALLOTS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def test_the_set_has_200_ballots_and_every_measure_that_needs_no_model():
    assert len(BALLOTS) == SIZE
    assert HEADER["measures"] == MEASURES
    stems = {name.partition(":")[0].rstrip("-@.0123456789").rstrip("_") for name in MEASURES}
    missing = set(SIMILARITIES) - stems
    assert not missing, f"say what {missing} is in MEASURES, then: python -m tests.election.frozen_ballots"
    every = set(MEASURES) - {"states"}
    assert all(every <= set(ballot["expected"]) for ballot in BALLOTS)
    assert sum("states" in ballot["expected"] for ballot in BALLOTS) >= 30
    assert sum("voters" in ballot for ballot in BALLOTS) >= 30


def weights(ballot: dict[str, Any]) -> tuple[list[str], list[float]]:
    """Voters and their weights, from what the header of the file says."""
    voters = ballot.get("voters", ballot["candidates"])
    if ballot["weights"] == "count":
        return [voter["text"] for voter in voters], [1 / len(voters)] * len(voters)
    distinct = list({(voter["text"], voter["logprob"]): voter for voter in voters}.values())
    mass = [math.exp(voter["logprob"] / ballot["temperature"]) for voter in distinct]
    return [voter["text"] for voter in distinct], [one / math.fsum(mass) for one in mass]


def by_equations(measure: str, voter: str, candidate: str) -> float:
    stem, _, rest = measure.partition("_")
    orders, _, exponent = rest.partition("@")
    first, _, last = orders.partition("-")
    span = range(int(first), int(last or first) + 1)
    return equations.family(
        voter.split(), candidate.split(), span, float(exponent or 0), bag=stem == "precision"
    )


@pytest.mark.parametrize("measure", [name for name in MEASURES if name.startswith(("overlap", "precision"))])
def test_what_is_expected_of_ngrams_follows_from_the_equations(measure):
    for ballot in BALLOTS:
        voters, shares = weights(ballot)
        for candidate, score in zip(ballot["candidates"], ballot["expected"][measure]["scores"], strict=True):
            votes = [by_equations(measure, voter, candidate["text"]) for voter in voters]
            total = math.fsum(w * vote for w, vote in zip(shares, votes, strict=True))
            assert score == pytest.approx(total, abs=1e-12), (ballot["id"], candidate)


def test_what_is_expected_of_bleu_and_chrf_is_what_sacrebleu_says():
    metrics = pytest.importorskip("sacrebleu.metrics", reason="the extra 'evaluate' is not installed")
    options = {"tokenize": "none", "effective_order": False, "lowercase": False}
    judges = {
        "bleu_4": metrics.BLEU(**options, smooth_method="none"),
        "smoothed_bleu_4": metrics.BLEU(**options, smooth_method="add-k", smooth_value=1),
        "chrf": metrics.CHRF(),
        "chrf++": metrics.CHRF(word_order=2),
    }
    for ballot in BALLOTS[::4]:
        voters, shares = weights(ballot)
        for measure, judge in judges.items():
            for candidate, score in zip(
                ballot["candidates"], ballot["expected"][measure]["scores"], strict=True
            ):
                if not candidate["text"].strip() or not all(voter.strip() for voter in voters):
                    continue  # where sacrebleu has no opinion
                votes = [judge.sentence_score(candidate["text"], [voter]).score / 100 for voter in voters]
                total = math.fsum(w * vote for w, vote in zip(shares, votes, strict=True))
                assert score == pytest.approx(total, abs=1e-9), (ballot["id"], measure, candidate)


def held() -> None:
    """Elect every ballot with the kernels in use; exp() may differ in its last bit between systems."""
    for ballot in BALLOTS:
        candidates, voters = (
            [rv.Hypothesis(**row) for row in ballot[key]] if key in ballot else None
            for key in ("candidates", "voters")
        )
        options = {"weights": ballot["weights"], "temperature": ballot.get("temperature")}
        for measure, expected in ballot["expected"].items():
            result = rv.elect(candidates, voters=voters, similarity=measure, tokenize="space", **options)
            assert result.leader == expected["winner"], (ballot["id"], measure)
            assert result.scores == pytest.approx(expected["scores"], abs=1e-12), (ballot["id"], measure)


@pytest.mark.parametrize("pure", ["", "1"])
def test_both_kernels_elect_the_frozen_winners_with_their_scores(pure):
    pytest.importorskip("sacrebleu")
    pytest.importorskip("rapidfuzz")
    command = [sys.executable, "-c", "from tests.election.test_frozen_ballots import held; held()"]
    done = subprocess.run(command, env={**os.environ, "RANGEVOTE_PURE": pure}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
