"""Training: options, schedules, batches, the loop and its interruptions, and tiny models that learn."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from experiments.checkpoint import read_card
from experiments.training import (
    TranslatorOptions,
    as_written,
    train_captioner,
    train_translator,
    with_copies,
)
from experiments.training_loop import SCHEDULES, Pairs, Run, adam, batches, cosine, inverse_sqrt
from experiments.training_record import STATE
from experiments.transformer import PRESETS, Transformer
from experiments.vocabulary import Bpe
from hypothesis import given
from hypothesis import strategies as st

from rangevote.decoding import search
from rangevote.errors import DataError, SetupError, UsageError
from tests.experiments.tasks import CAPTIONER, TRANSLATOR, animals, reversals


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ({"epochs": 1.5}, r"TranslatorOptions: Expected `int`, got `float` - at `\$\.epochs`"),
        ({"preset": "bigg"}, "unknown preset 'bigg'. Did you mean 'big'"),
        ({"lable_smoothing": 0.1}, r"'lable_smoothing'.* 'label_smoothing'"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(option, told):
    with pytest.raises(UsageError, match=told):
        TranslatorOptions.read(option)


def test_the_inverse_square_root_is_the_formula_of_vaswani_et_al():
    size, warmup = 512, 4000
    peak = size**-0.5 * warmup**-0.5
    for step in (1, 100, 4000, 4001, 100_000):
        theirs = size**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert peak * inverse_sqrt(step, 10**6, warmup) == pytest.approx(theirs, rel=1e-12)


def test_the_cosine_falls_from_one_to_nothing_at_the_last_step():
    shares = [cosine(step, 100, 0) for step in range(1, 101)]
    assert shares == sorted(shares, reverse=True)
    assert cosine(50, 100, 0) == pytest.approx(0.5)
    assert cosine(25, 100, 0) == pytest.approx((1 + math.sqrt(0.5)) / 2)
    assert cosine(100, 100, 0) == pytest.approx(0)


@pytest.mark.parametrize("schedule", SCHEDULES.values())
def test_every_schedule_rises_evenly_to_one_and_never_beyond(schedule):
    assert [schedule(step, 100, 10) for step in (1, 5, 10)] == pytest.approx([0.1, 0.5, 1.0])
    assert all(0 <= schedule(step, 100, 10) <= 1 for step in range(1, 101))


LENGTHS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=60).map(
    lambda found: np.array(found, dtype=np.int64).reshape(-1, 2)
)


@given(LENGTHS, st.integers(1, 100), st.integers(0, 5))
def test_every_example_is_in_one_batch_and_no_batch_is_too_large(lengths, tokens, seed):
    found = batches(lengths, tokens, np.random.default_rng(seed))
    assert sorted(number for batch in found for number in batch) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) * lengths[batch].max() <= tokens or len(batch) == 1


def test_examples_of_like_lengths_go_together():
    rng = np.random.default_rng(0)
    source = rng.integers(5, 40, size=4000)
    lengths = np.stack([source, source + rng.integers(-3, 4, size=4000)], axis=1)
    found = batches(lengths, 1000, np.random.default_rng(0))
    padded = sum(len(batch) * lengths[batch].max(axis=0) for batch in found)
    assert (padded / lengths.sum(axis=0) < 1.1).all()


def test_mixed_batches_have_every_example_once_whatever_its_length_and_are_as_many_in_every_epoch() -> None:
    lengths = np.array([[2], [30]] * 50)
    drawn = [batches(lengths, 160, np.random.default_rng(seed), mixed=True) for seed in (1, 2)]
    assert [len(batch) for batch in drawn[0]] == [10] * 10
    assert len(drawn[0]) == len(drawn[1])
    assert sorted(np.concatenate(drawn[0]).tolist()) == list(range(100))
    assert any(len(set(lengths[batch, 0].tolist())) == 2 for batch in drawn[0])


PAIRS, DEV = reversals(60), reversals(20, seed=1)
SHORT = dataclasses.replace(TRANSLATOR, epochs=3, dropout=0.1, save_every=3, log_every=2, batch_tokens=100)


def short(folder, options=SHORT):
    return train_translator(PAIRS, DEV, options, folder, quiet=True)


def captions(folder):
    options = dataclasses.replace(CAPTIONER, epochs=2, dropout=0.3, save_every=4, batch_tokens=64)
    return train_captioner(*animals(40), *animals(10, seed=1), options, folder, quiet=True)


def weights(model):
    return {name: tensor.numpy() for name, tensor in model.net.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all((one[name] == other[name]).all() for name in one)


def log(folder):
    """What was logged, but for the clock."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


