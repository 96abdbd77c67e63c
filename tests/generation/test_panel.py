"""Several models search, and what all of them find stands for election."""

from __future__ import annotations

import pytest

import rangevote as rv
from rangevote.errors import DataError
from rangevote.generation.plan import Escalation, parts
from rangevote.hypothesis import Hypothesis
from rangevote.models.ngram import NgramModel

INPUTS = ["the train", "the bus", "the tram"]


def model(*endings: str) -> NgramModel:
    return NgramModel.train([f"{one} leaves at {end}" for one in INPUTS for end in endings], order=3)


class Says:
    """An engine that answers each input with these texts, and remembers which it read."""

    def __init__(self, **answers: str) -> None:
        self.answers, self.seen = answers, list[str]()

    def hypotheses(self, inputs, search):
        self.seen += inputs
        for number, one in enumerate(inputs):
            if one not in self.answers:
                raise DataError("is too long.", field=f"inputs[{number}]")
        return [[Hypothesis(text=text) for text in self.answers[one]] for one in inputs]


class Failing(NgramModel):
    """A model that cannot read one of the inputs."""

    def start(self, inputs):
        if "the bus" in inputs:
            raise DataError("is too long.", field=f"inputs[{inputs.index('the bus')}]")
        return super().start(inputs)


def test_what_all_models_find_stands_and_votes_with_their_shares():
    small, large = model("ten", "nine"), model("noon")
    results = rv.generate({"small": small, "large": large}, INPUTS, candidates="beam:3", similarity="exact")
    for number, result in enumerate(results):
        found = {
            name: rv.search(one, INPUTS, "beam:3")[number]
            for name, one in (("small", small), ("large", large))
        }
        expected = rv.elect(found, similarity="exact")
        assert (result.winner, result.member) == (expected.winner, "large")
        assert result.scores.tolist() == expected.scores.tolist()
        assert result.panel.shares == {"small": 0.5, "large": 0.5}
    shares = {"small": 9, "large": 1}
    options = {"candidates": "beam:3", "similarity": "exact", "shares": shares}
    assert rv.generate({"small": small, "large": large}, INPUTS, **options)[0].member == "small"


def test_one_model_listed_twice_does_not_say_the_same_twice():
    one = model(*"abcdefghijklmnop")
    [result] = rv.generate({"a": one, "b": one}, ["the train"], candidates="sample:8", voters="sample:8")
    for listed in (result.candidates, result.voters):
        first, second = ([one.text for one in listed if one.member == name] for name in "ab")
        assert (len(first), len(second)) == (8, 8)
        assert first != second
    [again] = rv.generate({"a": one, "b": one}, ["the train"], candidates="sample:8", voters="sample:8")
    assert list(result.candidates) == list(again.candidates)


@pytest.mark.filterwarnings("ignore::rangevote.RangevoteWarning")
def test_a_model_that_fails_at_an_input_is_left_out_there_alone():
    failing = Failing.train(["the train leaves at noon", "the tram leaves at noon"], order=3)
    results = rv.generate({"small": model("ten"), "failing": failing}, INPUTS, candidates="beam:2")
    assert [result.panel.left_out for result in results] == [(), ("failing",), ()]


# Voters of other models than that of the candidates

VOTED = {"similarity": "overlap_1", "candidates": "beam:4"}


def test_another_model_votes_on_the_candidates_of_the_first():
    small, large, drawing = model("ten"), model("noon"), "sample:30,seed=1"
    results = rv.generate(small, INPUTS, voters=drawing, voter_models={"large": large}, **VOTED)
    drawn = rv.generate(large, INPUTS, candidates="beam:2", voters=drawing)
    for result, voters, candidates in zip(results, drawn, rv.search(small, INPUTS, "beam:4"), strict=True):
        assert [one.text for one in result.voters] == [one.text for one in voters.voters]
        assert list(result.candidates) == candidates
        assert result.panel is None
        expected = rv.elect(candidates, voters=list(voters.voters), similarity="overlap_1")
        assert result.scores.tolist() == expected.scores.tolist()
    [result, *_] = rv.generate(
        small, INPUTS, voters="sample:400,seed=1", voter_models={"large": large}, adaptive=0.9, **VOTED
    )
    assert 0 < len(result.voters) < 400
    assert not any("ten" in one.text for one in result.voters)


def test_several_models_vote_as_a_panel_with_equal_shares_or_those_given():
    both = {"small": model("ten"), "large": model("noon")}
    options = {"voters": "sample:20,seed=1", "voter_models": both, **VOTED}
    for result in rv.generate(both["small"], INPUTS, **options):
        assert result.panel.shares == {"large": 0.5, "small": 0.5}
        assert len(result.voters) == 40
    [result, *_] = rv.generate(both["small"], INPUTS, **options, shares={"small": 1, "large": 3})
    assert result.panel.shares == {"large": 0.75, "small": 0.25}


