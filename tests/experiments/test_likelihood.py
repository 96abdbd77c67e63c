"""Own likelihood beside the votes: what is elected by samples and by the beam."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("sacrebleu")

from experiments.likelihood import BASELINES, ELECTIONS, WEIGHTS, measured

import rangevote as rv

LIKELY, SHORT = "two dogs run on the white snow", "a cat sits"


def test_likelihood_decides_more_the_more_it_weighs():
    """Samples vote for the short text, the candidates' own likelihood for the long one."""
    candidates = [rv.Hypothesis(LIKELY, logprob=-1.0), rv.Hypothesis(SHORT, logprob=-40.0)]
    ballots = {2: [rv.Ballot(candidates, references=[LIKELY])]}
    found = measured(ballots, [rv.Ballot([rv.Hypothesis(SHORT)] * 3)])
    assert list(found) == [*BASELINES, *ELECTIONS]
    assert found["beam search"]["2"] == pytest.approx(100)
    by_samples = found["100 samples, overlap_2"]["2"]
    assert list(by_samples) == [f"{x:g}" for x in WEIGHTS]
    assert by_samples["0"] < by_samples["1.6"] == pytest.approx(100)
