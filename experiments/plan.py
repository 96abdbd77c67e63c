"""An experiment as steps: data -> train -> search -> (tune) -> vote -> evaluate -> compare."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property

from experiments.comparing import compare
from experiments.items import prepare_captions, prepare_translation
from experiments.places import Places
from experiments.settings import Settings
from experiments.stage import Given, Stage
from experiments.trial import Needs, Trial
from experiments.voters import figure_of
from rangevote.errors import choose

#: Kinds of steps, in the order of the flow.
KINDS = ("data", "train", "search", "tune", "vote", "evaluate", "compare")
SPLITS = ("train", "dev", "test")


class Plan:
    """All steps of an experiment for some seeds, and for some `systems` (none: all).

    A part of the experiment that is meant for some of the settings' seeds is left out for the others; a seed
    that the settings do not know gets all parts.
    """

    def __init__(
        self, settings: Settings, places: Places, seeds: Sequence[int], systems: Sequence[str] = ()
    ) -> None:
        self.settings, self.places, self.seeds = settings, places, tuple(seeds)
        for name in systems:
            choose("system", name, settings.systems)
        self.folder = places.work / settings.name
        self.data = {split: self._data(split) for split in SPLITS}
        self.trials = [
            Trial(settings, self.data, self.folder / f"seed-{seed}" / name, name, seed)
            for seed in self.seeds
            for name, system in settings.systems.items()
            if settings.wants(system, seed) and (not systems or name in systems)
        ]

    @property
    def stages(self) -> list[Stage]:
        """The last steps; all that comes before them follows from their needs."""
        return [*self.evaluated.values(), *self.voters.values(), *self.compared.values()]

    def done(self) -> Plan:
        """What of it has been run: systems that are evaluated, of seeds whose main system is."""
        found = copy(self)
        for cached in ("evaluated", "compared"):
            found.__dict__.pop(cached, None)
        known = {trial.seed for trial in self.trials if self._main(trial) and trial.evaluated.done}
        found.trials = [t for t in self.trials if t.seed in known and t.evaluated.done]
        found.seeds = tuple(seed for seed in self.seeds if seed in known)
        found.voters = {key: stage for key, stage in self.voters.items() if stage.done}
        return found

    def _main(self, trial: Trial) -> bool:
        return trial.name == self.settings.main

    @cached_property
    def evaluated(self) -> dict[tuple[int, str], Stage]:
        """seed, system -> the numbers."""
        return {(trial.seed, trial.name): trial.evaluated for trial in self.trials}

    @cached_property
    def voters(self) -> dict[tuple[int, str], Stage]:
        """seed, system -> figure 3, where it is wanted."""
        wanted = self.settings.voters
        if wanted is None:
            return {}
        return {
            (trial.seed, trial.name): figure_of(trial, wanted)
            for trial in self.trials
            if trial.name == wanted.system and self.settings.wants(wanted, trial.seed)
        }

    @cached_property
    def compared(self) -> dict[str, Stage]:
        """system -> significance, over all of its seeds."""
        names = dict.fromkeys(trial.name for trial in self.trials)
        return {name: self._compare([trial for trial in self.trials if trial.name == name]) for name in names}

    def _data(self, split: str) -> Stage:
        data, named = self.settings.data, self.settings.data.splits[split]

        def given(pattern: str, language: str = "") -> Given:
            return Given(self.places.given(data.folder, pattern.format(split=named, language=language)))

        place = self.folder / "data" / f"{split}.jsonl.gz"
        if self.settings.experiment == "captions":
            needs = {"captions": given(data.captions), "features": given(data.features)}
            return Stage(f"data {split}", "data", place, prepare_captions, {"split": named}, needs)
        source, target = data.languages
        pair = {"source": given(data.files, source), "target": given(data.files, target)}
        return Stage(f"data {split}", "data", place, prepare_translation, {"split": split}, pair)

    def _compare(self, trials: Sequence[Trial]) -> Stage:
        report, name = self.settings.report, trials[0].name
        options = {"metric": report.metric, "words": report.words, "resamples": report.resamples}
        outputs = {f"seed_{trial.seed}": list(trial.votes.values()) for trial in trials}
        place = self.folder / f"compare-{name}.json"
        needs: Needs = {"items": self.data["test"], **outputs}
        return Stage(f"compare {name}", "compare", place, compare, options, needs)
