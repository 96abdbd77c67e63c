"""What became of the winners of a small beam in a larger one (section 4.2.1 of the paper)."""

from __future__ import annotations

import pytest

from rangevote.errors import DataError
from rangevote.evaluation.evaluate import selection, texts_of
from rangevote.hypothesis import Ballot, Hypothesis


def test_winners_are_absent_or_lost_or_chosen_again():
    beam = [["a", "x"], ["b", "x"], ["x"], ["d", "x"]]
    found = selection(["a", "b", "c", "d"], beam, ["a", "x", "x", "d"])
    assert (found.absent_share, found.again_share) == (25, 50)


def test_the_beam_of_a_ballot_is_its_candidates_texts():
    ballot = Ballot([Hypothesis("a b"), Hypothesis("")])
    assert texts_of(ballot) == ["a b", ""]
    with pytest.raises(DataError, match=r"candidates\[1\]: has no text"):
        texts_of(Ballot([Hypothesis("a"), Hypothesis(tokens=[1])]))


def test_lists_that_do_not_go_in_step_are_refused():
    with pytest.raises(DataError, match=r"there are 2 winners, 1 larger beams and 2 winners of these"):
        selection(["a", "b"], [["a"]], ["a", "b"])
    with pytest.raises(DataError, match=r"there are no winners"):
        selection([], [], [])
