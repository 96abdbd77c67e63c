"""Running a search: batches, bad input, and sizes up to a thousand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rangevote.decoding import Batch, search
from rangevote.decoding.beam import Beam
from rangevote.decoding.diverse import DiverseBeam, DiverseDecoding
from rangevote.decoding.sample import Sample, Sampling
from rangevote.decoding.stochastic import StochasticBeam
from rangevote.errors import DataError, UsageError
from rangevote.hypothesis import Hypothesis
from tests.decoding.compare import ranking
from tests.decoding.every import EVERY
from tests.decoding.models import Broken, InTorch, Mute
from tests.models.contract import ModelContract
from tests.models.table import TableModel


class TestTable(ModelContract):
    """The model of these tests keeps the rules of all models."""

    @pytest.fixture
    def model(self):
        return TableModel(vocab=6, length=None, seed=1)

    @pytest.fixture
    def inputs(self):
        return [(1, 2), "b", 3, (4, 1, 1)]


class BrokenInTorch(Broken, InTorch):
    """NaN in tensors."""


class Misled(Broken):
    """Its log-probs are sound, its ranking is NaN."""

    def step(self, state, tokens):
        broken = super().step(state, tokens)
        return replace(
            broken, log_probs=np.nan_to_num(broken.log_probs, neginf=-np.inf), ranking=broken.log_probs
        )


@pytest.mark.parametrize("kind", [Broken, BrokenInTorch, Misled])
@pytest.mark.parametrize("method", [Beam(4), Sample(60, temperature=3.0)], ids=str)
@pytest.mark.parametrize("prefix", [(), (1,)], ids=["at first", "in one of several rows"])
def test_nan_is_told_with_its_input_and_length(method, kind, prefix):
    if kind is BrokenInTorch:
        pytest.importorskip("torch")
    model = kind(3, 4, seed=2, sharp=0.2)
    model.where, model.tokens = ("b", prefix), [2]
    with pytest.raises(DataError, match=f"NaN after {len(prefix)} tokens") as error:
        search(model, ["a", "c", "b", "d"], replace(method, min_new_tokens=1), max_rows=1)
    assert error.value.field == "inputs[2]"


class Unreadable(TableModel):
    """Cannot read the input "b"."""

    def start(self, inputs):
        if "b" in inputs:
            raise DataError("is too long.", field=f"inputs[{inputs.index('b')}]")
        return super().start(inputs)


class UnreadableByEngine:
    """The same as an engine."""

    def hypotheses(self, inputs, search):
        if "b" in inputs:
            raise DataError("is too long.", field=f"inputs[{inputs.index('b')}]")
        return [[Hypothesis(text="x")] for _ in inputs]


@pytest.mark.parametrize("model", [Unreadable(6, 3, seed=1), UnreadableByEngine()], ids=["model", "engine"])
def test_an_input_that_cannot_be_read_is_named_by_its_number_in_the_whole_run(model):
    with pytest.raises(DataError, match="too long") as caught:
        search(model, ["a", "c", "d", "b"], "beam:3", max_rows=6)
    assert caught.value.field == "inputs[3]"


@pytest.mark.parametrize(
    ("inputs", "method", "max_rows", "message"),
    [
        ([], 3, 9, "a search is a name"),
        (["a"], "bim:3", 9, "unknown search"),
        ("a text", "beam:2", 9, r"inputs must be a list, got str; for one input give a list of one\."),
        (iter(["a"]), "beam:2", 9, "inputs must be a list, got list_iterator"),
        *((["a"], "beam:2", rows, "max_rows must be a whole number from 1, got") for rows in (0, 2.5, True)),
    ],
)
def test_what_cannot_be_meant_is_told_before_any_model_runs(inputs, method, max_rows, message):
    with pytest.raises(UsageError, match=message):
        search(None, inputs, method, max_rows=max_rows)


@pytest.mark.parametrize("method", EVERY, ids=str)
def test_states_of_a_model_that_has_none_are_told(method):
    with pytest.raises(UsageError, match=r"this model has no hidden states.*leave `states` off"):
        search(Mute(4, 3, seed=0), ["a"], method, states=True)
    assert search(Mute(4, 3, seed=0), ["a"], method)[0][0].text is None


@pytest.mark.parametrize("method", EVERY, ids=str)
def test_no_inputs_give_no_lists(method):
    assert search(TableModel(3, 2, seed=0), [], method) == []
    assert search(TableModel(3, 2, seed=0), (), method) == []


class Counting(TableModel):
    """Keeps how many inputs it read at a time, and how many rows went through it: at most and in all."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.read, self.most, self.rows = [], 0, 0

    def start(self, inputs):
        self.read.append(len(inputs))
        return super().start(inputs)

    def step(self, state, tokens):
        self.most = max(self.most, len(state.rows))
        self.rows += len(state.rows)
        return super().step(state, tokens)


@pytest.mark.parametrize(("max_rows", "sizes"), [(25, [2, 2, 2, 1]), (3, [1] * 7)])
def test_batches_hold_as_many_inputs_as_have_room(max_rows, sizes):
    model = Counting(3, 2, seed=0)
    assert len(search(model, list("abcdefg"), Beam(10), max_rows=max_rows)) == 7
    assert model.read == sizes


def test_the_parts_of_a_sum_share_one_reading():
    model = Counting(3, 2, seed=0)
    search(model, ["a", "b"], "beam:2+sample:3")
    assert model.read == [2]


@pytest.mark.parametrize("method", [*EVERY, Sample(100)], ids=str)
@pytest.mark.parametrize("max_rows", [1, 64])
def test_no_more_rows_go_through_the_model_than_allowed(method, max_rows):
    model = Counting(6, 4, seed=0)
    search(model, list("abcde"), method, max_rows=max_rows)
    least = 1 if isinstance(method, Sampling) else method.size  # never less than one input's beam
    assert model.most <= max(max_rows, least)
    assert sum(model.read) == 5  # every input is read once, however many samples are drawn


@pytest.mark.parametrize("method", [Sample(100), DiverseBeam(6, groups=3)], ids=str)
def test_a_prefix_that_hypotheses_share_goes_through_the_model_once(method):
    model = Counting(3, 4, seed=0)  # two words and an end: 31 prefixes of up to 4 words
    shared = search(model, ["a"], method)
    assert model.rows <= 31
    assert shared == search(TableModel(3, 4, seed=0), ["a"], method, max_rows=1)


def test_a_reading_answers_again_and_again():
    model = Counting(6, 4, seed=0)
    batch = Batch(model, ["a", "b"], [0, 1])
    assert batch.search(Beam(3)) == batch.search(Beam(3)) == search(model, ["a", "b"], Beam(3))
    assert model.read == [2, 2]


@pytest.mark.parametrize(
    "method",
    [
        Beam(1000),
        Beam(1000, finish="transformers"),
        DiverseBeam(1000, groups=10),
        DiverseDecoding(1000),
        StochasticBeam(1000),
    ],
    ids=str,
)
def test_a_thousand_hypotheses(method):
    model = TableModel(6, 5, seed=0)  # 3,906 sequences
    (found,) = search(model, ["a"], method)
    assert len(found) == 1000
    if not isinstance(method, DiverseBeam):
        assert len(set(ranking(found))) == 1000
