"""generate is search and elect, joined: the same lists, the same results, one reading of the prompt."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pytest

import rangevote as rv
from rangevote.decoding import Batch, get_search
from rangevote.election.settings import Settings
from rangevote.generation.generate import Request, elect_requests
from rangevote.generation.plan import GenerationPlan
from rangevote.hypothesis import Hypothesis
from tests.models.table import Table, TableModel

INPUTS = ["a", "b", "c", "d", "e"]


class Counting(TableModel):
    """Remembers which inputs were read."""

    def __init__(self) -> None:
        super().__init__(5, 4, seed=1)
        self.read: list[list[Hashable]] = []

    def start(self, inputs: Sequence[Hashable]) -> Table:
        self.read.append(list(inputs))
        return super().start(inputs)


@pytest.fixture
def model() -> Counting:
    return Counting()


def same(result: rv.Result, other: rv.Result) -> None:
    """All that an election says, to the last bit."""
    assert result.scores.tolist() == other.scores.tolist()
    assert result.weights.tolist() == other.weights.tolist()
    assert (result.elected, result.signature) == (other.elected, other.signature)
    assert list(result.candidates) == list(other.candidates)
    assert list(result.voters) == list(other.voters)


def found(model: TableModel, method: str, *, stream: int = 0, states: bool = False) -> list[list[Hypothesis]]:
    return Batch(model, INPUTS, range(len(INPUTS)), states).search(get_search(method), stream)


@pytest.mark.parametrize("method", ["beam:6", "sample:20,seed=3"])
def test_the_candidates_of_a_search_vote_for_each_other(model, method):
    results = rv.generate(model, INPUTS, candidates=method, similarity="overlap_1")
    for result, candidates in zip(results, found(model, method), strict=True):
        same(result, rv.elect(candidates, similarity="overlap_1"))


@pytest.mark.parametrize("voters", ["sample:30", "beam:9"])
def test_other_voters_come_from_a_search_of_their_own(model, voters):
    results = rv.generate(model, INPUTS, candidates=rv.Beam(4), voters=voters, similarity="precision_1")
    lists = zip(found(model, "beam:4"), found(model, voters, stream=1), strict=True)
    for result, (candidates, electors) in zip(results, lists, strict=True):
        same(result, rv.elect(candidates, voters=electors, similarity="precision_1"))


def test_candidates_and_voters_of_the_same_seed_are_different_draws(model):
    [result] = rv.generate(model, ["a"], candidates="sample:40,seed=7", voters="sample:40,seed=7")
    assert [h.tokens for h in result.candidates] != [h.tokens for h in result.voters]


def test_every_option_of_an_election_is_passed_on(model):
    options = {
        "similarity": "0.5*overlap_1+0.5*exact",
        "weights": "probability",
        "temperature": 2.0,
        "rule": "reweighted",
        "winners": 3,
        "tokenize": "tokens",
        "normalize": "NFC",
        "merge": True,
    }
    results = rv.generate(model, INPUTS, candidates="beam:8", **options)
    for result, candidates in zip(results, found(model, "beam:8"), strict=True):
        same(result, rv.elect(candidates, **options))
    [blended, *_] = rv.generate(model, INPUTS, preset="blend")
    same(blended, rv.elect(found(model, "beam:10")[0], preset="blend"))


@pytest.mark.parametrize(("rows", "size"), [(1, 1), (20, 2), (35, 3), (1000, 5)])
def test_a_prompt_is_read_once_for_candidates_and_voters(model, rows, size):
    rv.generate(model, INPUTS, candidates="beam:4", voters="sample:10", max_rows=rows)
    assert model.read == [INPUTS[i : i + size] for i in range(0, len(INPUTS), size)]


def test_hidden_states_are_kept_where_the_measure_compares_them(model):
    for similarity in ("states", "0.3*overlap_1+0.7*states"):
        results = rv.generate(model, INPUTS, candidates="beam:5", similarity=similarity)
        for result, candidates in zip(results, found(model, "beam:5", states=True), strict=True):
            same(result, rv.elect(candidates, similarity=similarity))
    assert rv.generate(model, ["a"], similarity="overlap_1")[0].hypothesis.state is None
    assert rv.generate(model, ["a"], similarity="overlap_1", states=True)[0].hypothesis.state is not None


def test_elections_give_the_ballot_of_each_input(model):
    plan = GenerationPlan.of(Settings("overlap_1"), "beam:4", "sample:10")
    blank = rv.Ballot((), id="x", source="who?", references=["me"])
    requests = [Request(0, "a", blank), Request.of(1, "b"), Request.of(2, ("not", "a", "text"))]
    held = list(elect_requests({"": model}, requests, plan))
    assert [one.ballot.id for one in held] == ["x", None, None]
    assert [one.ballot.source for one in held] == ["who?", "b", None]
    assert held[0].ballot.references == ["me"]
    for one in held:
        same(one.result, rv.elect(one.ballot, similarity="overlap_1"))
        assert len(one.ballot.voters or ()) == 10


def test_requests_are_taken_as_results_are_asked_for(model):
    taken: list[int] = []

    def requests():
        for number, input in enumerate(INPUTS):
            taken.append(number)
            yield Request.of(number, input)

    plan = GenerationPlan.of(Settings(), "beam:10", max_rows=20)
    next(elect_requests({"": model}, requests(), plan))
    assert taken == [0, 1]


def test_an_input_keeps_its_number_in_the_run_and_so_its_draws(model):
    plan = GenerationPlan.of(Settings(), "sample:10")
    together = list(elect_requests({"": model}, [Request.of(i, x) for i, x in enumerate(INPUTS)], plan))
    [alone] = elect_requests({"": model}, [Request.of(3, "d")], plan)
    same(alone.result, together[3].result)


class Forbidding(TableModel):
    """Everything it can say is in the source, so that a copy filter leaves nothing."""

    def source(self, input: Hashable) -> Sequence[int]:
        return range(1, self.vocab) if input == "bad" else ()

    def predict(self, input, prefix):
        log_probs, hidden = super().predict(input, prefix)
        if input == "bad":
            log_probs = log_probs.copy()
            log_probs[self.end] = -float("inf")
        return log_probs, hidden


def test_an_input_without_candidates_is_named():
    model = Forbidding(4, 3, seed=1)
    with pytest.raises(
        rv.DataError,
        match=r"inputs\[1\]: the search 'beam:3,copy_filter=0.1' found no candidates that pass the copy",
    ):
        rv.generate(model, ["good", "bad"], candidates="beam:3,copy_filter=0.1")
    with pytest.raises(rv.DataError, match=r"inputs\[1\]: the search '.*' found no voters"):
        rv.generate(
            model, ["good", "bad"], candidates="beam:3,max_new_tokens=2", voters="beam:3,copy_filter=0.1"
        )


def test_an_election_that_cannot_be_held_names_its_input():
    class Certain(TableModel):
        def text(self, tokens: Sequence[int]) -> str | None:
            return "a" if tokens else "\ud800"  # half a character

    with pytest.raises(rv.DataError, match=r"inputs\[0\]: candidates\[\d\]"):
        rv.generate(Certain(4, 3, seed=1), ["x"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"inputs": "one text"}, "inputs must be a list, got str; for one input give a list of one"),
        ({"model": "gpt2"}, "must be a language model, got 'gpt2'; rangevote.load makes one"),
        ({"max_rows": 0}, "max_rows must be a whole number from 1, got 0"),
        ({"candidates": "bean:10"}, "unknown search 'bean'. Did you mean 'beam'"),
    ],
)
def test_what_cannot_be_meant_is_said_before_the_model_runs(model, wrong, message):
    arguments = {"model": model, "inputs": ["a"], **wrong}
    with pytest.raises(rv.UsageError, match=message):
        rv.generate(arguments.pop("model"), arguments.pop("inputs"), **arguments)
    assert model.read == []


def test_too_little_memory_says_what_helps():
    class Large(TableModel):
        def step(self, state, tokens):
            raise RuntimeError("CUDA out of memory.")

    with pytest.raises(rv.SetupError, match=r"out of memory with 2 inputs at a time.*max_rows"):
        rv.generate(Large(4, 3, seed=1), INPUTS, max_rows=20)


def test_other_failures_of_a_model_are_its_own():
    class Faulty(TableModel):
        def step(self, state, tokens):
            raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        rv.generate(Faulty(4, 3, seed=1), INPUTS)


class Picky(Counting):
    """Refuses one input."""

    def start(self, inputs: Sequence[Hashable]) -> Table:
        found = super().start(inputs)
        if "c" in inputs:
            raise rv.DataError("I will not read this.", field=f"inputs[{inputs.index('c')}].text")
        return found


def test_one_bad_input_of_a_batch_does_not_cost_the_others():
    model, plan = Picky(), GenerationPlan.of(Settings("overlap_1"), "sample:9")
    requests = [Request.of(i, input) for i, input in enumerate(INPUTS)]
    held = list(elect_requests({"": model}, requests, plan))
    assert model.read == [INPUTS, *([input] for input in INPUTS)]
    assert isinstance(held[2], rv.DataError)
    whole = list(elect_requests({"": Counting()}, requests, plan))
    for i in (0, 1, 3, 4):
        same(held[i].result, whole[i].result)  # type: ignore[union-attr]


def test_after_a_failed_batch_inputs_are_tried_as_they_are_asked_for():
    model, plan = Picky(), GenerationPlan.of(Settings("overlap_1"), "beam:4")
    held = elect_requests({"": model}, [Request.of(i, input) for i, input in enumerate(INPUTS)], plan)
    assert not isinstance(next(held), rv.DataError)
    assert model.read == [INPUTS, ["a"]]
