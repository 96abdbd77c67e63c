"""Elections over real n-best lists give the recorded winners and scores.

After a change that is meant to alter them, record them again and say so in the changelog:

    python -m tests.test_real_lists
"""

from __future__ import annotations

import hashlib
import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import rangevote as rv
from rangevote.formats import read

DATA = Path(__file__).parents[2] / "shared" / "data" / "nbest"
RECORDED = Path(__file__).with_suffix(".json")
BEAMS, SAMPLES = "test_2016_flickr.en-de.k10", "test_2016_flickr.en-de.samples100"
LISTS = ["flickr8k_test.k10", "flickr8k_test.k100", "test_2016_flickr.en-de.k4", BEAMS]
LISTS += ["test_2016_flickr.en-de.k100", SAMPLES, "beams elected by samples"]
MEASURES: dict[str, dict[str, Any]] = {"default": {}} | {
    name: {"similarity": name, "tokenize": "space"}
    for name in ("blend", "overlap_2", "bleu_4", "chrf", "exact")
}


@cache
def ballots(name: str) -> list[rv.Ballot]:
    if name == LISTS[-1]:
        pairs = zip(ballots(BEAMS), ballots(SAMPLES), strict=True)
        return [msgspec.structs.replace(beams, voters=samples.candidates) for beams, samples in pairs]
    with read(DATA / f"{name}.jsonl.gz") as entries:
        return [entry.get() for entry in entries]


def summary(name: str, measure: str) -> dict[str, Any]:
    """A digest of all winners, and two sums of all scores.

    Sums, and not a digest: a digest changes with the last bit of any score, and also when the scores are
    rounded first, since some of 500,000 always lie next to where rounding goes the other way.
    """
    digest, total, weighted, number = hashlib.sha256(), 0.0, 0.0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.RangevoteWarning)  # samples with equal texts
        for result in rv.elect_many(ballots(name), **MEASURES[measure]):
            digest.update(f"{result.index}\0{result}\0".encode())
            total += float(result.scores.sum())
            weighted += float(result.scores @ np.cos(np.arange(number, number + len(result.scores))))
            number += len(result.scores)
    return {"winners": digest.hexdigest()[:16], "scores": [total, weighted]}


@pytest.mark.skipif(not DATA.exists(), reason="the real n-best lists (../shared/data/nbest) are missing")
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("name", LISTS)
def test_winners_and_scores_on_real_lists_are_the_recorded_ones(name: str, measure: str):
    expected = json.loads(RECORDED.read_text())[f"{name}, {measure}"]
    found = summary(name, measure)
    assert found["winners"] == expected["winners"]
    assert found["scores"] == pytest.approx(expected["scores"], rel=2**-40, abs=2**-30)


if __name__ == "__main__":
    made = {f"{name}, {measure}": summary(name, measure) for name in LISTS for measure in MEASURES}
    lines = ",\n".join(f'  "{key}": {json.dumps(value)}' for key, value in made.items())
    RECORDED.write_text("{\n" + lines + "\n}\n")
