"""200 elections under every similarity that needs no model give the recorded winners and scores.

The first line of the file says what each similarity computes. If one was corrected on purpose, record the
results again: `python -m tests.election.test_frozen_ballots`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import rangevote as rv
from rangevote.similarity import SIMILARITIES
from tests.wheels import done

FILE = Path(__file__).with_name("frozen_ballots.jsonl")
HEADER, *BALLOTS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def elected(ballot: dict[str, Any], similarity: str) -> rv.Result:
    lists = {
        name: [rv.Hypothesis(**row) for row in ballot.get(name, ())] for name in ("candidates", "voters")
    }
    return rv.elect(
        lists["candidates"],
        voters=lists["voters"] or None,
        similarity=similarity,
        tokenize="space",
        weights=ballot["weights"],
        temperature=ballot.get("temperature"),
    )


def check() -> None:
    """Elect every ballot with the kernels in use; exp() may differ in its last bit between systems."""
    for ballot in BALLOTS:
        for similarity, expected in ballot["expected"].items():
            result = elected(ballot, similarity)
            assert result.leader == expected["winner"], (ballot["id"], similarity)
            assert result.scores == pytest.approx(expected["scores"], abs=1e-12), (ballot["id"], similarity)


def test_the_file_has_every_similarity_that_needs_no_model():
    recorded = set(HEADER["measures"])
    names = {name.partition(":")[0].rstrip("-@.0123456789").rstrip("_") for name in recorded}
    assert set(SIMILARITIES) <= names, "add it to `measures` in the first line, and record the results"
    assert all(recorded - {"states"} <= set(ballot["expected"]) for ballot in BALLOTS)


@pytest.mark.parametrize("pure", ["", "1"])
def test_both_kernels_elect_the_recorded_winners_with_their_scores(pure):
    pytest.importorskip("sacrebleu")
    pytest.importorskip("rapidfuzz")
    command = [sys.executable, "-c", "from tests.election.test_frozen_ballots import check; check()"]
    done(command, env={**os.environ, "RANGEVOTE_PURE": pure})


if __name__ == "__main__":
    for ballot in BALLOTS:
        has_states = "state" in ballot["candidates"][0]
        names = [name for name in HEADER["measures"] if name != "states" or has_states]
        results = {name: elected(ballot, name) for name in names}
        ballot["expected"] = {
            name: {"winner": result.leader, "scores": result.scores.tolist()}
            for name, result in results.items()
        }
    lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in (HEADER, *BALLOTS)]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
