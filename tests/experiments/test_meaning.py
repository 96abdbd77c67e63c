"""Captions elected by meaning: what is elected, how it is judged, and the part of the page."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")

from experiments.settings import HERE

from experiments import meaning
from rangevote.formats.jsonl import write_ballot
from rangevote.hypothesis import Ballot, Hypothesis


@pytest.fixture
def lists(tmp_path):
    captions = [("a dog", -1.0), ("a dog runs on grass", -1.5), ("a dog runs on the grass", -1.6)]
    ballot = Ballot([Hypothesis(t, logprob=p) for t, p in captions], references=["a dog runs on the grass"])
    path = tmp_path / "lists.jsonl"
    path.write_bytes(write_ballot(ballot) * 3)
    return path


def test_the_default_is_among_the_methods_and_every_measure_has_every_temperature():
    names = list(meaning.methods())
    assert meaning.DEFAULT in names
    assert len(names) == 3 + len(meaning.MEASURES) * len(meaning.TEMPERATURES)


def test_methods_are_judged_and_compared_with_the_default(lists):
    found = meaning.judged(lists, meaning.methods(["overlap_1-4@0.25"]), ["bleu_4"], ["bleu_4"])
    assert found["overlap_1-4@0.25, T = 4"]["values"]["bleu_4"] == pytest.approx(100)
    likely, default = found["beam search"], found[meaning.DEFAULT]
    observed = likely["values"]["bleu_4"] - default["values"]["bleu_4"]
    assert likely["over_default"]["bleu_4"]["difference"] == pytest.approx(observed)


def test_the_recorded_numbers_are_of_all_methods():
    data = json.loads((HERE / "results" / "meaning.json").read_bytes())
    assert all(list(by_method) == list(meaning.methods()) for by_method in data["lists"].values())
