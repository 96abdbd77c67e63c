"""Panels: voters of several models, each of which has its share of the vote."""

from __future__ import annotations

import math
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from rangevote.hypothesis import Hypothesis
from tests.election import equations

CANDIDATES = ["a dog runs", "a cat sits", "dogs"]
PANEL = {"few": ["a cat sits", "the cat"], "many": ["a dog runs"] * 7}

texts = st.text("ab ", max_size=6)
members = st.dictionaries(st.sampled_from("xyz"), st.lists(texts, min_size=1, max_size=4), min_size=1)


@given(st.lists(texts, min_size=1, max_size=4), members, st.data())
def test_a_score_is_the_shares_times_the_members_own_scores(candidates, panel, data):
    shares = {name: data.draw(st.integers(1, 9)) for name in panel}
    result = rv.elect(candidates, voters=panel, shares=shares, similarity="overlap_1")
    total = sum(shares.values())
    expected = [0.0] * len(candidates)
    for name, voters in panel.items():
        words = [voter.split() for voter in voters]
        own = equations.scores(
            [c.split() for c in candidates],
            words,
            [1 / len(voters)] * len(voters),
            lambda v, c: equations.overlap(v, c, 1),
        )
        expected = [sum_ + shares[name] / total * score for sum_, score in zip(expected, own, strict=True)]
    assert result.scores.tolist() == pytest.approx(expected)


@given(members, st.randoms(use_true_random=False))
def test_no_bit_depends_on_the_order_of_members_or_voters(panel, random):
    names = random.sample(list(panel), len(panel))
    mixed = {name: random.sample(panel[name], len(panel[name])) for name in names}
    voters = [Hypothesis(text, member=name) for name in names for text in mixed[name]]
    random.shuffle(voters)
    options = {
        "shares": {name: len(name) + ord(name) % 5 for name in panel},
        "similarity": "overlap_1-2@0.25",
    }
    once = rv.elect(CANDIDATES, voters=panel, **options)
    assert rv.elect(CANDIDATES, voters=mixed, **options).scores.tobytes() == once.scores.tobytes()
    again = rv.elect(rv.Ballot([Hypothesis(text) for text in CANDIDATES], voters), **options)
    assert (again.scores.tobytes(), again.signature) == (once.scores.tobytes(), once.signature)


def test_each_member_has_its_share_however_many_voters_it_has():
    result = rv.elect(CANDIDATES, voters=PANEL, similarity="exact")
    assert result.scores.tolist() == [0.5, 0.25, 0.0]
    assert result.panel.shares == {"few": 0.5, "many": 0.5}
    assert "|panel:few=0.5,many=0.5|cand:3|vot:9|" in result.signature
    assert rv.elect(CANDIDATES, voters=PANEL, similarity="exact", shares={"few": 4, "many": 1}).index == 1
    assert [vote.member for vote in rv.elect(CANDIDATES, voters=PANEL).explain().voters[:7]] == ["many"] * 7


def test_a_panel_of_one_elects_as_its_voters_do():
    voters, logprobs = ["a dog", "the dog runs", "a cat"], [-1.0, -2.0, -1.5]
    alone = rv.elect(CANDIDATES, voters=voters, voter_logprobs=logprobs)
    panel = rv.elect(CANDIDATES, voters={"it": voters}, voter_logprobs={"it": logprobs})
    assert panel.scores.tobytes() == alone.scores.tobytes()
    assert panel.signature == alone.signature.replace("|cand:", "|panel:it=1|cand:")


def test_every_member_is_weighed_by_what_is_known_of_its_own_voters():
    voters = {
        "beams": [Hypothesis("a", logprob=math.log(0.75)), Hypothesis("b", logprob=math.log(0.25))],
        "drawn": [Hypothesis("a", weight=1.0), Hypothesis("b", weight=3.0)],
        "samples": [Hypothesis("a", sampled=True, logprob=-1.0), Hypothesis("b", sampled=True, logprob=-9.0)],
    }
    result = rv.elect(
        ["a", "b"], voters=voters, similarity="exact", shares={"beams": 2, "drawn": 1, "samples": 1}
    )
    assert result.weights.tolist() == pytest.approx([0.375, 0.125, 0.0625, 0.1875, 0.125, 0.125])
    assert "|w:probability,importance,count|T:" in result.signature


