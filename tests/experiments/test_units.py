"""Words against white space: what is compared."""

from __future__ import annotations

import pytest
from experiments.units import compare, tied

import rangevote as rv


def test_units_are_compared_on_the_same_candidates():
    pytest.importorskip("sacrebleu")
    texts = ["Nine.", "It is TEN!", "ten"]
    ballot = rv.Ballot([rv.Hypothesis(text, sampled=True) for text in texts], references=("It is TEN!",))
    found = compare([ballot], {"similarity": "overlap_1"})
    assert (found["ballots"], found["same"]) == (1, 0.0)
    assert found["chrf"]["space"] + found["chrf"]["words"] == pytest.approx(100)


@pytest.mark.filterwarnings("ignore:no voter supports")
def test_texts_without_spaces_tie_where_words_are_cut_at_white_space():
    texts = ["\u72ac\u304c\u8d70\u308b", "\u72ac\u304c\u8d70\u3063\u305f", "\u732b"]
    found = tied([rv.Ballot([rv.Hypothesis(text) for text in texts])])
    assert found == {"ballots": 1, "space": 1, "words": 0}
