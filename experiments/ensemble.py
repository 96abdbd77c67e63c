"""An ensemble by probabilities as the rival of a panel: the part "ensemble" of panels.py.

The three seeds of `translation-local` (Multi30k) share a vocabulary. An ensemble averages their
probabilities at every step of one search; a panel lets each model search by itself and votes over all the
lists. Both run every model once for each hypothesis and token, so they cost about the same.

Chosen on the development set at k = 10, by `choose`: the mean of the probabilities and the search of the
ensemble, and the search whose lists the panel votes on. Similarity and temperature are those of the other
parts, shares are equal. The question was written down before the test set was searched: at k = 10, is the
panel above or below the ensemble?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from msgspec.structs import replace

import rangevote as rv
from experiments.checkpoint import load_checkpoint, read_card
from experiments.data import read_items
from experiments.panel_scores import References, choose
from experiments.panel_tables import (
    BEAM,
    BEST,
    LIST_VOTE,
    MEAN,
    NORMALISED,
    SEARCHES,
    ensemble_name,
    panel_name,
)
from experiments.plan import Plan
from experiments.searching import Task, read_ballots, write_lists
from experiments.settings import HERE, Folders, Settings, read_settings, spec
from experiments.steps import Stage, run
from experiments.transformer import Transformer
from rangevote.errors import UsageError
from rangevote.models.protocol import Integers, Step

#: Log-probabilities of several models (models, rows, vocabulary) -> those of their mean (rows, vocabulary).
MEANS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "geometric": lambda several: several.mean(dim=0).log_softmax(dim=-1),
    "arithmetic": lambda several: several.logsumexp(dim=0) - math.log(len(several)),
}
KS = (10, 4)


class Ensemble:
    """A `LanguageModel` that averages the probabilities of models with one vocabulary."""

    def __init__(self, models: Sequence[Transformer], mean: str) -> None:
        self.models, self.mean = list(models), MEANS[mean]
        first, *others = self.models
        if any(other.vocabulary.to_json() != first.vocabulary.to_json() for other in others):
            raise UsageError("the models of an ensemble must have the same vocabulary.")
        self.ends, self.text, self.source, self.room = first.ends, first.text, first.source, first.room

    def start(self, inputs: Sequence[Any]) -> list[Any]:
        """The state of each model."""
        return [model.start(inputs) for model in self.models]

    def step(self, state: list[Any], tokens: Integers | None) -> Step[list[Any]]:
        """Give all models the same tokens and average what they predict; there are no hidden states."""
        steps = [model.step(one, tokens) for model, one in zip(self.models, state, strict=True)]
        log_probs = self.mean(torch.stack([step.log_probs for step in steps]))
        return Step(log_probs, [step.state for step in steps])

    def select(self, state: list[Any], rows: Integers) -> list[Any]:
        """The same rows of every model."""
        return [model.select(one, rows) for model, one in zip(self.models, state, strict=True)]


def search_ensemble(
    output: Path,
    *,
    mean: str,
    spec: str,
    max_rows: int,
    part_rows: int,
    device: str,
    models: Sequence[Path],
    items: Path,
    draft: Path,
) -> None:
    """Step "search" of an ensemble."""
    loaded: list[Any] = [load_checkpoint(folder, device=device) for folder in models]
    model = Ensemble(loaded, mean)
    task = Task(spec, states=False, tokens=True, max_rows=max_rows, model=model, items=read_items(items))
    write_lists(output, task, part_rows, draft)


Lists = list[list[rv.Hypothesis]]
Outputs = dict[str, list[str]]


class Split:
    """The lists of one split, searched when they are first used and then kept on disk. Models that are
    missing are trained."""

    def __init__(self, plan: Plan, name: str) -> None:
        self._plan, self._name, self._settings = plan, name, plan.settings
        [items] = self._done([plan.data[name]])
        language = plan.settings.data.languages[1]
        self.references = References([{"references": one} for one in read_items(items).references], language)

    def members(self, search: str, k: int) -> dict[str, Lists]:
        """The hypotheses of every model, each with its `member`."""
        trials, template = self._plan.trials, self._settings.searches[search]
        stages = [trial.search(self._name, search, template, k) for trial in trials]
        members = [f"seed {trial.seed}" for trial in trials]
        return {
            member: [[replace(one, member=member) for one in listed] for listed in lists]
            for member, lists in zip(members, self._done_lists(stages), strict=True)
        }

    def ensemble(self, mean: str, search: str, k: int) -> Lists:
        """The hypotheses of all models together."""
        options = {
            "mean": mean,
            "spec": spec(self._settings.searches[search], k, 0, self._settings.search.max_new_tokens),
            "max_rows": self._settings.search.max_rows,
            "part_rows": self._settings.search.part_rows,
            "device": self._settings.device,
        }
        models = [trial.model for trial in self._plan.trials]
        needs: dict[str, Any] = {"models": models, "items": self._plan.data[self._name]}
        path = self._plan.folder / f"ensemble-{mean}" / f"{self._name}-{search}-k{k}.jsonl.gz"
        title = f"ensemble, {mean} mean, {self._name} {search} k={k}"
        stage = Stage(title, "search", path, search_ensemble, options, needs, draft=True)
        [found] = self._done_lists([stage])
        return found

    def compare(
        self, members: Mapping[str, Lists], others: Outputs, pairs: Sequence[tuple[str, str]]
    ) -> dict[str, Any]:
        """Single models, each with the output that its search ranks first, and others, by BLEU and chrF."""
        rows = self.references.rows
        return self.references.compare(
            {member: rows(first(lists)) for member, lists in members.items()},
            {name: rows(texts) for name, texts in others.items()},
            pairs=pairs,
        )

    def _done_lists(self, stages: Sequence[Stage]) -> list[Lists]:
        paths = self._done(stages)
        return [[[replace(one, state=None) for one in b.candidates] for b in read_ballots(p)] for p in paths]

    def _done(self, stages: Sequence[Stage]) -> list[Path]:
        run(stages, threads=self._settings.threads)
        return [stage.output for stage in stages]


def first(lists: Lists) -> list[str]:
    """What the search ranks first."""
    return [listed[0].text or "" for listed in lists]


def ensembles(split: Split, k: int, means: Iterable[str]) -> Outputs:
    """The output of the ensemble, by every mean and search."""
    return {
        ensemble_name(mean, search): first(split.ensemble(mean, search, k))
        for mean in means
        for search in SEARCHES
    }


def panels(members: Mapping[str, Mapping[str, Lists]], options: Mapping[str, Any]) -> Outputs:
    """What all models elect among all their hypotheses, by the search that found these."""
    return {panel_name(search): elected(joined(lists), options) for search, lists in members.items()}


def joined(members: Mapping[str, Lists]) -> Lists:
    """The hypotheses of all members for each input."""
    return [[one for listed in several for one in listed] for several in zip(*members.values(), strict=True)]


def elected(lists: Lists, options: Mapping[str, Any]) -> list[str]:
    """The text that each list elects."""
    return [str(result) for result in rv.elect_many(lists, **options)]


def ensemble(
    folders: Folders, chosen: Mapping[str, Any], settings: Settings | None = None, ks: Sequence[int] = KS
) -> dict[str, Any]:
    """BLEU and chrF of one model, the ensemble, the panel, and a vote over the ensemble's beam."""
    settings = settings or read_settings(HERE / "translation-local.toml")
    plan = Plan(settings, folders, settings.seeds, [settings.main])
    options = {"similarity": chosen["similarity"], "temperature": chosen["beam"]["temperature"]}
    split = Split(plan, "dev")
    members = {search: split.members(search, ks[0]) for search in (BEAM, NORMALISED)}
    families = (ensembles(split, ks[0], MEANS), panels(members, options))
    pairs = [(name, next(iter(family))) for family in families for name in list(family)[1:]]
    development = split.compare(members[NORMALISED], families[0] | families[1], pairs)
    ours = [choose(development, list(family)) for family in families]
    [mean] = [mean for mean in MEANS for search in SEARCHES if ensemble_name(mean, search) == ours[0]]
    split = Split(plan, "test")
    cards = {f"seed {trial.seed}": read_card(trial.model.output) for trial in plan.trials}
    return {
        "dev_loss": {member: card["training"]["dev_loss"] for member, card in cards.items()},
        "looked_at": sum(map(len, families)),
        "chosen": {"ensemble": ours[0], "panel": ours[1]},
        "development": development,
        "test": {f"k = {k}": tested(split, k, mean, ours, options) for k in ks},
    }


def tested(
    split: Split, k: int, mean: str, chosen: Sequence[str], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything at one k: by the search of the single models, and by metric."""
    members = {search: split.members(search, k) for search in (BEAM, NORMALISED)}
    others = ensembles(split, k, [mean]) | panels(members, options)
    others[LIST_VOTE] = elected(split.ensemble(mean, BEAM, k), options)
    pairs = [(one, rival) for one in (*chosen, LIST_VOTE) for rival in (MEAN, BEST, *others) if rival != one]
    return {search: split.compare(members[search], others, pairs) for search in SEARCHES}
