"""What the members of a panel did over a file, against numbers worked out by hand."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace
from scipy.stats import binomtest

import rangevote as rv
from rangevote.election.settings import Settings
from rangevote.errors import DataError, UsageError
from rangevote.evaluation.panel_report import (
    MemberSummary,
    PanelSummary,
    html_page,
    panel_report,
    picture,
    tables,
    without,
)
from rangevote.evaluation.significance import wilson
from rangevote.evaluation.tables import render
from rangevote.formats import Entry
from tests.web.samples import panel

pytestmark = pytest.mark.filterwarnings("ignore::rangevote.errors.RangevoteWarning")
ANSWERS: dict[str, Any] = {"similarity": "exact:last_number"}


def reported(*ballots: rv.Ballot, gold: str | None = None, **options: Any) -> PanelSummary:
    entries = [Entry(f"panel.jsonl:{i}", ballot) for i, ballot in enumerate(ballots, 1)]
    return panel_report(entries, Settings(**options), gold)


def by_name(summary: PanelSummary) -> dict[str, MemberSummary]:
    return {member.name: member for member in summary.members}


FOUR = [
    panel(("a", "so 3"), ("b", "it is 3"), ("c", "4"), ("d", "3"), carry={"gold": 3}),  # a is first
    panel(("a", "1"), ("b", "2"), ("c", "2"), ("d", "5"), carry={"gold": "#### 2"}),  # b is first
    panel(("b", "7"), ("c", "7"), ("d", "8"), carry={"gold": [8, 9]}),  # a is missing
    panel(("a", "no"), ("b", "none"), ("c", "?"), ("d", "0"), carry={"gold": 0}),  # only d answers
]


def test_wins_and_shares():
    summary = reported(*FOUR, **ANSWERS)
    members = by_name(summary)
    assert (summary.ballots, summary.total, summary.elected, summary.answers) == (4, 4, 4, True)
    counts = {name: (m.outputs, m.ballots, m.wins) for name, m in members.items()}
    assert counts == {"a": (3, 3, 1), "b": (4, 4, 3), "c": (4, 4, 2), "d": (4, 4, 2)}
    assert members["a"].share == pytest.approx(1 / 4)
    assert members["b"].share == pytest.approx((3 / 4 + 1 / 3) / 4)


def test_the_matrix_and_the_estimates_are_those_of_agreement_shares():
    summary = reported(*FOUR, **ANSWERS)
    found = rv.agreement_shares(FOUR, **ANSWERS)
    place = {name: i for i, name in enumerate(found.shares)}
    for i, one in enumerate(summary.members):
        assert one.agreement == found.agreement[one.name]
        assert one.agreement_share == found.shares[one.name]
        for j, other in enumerate(summary.members):
            known = None if i == j else found.overlap[place[one.name], place[other.name]]
            assert summary.matrix[i][j] == known
    # b and c both answer three ballots, and say the same on two
    b, c = ([member.name for member in summary.members].index(name) for name in "bc")
    assert summary.matrix[b][c] == pytest.approx(2 / 3)
    agreements = [member.agreement for member in summary.members]
    assert agreements == sorted(agreements, reverse=True)


def test_intervals_are_wilsons():
    for right, trials in ((0, 7), (3, 7), (50, 50), (617, 659)):
        expected = binomtest(right, trials).proportion_ci(method="wilson")
        assert wilson(right / trials, trials) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert wilson(0.0, 0) == (0.0, 1.0)
    members = by_name(reported(*FOUR, **ANSWERS))
    assert members["a"].interval == wilson(members["a"].agreement, 2)  # over the ballots that it answers


def test_with_labels_the_true_accuracy_stands_beside_the_estimate():
    report = reported(*FOUR, gold="gold", **ANSWERS)
    members = by_name(report)
    # no answer is wrong; a answers nothing in the third ballot, which is not among its own
    assert {name: m.accuracy for name, m in members.items()} == pytest.approx(
        {"a": 1 / 3, "b": 2 / 4, "c": 1 / 4, "d": 3 / 4}
    )
    assert members["a"].accuracy_interval == wilson(1 / 3, 3)
    assert report.accuracy == pytest.approx(3 / 4)  # 3, 2, 7 (wrong), 0
    assert report.accuracy_interval == wilson(3 / 4, 4)


@pytest.mark.parametrize("options", [ANSWERS, {**ANSWERS, "shares": dict.fromkeys("abcd", 1.0)}])
def test_leaving_a_member_out_is_the_election_of_the_others(options):
    report = reported(*FOUR, gold="gold", **options)
    right = [{"3"}, {"2"}, {"8", "9"}, {"0"}]
    own = [rv.elect(ballot, **ANSWERS).answer for ballot in FOUR]
    for name, member in by_name(report).items():
        texts = [[one.text for one in ballot.candidates if one.member != name] for ballot in FOUR]
        answers = [rv.elect(some, **ANSWERS).answer for some in texts]
        assert member.changed == sum(one != other for one, other in zip(answers, own, strict=True))
        hits = sum(one in some for one, some in zip(answers, right, strict=True))
        assert member.accuracy_without == pytest.approx(hits / 4)
    assert by_name(report)["d"].changed == 1  # nobody else answers the fourth


def test_with_shares_by_agreement_these_are_found_again_without_the_member():
    ballots = [
        panel(*((name, f"{(i * 7 + 3) % 5 if i % k else 1}") for k, name in enumerate("abcdef", 2)), id=i)
        for i in range(30)
    ]
    report = reported(*ballots, **ANSWERS, shares="agreement")
    own = [result.answer for result in rv.elect_many(ballots, **ANSWERS, shares="agreement")]
    for member in report.members:
        left = [without(ballot, member.name) for ballot in ballots]
        others = [result.answer for result in rv.elect_many(left, **ANSWERS, shares="agreement")]
        assert member.changed == sum(one != other for one, other in zip(others, own, strict=True))
        assert member.share == pytest.approx(member.agreement_share)


def test_copies_of_a_member_are_named_as_twins():
    names = ["a", "b", "c", "d", "a again"]
    says = [[1, 1, 2, 1], [3, 4, 4, 4], [5, 5, 5, 6], [8, 7, 7, 7], [9, 9, 1, 9]]
    ballots = [panel(*zip(names, map(str, [*row, row[0]]), strict=True)) for row in says]
    members = by_name(reported(*ballots, **ANSWERS))
    assert (members["a"].twins, members["a again"].twins) == (["a again"], ["a"])
    assert members["a"].agreement_share == members["a again"].agreement_share
    assert members["b"].twins == []


def test_a_member_with_several_outputs_counts_by_their_weights():
    ballot = panel(("a", "1"), ("a", "1"), ("a", "2"), ("b", "1"), carry={"gold": 2})
    report = reported(ballot, gold="gold", **ANSWERS)
    members = by_name(report)
    assert (members["a"].outputs, members["a"].share) == (3, pytest.approx(0.5))
    assert report.matrix[0][1] == pytest.approx(2 / 3, abs=1e-4)
    assert members["a"].accuracy == pytest.approx(1 / 3)


def test_texts_agree_by_their_similarity_in_both_directions_and_copies_are_named():
    ballots = [panel(("a", "x y"), ("b", "x y z"), ("copy of a", "x y")) for _ in range(9)]
    ballots.append(panel(("a", "x y"), ("b", "x y z"), ("copy of a", "q")))
    report = reported(*ballots, similarity="overlap_1")
    members = by_name(report)
    # of the set of one voter 2 / 2 are shared, of the other's 2 / 3
    both = (rv.elect(["x y"], voters=["x y z"], similarity="overlap_1").score + 1.0) / 2
    assert both == pytest.approx((2 / 3 + 1) / 2)
    assert members["a"].agreement == pytest.approx((both + 0.9) / 2)
    assert (members["a"].twins, members["copy of a"].twins) == (["copy of a"], ["a"])
    assert members["b"].twins == []
    assert {(m.interval, m.agreement_share, m.accuracy) for m in report.members} == {(None, None, None)}


@pytest.mark.parametrize(
    ("outputs", "options", "far"),
    [
        (("x y", "x y z", "x z", "p q"), {"similarity": "overlap_1"}, "d"),
        (("x y", "x y z", "x z", "z y"), {"similarity": "overlap_1"}, None),
        (("x", "y", "z", "p q"), {"similarity": "overlap_1"}, None),  # nobody agrees with anybody
    ],
)
def test_a_member_that_agrees_with_nobody_is_named(outputs, options, far):
    assert_far_off(reported(*[panel(*zip("abcd", outputs, strict=True)) for _ in range(20)], **options), far)


def test_a_member_whose_answers_nobody_gives_is_named():
    answers = [(str(i), str(i + (i % 5 == 0)), str(i - (i % 4 == 0)), str(i + 500)) for i in range(40)]
    assert_far_off(reported(*[panel(*zip("abcd", some, strict=True)) for some in answers], **ANSWERS), "d")


def assert_far_off(report, far):
    notes = [note for note in tables(report)[0].notes if "far off" in note]
    assert [f": {far}. Look" in note for note in notes] == [True] * (far is not None)


def test_members_that_never_meet_have_no_agreement():
    summary = reported(panel(("a", "1")), panel(("b", "1")), similarity="overlap_1")
    assert summary.matrix == [[None, None], [None, None]]
    assert [member.agreement for member in summary.members] == [None, None]


def test_members_that_only_stand_and_members_that_only_vote_are_both_listed():
    voters = [rv.Hypothesis(text="1", member="votes"), rv.Hypothesis(text="2", member="votes too")]
    ballot = rv.Ballot([rv.Hypothesis(text="1", member="stands")], voters)
    members = by_name(reported(ballot, **ANSWERS))
    assert (members["stands"].wins, members["stands"].share) == (1, None)
    assert (members["votes"].outputs, members["votes"].share) == (0, 0.5)


TWO, LABELLED = panel(("a", "1"), ("b", "1")), {**ANSWERS, "gold": "gold"}


@pytest.mark.parametrize(
    ("ballots", "options", "kind", "message"),
    [
        ([], {}, DataError, "no ballots"),
        ([rv.Ballot([rv.Hypothesis(text="1")])], {}, DataError, "no candidate has a member"),
        ([panel(("a", "1"), ("a", "2"))], {}, DataError, "'a' is the only member"),
        ([panel(("a", "x"), ("b", "y"))], ANSWERS, DataError, "no member gives an answer"),
        ([panel(("a", "1")), panel(("b", "1"))], ANSWERS, DataError, "no two members answer the same"),
        ([TWO, TWO], LABELLED, DataError, r"panel\.jsonl:1: gold: is missing"),
        ([FOUR[0], replace(TWO, carry={"gold": {"x": 1}})], LABELLED, DataError, r"panel\.jsonl:2: gold: "),
        ([TWO], {"similarity": "chrf", "gold": "gold"}, UsageError, "compares texts"),
    ],
)
def test_what_is_no_panel_or_has_no_labels_is_refused_with_its_place(ballots, options, kind, message):
    with pytest.raises(kind, match=message):
        reported(*ballots, **options)


def test_tables_have_every_number_and_names_cannot_command_a_terminal():
    outputs = [[(one.member.replace("a", "a\x1b[31m|<b>"), one.text) for one in b.candidates] for b in FOUR]
    named = [panel(*some, carry=ballot.carry) for some, ballot in zip(outputs, FOUR, strict=True)]
    report = reported(*named, gold="gold", **ANSWERS)
    members, accuracy, matrix = tables(report)
    assert [len(table.rows) for table in (members, accuracy, matrix)] == [4, 4, 4]
    values = {row.name.split()[1]: row.cells for row in accuracy.rows}
    d = by_name(report)["d"]
    assert values["d"][0] == pytest.approx(d.agreement)
    assert values["d"][3] == pytest.approx(0.75)
    text = "".join(render(table, "text") for table in tables(report))
    assert "\x1b" not in text
    page = html_page(report)
    assert "<b>" not in re.sub(r"<b>[\d.]+</b>", "", page)
    assert not re.search(r"<script|https?://(?!www\.w3)", page)
    assert page.count("<table>") == 3
    assert len(tables(reported(*named, similarity="overlap_1"))) == 2


@pytest.mark.parametrize("options", [ANSWERS, {"similarity": "overlap_1"}])
def test_the_picture_is_the_same_every_time_and_of_the_kind_that_was_asked_for(options):
    report = reported(*FOUR, panel(("$e$, of a name " * 9, "1"), ("b", "1")), **options)
    assert picture(report, "png").startswith(b"\x89PNG")
    assert picture(report, "svg") == picture(report, "svg")
    assert picture(report, "pdf").startswith(b"%PDF")
