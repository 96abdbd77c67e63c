"""Shares without labels: by how often a member agrees with the election of the others."""

from __future__ import annotations

import math
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rangevote as rv
from rangevote.election.agreement import Agreement, AgreementTable, member_votes
from rangevote.election.settings import Settings
from rangevote.hypothesis import Hypothesis

K = 10


def table_of(ballots) -> AgreementTable:
    """Of ballots with an answer for each member, or with parts of its vote on several."""
    table = AgreementTable()
    for ballot in ballots:
        table.add({name: x if isinstance(x, dict) else {x: 1.0} for name, x in ballot.items()})
    return table


def shares_of(ballots) -> Agreement:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return table_of(ballots).shares()


answers = st.sampled_from("xyz")
outputs = st.one_of(answers, st.just({}), st.just({"x": 0.5, "y": 0.5}), st.just({"y": 1 / 3, "z": 1 / 3}))
panels = st.lists(st.dictionaries(st.sampled_from("abcdef"), outputs, max_size=6), min_size=1, max_size=12)


def shares_or_none(ballots) -> Agreement | None:
    """None where there is nothing to find."""
    try:
        return shares_of(ballots)
    except rv.DataError:
        return None


def by_hand(ballots, rounds=100):
    """The rule as it is written, one answer for each member and no twins, in plain Python."""
    names = sorted({name for ballot in ballots for name in ballot})
    shares = dict.fromkeys(names, 1 / len(names))
    for _ in range(rounds):
        weights = {}
        for name in names:
            agreed, times = 0.0, 0
            for ballot in ballots:
                votes = Counter()
                for other, answer in ballot.items():
                    votes[answer] += shares[other] if other != name else 0.0
                best = max(votes.values(), default=0.0)
                tied = [answer for answer in votes if best > 0 and votes[answer] >= best - 1e-9]
                if name in ballot and tied:
                    times += 1
                    agreed += (ballot[name] in tied) / len(tied)
            p = min(agreed / times, 1 - 0.5 / times) if times else 0.0
            weights[name] = max(0.0, math.log(p * (K - 1) / (1 - p))) if p > 0 else 0.0
        total = sum(weights.values())
        new = {name: weight / total for name, weight in weights.items()}
        if new == shares:
            break
        shares = new
    return shares


def crowd(seed: int, accuracies, size=200):
    """Members that are right ("0") with these probabilities, and otherwise give one of nine other answers."""
    random = np.random.default_rng(seed)
    return [
        {f"m{i}": 0 if random.random() < p else int(random.integers(1, K)) for i, p in enumerate(accuracies)}
        for _ in range(size)
    ]


#: In every ballot two of three agree, so that without one of these the others tie.
TIES = [{"a": "x", "b": "x", "c": "y"}, {"a": "y", "b": "z", "c": "y"}, {"a": "u", "b": "v", "c": "u"}]


@pytest.mark.parametrize(
    "ballots", [TIES, *(crowd(seed, [0.9, 0.8, 0.6, 0.5, 0.3, 0.05]) for seed in range(3))]
)
def test_shares_are_those_of_the_rule_worked_in_plain_python(ballots):
    result = shares_of(ballots)
    assert result.converged
    assert result.twins == ()
    assert result.shares == pytest.approx(by_hand(ballots), abs=1e-12)
    assert sum(result.shares.values()) == pytest.approx(1)


def test_agreement_estimates_how_often_members_are_right():
    accuracies = [0.95, 0.9, 0.8, 0.7, 0.5, 0.2]
    result = shares_of(crowd(5, accuracies, 2000))
    assert list(result.agreement.values()) == pytest.approx(accuracies, abs=0.06)