def test_equal_sequences_of_two_members_are_two_voters():
    panel = {"a": ["x", "x"], "b": ["x", "y"]}
    logprobs = {"a": [-1.0, -1.0], "b": [-1.0, -1.0]}
    with pytest.warns(rv.RangevoteWarning, match=r"some voters\['a'\] repeat others"):
        result = rv.elect(["x", "y"], voters=panel, voter_logprobs=logprobs, similarity="exact")
    assert result.weights.tolist() == [0.5, 0.0, 0.25, 0.25]
    merged = rv.elect(
        ["x", "y"],
        voters=panel,
        voter_logprobs=logprobs,
        similarity="exact",
        merge=True,
        weights="probability",
    )
    assert merged.scores.tolist() == [0.75, 0.25]


def test_weights_of_single_voters_count_within_their_member():
    result = rv.elect(["x"], voters={"a": ["x", "x"], "b": ["x"]}, weights=[1, 3, 100])
    assert result.weights.tolist() == [0.125, 0.375, 0.5]


@pytest.mark.filterwarnings("ignore:the member")
@given(members, st.data())
def test_the_candidates_of_all_members_stand_and_vote(panel, data):
    shares = {name: data.draw(st.integers(1, 9)) for name in panel}
    rows = [Hypothesis(text, member=name) for name, some in panel.items() for text in some]
    result = rv.elect(panel, shares=shares, similarity="overlap_1")
    apart = rv.elect([row.text for row in rows], voters=panel, shares=shares, similarity="overlap_1")
    assert result.scores.tobytes() == apart.scores.tobytes()
    again = rv.elect(rv.Ballot(rows), shares=shares, similarity="overlap_1")
    [many] = rv.elect_many([panel], shares=shares, similarity="overlap_1")
    for other in (again, many):
        assert other.scores.tobytes() == result.scores.tobytes()
        assert (other.signature, other.member) == (result.signature, result.member)
    if result.index is not None:  # of empty texts nobody is elected
        assert result.candidates[result.index].member == result.member
    assert apart.member is None


def test_log_probabilities_are_given_by_member():
    result = rv.elect(
        {"a": ["x", "y"], "b": ["y"]}, {"a": [math.log(0.9), math.log(0.1)], "b": [-1.0]}, similarity="exact"
    )
    assert result.weights.tolist() == pytest.approx([0.45, 0.05, 0.5])
    assert (result.winner, result.member, result.members) == ("y", "b", ("a", "b"))
    assert [vote.member for vote in result.explain().voters] == ["b", "a", "a"]
    assert (result.explain().member, result.explain(0).member) == ("b", "a")
    assert "of candidate 2, which is b's" in str(result.explain())


@pytest.mark.parametrize("similarity", ["exact", "overlap_1", "exact:last_number"])
def test_all_members_who_said_the_same_are_named_in_any_order(similarity):
    panel = {"a": ["it is 7"], "b": ["it is 5", "it is 5"], "c": ["it is 5"]}
    for names in ("abc", "cba", "bca"):
        result = rv.elect({name: panel[name] for name in names}, similarity=similarity)
        assert (result.winner, result.members) == ("it is 5", ("b", "c"))
        assert result.member == names.strip("a")[0]
        fields = result.fields()
        assert (fields["member"], fields["members"]) == (result.member, ["b", "c"])
        assert fields["panel"]["shares"] == pytest.approx(dict.fromkeys("abc", 1 / 3))


def test_without_members_no_member_wins():
    result = rv.elect(CANDIDATES)
    assert (result.member, result.members, result.fields()["member"]) == (None, (), None)
    assert "member" not in result.to_dict()
    nobody = rv.elect({"a": ["x"], "b": ["x"]}, similarity="exact", min_score=2.0)
    assert (nobody.member, nobody.members) == (None, ())


@pytest.mark.parametrize("similarity", ["overlap_1", "exact"])  # in one call, and the general way
def test_a_member_that_elects_itself_is_warned_of(similarity):
    panel = {"a": ["x y"], "b": ["x z"], "c": ["x z"]}
    with pytest.warns(rv.RangevoteWarning, match="'a' has one output and at least half of the shares"):
        result = rv.elect(panel, shares={"a": 3, "b": 1, "c": 1}, similarity=similarity)
    assert result.member == "a"
    with pytest.warns(rv.RangevoteWarning, match="'a' has one output and at least half of the shares"):
        rv.elect(panel, shares={"a": 2, "b": 1, "c": 1}, similarity=similarity)
    rv.elect({**panel, "a": ["x y", "x z"]}, shares={"a": 3, "b": 1, "c": 1}, similarity=similarity)
    rv.elect({"a": ["x y"], "b": ["x y"]}, similarity=similarity)  # neither outvotes the other
    rv.elect(["x y", "x z"], voters=panel, shares={"a": 3, "b": 1, "c": 1}, similarity=similarity)


