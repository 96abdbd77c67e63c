"""The ensemble by probabilities against enumeration, and its comparison with a panel on tiny models."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
import sacrebleu
import torch
from experiments.command import settings_of
from experiments.ensemble import Ensemble, ensemble
from experiments.panel_tables import BEAM, LIST_VOTE, NORMALISED, PARTS, panel_name
from experiments.plan import Plan
from experiments.searching import read_ballots
from experiments.settings import Folders
from experiments.transformer import Transformer, TransformerOptions
from experiments.vocabulary import END, Words

import rangevote as rv
from rangevote.errors import UsageError
from tests.experiments.own_models import OwnModel, lively
from tests.experiments.tiny_data import MAKE
from tests.models.contract import chain

SHAPE = TransformerOptions(dimension=16, layers=1, heads=2, inner=16, dropout=0.0)
WORDS = ["a", "dog", "runs"]
INPUTS = ["a dog", "", "dog runs a a dog"]
MEAN_OF = {"geometric": lambda p: np.exp(np.log(p).mean(axis=0)), "arithmetic": lambda p: p.mean(axis=0)}


def model(seed, words=WORDS):
    def make():
        torch.manual_seed(seed)
        return Transformer(SHAPE, Words(words))

    return lively(make, 0.3 + 0.1 * seed)


@pytest.fixture(params=MEAN_OF)
def mean(request):
    return request.param


class TestEnsemble(OwnModel):
    @pytest.fixture
    def model(self, mean):
        return Together(mean)


class Together(Ensemble):
    """An ensemble with the networks of its models, as the contract of our own models switches them."""

    def __init__(self, mean):
        super().__init__([model(1), model(2)], mean)
        self.net = torch.nn.ModuleList([one.net for one in self.models])


def enumerated(mean, input, length):
    """tokens -> log P of every finished sequence of at most `length` words."""
    models, words = [model(1), model(2)], range(END + 2, END + 2 + len(WORDS))
    found = {}
    for size in range(length + 1):
        for tokens in product(words, repeat=size):
            steps = np.exp(np.stack([chain(one, input, tokens).log_probs for one in models]))
            with np.errstate(divide="ignore"):
                joint = MEAN_OF[mean](steps)  # (tokens + 1, vocabulary)
            log_probs = np.log(joint[range(size + 1), [*tokens, END]] / joint.sum(axis=1))
            found[tokens] = log_probs.sum()
    return found


def test_a_beam_that_keeps_everything_finds_what_enumeration_finds(mean):
    both = Ensemble([model(1), model(2)], mean)
    for input, hypotheses in zip(INPUTS, rv.search(both, INPUTS, "beam:60,max_new_tokens=4"), strict=True):
        expected = enumerated(mean, input, 3)
        found = {one.tokens: one.logprob for one in hypotheses if one.finished}
        assert found.keys() <= expected.keys()
        assert found == pytest.approx({tokens: expected[tokens] for tokens in found}, abs=1e-9)
        best = max(expected, key=lambda tokens: expected[tokens])
        assert max(found, key=lambda tokens: found[tokens]) == best


def test_one_model_twice_is_that_model(mean):
    twice = rv.search(Ensemble([model(1), model(1)], mean), INPUTS, "beam:4,max_new_tokens=5")
    alone = rv.search(model(1), INPUTS, "beam:4,max_new_tokens=5")
    for ours, theirs in zip(twice, alone, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        assert [one.logprob for one in ours] == pytest.approx([one.logprob for one in theirs], abs=1e-9)


def test_models_with_other_vocabularies_are_refused():
    with pytest.raises(UsageError, match="same vocabulary"):
        Ensemble([model(1), model(2, ["a", "cat", "runs"])], "geometric")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ensemble")
    folders = Folders(folder / "data", folder / "work", folder / "results")
    MAKE["translation"](folders.data)
    settings = settings_of("translation", "smoke")
    return folders, settings, ensemble(folders, CHOSEN, settings, (4, 2))


CHOSEN = {"similarity": "blend", "beam": {"k": 10, "temperature": 2.0}}


def test_a_second_run_searches_nothing_and_finds_the_same(recorded, capsys):
    folders, settings, found = recorded
    assert ensemble(folders, CHOSEN, settings, (4, 2)) == found
    assert "[1/" not in capsys.readouterr().err


def test_the_panel_elects_among_all_hypotheses_with_equal_shares(recorded):
    folders, settings, found = recorded
    plan = Plan(settings, folders, settings.seeds, [settings.main])
    ballots = [
        list(read_ballots(trial.search("test", BEAM, settings.searches[BEAM], 2).output))
        for trial in plan.trials
    ]
    texts = []
    for seeds in zip(*ballots, strict=True):
        voters = {str(number): ballot.candidates for number, ballot in enumerate(seeds)}
        candidates = [one for ballot in seeds for one in ballot.candidates]
        texts.append(str(rv.elect(candidates, voters=voters, similarity="blend", temperature=2.0)))
    references = [ballot.references[0] for ballot in ballots[0]]
    values = found["test"]["k = 2"][NORMALISED]
    assert sacrebleu.corpus_chrf(texts, [references]).score == pytest.approx(
        values["chrf"]["values"][panel_name(BEAM)]
    )
    assert sacrebleu.corpus_bleu(texts, [references]).score == pytest.approx(
        values["bleu"]["values"][panel_name(BEAM)]
    )


def test_the_ensembles_own_beam_votes_too_and_every_rival_is_on_the_page(recorded):
    *_, found = recorded
    assert found["looked_at"] == 6  # two means by two searches, and lists of two searches for the panel
    tables = list(PARTS["ensemble"](json.loads(json.dumps(found))))
    for k, table in zip((4, 2), tables[-2:], strict=True):
        assert f"test set, k = {k}" in table
        for name in (*found["chosen"].values(), LIST_VOTE, "mean member, beam search"):
            assert f"| {name} |" in table


def test_settings_are_chosen_on_the_development_set_alone(recorded, monkeypatch):
    folders, settings, found = recorded
    asked = []
    monkeypatch.setattr(
        "experiments.ensemble.choose", lambda values, names: asked.append(values) or names[-1]
    )
    other = ensemble(folders, CHOSEN, settings, (4, 2))
    assert asked == [found["development"]] * 2
    assert other["chosen"]["ensemble"].startswith("ensemble (arithmetic mean)")
    assert other["test"]["k = 4"] != found["test"]["k = 4"]
