"""An experiment as steps: data -> train -> search -> (tune) -> vote -> evaluate -> compare.

A `Plan` has a `Trial` for each system and seed; figure 3 (more and more voters for fixed candidates) is a
part of some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from experiments.data import prepare_captions, prepare_translation
from experiments.measuring import compare, evaluate, evaluate_voters
from experiments.sampled import choose_sampled, evaluate_sampled, setting_name, take_chosen, vote_sampled
from experiments.searching import search_items
from experiments.settings import Folders, Sampled, Settings, System, Voters, independent_of_k, spec
from experiments.steps import InputFile, Stage
from experiments.training import TRAIN
from experiments.translator import take
from experiments.voting import tune_ballots, vote, vote_with_voters
from rangevote.errors import choose
from rangevote.similarity import PRESETS

#: Kinds of steps, in the order of the flow.
KINDS = ("data", "train", "search", "tune", "vote", "evaluate", "compare")
SPLITS = ("train", "dev", "test")


class Plan:
    """All steps of an experiment for some seeds, and for some `systems` (none: all).

    A part of the experiment that is meant for some of the settings' seeds is left out for the others; a seed
    that the settings do not know gets all parts.
    """

    def __init__(
        self, settings: Settings, folders: Folders, seeds: Sequence[int], systems: Sequence[str] = ()
    ) -> None:
        self.settings, self.folders, self.seeds = settings, folders, tuple(seeds)
        for name in systems:
            choose("system", name, settings.systems)
        self.folder = folders.work / settings.name
        self.data = {split: self._data(split) for split in SPLITS if split in settings.data.splits}
        self.trials = [
            Trial(settings, folders, self.data, self.folder / f"seed-{seed}" / name, name, seed)
            for seed in self.seeds
            for name, system in settings.systems.items()
            if settings.wants(system, seed) and (not systems or name in systems)
        ]

    @property
    def stages(self) -> list[Stage]:
        """The last steps; all that comes before them follows from their needs."""
        several = (self.evaluated, self.voters, self.sampled, self.compared)
        return [stage for stages in several for stage in stages.values()]

    def done(self) -> Plan:
        """What of it has been run: systems that are evaluated, of seeds whose main system is.

        Their panel is one of these seeds.
        """
        known = [trial.seed for trial in self.trials if self._main(trial) and trial.evaluated.done]
        found = Plan(self.settings, self.folders, known)
        found.trials = [trial for trial in found.trials if trial.evaluated.done]
        found.voters = {key: stage for key, stage in found.voters.items() if stage.done}
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
    def sampled(self) -> dict[tuple[int, str], Stage]:
        """seed, system -> elections by sampled voters, where a setting is to be chosen."""
        return {
            (trial.seed, trial.name): sampled_of(trial, trial.sampled, self._panel_votes(trial))
            for trial in self.trials
            if trial.sampled is not None and "dev" in self.data
        }

    def _panel_votes(self, trial: Trial) -> list[Stage]:
        """The outputs that a panel of all seeds elects among a trial's candidates."""
        sampled, panel = trial.sampled, [one for one in self.trials if one.sampled is not None]
        if sampled is None or not sampled.panel or len(panel) == 1:
            return []
        return [panel_votes(trial, sampled, panel, k) for k in sampled.ks]

    @cached_property
    def compared(self) -> dict[str, Stage]:
        """system -> significance, over all of its seeds."""
        names = dict.fromkeys(trial.name for trial in self.trials)
        return {name: self._compare([trial for trial in self.trials if trial.name == name]) for name in names}

    def _data(self, split: str) -> Stage:
        data, named = self.settings.data, self.settings.data.splits[split]

        def given(pattern: str, language: str = "") -> InputFile:
            return InputFile(self.folders.given(data.folder, pattern.format(split=named, language=language)))

        path = self.folder / "data" / f"{split}.jsonl.gz"
        if self.settings.experiment == "captions":
            needs = {"captions": given(data.captions), "features": given(data.features)}
            return Stage(f"data {split}", "data", path, prepare_captions, {"split": named}, needs)
        source, target = data.languages
        pair = {"source": given(data.files, source), "target": given(data.files, target)}
        options = {"split": split, "rows": data.rows.get(split, ())}
        return Stage(f"data {split}", "data", path, prepare_translation, options, pair)

    def _compare(self, trials: Sequence[Trial]) -> Stage:
        report, name = self.settings.report, trials[0].name
        options = {"metric": report.metric, "words": report.words, "resamples": report.resamples}
        outputs = {f"seed_{trial.seed}": [*trial.outputs, *self._panel_votes(trial)] for trial in trials}
        path = self.folder / f"compare-{name}.json"
        needs: Needs = {"items": self.data["test"], **outputs}
        return Stage(f"compare {name}", "compare", path, compare, options, needs)


