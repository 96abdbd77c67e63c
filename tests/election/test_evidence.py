"""Scores that candidates carry, such as a reward, count beside the votes."""

import json
import math
import statistics

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from rangevote.cli import cli
from rangevote.election.rules import standardised
from rangevote.errors import DataError, UsageError
from rangevote.formats.jsonl import write_ballot
from rangevote.hypothesis import Hypotheses, Hypothesis
from rangevote.tuning.tune import tune

TEXTS = ["it is 4", "so 4", "it is 5"]


def carrying(rewards, texts=TEXTS, **fields):
    return [Hypothesis(text, scores={"reward": x}, **fields) for text, x in zip(texts, rewards, strict=True)]


def test_a_standardised_reward_times_its_weight_is_added_to_the_votes():
    # two thirds of the vote for 4, one third for 5; rewards 0, 0, 3: mean 1, deviation sqrt 2
    result = rv.elect(carrying([0, 0, 3]), similarity="exact:last_number", scores={"reward": 0.5})
    a, b = -1 / math.sqrt(2), 2 / math.sqrt(2)
    assert result.scores.tolist() == pytest.approx([2 / 3 + a / 2, 2 / 3 + a / 2, 1 / 3 + b / 2], abs=1e-12)
    assert result.evidence.tolist() == pytest.approx([a / 2, a / 2, b / 2], abs=1e-12)
    assert result.index == 2
    assert "|scores:reward=0.5|" in result.signature
    assert rv.elect(carrying([0, 0, 3]), similarity="exact:last_number", scores={"reward": -1}).index == 0


def test_a_weight_of_zero_is_as_if_there_were_no_scores():
    candidates = carrying([0, 0, 3], logprob=-1.0)
    for options in ({}, {"similarity": "exact:last_number"}, {"preset": "paper"}):
        plain, none = rv.elect(candidates, **options), rv.elect(candidates, scores={"reward": 0.0}, **options)
        assert none.scores.tobytes() == plain.scores.tobytes()
        assert (none.signature, none.evidence) == (plain.signature, None)
        # candidates that carry scores are elected in one call where these do not count
        assert rv.elect(TEXTS, [-1.0] * 3, **options).scores.tobytes() == plain.scores.tobytes()


@given(
    st.lists(st.integers(-20, 20), min_size=1, max_size=9),
    st.integers(-100, 100),
    st.sampled_from([0.001, 0.5, 3.0, 1e6]),
)
def test_shift_and_scale_of_the_reward_change_nothing(rewards, shift, scale):
    texts = [f"text {i % 3}" for i in range(len(rewards))]
    column = standardised(Hypotheses.of(carrying(rewards, texts)), "reward")
    moved = standardised(Hypotheses.of(carrying([scale * x + shift for x in rewards], texts)), "reward")
    assert moved.tolist() == pytest.approx(column.tolist(), abs=1e-6)
    if len(set(rewards)) == 1:
        assert not column.any()
    else:
        mean, deviation = statistics.fmean(rewards), statistics.pstdev(rewards)
        assert column.tolist() == pytest.approx([(x - mean) / deviation for x in rewards])


def test_rewards_near_the_ends_of_floats_are_standardised():
    column = standardised(Hypotheses.of(carrying([-1.7e308, 0, 1.7e308])), "reward")
    assert column.tolist() == pytest.approx([-math.sqrt(1.5), 0, math.sqrt(1.5)])


def test_likelihood_and_several_scores_add_up():
    candidates = [
        Hypothesis("a b", logprob=-1.0, scores={"reward": 1, "length": 5}),
        Hypothesis("a c", logprob=-2.0, scores={"reward": 2, "length": 4}),
    ]
    options = {"similarity": "overlap_1", "weights": "count"}
    both = rv.elect(candidates, likelihood=0.3, scores={"reward": 0.2, "length": 0.1}, **options)
    own = rv.elect(candidates, likelihood=0.3, **options).evidence
    assert both.evidence.tolist() == pytest.approx([own[0] - 0.2 + 0.1, own[1] + 0.2 - 0.1])
    assert "|L:0.3|scores:length=0.1,reward=0.2|" in both.signature


def test_an_electorate_adds_the_same_evidence():
    candidates = carrying([0.1, 0.9, 0.4])
    options = {"similarity": "overlap_1", "weights": "count", "scores": {"reward": 0.3}}
    streamed = rv.Electorate(candidates, **options).add(TEXTS[:2]).add(TEXTS[2:]).result()
    assert streamed.scores.tolist() == rv.elect(candidates, voters=TEXTS, **options).scores.tolist()
    with pytest.raises(UsageError, match="need candidates"):
        rv.Electorate(similarity="exact", scores={"reward": 1})