def test_by_hand_two_that_agree_outvote_two_that_do_not():
    ballots = [{"a": i, "b": i if i else -9, "c": -1 - i, "d": -100 - i} for i in range(10)]
    result = shares_of(ballots)
    assert result.agreement == {"a": 0.9, "b": 0.9, "c": 0.0, "d": 0.0}
    assert result.shares == {"a": 0.5, "b": 0.5, "c": 0.0, "d": 0.0}
    assert result.overlap.tolist() == [[1, 0.9, 0, 0], [0.9, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert (result.ballots, result.converged) == (10, True)


@given(panels, st.randoms(use_true_random=False))
def test_no_bit_depends_on_the_order_of_ballots_or_answers_or_on_names(ballots, random):
    once = shares_or_none(ballots)
    other = dict(zip("abcdef", random.sample("abcdef", 6), strict=True))

    def shuffled(items):
        return dict(random.sample(list(items.items()), len(items)))

    mixed = [
        shuffled(
            {
                other[name]: shuffled(answer) if isinstance(answer, dict) else answer
                for name, answer in b.items()
            }
        )
        for b in ballots
    ]
    random.shuffle(mixed)
    again = shares_or_none(mixed)
    assert (once is None) == (again is None)
    if once is not None:
        assert {other[name]: share for name, share in once.shares.items()} == again.shares
        twins = sorted(tuple(sorted(other[name] for name in group)) for group in once.twins)
        assert (twins, once.rounds) == (sorted(again.twins), again.rounds)
        order = np.argsort([other[name] for name in once.shares])
        np.testing.assert_array_equal(once.overlap[np.ix_(order, order)], again.overlap)
        agreement = np.array(list(once.agreement.values()))
        np.testing.assert_array_equal(agreement[order], list(again.agreement.values()))


@settings(max_examples=80)
@given(panels, st.sampled_from("abcdef"), st.integers(1, 6))
def test_listing_a_member_several_times_changes_no_share_of_others_and_no_election(ballots, name, copies):
    once = shares_or_none(ballots)
    if once is None or name not in once.shares or math.isnan(once.agreement[name]):
        return
    copied = [
        {**ballot, **({f"{name}{i}": ballot[name] for i in range(copies)} if name in ballot else {})}
        for ballot in ballots
    ]
    again = shares_of(copied)
    twins = next((set(some) for some in once.twins if name in some), {name})
    others = set(once.shares) - twins
    assert {other: again.shares[other] for other in others} == {other: once.shares[other] for other in others}
    names = {name, *(f"{name}{i}" for i in range(copies))}
    assert any(names <= set(some) for some in again.twins)
    assert sum(again.shares[one] for one in names | twins) == pytest.approx(
        sum(once.shares[one] for one in twins)
    )
    assert (again.rounds, again.converged) == (once.rounds, once.converged)
    for before, after in zip(ballots, copied, strict=True):
        assert votes_by(after, again.shares) == pytest.approx(votes_by(before, once.shares))


def votes_by(ballot, shares) -> Counter:
    votes = Counter()
    for name, output in ballot.items():
        for answer, part in (output if isinstance(output, dict) else {output: 1.0}).items():
            votes[answer] += shares[name] * part
    return votes


def test_near_copies_of_a_bad_member_are_one_voice():
    ballots = crowd(1, [0.8, 0.75, 0.7, 0.7, 0.3])
    random = np.random.default_rng(2)
    for ballot in ballots:
        for i in range(6):  # two in a hundred answers differ
            ballot[f"n{i}"] = ballot["m4"] if random.random() < 0.98 else int(random.integers(1, K))
    result = shares_of(ballots)
    assert result.twins == (("m4", *(f"n{i}" for i in range(6))),)
    alone = shares_of([{name: ballot[name] for name in ballot if name[0] == "m"} for ballot in ballots])
    copies = sum(share for name, share in result.shares.items() if name[0] == "n" or name == "m4")
    assert copies == pytest.approx(alone.shares["m4"], abs=0.02)


def test_good_members_are_no_twins_of_each_other():
    assert shares_of(crowd(3, [0.97, 0.97, 0.96, 0.5, 0.4, 0.3, 0.3], 1000)).twins == ()
    assert shares_of(crowd(4, [0.97, 0.97, 0.3], 1000)).twins == ()  # one bad one tells no mistakes


def test_of_several_outputs_the_part_on_the_elected_answer_counts():
    ballots = [{"a": {"x": 0.75, "y": 0.25}, "b": "x", "c": "x", "d": {"x": 0.5, "w": 0.5}}] * 2
    result = shares_of([*ballots, {"a": "q", "b": "x", "c": "r", "d": "x"}])
    assert result.agreement["a"] == pytest.approx(1.5 / 3)


def test_a_circle_of_shares_ends_in_their_mean_with_a_warning():
    weak = table_of(crowd(0, [0.3, 0.3, 0.25, 0.2, 0.2], 30))
    no_better = pytest.warns(rv.RangevoteWarning, match="no more often than by chance: 'm2'")
    with no_better, pytest.warns(rv.RangevoteWarning, match="did not settle in 3 rounds"):
        result = weak.shares()
    assert not result.converged
    assert sum(result.shares.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("ballots", "message"),
    [
        ([], "there are no ballots"),
        ([{}], "no ballot has a panel"),
        ([{"a": "x"}, {"a": "y"}], "'a' is the only member of the panel"),
        ([{"a": "x"}, {"b": "y"}], "no two members answer the same ballot"),
        ([{"a": {}, "b": {}}], "all abstain"),
    ],
)
def test_what_has_no_agreement_is_refused_with_what_to_do(ballots, message):
    with pytest.raises(rv.DataError, match=message):
        shares_of(ballots)


def test_members_that_agree_with_nobody_are_named():
    ballots = [{"a": i, "b": i, "c": i if i else -2, "far": -1, "mute": {}} for i in range(20)]
    named = r"'far' \(0% of the ballots\), 'mute' \(no answers in common\)"
    with pytest.warns(rv.RangevoteWarning, match=named):
        agreement = table_of(ballots).shares()
    assert agreement.shares["far"] == agreement.shares["mute"] == 0.0


@pytest.mark.parametrize(
    ("ballots", "message"),
    [
        ([{"a": i, "b": -1 - i} for i in range(3)], "no member agrees with the others"),
        ([{"a": 1, "b": 1}], "all members always give the same answers"),
    ],
)
def test_shares_that_say_nothing_are_equal_and_warned_of(ballots, message):
    with pytest.warns(rv.RangevoteWarning, match=message):
        assert table_of(ballots).shares().shares == {"a": 0.5, "b": 0.5}


def test_votes_of_members_are_their_answers_with_the_weights_of_the_election():
    rows = [
        Hypothesis("it is 5", member="a", logprob=math.log(0.6)),
        Hypothesis("so 5", member="a", logprob=math.log(0.2)),
        Hypothesis("7", member="a", logprob=math.log(0.2)),
        Hypothesis("no idea", member="b", sampled=True),
        Hypothesis("5", member="b", sampled=True),
        Hypothesis("none", member="c"),
    ]
    votes = member_votes(rv.Ballot(rows), Settings(similarity="exact:last_number"))
    assert {member: list(parts.values()) for member, parts in votes.items()} == {
        "a": pytest.approx([0.8, 0.2]),
        "b": [0.5],
        "c": [],
    }
    once = member_votes({"a": ["5"], "b": ["x"]}, Settings(similarity="exact:last_number"))
    assert [len(parts) for parts in once.values()] == [1, 0]
    with pytest.raises(rv.DataError, match="candidates: has no members"):
        member_votes(["5"], Settings(similarity="exact"))


def test_many_elections_are_held_with_the_shares_that_all_ballots_give():
    ballots = [
        {name: [str(answer)] for name, answer in ballot.items()} for ballot in crowd(7, [0.9, 0.8, 0.4, 0.3])
    ]
    shares = rv.agreement_shares(ballots, similarity="exact").shares
    results = list(rv.elect_many(iter(ballots), similarity="exact", shares="agreement"))
    given_shares = list(rv.elect_many(ballots, similarity="exact", shares=shares))
    assert [r.signature for r in results] == [r.signature for r in given_shares]
    assert [r.winner for r in results] == [r.winner for r in given_shares]
    assert results[0].panel.shares == pytest.approx(shares)


def test_agreement_is_refused_for_texts_and_for_one_ballot():
    with pytest.raises(rv.UsageError, match=r"is for answers.*50 articles.*529 segments"):
        rv.agreement_shares([{"a": ["x"], "b": ["x"]}])
    with pytest.raises(rv.UsageError, match="is for answers"):
        rv.elect_many([], similarity="chrf", shares="agreement")
    with pytest.raises(rv.UsageError, match=r"this is one: use elect_many"):
        rv.elect({"a": ["x"], "b": ["x"]}, similarity="exact", shares="agreement")
    with pytest.raises(rv.UsageError, match="or 'agreement'; got 'agree'"):
        rv.elect({"a": ["x"], "b": ["x"]}, similarity="exact", shares="agree")