def test_a_member_with_the_share_0_stands_and_does_not_vote():
    result = rv.elect(
        {"a": ["x", "x"], "b": ["y"], "c": ["y"]}, shares={"a": 1, "b": 0, "c": 0}, similarity="exact"
    )
    assert result.scores.tolist() == [1.0, 1.0, 0.0, 0.0]
    with pytest.warns(rv.RangevoteWarning, match="'a' has no candidates"):
        alone = rv.elect({"b": ["y"], "c": ["y"]}, shares={"b": 0, "c": 0, "a": 1}, similarity="exact")
    assert alone.panel.shares == {"b": 0.5, "c": 0.5}


@pytest.mark.parametrize("role", ["candidates", "voters"])
def test_a_member_without_outputs_is_left_out_and_named(role):
    def elect(panel):
        lists = {"candidates": CANDIDATES, role: panel}
        return rv.elect(**lists, similarity="exact")

    with pytest.warns(rv.RangevoteWarning, match=f"panel member 'mute' has no {role}"):
        result = elect({**PANEL, "mute": []})
    assert result.panel.left_out == ("mute",)
    assert result.fields()["panel"] == {"shares": {"few": 0.5, "many": 0.5}, "left_out": ["mute"]}
    assert "|panel:few=0.5,many=0.5|out:mute|" in result.signature
    with pytest.raises(rv.DataError, match=f"there are no {role}"):
        elect({"mute": []})


def test_an_electorate_takes_voters_of_members():
    electorate = rv.Electorate(CANDIDATES, shares={"few": 1, "many": 3})
    for text in PANEL["many"]:
        electorate.add(text, member="many")
    electorate.add(PANEL["few"], member="few")
    expected = rv.elect(CANDIDATES, voters=PANEL, shares={"few": 1, "many": 3})
    result = electorate.result()
    assert (result.scores.tobytes(), result.signature) == (expected.scores.tobytes(), expected.signature)
    with pytest.raises(rv.UsageError, match="some were added with member= and some without"):
        electorate.add("a dog")
    assert len(electorate) == 9


def test_marks_in_names_do_not_make_two_panels_look_the_same():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = rv.elect(["x"], voters={"a=1,b": ["x"]})
    assert "|panel:a%3D1%2Cb=1|" in one.signature


@pytest.mark.parametrize(
    ("voters", "options", "message"),
    [
        ({"a": ["x"]}, {"shares": {"b": 1}}, r"voters\[0\].member: 'a' has no share"),
        ({"a": ["x"]}, {"shares": {"a": 0}}, "every member has the share 0"),
        ({"a": ["x"]}, {"shares": {"a": -1}}, "share of 'a' must be a number from 0, got -1"),
        ({"a": ["x"]}, {"shares": {"a": "1"}}, "share of 'a' must be a number from 0"),
        ({"a": ["x"]}, {"shares": {}}, "shares must be a number for each member"),
        ({"a": ["x"]}, {"shares": 3}, "shares must be a number for each member"),
        (["x"], {"shares": {"a": 1}}, "shares are for a panel; give candidates or voters by member"),
        ({"a": ["x"]}, {"voter_logprobs": [-1.0]}, "voter_logprobs must be given by member too"),
        ({"a": ["x"]}, {"voter_logprobs": {"b": [-1.0]}}, "voter_logprobs names 'b', which is not a member"),
        ({"a": ["x"]}, {"voter_logprobs": {"a": [-1.0, -2.0]}}, r"1 voters\['a'\] but 2 log-prob"),
        ({"a": "x"}, {}, r"voters\['a'\] is one str, not a list"),
        ({1: ["x"]}, {}, "the name of a member must be a text, got int 1"),
        ({}, {}, "there are no voters"),
        ({"a": [Hypothesis("x", member="b")]}, {}, r"voters\['a'\]\[0\].member: is 'b', but given as 'a'"),
        ([Hypothesis("x", member="b"), Hypothesis("y")], {}, r"voters\[1\].member: is not given"),
        ([Hypothesis("x", member=3)], {}, r"voters\[0\].member: expected a text, got int"),
        (
            {"a": ["x"], "b": [Hypothesis("y", logprob=-math.inf)]},
            {},
            r"voters\['b'\]: all voters have weight 0",
        ),
        (
            {"a": [Hypothesis("x", weight=1.0), Hypothesis("y")], "b": ["z"]},
            {},
            r"voters\['a'\]\[1\].weight: ",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_a_panel_is_refused(voters, options, message):
    with pytest.raises(rv.RangevoteError, match=message):
        rv.elect(["x", "y"], voters=voters, **options)