Needs = Mapping[str, "Stage | InputFile | Sequence[Stage]"]


@dataclass(frozen=True, eq=False)
class Trial:
    """`data` are the steps of the splits, `folder` is where the trial's files lie."""

    settings: Settings
    folders: Folders
    data: Mapping[str, Stage]
    folder: Path
    name: str
    seed: int
    known: dict[Path, Stage] = field(default_factory=dict)

    @property
    def system(self) -> System:
        """What is trained."""
        return self.settings.systems[self.name]

    @property
    def measures(self) -> tuple[str, ...]:
        """What is voted by; CTranslate2 gives no states."""
        every = self.settings.vote.measures
        return tuple(m for m in every if m != "states") if self.system.quantization else every

    @cached_property
    def model(self) -> Stage:
        """The training; a model that is there already is used."""
        if self.system.folder:
            weights = InputFile(self.folders.given(self.system.folder, "model.safetensors"))
            chosen = {"quantization": self.system.quantization}
            return self.stage("train", "", "model", take, chosen, {"weights": weights}, keyed=True)
        needs = {"items": self.data["train"], "dev": self.data["dev"]}
        options = {"training": {**self.system.training, "seed": self.seed}}
        train = TRAIN[self.settings.experiment]
        return self.stage("train", "", "model", train, options, needs, keyed=True)

    @cached_property
    def lists(self) -> dict[tuple[str, int], Stage]:
        """search, k -> hypotheses for the test set; k is 0 for a search that has none."""
        found = {}
        for name in dict.fromkeys((*self.system.searches, *self.system.vote_on)):
            template = self.settings.searches[name]
            ks = (0,) if independent_of_k(template) else self.system.ks or self.settings.ks
            for k in (k for k in ks if k <= self.settings.search.largest.get(name, k)):
                found[name, k] = self.search("test", name, template, k)
        return found

    def search(self, split: str, name: str, template: str, k: int, voters: int | None = None) -> Stage:
        """One list; as `voters` of so many items (0: all) without what only candidates need.

        States are kept where they vote.
        """
        search, voted = self.settings.search, voters is None and name in self.system.vote_on
        options = {
            "spec": spec(template, k, self.seed, search.max_new_tokens),
            "states": voted and split == "test" and "states" in self.measures,
            "tokens": voters is None,
            "first": voters or self.system.items,
            "max_rows": search.max_rows,
            "part_rows": search.part_rows,
            "device": self.settings.device,
        }
        role = split if voters is None else "voters" if split == "test" else f"{split}_voters"
        needs = {"model": self.model, "items": self.data[split]}
        file = f"lists/{role}-{name}-k{k}.jsonl.gz"
        return self.stage("search", f"{role} {name} k={k}", file, search_items, options, needs, draft=True)

    @cached_property
    def profiles(self) -> dict[int, Stage]:
        """k -> settings that are tuned on lists of the development set."""
        tune = self.settings.tune
        if tune is None or tune.system != self.name:
            return {}
        name, found = self.system.vote_on[0], {}
        for k in tune.ks:
            needs = {"ballots": self.search("dev", name, self.settings.searches[name], k)}
            options = {"metric": tune.metric, "words": self.settings.report.words, "grid": tune.grid}
            file = f"profiles/k{k}.toml"
            found[k] = self.stage("tune", f"k={k}", file, tune_ballots, options, needs)
        return found

    @cached_property
    def votes(self) -> dict[tuple[str, int], Stage]:
        """search, k -> the outputs of all methods that choose from that list."""
        return {(name, k): self._vote(name, k) for name, k in self.lists}

    def _vote(self, name: str, k: int) -> Stage:
        vote_, voted = self.settings.vote, name in self.system.vote_on
        usual = self.system.vote_on[:1] == (name,)
        options = {
            "search": name,
            "k": k,
            "measures": self.measures if voted else (),
            "words": vote_.words,
            "other_measures": vote_.other_measures if usual else (),
            "other_words": vote_.other_words,
            "not_empty": name in vote_.not_empty,
            "rerank": name in vote_.reranked,
            "suffix": "" if usual else f" on {name}",
        }
        needs = {"ballots": self.lists[name, k]}
        if usual and k in self.profiles:
            needs["profile"] = self.profiles[k]
        return self.stage("vote", f"{name} k={k}", f"outputs/{name}-k{k}.json.gz", vote, options, needs)

    @property
    def sampled(self) -> Sampled | None:
        """Elections by sampled voters, if this system has them."""
        wanted = self.settings.sampled
        return wanted if wanted is not None and wanted.system == self.name else None

    @cached_property
    def outputs(self) -> list[Stage]:
        """Whatever puts out texts that are compared with the baselines."""
        found = list(self.votes.values())
        if self.sampled is not None:
            found += [chosen_of(self, self.sampled, k) for k in self.sampled.ks]
        return found

    @cached_property
    def evaluated(self) -> Stage:
        """All numbers."""
        report, selection = self.settings.report, self.settings.selection
        followed = {} if selection is None else {m: self._list_of(m) for m in selection.methods}
        large = [] if selection is None else self._large(followed, selection.large)
        options = {
            "metrics": report.metrics,
            "words": report.words,
            "first": self.system.items,
            "small": () if selection is None else selection.small,
            "followed": followed,
        }
        needs: Needs = {
            "model": self.model,
            "items": self.data["test"],
            "outputs": self.outputs,
            "large": large,
        }
        return self.stage("evaluate", "numbers", "numbers.json", evaluate, options, needs)

    def _list_of(self, method: str) -> str:
        """The search whose list a method chooses from."""
        return method if method in self.settings.searches else self.system.vote_on[0]

    def _large(self, followed: Mapping[str, str], k: int) -> list[Stage]:
        points = dict.fromkeys((name, k) for name in followed.values())
        return [self.lists[point] for point in points if point in self.lists]

    def stage(
        self,
        kind: str,
        detail: str,
        file: str,
        work: Callable[..., None],
        options: Mapping[str, Any],
        needs: Needs,
        *,
        keyed: bool = False,
        draft: bool = False,
    ) -> Stage:
        """A step of this trial; each is made once, whoever needs it."""
        name = " ".join(filter(None, (f"seed {self.seed}", self.name, kind, detail)))
        path = self.folder / file
        if path not in self.known:
            self.known[path] = Stage(
                name, kind, path, work, options, needs, self.seed, keyed=keyed, draft=draft
            )
        return self.known[path]