@pytest.mark.filterwarnings("ignore::rangevote.RangevoteWarning")
@pytest.mark.parametrize("drawing", [{"voters": "sample:9"}, {"voters": "sample:9", "adaptive": 0.9}])
def test_a_model_that_fails_to_vote_is_left_out_and_named(drawing):
    small, failing = model("ten"), Failing.train(["a b"], order=2)
    with pytest.warns(rv.RangevoteWarning, match=r"panel member 'broken' failed and is left out: .*too long"):
        [result] = rv.generate(
            small, ["the bus"], voter_models={"small": small, "broken": failing}, **drawing, **VOTED
        )
    assert (result.panel.shares, result.panel.left_out) == ({"small": 1.0}, ("broken",))
    assert "|panel:small=1|out:broken|" in result.signature
    with pytest.raises(rv.DataError, match="too long"):
        rv.generate(small, INPUTS, voter_models={"broken": failing}, **drawing, **VOTED)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"need a search, such as voters='sample:100'"),
        ({"voters": "sample:9", "shares": {"small": 1.0}}, r"a number for each model that votes"),
        (
            {"voters": "sample:9", "shares": "agreement", "similarity": "exact"},
            r"for rangevote vote --shares",
        ),
        ({"voters": "sample:9", "escalate": "share<1"}, r"needs a panel"),
        ({"voters": "sample:9", "tokenize": "tokens"}, r"tokens of different models cannot be compared"),
        ({"voters": "sample:9", "voter_models": {"a": "b"}}, r"model 'a' must be a language model"),
    ],
)
def test_what_other_models_cannot_do_is_refused(options, message):
    models = {"voter_models": {"small": model("ten"), "large": model("noon")}}
    with pytest.raises(rv.UsageError, match=message):
        rv.generate(model("ten"), INPUTS, **{**models, **options})


# Models that are asked in order


def test_the_next_model_reads_only_inputs_on_which_those_before_do_not_agree():
    small, middle, large = Says(x="aaaa", y="aabc", z="aabc"), Says(y="aaaa", z="dddd"), Says(z="cccc")
    both = {"small": small, "middle": middle, "large": large}
    results = rv.generate(both, list("xyz"), similarity="exact", escalate="share<0.7")
    assert [small.seen, middle.seen, large.seen] == [["x", "y", "z"], ["y", "z"], ["z"]]
    assert [sorted(result.panel.shares) for result in results] == [
        ["small"],
        ["middle", "small"],
        ["large", "middle", "small"],
    ]
    assert [(result.winner, result.member) for result in results] == [
        ("a", "small"),
        ("a", "small"),
        ("c", "small"),  # 1/3 * 1/4 + 1/3
    ]


@pytest.mark.filterwarnings("ignore::rangevote.RangevoteWarning")
def test_where_the_first_model_fails_the_next_one_is_asked():
    small, large = Says(x="aa", z="aa"), Says(y="bb")
    results = rv.generate(
        {"small": small, "large": large}, list("xyz"), similarity="exact", escalate="share<1"
    )
    assert large.seen == ["y"]
    assert [result.member for result in results] == ["small", "large", "small"]
    assert (results[1].panel.shares, results[1].panel.left_out) == ({"large": 1.0}, ("small",))
    with pytest.raises(rv.DataError, match="too long"):
        rv.generate({"small": small, "large": Says()}, ["y"], similarity="exact", escalate="share<1")


@pytest.mark.filterwarnings("ignore::rangevote.RangevoteWarning")
def test_where_the_first_model_fails_voters_are_drawn_from_the_next_one():
    models = {"failing": Failing.train(["a b"], order=2), "small": model("ten")}
    options = {"candidates": "beam:2", "voters": "sample:40", "adaptive": 0.9, "escalate": "undecided"}
    [result] = rv.generate(models, ["the bus"], similarity="exact", **options)
    assert (result.winner, {one.member for one in result.voters}) == ("leaves at ten", {"small"})


def test_a_panel_draws_voters_until_it_is_decided_one_of_each_member_at_a_time():
    both = {"small": model("ten"), "large": model("ten", "ten", "noon")}
    options = {"similarity": "exact", "candidates": "beam:2", "voters": "sample:200", "adaptive": 0.9}
    for result in rv.generate(both, INPUTS, **options):
        votes = [sum(one.member == name for one in result.voters) for name in both]
        assert votes[0] == votes[1] < 200
        assert result.winner == "leaves at ten"
    [result, *_] = rv.generate(both, INPUTS, **options, escalate="undecided")
    assert {one.member for one in result.voters} == {"small"}


@pytest.mark.parametrize(
    "condition", ["", "share", "share<0", "share<1.5", "share<.", "votes<1", "share>1", "x"]
)
def test_a_condition_that_says_nothing_is_refused(condition):
    with pytest.raises(rv.UsageError, match="escalate must be"):
        Escalation.of(condition)


@pytest.mark.parametrize(
    ("votes", "condition", "goes_on"),
    [
        ("aaaa", "share<1", False),
        ("aaab", "share<1", True),
        ("aaab", "share<0.75", False),
        ("aaab", "share<0.76", True),
        ("aaab", "margin<0.5", False),
        ("aabb", "margin<0.1", True),
        ("aaaa", "margin<1", False),
        ("aaab", "score<0.8", True),
        ("a", "share<1", True),
        ("aaaa", "undecided", True),
    ],
)
def test_those_asked_so_far_agree_or_do_not(votes, condition, goes_on):
    assert (
        Escalation.of(condition).goes_on(rv.elect(list(votes), similarity="exact"), certain=False) == goes_on
    )


def test_draws_are_divided_as_evenly_as_possible_whatever_the_rounds():
    for members in (["a"], ["a", "b"], ["a", "b", "c"]):
        for total in range(1, 12):
            for cut in range(total + 1):
                first, second = parts(range(cut), members), parts(range(cut, total), members)
                sizes = [len(first[name]) + len(second[name]) for name in members]
                assert sum(sizes) == total
                assert max(sizes) - min(sizes) <= 1
                assert all(first[name].stop == second[name].start for name in members)
