"""Elections over shared counts elect whom separate elections elect."""

from __future__ import annotations

import numpy as np
import pytest

import rangevote as rv
from rangevote.errors import DataError
from rangevote.tuning.grid import BASELINES, UNKNOWN, GridElections, grid
from tests.tuning.made_up import ballots

SETTINGS = grid(
    ["overlap_1", "overlap_2", "precision_1-4", "bleu_4", "chrf", "edit", "exact", "0.5*overlap_1+0.5*chrf"],
    [0, 0.25, 1],
    [0.5, 1, 3],
    ["words", "13a"],
)


def separately(ballot, setting, **options):
    if not setting.has_voters:
        return rv.elect(ballot, rule=setting.rule, **options)
    return rv.elect(ballot, **setting.options, **options)


@pytest.mark.parametrize("voters", [0, 5])
@pytest.mark.parametrize(
    "options",
    [{}, {"merge": True}, {"normalize": "NFC"}, {"weights": "count"}],
    ids=lambda o: next(iter(o), ""),
)
def test_winners_are_those_of_an_election_for_each_setting(options, voters):
    pytest.importorskip("rapidfuzz")
    office = GridElections([*SETTINGS, *BASELINES], **options)
    for ballot in ballots(6, voters=voters):
        expected = [separately(ballot, setting, **options).index for setting in office.settings]
        assert office.winners(ballot) == expected


def test_scores_are_the_same_bit_for_bit():
    for ballot in ballots(6):
        shared = GridElections([]).shared(ballot)
        for setting in grid():
            alone = rv.elect(ballot, **setting.options)
            assert np.array_equal(shared.poll(setting).tally(alone.weights), alone.scores)


def test_a_count_is_shared_by_all_exponents_of_a_measure():
    shared = GridElections([]).shared(ballots(1)[0])
    for setting in grid(["overlap_2", "precision_2", "overlap_1"]):
        shared.winner(setting)
    assert len(shared._polls) == 3
    assert len(shared._weights) == 4


def test_a_rule_without_voters_has_no_winner_where_a_log_probability_is_missing():
    office = GridElections([*grid(["overlap_2"], [0], [1]), *BASELINES])
    winners = office.winners(ballots(1, known=False)[0])
    assert winners[0] >= 0
    assert winners[1:] == [UNKNOWN, UNKNOWN]


def test_a_ballot_without_candidates_is_refused():
    with pytest.raises(DataError, match="no candidates"):
        GridElections(grid()).winners(rv.Ballot([]))