def test_a_candidate_without_the_score_is_named():
    candidates = [*carrying([1, 2, 3]), Hypothesis("x", scores={"other": 1})]
    with pytest.raises(DataError, match="--score-field") as caught:
        rv.elect(candidates, scores={"reward": 1})
    assert caught.value.field == "candidates[3].scores"
    with pytest.raises(DataError) as caught:
        rv.elect(TEXTS, scores={"reward": 1})
    assert caught.value.field == "candidates[0].scores"


@pytest.mark.parametrize("value", [0.5, {"reward": "a"}, {"reward": math.nan}, {1: 2.0}])
def test_weights_that_are_no_numbers_by_name_are_refused(value):
    with pytest.raises(UsageError, match="scores"):
        rv.elect(carrying([1, 2, 3]), scores=value)


@pytest.mark.parametrize("score", [math.inf, math.nan, "a", True])
def test_scores_that_are_no_finite_numbers_are_refused(score):
    with pytest.raises(DataError) as caught:
        rv.elect([Hypothesis("a", scores={"reward": score})], scores={"reward": 1})
    assert caught.value.field == "candidates[0].scores.reward"


PAIRS = list(zip(TEXTS, [0, 0, 3], strict=True))
#: what the file looks like -> its content
FILES = {
    "nested.jsonl": json.dumps({"candidates": [{"text": t, "scores": {"reward": x}} for t, x in PAIRS]}),
    "flat.jsonl": json.dumps({"candidates": [{"text": text, "reward": x} for text, x in PAIRS]}),
    "beside.jsonl": json.dumps({"outputs": TEXTS, "reward": [0, 0, 3]}),
    "grouped.jsonl": "\n".join(json.dumps({"id": 1, "text": text, "reward": x}) for text, x in PAIRS),
    "table.csv": "id,text,reward\n" + "".join(f"1,{text},{x}\n" for text, x in PAIRS),
}


@pytest.mark.parametrize(("name", "content"), FILES.items(), ids=FILES)
def test_scores_of_files_count(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    options = ["-s", "exact:last_number", "--score-field", "reward", "--score-weights", "reward=0.5"]
    done = CliRunner().invoke(cli, ["vote", str(path), "--scores", *options])
    assert done.exit_code == 0, done.output
    expected = rv.elect(carrying([0, 0, 3]), similarity="exact:last_number", scores={"reward": 0.5})
    written = json.loads(done.stdout)
    assert (written["index"], written["scores"]) == (2, expected.scores.tolist())
    assert written["signature"] == expected.signature
    unweighted = CliRunner().invoke(cli, ["vote", str(path), *options[:4]])
    assert "--score-weights reward=" in unweighted.stderr


@pytest.mark.parametrize("format", ["jsonl", "parquet", "csv"])
def test_converted_ballots_keep_their_scores(tmp_path, format):
    ballot = rv.Ballot([*carrying([0.5, 1, 3]), Hypothesis("x")], id="1")
    path, out = tmp_path / "in.jsonl", tmp_path / f"out.{format}"
    path.write_bytes(write_ballot(ballot))
    done = CliRunner().invoke(cli, ["convert", str(path), "-o", str(out), "--to", format])
    assert done.exit_code == 0, done.output
    assert next(iter(rv.read(out))).candidates == ballot.candidates


def test_tune_chooses_the_weight_of_a_reward_that_helps_and_says_so():
    ballots = [
        rv.Ballot(carrying([0, 0, 1], texts=[f"{i}", f"{i}", f"{i + 1}"]), references=[f"{i + 1}"])
        for i in range(30)
    ]
    options = {"similarities": ["exact:last_number"], "likelihoods": [0], "temperatures": [1]}
    tuned = tune(ballots, metric="accuracy:last_number", scores=["reward"], **options)
    assert tuned.options["scores"]["reward"] > 0.1
    [gain] = tuned.gains
    assert (gain.option, gain.value, gain.against, gain.gain) == ("scores", "reward", "none", 100.0)
    assert gain.p < 0.05
    elected = [rv.elect(ballot, **tuned.options).winner for ballot in ballots]
    assert elected == [ballot.references[0] for ballot in ballots]


def test_tune_says_that_a_reward_without_information_does_not_help():
    ballots = [
        rv.Ballot(carrying([i % 2, 1, i % 3], texts=["4", "4", "5"]), references=["4"]) for i in range(30)
    ]
    options = {"similarities": ["exact:last_number"], "likelihoods": [0], "temperatures": [1]}
    tuned = tune(ballots, metric="accuracy:last_number", scores=["reward"], **options)
    assert "scores" not in tuned.options
    assert tuned.gains[0].p > 0.05
