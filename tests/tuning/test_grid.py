"""Which settings are tried, and that elections over shared counts elect whom separate elections elect."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import msgspec
import numpy as np
import pytest

import rangevote as rv
from rangevote.errors import DataError, UsageError
from rangevote.similarity import PRESETS
from rangevote.tuning.grid import BASELINES, UNKNOWN, Setting, SharedCounts, SharedOptions, grid
from tests.similarity.comet_stand_in import EncodingModel, install
from tests.tuning.made_up import ballots


def test_the_usual_grid_has_four_hundred_settings_with_the_default_and_blend_among_them():
    found = grid()
    assert len(found) == len(set(found)) == 400
    assert Setting("overlap_2") in found
    assert Setting(*PRESETS["blend"]) in found


def test_every_setting_of_the_usual_grid_is_one_that_elect_takes():
    for setting in grid(temperatures=[1, 4], tokenize=["space", "13a"], likelihoods=[0, 0.8]):
        result = rv.elect(["a b", "a c", "b"], [-1.0, -1.5, -2.0], **setting.options)
        assert f"sim:{setting.similarity}|on:{setting.tokenize}" in result.signature
        own = f"L:{setting.likelihood:g}|" if setting.likelihood else ""
        assert f"|T:{setting.temperature:g}|{own}cand" in result.signature


def test_exponents_are_for_ngram_measures_that_have_none_in_their_name():
    found = grid(["overlap_1-2", "precision_1@0.5", "states", "chrf"], [0, 1], [1], likelihoods=[0])
    names = ["overlap_1-2", "overlap_1-2@1", "precision_1@0.5", "states", "chrf"]
    assert [one.name for one in found] == names


def test_a_preset_has_its_own_temperature_unless_others_are_given():
    for given, tried in ((None, [2.0]), ([1, 4], [1.0, 4.0])):
        found = grid(["blend"], [0, 1], given, likelihoods=[0])
        assert found == [Setting("overlap_1-4@0.25", temperature) for temperature in tried]


def test_what_is_named_twice_is_tried_once():
    twice = grid(["overlap_2", "overlap_2@0.5", "overlap_2"], [0, 0.5], [1, 1.0], likelihoods=[0, 0.0])
    assert len(twice) == 2


def test_a_name_tells_what_is_not_usual():
    assert Setting("overlap_2", 0.5, 0.4, "13a").name == "overlap_2, T = 0.5, L = 0.4, 13a"
    assert Setting("overlap_2", rule="most_likely").name == "most_likely"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"similarities": ["nothing"]}, "unknown similarity 'nothing'"),
        ({"similarities": "overlap_2"}, "must be a list"),
        ({"similarities": []}, "must be a list with something in it"),
        ({"exponents": [1.5]}, "exponents must be finite numbers from 0 to 1, got 1.5"),
        ({"temperatures": [0]}, "temperatures must be above 0"),
        ({"temperatures": ["1"]}, "'1' is not a number"),
        ({"likelihoods": [-1]}, "likelihoods must be finite numbers from 0 to inf, got -1"),
        ({"tokenize": ["syllables"]}, "syllables"),
    ],
)
def test_what_cannot_be_tried_is_refused(options, told):
    with pytest.raises(UsageError, match=told):
        grid(**options)


SETTINGS = grid(
    ["overlap_2", "precision_1-4", "bleu_4", "chrf", "edit", "0.5*overlap_1+0.5*chrf"],
    [0, 0.25],
    [0.5, 1],
    ["space", "13a"],
    [0, 0.7],
)


def winners(ballot, settings):
    counts = SharedCounts(ballot)
    return [counts.winner(setting)[0] for setting in settings]


def separately(ballot, setting, **options):
    if not setting.has_voters:
        return rv.elect(ballot, rule=setting.rule, **options)
    return rv.elect(ballot, **setting.options, **options)


@pytest.mark.parametrize("voters", [0, 5])
@pytest.mark.parametrize(
    "options",
    [{}, {"merge": True}, {"normalize": "NFC"}, {"weights": "count"}],
    ids=lambda o: next(iter(o), ""),
)
@pytest.mark.filterwarnings("ignore:the temperature of the votes")  # where all count the same
def test_winners_are_those_of_an_election_for_each_setting(options, voters):
    pytest.importorskip("rapidfuzz")
    shared = {name: value for name, value in options.items() if name != "weights"}
    settings = [replace(setting, weights=options.get("weights")) for setting in SETTINGS]
    settings += BASELINES
    for ballot in ballots(3, voters=voters):
        results = [separately(ballot, setting, **shared) for setting in settings]
        counts = SharedCounts(ballot, SharedOptions(**shared))
        expected = [(result.index, pytest.approx(result.score)) for result in results]
        assert [counts.winner(setting) for setting in settings] == expected


#: Every measure that needs no model, and mixtures of them.
MEASURES = ["overlap_1-4@0.25", "precision_2", "bleu_6", "smoothed_bleu_4", "chrf", "states", "exact", "edit"]
MEASURES += ["exact:last_number", "rouge_l"]
MEASURES += ["0.5*edit+0.5*chrf", "0.6*rouge_l+0.4*states", "0.3*overlap_1+0.7*exact"]
UNITS = ["space", "chars", "13a", "intl", "zh", "tokens"]


def test_every_measure_on_every_tokenisation_elects_whom_elect_elects():
    """In one grid, so that whatever can be shared between two settings is."""
    pytest.importorskip("rapidfuzz")
    pytest.importorskip("sacrebleu")
    settings = grid(MEASURES, [0.0], [1.0, 3.0], UNITS, [0.0])
    assert len(settings) == len(MEASURES) * len(UNITS) * 2
    for ballot in punctuated(4):
        expected = [rv.elect(ballot, **setting.options).index for setting in settings]
        assert winners(ballot, settings) == expected


def punctuated(number):
    """Ballots that tokenisations cut differently, with token ids and state vectors."""
    chance = random.Random(6)
    pieces = ["dog", "Dog", "dogs", "cat's", "3.5", "ca", "t", ",", ".", "-", "(a)", "狗", "跑"]

    def hypothesis():
        words = chance.choices(pieces, k=chance.randint(1, 7))
        text = "".join(word + chance.choice(["", " "]) for word in words)
        ids = [pieces.index(word) for word in words]
        state = [chance.gauss(0, 1) for _ in range(3)]
        return rv.Hypothesis(text, tokens=ids, state=state, logprob=-chance.uniform(1, 3))

    return [rv.Ballot([hypothesis() for _ in range(9)]) for _ in range(number)]


def test_scores_are_the_same_bit_for_bit():
    for ballot in ballots(2):
        shared = SharedCounts(ballot)
        for setting in grid(likelihoods=[0]):
            alone = rv.elect(ballot, **setting.options)
            assert np.array_equal(shared.votes(setting), alone.scores)


def test_comet_is_about_the_source_of_the_ballot_and_encodes_each_text_once(monkeypatch, tmp_path):
    pytest.importorskip("torch")
    model = EncodingModel()
    install(model, tmp_path, monkeypatch)
    settings = grid(
        [f"comet:{tmp_path}", f"0.5*comet:{tmp_path}+0.5*overlap_1"], [0], [1, 2], ["space", "13a"], [0]
    )
    for source in ("a dog", "two cats"):
        ballot = msgspec.structs.replace(ballots(1)[0], source=source)
        expected = [rv.elect(ballot, **setting.options).index for setting in settings]
        model.encoder.encoded.clear()
        assert winners(ballot, settings) == expected
        texts = {h.text for h in ballot.candidates if h.text} | {source}
        times = Counter(model.encoder.encoded)
        assert times.keys() == texts
        assert set(times.values()) == {3}  # by itself, and in the mixture on each tokenisation


def test_a_rule_without_voters_has_no_winner_where_a_log_probability_is_missing():
    settings = [*grid(["overlap_2"], [0], [1], likelihoods=[0]), *BASELINES]
    first, *others = winners(ballots(1, known=False)[0], settings)
    assert first >= 0
    assert others == [UNKNOWN, UNKNOWN]


def test_a_ballot_without_candidates_is_refused():
    with pytest.raises(DataError, match="no candidates"):
        SharedCounts(rv.Ballot([]))
