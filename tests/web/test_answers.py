"""Answers to a page: nothing is counted before it is asked for, and what is not there is said so."""

from __future__ import annotations

import pytest

from rangevote.election.elect import hold
from rangevote.election.settings import Settings
from rangevote.web.answers import Absent, Answers
from rangevote.web.ballots import Ballots, Lists
from tests.web.samples import FIGURE, ballot


def test_nothing_is_elected_before_it_is_asked_for(monkeypatch):
    held = []
    monkeypatch.setattr("rangevote.web.answers.hold", lambda *given: held.append(given) or hold(*given))
    many = [ballot([f"a {i}", "a"], [-1.0, -2.0]) for i in range(500)]
    answers = Answers(Lists([Ballots.of("x", many)]), Settings.of())
    assert answers.page(24)["pages"] == 25
    assert answers.page(24)["ballots"][-1] == {"number": 499, "id": None, "title": "a 499", "candidates": 2}
    assert held == []
    answers.election(7, 0)
    answers.grades(7, 0)
    answers.stability(7, 0)
    answers.parts(7, 0, 1)
    assert len(held) == 1
    for number in range(20):
        answers.election(number, 0)
    answers.election(7, 0)
    assert len(held) == 21  # held again: a page keeps few


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda a: a.election(1, 0), "there is no number 1 among the 1 ballots"),
        (lambda a: a.election(0, 3), "there is no number 3 among the 2 lists"),
        (lambda a: a.election(0, 1), "the list second has no such ballot"),
        (lambda a: a.parts(0, 0, 10), "there is no number 10 among the 10 candidates"),
        (lambda a: a.text(0, 0, "judges", 0), "a role is candidates or voters, not 'judges'"),
        (lambda a: a.page(1), "there is no page 1; pages go from 0 to 0"),
    ],
)
def test_what_is_not_there_is_said_so(ask, message):
    answers = Answers(Lists([Ballots.of("first", [FIGURE]), Ballots.of("second", [])]), Settings.of())
    with pytest.raises(Absent, match=message):
        ask(answers)


def test_everything_counts_the_ballots_that_are_done():
    done = []
    answers = Answers(Lists([Ballots.of("x", [FIGURE, ballot([]), FIGURE])]), Settings.of(), kept=2)
    paths = [path for path, _ in answers.everything(1, lambda: done.append(1))]
    assert len(done) == 2
    assert len(paths) == len(set(paths))
