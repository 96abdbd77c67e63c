"""Partial copies of stored lists by sets and by bags."""

from __future__ import annotations

from experiments.copies import METHODS, measured

import rangevote as rv


def test_a_word_that_repeats_in_the_source_counts_once_by_sets_and_each_time_by_bags():
    copying = rv.Ballot([rv.Hypothesis("the cat", logprob=-1.0)], source="the cat the dog the end")
    other = rv.Ballot([rv.Hypothesis("eine Katze", logprob=-1.0)], source="a cat")
    found = measured([copying, other])
    assert found["ballots"] == 2
    for name in METHODS:
        assert found["methods"][name] == {"partial_copies": 50.0, "partial_copies_by_bags": 0.0}