def figure_of(trial: Trial, voters: Voters) -> Stage:
    """The numbers behind the figure."""
    votes = [
        _vote(trial, voters, kind, number, voter_list)
        for kind in voters.searches
        for number, voter_list in _voter_lists(trial, voters, kind).items()
    ]
    report = trial.settings.report
    options = {
        "metric": report.metric,
        "metrics": report.metrics,
        "words": report.words,
        "resamples": report.resamples,
    }
    needs: Needs = {"items": trial.data["test"], "outputs": votes}
    return trial.stage("evaluate", "voters", "voters.json", evaluate_voters, options, needs)


def _voter_lists(trial: Trial, voters: Voters, kind: str) -> dict[int, Stage]:
    """number -> the list that has at least so many voters; samples are drawn once."""
    template, largest = voters.searches[kind], trial.settings.search.largest
    numbers = [number for number in voters.numbers if number <= largest.get(kind, number)]
    if kind in voters.sampled:
        most = 0 if independent_of_k(template) else max(numbers)
        return dict.fromkeys(numbers, trial.search("test", kind, template, most, voters.items))
    known = trial.lists if voters.items == trial.system.items else {}
    return {
        number: known.get((kind, number)) or trial.search("test", kind, template, number, voters.items)
        for number in numbers
    }