@pytest.fixture
def run(tmp_path):
    torch.manual_seed(0)
    vocabulary = Bpe.train((text for pair in PAIRS for text in pair), 270)
    model = Transformer(PRESETS["tiny"], vocabulary)
    examples, dev = Pairs.encode(PAIRS, vocabulary), Pairs.encode(DEV, vocabulary)
    return Run(model, examples, dev, dataclasses.replace(SHORT, dropout=0.0), tmp_path, "")


def alone(run, pair):
    """log P of every token (targets, vocabulary) of one pair, by teacher forcing without padding."""
    source, target = Pairs.encode([pair], run.model.vocabulary).take(np.array([0]))
    with torch.no_grad():
        return run.net.eval()(source, target[:, :-1])[0].log_softmax(dim=-1), target[0, 1:]


def test_the_loss_of_a_padded_batch_is_that_of_its_examples_alone(run):
    numbers = np.array([0, 7, 13, 21])
    with torch.no_grad():
        total, count = run._loss(*run._examples.take(numbers))
    found = [alone(run, PAIRS[number]) for number in numbers]
    expected = -sum(float(logs[range(len(target)), target].sum()) for logs, target in found)
    assert count == sum(len(target) for _, target in found)
    assert float(total) == pytest.approx(expected, rel=1e-5)


def test_label_smoothing_gives_a_share_to_all_words_alike(run):
    with torch.no_grad():
        total, _ = run._loss(*run._examples.take(np.array([3])), 0.1)
    logs, target = alone(run, PAIRS[3])
    plain, spread = logs[range(len(target)), target].sum(), logs.mean(dim=1).sum()
    assert float(total) == pytest.approx(-float(0.9 * plain + 0.1 * spread), rel=1e-5)


def test_weights_decay_but_biases_and_norms_do_not(run):
    decaying, rest = adam(run.net, TranslatorOptions(weight_decay=0.1)).param_groups
    assert decaying["weight_decay"] == 0.1
    assert {parameter.ndim for parameter in decaying["params"]} == {2}
    assert rest["weight_decay"] == 0
    assert {parameter.ndim for parameter in rest["params"]} == {1}


