"""One system of one seed, as steps: its training, its lists, the outputs of all methods, the numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from experiments.measuring import evaluate
from experiments.searching import search_items
from experiments.settings import Settings, System, once, spec
from experiments.stage import Given, Stage
from experiments.train_step import TRAIN
from experiments.tuning import tune_ballots
from experiments.voting import vote

Needs = Mapping[str, "Stage | Given | Sequence[Stage]"]


@dataclass(frozen=True, eq=False)
class Trial:
    """`data` are the steps of the splits, `folder` is where the trial's files lie."""

    settings: Settings
    data: Mapping[str, Stage]
    folder: Path
    name: str
    seed: int

    @property
    def system(self) -> System:
        """What is trained."""
        return self.settings.systems[self.name]

    @cached_property
    def model(self) -> Stage:
        """The training; a model that is there already is used."""
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
            for k in (0,) if once(template) else self.system.ks or self.settings.ks:
                found[name, k] = self.search("test", name, template, k)
        return found

    def search(self, split: str, name: str, template: str, k: int, voters: int | None = None) -> Stage:
        """One list; as `voters` of so many items (0: all) without what only candidates need.

        States are kept where they vote.
        """
        search, voted = self.settings.search, voters is None and name in self.system.vote_on
        options = {
            "spec": spec(template, k, self.seed, search.max_new_tokens),
            "states": voted and split == "test" and "states" in self.settings.vote.measures,
            "tokens": voters is None,
            "first": voters or 0,
            "max_rows": search.max_rows,
            "part_rows": search.part_rows,
            "device": self.settings.device,
        }
        role = split if voters is None else "voters"
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
            "measures": vote_.measures if voted else (),
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

    @cached_property
    def evaluated(self) -> Stage:
        """All numbers."""
        report, selection = self.settings.report, self.settings.selection
        followed = {} if selection is None else {m: self._list_of(m) for m in selection.methods}
        large = [] if selection is None else self._large(followed, selection.large)
        options = {
            "metrics": report.metrics,
            "words": report.words,
            "small": () if selection is None else selection.small,
            "followed": followed,
        }
        needs: Needs = {
            "model": self.model,
            "items": self.data["test"],
            "outputs": list(self.votes.values()),
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
        told: str,
        file: str,
        work: Callable[..., None],
        options: Mapping[str, Any],
        needs: Needs,
        *,
        keyed: bool = False,
        draft: bool = False,
    ) -> Stage:
        """A step of this trial."""
        name = " ".join(filter(None, (f"seed {self.seed}", self.name, kind, told)))
        place = self.folder / file
        return Stage(name, kind, place, work, options, needs, self.seed, keyed=keyed, draft=draft)
