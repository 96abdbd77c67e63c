"""The loop: its loss, its seeds, its stops, and runs that are interrupted anywhere."""

from __future__ import annotations

import dataclasses
import json
import math
import os

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'rangevote[models]'")

import torch
from experiments.checkpoint import load_checkpoint, read_card
from experiments.training.captioner import train_captioner
from experiments.training.examples import Pairs
from experiments.training.loop import Run, adam
from experiments.training.options import TranslatorOptions
from experiments.training.record import STATE, locked
from experiments.training.translator import train_translator
from experiments.transformer import PRESETS, Transformer
from experiments.vocabulary import Bpe
from safetensors.torch import load_file

from rangevote.errors import SetupError, UsageError
from tests.experiments.tasks import CAPTIONER, TRANSLATOR, animals, reversals

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


def test_the_development_loss_is_the_mean_over_tokens(run):
    found = [alone(run, pair) for pair in DEV]
    total = sum(float(logs[range(len(target)), target].sum()) for logs, target in found)
    assert run.dev_loss() == pytest.approx(-total / sum(len(target) for _, target in found), rel=1e-5)


def test_weights_decay_but_biases_and_norms_do_not(run):
    decaying, rest = adam(run.net, TranslatorOptions(weight_decay=0.1)).param_groups
    assert decaying["weight_decay"] == 0.1
    assert {parameter.ndim for parameter in decaying["params"]} == {2}
    assert rest["weight_decay"] == 0
    assert {parameter.ndim for parameter in rest["params"]} == {1}


def test_clipping_bounds_what_a_step_can_change(run):
    run.options = dataclasses.replace(run.options, clip=1e-3)
    run._advance(np.arange(8))
    norm = math.sqrt(sum(float((parameter.grad**2).sum()) for parameter in run.net.parameters()))
    assert norm == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("train", [short, captions])
def test_the_same_seed_gives_the_same_weights(tmp_path, train):
    one, same_again = train(tmp_path / "one"), train(tmp_path / "two")
    assert same(weights(one), weights(same_again))
    assert log(tmp_path / "one") == log(tmp_path / "two")


def test_another_seed_gives_other_weights(tmp_path):
    other = short(tmp_path / "other", dataclasses.replace(SHORT, seed=2))
    assert not same(weights(short(tmp_path / "one")), weights(other))


class Stop(BaseException):
    """The process is killed."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folders = {train: tmp_path_factory.mktemp("undisturbed") for train in (short, captions)}
    torch.set_num_threads(1)
    return {train: (train(folder), folder) for train, folder in folders.items()}


@pytest.mark.parametrize("train", [short, captions])
@pytest.mark.parametrize("stops", [[1], [5], [9, 2, 1], [11, 1]])
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


@pytest.mark.parametrize("files", range(0, 14, 2))
def test_a_run_that_is_killed_between_two_files_goes_on(tmp_path, monkeypatch, undisturbed, files):
    expected, _ = undisturbed[short]
    replace, left = os.replace, iter(range(files))

    def dying(source, target):
        if next(left, None) is None:
            raise Stop
        replace(source, target)

    monkeypatch.setattr(os, "replace", dying)
    with pytest.raises(Stop):
        short(tmp_path)
    monkeypatch.setattr(os, "replace", replace)
    assert same(weights(short(tmp_path)), weights(expected))


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


def test_the_state_of_another_run_or_a_damaged_one_is_refused(tmp_path, run):
    run._state.save(run.net, run._optimizer, run.position)
    with pytest.raises(SetupError, match=r"training\.safetensors comes from a run with other options"):
        short(tmp_path)
    whole = (tmp_path / STATE).read_bytes()
    (tmp_path / STATE).write_bytes(whole[:-5])
    with pytest.raises(SetupError, match=r"training\.safetensors is damaged"):
        short(tmp_path)
    (tmp_path / STATE).write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    with pytest.raises(SetupError, match="is no state of a training run"):
        short(tmp_path)


def test_two_runs_in_one_folder_are_refused(tmp_path):
    pytest.importorskip("fcntl")
    with locked(tmp_path), pytest.raises(SetupError, match="another run trains in"):
        short(tmp_path)


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


def test_training_leaves_the_random_numbers_of_others_alone(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    short(tmp_path)
    assert torch.equal(torch.rand(3), expected)


def test_the_state_of_a_run_is_no_pickle_and_has_readable_names(tmp_path, run):
    run._advance(np.arange(8))
    run._state.save(run.net, run._optimizer, run.position)
    names = set(load_file(tmp_path / STATE))
    for name, _ in run.net.named_parameters():
        assert {f"model.{name}", f"optimizer.{name}.exp_avg", f"optimizer.{name}.exp_avg_sq"} <= names


def test_the_returned_model_is_the_one_in_the_folder(tmp_path):
    assert same(weights(short(tmp_path)), weights(load_checkpoint(tmp_path)))
