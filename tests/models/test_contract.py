"""The contract passes a good model, and for each of its clauses fails one that breaks it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from tests.models.contract import ModelContract, chain
from tests.models.table import TableModel, enumerate_sequences

INPUTS = [(1, 2), "b", 3, (4, 1, 1)]


class TestTable(ModelContract):
    @pytest.fixture
    def model(self):
        return TableModel(vocab=6, length=None, seed=1)

    @pytest.fixture
    def inputs(self):
        return INPUTS


class Unnormalised(TableModel):
    def step(self, state, tokens):
        step = super().step(state, tokens)
        return dataclasses.replace(step, log_probs=step.log_probs + 0.01)


class MixesTheBatch(TableModel):
    def step(self, state, tokens):
        step = super().step(state, tokens)
        mean = np.log(np.exp(step.log_probs).mean(axis=0, keepdims=True))
        return dataclasses.replace(step, log_probs=np.repeat(mean, len(step.log_probs), axis=0))


class SortsTheRows(TableModel):
    def select(self, state, rows):
        return super().select(state, np.sort(rows))


class UsesUpAFreshState(TableModel):
    def select(self, state, rows):
        state.rows.reverse()
        return super().select(state, rows)


class LeavesRowsWhereTheyAre(TableModel):
    """A cache that is not reordered: rows keep the prefix of their place, and get the token of another."""

    def select(self, state, rows):
        return super().select(state, np.arange(len(rows)) % len(state.rows) if state.begun else rows)


class Remembers(TableModel):
    calls = 0

    def step(self, state, tokens):
        self.calls += 1
        self.sharp = 1 + self.calls % 7
        self._known.clear()
        return super().step(state, tokens)


class HiddenStatesStayBehind(TableModel):
    def step(self, state, tokens):
        step = super().step(state, tokens)
        return dataclasses.replace(step, hidden=step.hidden[::-1])


class KeepsWhatItGave(TableModel):
    """Its next distribution is made from the array it gave to the caller."""

    def step(self, state, tokens):
        step = super().step(state, tokens)
        given = getattr(state, "given", None)
        if given is not None and (given > 0).any():
            step.log_probs[:] = -math.log(self.vocab)
        step.state.given = step.log_probs
        return step

    def select(self, state, rows):
        selected = super().select(state, rows)
        selected.given = getattr(state, "given", None)
        return selected


class RanksTooFew(TableModel):
    def step(self, state, tokens):
        step = super().step(state, tokens)
        return dataclasses.replace(step, ranking=step.log_probs[:, 1:])


class HasRoom(TableModel):
    answer: object = None

    def room(self, state):
        return self.answer


class SpeaksNumbers(TableModel):
    def text(self, tokens):
        return list(tokens)


class SourceOfWords(TableModel):
    def source(self, input):
        return ["a", "b"]


C = ModelContract
BROKEN = [
    (Unnormalised, C.test_log_probs_sum_to_one, ()),
    (MixesTheBatch, C.test_a_batch_says_what_each_input_says_alone, ()),
    (SortsTheRows, C.test_selecting_from_a_fresh_state_is_starting_with_those_inputs, ([2, 0, 1],)),
    (UsesUpAFreshState, C.test_a_fresh_state_can_be_selected_from_many_times, ()),
    (Remembers, C.test_tokens_appended_one_by_one_give_the_same_whatever_follows_them, ()),
    (LeavesRowsWhereTheyAre, C.test_rows_that_repeat_vanish_and_change_places_keep_their_prefix, (0,)),
    (SortsTheRows, C.test_rows_that_repeat_vanish_and_change_places_keep_their_prefix, (1,)),
    (HiddenStatesStayBehind, C.test_a_hidden_state_belongs_to_the_tokens_of_its_row, ()),
    (KeepsWhatItGave, C.test_the_caller_may_write_into_log_probs, ()),
    (RanksTooFew, C.test_a_ranking_has_the_shape_of_the_log_probs, ()),
    (SpeaksNumbers, C.test_the_text_of_tokens_is_a_text_or_unknown, ()),
    (SourceOfWords, C.test_the_source_is_in_the_tokens_of_the_model, ()),
]


@pytest.mark.parametrize(
    ("broken", "clause", "arguments"), BROKEN, ids=[f"{b.__name__}-{c.__name__}" for b, c, _ in BROKEN]
)
def test_a_model_that_breaks_a_clause_fails_it_and_a_good_one_does_not(broken, clause, arguments):
    clause(ModelContract(), TableModel(6, None, seed=1), INPUTS, *arguments)
    with pytest.raises(AssertionError):
        clause(ModelContract(), broken(6, None, seed=1), INPUTS, *arguments)


@pytest.mark.parametrize("answer", [np.array([3, 3]), np.array([3, 3, 0, 3]), np.array([3.0, 3.0, 3.0, 3.0])])
def test_a_room_that_is_short_empty_or_no_integer_fails(answer):
    model = HasRoom(6, None, seed=1)
    model.answer = answer
    with pytest.raises(AssertionError):
        ModelContract().test_room_is_one_positive_number_for_each_input(model, INPUTS)


@pytest.mark.parametrize("ends", [(), (6,), (-1,), (0, 0), ("0",)])
def test_ends_outside_the_vocabulary_or_listed_twice_fail(ends):
    model = TableModel(6, None, seed=1)
    model.ends = ends
    with pytest.raises(AssertionError):
        ModelContract().test_the_ends_are_tokens(model, INPUTS)


@pytest.mark.parametrize(
    ("length", "max_len", "listed"), [(2, 3, 13), (None, 2, 1 + 3 + 9), (None, 1, 1 + 3)]
)
def test_an_enumeration_lists_every_sequence_and_all_of_the_probability(length, max_len, listed):
    # three tokens besides the end: 1 + 3 + 9 sequences of up to two of them
    model = TableModel(4, length, seed=3)
    found = enumerate_sequences(model, "x", max_len)
    assert len(found) == len({(one.tokens, one.finished) for one in found}) == listed
    assert math.fsum(math.exp(one.logprob) for one in found) == pytest.approx(1, abs=1e-12)
    for one in found:
        tokens = [*one.tokens, model.end] if one.finished else list(one.tokens)
        log_probs = chain(model, "x", tokens).log_probs
        assert one.logprob == pytest.approx(sum(log_probs[i, t] for i, t in enumerate(tokens)), abs=1e-12)
        assert one.finished or len(one.tokens) == max_len