def _vote(trial: Trial, voters: Voters, kind: str, number: int, voter_list: Stage) -> Stage:
    options = {
        "kind": kind,
        "number": number,
        "measures": voters.measures,
        "words": trial.settings.vote.words,
        "subset": kind in voters.sampled,
        "seed": trial.seed,
    }
    needs = {"candidates": trial.lists[voters.candidates, voters.k], "voters": voter_list}
    if trial.profiles:
        needs["profile"] = trial.profiles[max(trial.profiles)]
    file = f"voters/{kind}-{number}.json.gz"
    return trial.stage("vote", f"{number} voters by {kind}", file, vote_with_voters, options, needs)


def chosen_of(trial: Trial, sampled: Sampled, k: int) -> Stage:
    """The outputs by the preset, and, with a development set, by the setting that it chose."""
    preset = PRESETS["consensus"]
    options = {
        "k": k,
        "consensus": setting_name(preset.similarity, preset.likelihood, sampled.preset),
    }
    needs: dict[str, Stage] = {"outputs": _sampled_votes(trial, sampled, "test", k)}
    if "dev" in trial.data:
        needs["choice"] = _choice(trial, sampled)
    return trial.stage("vote", f"chosen k={k}", f"sampled/chosen-k{k}.json.gz", take_chosen, options, needs)


def _choice(trial: Trial, sampled: Sampled) -> Stage:
    dev = [_sampled_votes(trial, sampled, "dev", n) for n in sampled.dev_ks or sampled.ks]
    options = {"metric": trial.settings.report.metric, "words": trial.settings.report.words}
    needs: Needs = {"items": trial.data["dev"], "outputs": dev}
    return trial.stage("tune", "sampled voters", "sampled/choice.json", choose_sampled, options, needs)


def sampled_of(trial: Trial, sampled: Sampled, by_panel: Sequence[Stage]) -> Stage:
    """The numbers of all settings on the test set, and of the panel."""
    votes = [*(_sampled_votes(trial, sampled, "test", k) for k in sampled.ks), *by_panel]
    report = trial.settings.report
    options = {"metrics": report.metrics, "words": report.words}
    needs: Needs = {
        "items": trial.data["test"],
        "outputs": votes,
        "choice": _choice(trial, sampled),
    }
    return trial.stage("evaluate", "sampled voters", "sampled.json", evaluate_sampled, options, needs)


def _sampled_votes(trial: Trial, sampled: Sampled, split: str, k: int) -> Stage:
    """All settings at one k, or those among which the development set chooses."""
    name = trial.system.vote_on[0]
    kinds = sampled.dev_voters if split == "dev" and sampled.dev_voters else tuple(sampled.voters)
    voters = {kind: sampled.voters[kind] for kind in kinds}
    options = {
        "k": k,
        "voters": voters,
        "measures": sampled.measures,
        "likelihoods": sampled.likelihoods,
        "words": trial.settings.vote.words,
    }
    candidates = trial.search(split, name, trial.settings.searches[name], k)
    lists = dict.fromkeys(one for names in voters.values() for one in names)
    needs: Needs = {"candidates": candidates, **_voter_searches(trial, sampled, split, lists)}
    file = f"sampled/{split}-k{k}.json.gz"
    return trial.stage("vote", f"{split} k={k} by sampled voters", file, vote_sampled, options, needs)


def panel_votes(trial: Trial, sampled: Sampled, panel: Sequence[Trial], k: int) -> Stage:
    """The same candidates, elected by the voters of all seeds."""
    lists = sampled.voters[sampled.panel]
    voters = {f"seed {one.seed}": [f"seed_{one.seed}_{name}" for name in lists] for one in panel}
    options = {
        "k": k,
        "voters": {"panel": voters},
        "measures": sampled.panel_measures or sampled.measures,
        "likelihoods": sampled.likelihoods,
        "words": trial.settings.vote.words,
    }
    needs: dict[str, Any] = {"candidates": trial.lists[trial.system.vote_on[0], k]}
    for one in panel:
        found = _voter_searches(one, sampled, "test", lists)
        needs |= {f"seed_{one.seed}_{name}": stage for name, stage in found.items()}
    file = f"sampled/panel-k{k}.json.gz"
    return trial.stage("vote", f"k={k} by a panel", file, vote_sampled, options, needs)


def _voter_searches(trial: Trial, sampled: Sampled, split: str, lists: Iterable[str]) -> dict[str, Stage]:
    return {
        name: trial.search(split, name, sampled.lists[name], 0, voters=trial.system.items) for name in lists
    }
