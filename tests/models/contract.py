"""The seam between models and searches (`rangevote/models/protocol.py`) as tests that every model must pass.

    class TestMine(ModelContract):
        @pytest.fixture
        def model(self): ...

        @pytest.fixture
        def inputs(self): ...     # three or more, of different lengths

Arrays may be numpy's or torch's, on any device. The contract has the search side too: a state is used
once, but for a fresh one, which is only selected from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from rangevote.models.protocol import Step

Prefix = tuple[int, ...]


def numpy(array: Any) -> Any:
    """A numpy array (floats: of 64 bits) from one of numpy or torch."""
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        array = (array.double() if array.is_floating_point() else array).numpy()
    return np.asarray(array)


class Chain(NamedTuple):
    """log P of every next token, (tokens + 1, vocabulary), and the hidden states, (tokens + 1, dimension)."""

    log_probs: Any
    hidden: Any | None


def chain(model: Any, input: Any, tokens: Sequence[int]) -> Chain:
    """One input alone, with these tokens given one after the other."""
    steps = [model.step(model.start([input]), None)]
    log_probs, hidden = [numpy(steps[-1].log_probs)], [steps[-1].hidden]
    for token in tokens:
        steps.append(model.step(steps[-1].state, np.array([token])))
        log_probs.append(numpy(steps[-1].log_probs))
        hidden.append(steps[-1].hidden)
    states = None if hidden[0] is None else np.concatenate([numpy(state) for state in hidden])
    return Chain(np.concatenate(log_probs), states)


def go_on(rng: np.random.Generator, model: Any, log_probs: Any) -> Any:
    """A token for each row (rows,) that may follow, and does not end the sequence."""
    chosen = []
    for row in numpy(log_probs):
        likely = np.setdiff1d(np.flatnonzero(row > -30), model.ends)
        assert likely.size, "a model that can only end cannot be tested for longer"
        chosen.append(rng.choice(likely))
    return np.array(chosen)


class ModelContract:
    #: Log-probabilities and hidden states may differ by this much between a batch and a row alone.
    tolerance = 1e-9
    #: The logarithm of the sum of each distribution is 0 up to this.
    normalised = 1e-9
    #: How many tokens are appended, if the model has room.
    steps = 5

    @pytest.fixture
    def model(self) -> Any:
        raise NotImplementedError("a fixture that gives the model")

    @pytest.fixture
    def inputs(self) -> Sequence[Any]:
        raise NotImplementedError("a fixture that gives three inputs or more, of different lengths")

    def length(self, model: Any, inputs: Sequence[Any]) -> int:
        """How many tokens to append: after the last, one more must have room."""
        room = model.room(model.start(inputs))
        return self.steps if room is None else min(self.steps, int(numpy(room).min()) - 1)

    def close(self, found: Any, expected: Any) -> None:
        np.testing.assert_allclose(numpy(found), numpy(expected), rtol=0, atol=self.tolerance)

    def wander(
        self, model: Any, inputs: Sequence[Any], seed: int, scribble: bool = False
    ) -> Iterator[tuple[Step[Any], list[tuple[int, Prefix]]]]:
        """Steps of a search that chooses rows and tokens by chance, and the input and prefix of each row."""
        rng = np.random.default_rng(seed)
        rows = [(i, ()) for i in range(len(inputs))]
        step = model.step(model.start(inputs), None)
        yield step, rows
        for t in range(self.length(model, inputs)):
            chosen = rng.integers(len(rows), size=rng.integers(1, 2 * len(inputs) + 1))
            if t == 1:  # all rows of the first input vanish, and that of the last stands twice
                others = [r for r, (i, _) in enumerate(rows) if i != rows[0][0]] or [0]
                chosen = np.array([others[-1], *others])
            tokens = go_on(rng, model, numpy(step.log_probs)[chosen])
            if scribble:
                step.log_probs[:] = 7.0
            step = model.step(model.select(step.state, chosen), tokens)
            rows = [(rows[r][0], (*rows[r][1], int(token))) for r, token in zip(chosen, tokens, strict=True)]
            yield step, rows

    def test_three_inputs_have_room_for_two_tokens(self, model, inputs):
        assert len(inputs) >= 3
        assert self.length(model, inputs) >= 2

    @pytest.mark.parametrize("seed", range(3))
    def test_rows_that_repeat_vanish_and_change_places_say_what_each_says_alone(self, model, inputs, seed):
        for step, rows in self.wander(model, inputs, seed):
            log_probs = numpy(step.log_probs)
            assert len(log_probs) == len(rows)
            totals = np.logaddexp.reduce(log_probs, axis=1)
            np.testing.assert_allclose(totals, 0, rtol=0, atol=self.normalised)
            if step.ranking is not None:
                assert numpy(step.ranking).shape == log_probs.shape
            for i, (input, prefix) in enumerate(rows):
                alone = chain(model, inputs[input], prefix)
                self.close(log_probs[i], alone.log_probs[-1])
                assert (step.hidden is None) == (alone.hidden is None)
                if alone.hidden is not None:
                    assert numpy(step.hidden).shape == (len(rows), alone.hidden.shape[1])
                    self.close(numpy(step.hidden)[i], alone.hidden[-1])

    def test_a_fresh_state_can_be_selected_from_many_times(self, model, inputs):
        rng = np.random.default_rng(4)
        fresh = model.start(inputs)
        for rows in ([2, 2, 0], [2, 2, 0], [1], [0, 1, 2], [2, 2, 0]):
            step = model.step(model.select(fresh, np.array(rows)), None)
            alone = [chain(model, inputs[row], []).log_probs[0] for row in rows]
            self.close(step.log_probs, alone)
            tokens = go_on(rng, model, step.log_probs)
            later = [chain(model, inputs[r], [t]).log_probs[1] for r, t in zip(rows, tokens, strict=True)]
            self.close(model.step(step.state, tokens).log_probs, later)

    def test_the_caller_may_write_into_log_probs(self, model, inputs):
        clean = [numpy(step.log_probs).copy() for step, _ in self.wander(model, inputs, seed=7)]
        written = self.wander(model, inputs, seed=7, scribble=True)
        for expected, (step, _) in zip(clean, written, strict=True):
            self.close(step.log_probs, expected)

    def test_room_is_one_positive_number_for_each_input(self, model, inputs):
        room = model.room(model.start(inputs))
        if room is not None:
            assert numpy(room).shape == (len(inputs),)
            assert np.issubdtype(numpy(room).dtype, np.integer)
            assert (numpy(room) > 0).all()

    def test_the_ends_are_tokens(self, model, inputs):
        vocabulary = numpy(model.step(model.start(inputs), None).log_probs).shape[1]
        assert len(model.ends) == len(set(model.ends)) > 0
        assert all(isinstance(end, (int, np.integer)) and 0 <= end < vocabulary for end in model.ends)

    def test_no_tokens_are_no_text_and_all_tokens_have_text_or_none_has(self, model, inputs):
        nothing = model.text([])
        assert nothing in ("", None)
        for _, rows in self.wander(model, inputs, seed=9):
            assert [model.text(list(prefix)) is None for _, prefix in rows] == [nothing is None] * len(rows)

    def test_the_source_is_in_the_tokens_of_the_model(self, model, inputs):
        vocabulary = numpy(model.step(model.start(inputs), None).log_probs).shape[1]
        for input in inputs:
            tokens = list(model.source(input))
            assert all(isinstance(token, (int, np.integer)) and 0 <= token < vocabulary for token in tokens)
