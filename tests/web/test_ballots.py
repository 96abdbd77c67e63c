"""Ballots at hand: kept as they came, found by place and by id."""

from __future__ import annotations

import math

import pytest

from rangevote.errors import DataError
from rangevote.formats import read
from rangevote.web.ballots import BallotLists, Ballots, names_of
from tests.web.samples import ballot


def test_ballots_come_back_as_they_were_kept_by_place_and_by_id(tmp_path, monkeypatch):
    monkeypatch.setattr("rangevote.web.ballots.IN_MEMORY", 64)  # so that the file is used
    many = [
        ballot([f"text {i}", "é\u2028\x00"], [-1.0, -math.inf], id=i if i % 2 else None) for i in range(50)
    ]
    kept = Ballots.of("x", many)
    assert len(kept) == 50
    assert [kept[i] for i in (49, 0, 17)] == [many[49], many[0], many[17]]
    assert (kept.find("17"), kept.find("16")) == (17, None)
    with pytest.raises(IndexError):
        kept[50]


def test_a_file_without_ballots_and_one_with_a_bad_ballot_are_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("")
    with read(path) as entries, pytest.raises(DataError, match="x: holds no ballots, so there is nothing"):
        Ballots.read("x", entries)
    path.write_text('{"candidates": ["a"]}\n{"candidates": [1]}\n')
    with read(path) as entries, pytest.raises(DataError, match=r"x\.jsonl:2"):
        Ballots.read("x", entries)


def test_lists_are_matched_by_id_or_else_by_place():
    a, b, c = (ballot([name], id=name) for name in "abc")
    lists = BallotLists([Ballots.of("first", [a, b]), Ballots.of("second", [c, b])])
    assert (lists.ballot(0, 1), lists.ballot(1, 1), lists.ballot(1, 0)) == (None, b, b)
    assert lists.unmatched() == [("second", 1)]
    x, y = ballot(["x"]), ballot(["y"])
    lists = BallotLists([Ballots.of("first", [x, y]), Ballots.of("second", [y])])
    assert (lists.ballot(0, 1), lists.ballot(1, 1)) == (y, None)
    assert lists.unmatched() == []
    mixed = BallotLists([Ballots.of("first", [a]), Ballots.of("second", [x, y])])
    assert mixed.ballot(0, 1) is None
    assert mixed.unmatched() == [("second", 2)]


def test_names_of_standard_input_and_of_files_that_would_be_called_the_same():
    assert names_of(["-", "k4.jsonl"]) == ["standard input", "k4"]
    assert names_of(["k4.jsonl", "k4.moses"]) == ["k4.jsonl", "k4.moses"]
