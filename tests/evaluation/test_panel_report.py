"""What the members of a panel did over a file, against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

import rangevote as rv
from rangevote.evaluation.panel_report import MemberSummary, PanelCount, PanelSummary
from tests.web.samples import panel

ANSWERS: dict[str, Any] = {"similarity": "exact:last_number"}


def counted(*ballots: rv.Ballot, **options: Any) -> PanelSummary:
    count = PanelCount()
    for result in rv.elect_many(ballots, **options):
        count.add(result)
    measure = result.similarity
    return count.summary(len(ballots), measure.name, measure.answers)


def by_name(summary: PanelSummary) -> dict[str, MemberSummary]:
    return {member.name: member for member in summary.members}


def test_wins_shares_and_agreement_of_answers():
    summary = counted(
        panel(("a", "so 3"), ("b", "it is 3"), ("c", "4")),  # 3; a is first
        panel(("a", "1"), ("b", "2"), ("c", "2")),  # 2; b is first
        panel(("b", "7"), ("c", "7")),  # a is missing
        panel(("a", "none"), ("b", "nothing"), ("c", "no")),  # nobody has an answer
        **ANSWERS,
    )
    members = by_name(summary)
    assert (summary.ballots, summary.elected, summary.answers) == (4, 3, True)
    assert {name: (m.outputs, m.ballots, m.wins, m.same) for name, m in members.items()} == {
        "a": (3, 3, 1, 1),
        "b": (4, 4, 2, 3),
        "c": (4, 4, 0, 2),
    }
    assert members["a"].share == pytest.approx(1 / 3)
    assert members["b"].share == pytest.approx((3 / 3 + 1 / 2) / 4)
    # a with b: same in 1 of 3, a with c in 0 of 3, b with c in 2 of 4
    assert [member.name for member in summary.members] == ["b", "c", "a"]
    assert summary.matrix == [
        [None, pytest.approx(2 / 4), pytest.approx(1 / 3)],
        [pytest.approx(2 / 4), None, 0],
        [pytest.approx(1 / 3), 0, None],
    ]
    assert members["a"].agreement == pytest.approx((1 / 3 + 0) / 2)


def test_a_member_with_several_outputs_counts_by_their_weights():
    summary = counted(panel(("a", "1"), ("a", "1"), ("a", "2"), ("b", "1")), **ANSWERS)
    assert by_name(summary)["a"].outputs == 3
    assert by_name(summary)["a"].share == pytest.approx(0.5)
    assert summary.matrix[0][1] == pytest.approx(2 / 3)


def test_texts_agree_by_their_similarity_in_both_directions_and_copies_are_named():
    ballots = [panel(("a", "x y"), ("b", "x y z"), ("copy of a", "x y")) for _ in range(9)]
    ballots.append(panel(("a", "x y"), ("b", "x y z"), ("copy of a", "q")))
    members = by_name(counted(*ballots, similarity="overlap_1"))
    # overlap of the sets: 2 / 2 of the one voter, 2 / 3 of the other
    one, other = (rv.elect(["x y"], voters=["x y z"], similarity="overlap_1").score, 1.0)
    both = (one + other) / 2
    assert members["a"].agreement == pytest.approx((both + 0.9) / 2)
    assert (members["a"].copies, members["copy of a"].copies) == (["copy of a"], ["a"])
    assert members["b"].copies == []


def test_members_that_never_meet_have_no_agreement():
    summary = counted(panel(("a", "1")), panel(("b", "1")), **ANSWERS)
    assert summary.matrix == [[None, None], [None, None]]
    assert [member.agreement for member in summary.members] == [None, None]


def test_members_that_only_stand_and_members_that_only_vote_are_both_listed():
    ballot = rv.Ballot(
        [rv.Hypothesis(text="1", member="stands")],
        [rv.Hypothesis(text="1", member="votes"), rv.Hypothesis(text="2", member="votes too")],
    )
    members = by_name(counted(ballot, **ANSWERS))
    assert (members["stands"].wins, members["stands"].share) == (1, None)
    assert (members["votes"].outputs, members["votes"].share) == (0, 0.5)
