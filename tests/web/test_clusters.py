"""How firm a winner is: equal to elections under the other measure, or without the voter, held by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rangevote as rv
from rangevote.election.settings import Settings
from rangevote.web import clusters
from rangevote.web.api import ElectedBallot, MeasureWinner
from tests.figure1 import WINNER
from tests.web.samples import BALLOTS, EVERY, FIGURE, ballot


@settings(max_examples=40)
@given(one=BALLOTS, similarity=st.sampled_from(EVERY), x=st.sampled_from([None, 0.7]))
def test_leaving_a_voter_out_gives_the_winner_of_an_election_without_it(one, similarity, x):
    options = {"similarity": similarity, "weights": "count", "likelihood": x}
    elected = ElectedBallot(one, Settings(**options))
    result, found = elected.result, clusters.stability(elected)
    if len(one.candidates) < 2 or result.winner is None:
        assert found.why
        return
    changed = {change.voter: change for change in found.changes}
    margins = []
    for voter in range(len(one.candidates)):
        others = [h for i, h in enumerate(one.candidates) if i != voter]
        by_hand = rv.elect(rv.Ballot(one.candidates, others), **options)
        margin = math.inf if by_hand.margin is None else by_hand.margin
        winner = changed[voter].winner if voter in changed else result.index
        if by_hand.winner is None:
            assert (changed[voter].winner, changed[voter].margin) == (None, None)
        elif winner != by_hand.index:  # only where rounding decides
            assert margin < 1e-11
        elif voter in changed:
            assert changed[voter].margin == pytest.approx(margin, abs=1e-10)
        else:
            margins.append(margin)
    assert found.tried == found.voters == len(one.candidates)
    assert found.same + len(changed) == found.tried
    assert found.firm == (found.same >= 0.9 * found.tried)
    if min(margins, default=math.inf) < math.inf:
        assert found.smallest_margin == pytest.approx(min(margins), abs=1e-10)
    else:
        assert found.smallest_margin is None


@pytest.mark.parametrize("x", [None, 0.01])
def test_leaving_out_a_voter_of_nearly_all_weight_counts_the_others_exactly(x):
    texts, logprobs = ["x y", "a b c", "a b d"], [-1.0, -40.0, -39.9]
    elected = ElectedBallot(ballot(texts, logprobs), Settings(similarity="overlap_1", likelihood=x))
    assert elected.result.weights[0] > 1 - 1e-15
    found = clusters.stability(elected)
    options = {"voters": texts[1:], "voter_logprobs": logprobs[1:], "similarity": "overlap_1"}
    by_hand = rv.elect(texts, logprobs, likelihood=x, **options)
    [change] = found.changes
    assert (change.voter, change.winner) == (0, by_hand.index)
    assert change.margin == pytest.approx(by_hand.margin, rel=1e-9)


def test_without_the_only_voter_that_does_not_abstain_nobody_wins():
    found = clusters.stability(ElectedBallot(ballot(["", "a"]), Settings(similarity="overlap_1")))
    assert (found.tried, found.same, found.firm) == (2, 1, False)
    [change] = found.changes
    assert (change.voter, change.winner, change.margin) == (1, None, None)


def test_without_voters_or_a_winner_nothing_is_left_out():
    for options, why in (
        ({"rule": "most_likely"}, "nobody voted."),
        ({"min_score": 2}, "there is no winner."),
    ):
        assert clusters.stability(ElectedBallot(FIGURE, Settings(**options))).why == why


def won(one: rv.Ballot = FIGURE, **options: Any) -> dict[str, MeasureWinner]:
    """The winners of a ballot by measure."""
    return {row.measure: row for row in clusters.winners(one, "k10", Settings(**options)).measures}


def test_the_winner_under_each_measure_is_that_of_elect():
    rows = won(similarity="bleu_4")
    for name in (*clusters.MEASURES[:-1], *clusters.BASELINES):
        row, rule = rows[name], name in clusters.BASELINES
        expected = rv.elect(FIGURE, **({"rule": name} if rule else {"similarity": name}))
        assert (row.winner, row.text, row.margin) == (expected.index, expected.winner, expected.margin)
        assert rule or row.signature == expected.signature


def test_states_stand_among_the_measures_where_they_are_known():
    states = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]
    one = rv.Ballot([rv.Hypothesis(text=t, state=s) for t, s in zip("abc", states, strict=True)])
    rows = won(one)
    assert rows["states"].winner == rv.elect(one, similarity="states").index
    assert "log" in rows["most_likely"].why
    assert "have no state vectors" in won()["states"].why


def test_other_measures_keep_the_tokenisation_weights_and_temperature():
    rows = won(tokenize="chars", weights="probability", temperature=3.0)
    for name in ("overlap_1", "blend"):
        assert "on:chars|w:probability|T:3" in rows[name].signature
    for name, temperature in (("overlap_1", 1), ("blend", 2)):
        assert f"|T:{temperature}|" in won()[name].signature


def test_pairs_that_take_too_long_are_left_to_the_command_line(monkeypatch):
    monkeypatch.setattr(clusters, "PAIRS", 50)
    rows = won()
    assert rows["bleu_4"].why == "100 pairs are too many for a page; use rangevote vote."
    assert rows["overlap_2"].text == WINNER
    assert clusters.stability(ElectedBallot(FIGURE, Settings())).tried == 5