class Stop(BaseException):
    """The process is killed."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folders = {train: tmp_path_factory.mktemp("undisturbed") for train in (short, captions)}
    torch.set_num_threads(1)
    return {train: (train(folder), folder) for train, folder in folders.items()}


@pytest.mark.parametrize("train", [short, captions])
@pytest.mark.parametrize("stops", [[5], [9, 2, 1]])
def test_an_interrupted_run_goes_on_to_the_same_weights(tmp_path, monkeypatch, undisturbed, train, stops):
    expected, folder = undisturbed[train]
    step = Run._step
    for stop in stops:
        left = iter(range(stop))

        def dying(self, *arguments, left=left):
            found = step(self, *arguments)  # the weights have moved, and nothing has been saved
            if next(left, None) is None:
                raise Stop
            return found

        monkeypatch.setattr(Run, "_step", dying)
        with pytest.raises(Stop):
            train(tmp_path)
    monkeypatch.setattr(Run, "_step", step)
    assert same(weights(train(tmp_path)), weights(expected))
    assert log(tmp_path) == log(folder)
    facts, others = read_card(tmp_path)["training"], read_card(folder)["training"]
    assert facts | {"seconds": 0} == others | {"seconds": 0}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in folder.iterdir())


def test_a_run_that_has_ended_is_loaded_and_not_run_again(tmp_path, monkeypatch):
    first = short(tmp_path)
    monkeypatch.setattr(Run, "_step", None)
    assert same(weights(short(tmp_path)), weights(first))


def test_a_folder_of_another_run_is_refused(tmp_path, monkeypatch):
    short(tmp_path / "ended")
    other = dataclasses.replace(SHORT, label_smoothing=0.1)
    with pytest.raises(SetupError, match=r"rangevote\.json comes from a run with other options or data"):
        short(tmp_path / "ended", other)
    with pytest.raises(SetupError, match="Take another folder, or remove this one to begin again"):
        train_translator(PAIRS[1:], DEV, SHORT, tmp_path / "ended", quiet=True)


def test_training_stops_when_the_development_loss_no_longer_falls_and_keeps_the_best(tmp_path, monkeypatch):
    losses = iter([3.0, 2.0, 2.5, 1.9, 1.95, 1.9, 1.0])
    kept = {}

    def scripted(self):
        kept[self.position.step] = {n: t.clone().numpy() for n, t in self.net.state_dict().items()}
        return next(losses)

    monkeypatch.setattr(Run, "dev_loss", scripted)
    model = short(tmp_path, dataclasses.replace(SHORT, epochs=9, patience=2))
    facts = read_card(tmp_path)["training"]
    told = [line["dev_loss"] for line in log(tmp_path) if "dev_loss" in line]
    assert told == [3.0, 2.0, 2.5, 1.9, 1.95, 1.9]
    assert facts["dev_loss"] == 1.9
    assert facts["steps"] > facts["best_step"]
    assert same(weights(model), kept[facts["best_step"]])
    assert not (tmp_path / STATE).exists()


def test_evaluations_can_follow_steps_and_the_last_step_is_always_evaluated(tmp_path):
    short(tmp_path, dataclasses.replace(SHORT, evaluate_every=4, patience=0))
    steps = [line["step"] for line in log(tmp_path) if "dev_loss" in line]
    total = read_card(tmp_path)["training"]["steps"]
    assert steps == sorted({*range(4, total + 1, 4), total})


def test_a_loss_that_is_no_number_is_told_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(Run, "_step", lambda self, *_: (math.nan, 1))
    with pytest.raises(UsageError, match=r"the loss is nan at step 1; try a lower learning_rate than 0\.003"):
        short(tmp_path)


UNSEEN = reversals(60, seed=1)


def test_a_transformer_learns_to_reverse(tmp_path):
    model = train_translator(reversals(1200), UNSEEN, TRANSLATOR, tmp_path, quiet=True)
    found = search(model, [source for source, _ in UNSEEN], "greedy")
    right = [one[0].text == target for one, (_, target) in zip(found, UNSEEN, strict=True)]
    assert sum(right) >= 0.95 * len(UNSEEN)


def test_a_share_of_the_pairs_become_copies_by_chance_and_the_rest_stays():
    pairs = [(f"source {i}", f"target {i}") for i in range(1000)]
    found = with_copies(pairs, 0.25, seed=1)
    copies = [i for i, (source, target) in enumerate(found) if source == target]
    assert len(copies) == 250
    assert max(copies) > 900
    assert all(found[i] == pairs[i] for i in set(range(1000)) - set(copies))
    assert [source for source, _ in found] == [source for source, _ in pairs]
    assert found == with_copies(pairs, 0.25, seed=1) != with_copies(pairs, 0.25, seed=2)
    assert with_copies(pairs, 0.0, seed=1) == pairs


class Letters:
    """A token for each letter."""

    def encode(self, text):
        return [ord(letter) for letter in text]


def test_pairs_that_are_too_long_on_a_side_are_left_out():
    pairs = Pairs.encode([("ab", "abc"), ("abcdef", "a"), ("a", "abcdef")], Letters())
    assert pairs.lengths.tolist() == [[3, 5], [7, 3], [2, 8]]  # with END, and with START and END
    assert pairs.within(7).lengths.tolist() == [[3, 5], [7, 3]]


def test_pairs_that_are_all_too_long_are_refused(tmp_path):
    options = dataclasses.replace(TRANSLATOR, max_length=100)
    with pytest.raises(DataError, match="no pair is within max_length"):
        train_translator([("a " * 300, "b")], UNSEEN, options, tmp_path)


def test_a_captioner_learns_to_tell_what_is_there(tmp_path):
    features, captions = animals(60, seed=1)
    model = train_captioner(*animals(200), features, captions, CAPTIONER, tmp_path, quiet=True)
    found = search(model, list(features), "beam:2")
    for two, texts in zip(found, as_written(captions, plain=True), strict=True):
        assert {one.text for one in two} == set(texts)
        assert sum(np.exp(one.logprob) for one in two) > 0.7  # of all captions that there are


def test_captions_are_learned_in_lower_case_without_punctuation_or_as_they_are():
    assert as_written([["A dog , again !"]], plain=True) == [["a dog again"]]
    assert as_written([["A dog , again !"]], plain=False) == [["A dog , again !"]]
