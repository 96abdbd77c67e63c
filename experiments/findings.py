"""A file of results, asked the way tables and claims ask (means over seeds, spread, best k); methods by name.

The name of a method is that of a search, of a measure, or of one of the choices of `voting.py`; a method that
votes on another list than usual is called "overlap_2 on beam", one on other words "overlap_2 (13a)".
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

#: A method at its k.
Point = tuple[str, int]


class Findings:
    """One experiment at one scale, as `collect.py` wrote it."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.experiment: str = data["experiment"]
        self.settings: dict[str, Any] = data["settings"]
        self.main: str = self.settings["main"]
        self.metric: str = self.settings["report"]["metric"]

    @classmethod
    def read(cls, path: Path) -> Findings:
        """From a file of results."""
        return cls(json.loads(path.read_bytes()))

    @property
    def voted_on(self) -> str:
        """The search whose lists the main system's measures vote on."""
        return str(self.settings["systems"][self.main]["vote_on"][0])

    @property
    def systems(self) -> list[str]:
        """Their names."""
        return list(self.data["systems"])

    def label(self, system: str) -> str:
        """What a system is called."""
        return str(self.data["systems"][system]["label"])

    def seeds(self, system: str) -> list[str]:
        """The seeds that a system was trained with."""
        return list(self.data["systems"][system]["seeds"])

    def of(self, system: str, seed: str) -> dict[str, Any]:
        """All numbers of one trial."""
        found: dict[str, Any] = self.data["systems"][system]["seeds"][seed]
        return found

    def part(self, name: str) -> list[dict[str, Any]]:
        """Of every seed that has it, "voters" or "sampled", in the system that the settings name for it."""
        wanted = self.settings.get(name)
        system = wanted["system"] if wanted else ""
        seeds = self.seeds(system) if system in self.systems else []
        return [numbers[name] for seed in seeds if name in (numbers := self.of(system, seed))]

    def methods(self, system: str) -> list[str]:
        """The methods that every seed has."""
        first, *others = (self.of(system, seed)["methods"] for seed in self.seeds(system))
        return [method for method in first if all(method in other for other in others)]

    def ks(self, system: str) -> list[int]:
        """The numbers of hypotheses."""
        lists = self.of(system, self.seeds(system)[0])["methods"].values()
        return sorted({int(k) for by_k in lists for k in by_k} - {0})

    def values(self, metric: str, point: Point, system: str | None = None) -> list[float]:
        """One for each seed, none where the method was not run at this k."""
        system = system or self.main
        method, k = point
        found = (self.of(system, s)["methods"].get(method, {}).get(str(k), {}) for s in self.seeds(system))
        return [float(values[metric]) for values in found if metric in values]

    def mean(self, metric: str, point: Point, system: str | None = None) -> float | None:
        """Over the seeds."""
        return mean(self.values(metric, point, system))

    def references(self, metric: str, system: str | None = None) -> float | None:
        """What the metric gives for the references themselves."""
        system = system or self.main
        found: dict[str, float] = self.of(system, self.seeds(system)[0])["references"]
        return found.get(metric)

    def best(self, methods: Iterable[str], k: int | None = None) -> Point | None:
        """The method and k with the highest mean of the deciding metric in the main system."""
        points = [(m, n) for m in methods for n in self.ks(self.main) if k in (None, n)]
        known = [point for point in points if self.values(self.metric, point)]
        return max(known, key=lambda point: self.mean(self.metric, point) or 0.0, default=None)

    def answer(self, asked: str, system: str | None = None) -> dict[str, Any] | None:
        """The comparison of this name."""
        listed: Sequence[dict[str, Any]] = self.data["systems"][system or self.main].get("comparisons", ())
        return next((one for one in listed if one["asked"] == asked), None)


def mean(values: Sequence[float]) -> float | None:
    """None of nothing."""
    return statistics.fmean(values) if values else None


def spread(values: Sequence[float]) -> float | None:
    """The standard deviation over seeds; None of fewer than two."""
    return statistics.stdev(values) if len(values) > 1 else None


#: Methods that choose the best by (penalised) probability: what voting is to beat, in the paper's order.
BASELINES = {
    "beam": "Beam search",
    "beam_not_empty": "Beam search, empty dropped",
    "length_normalised": "Length normalisation",
    "reranked": "Length normalisation, re-ranking",
    "diverse_decoding": "Diverse decoding",
    "diverse_beam": "Diverse beam search",
    "no_copy": "Beam search (no copy)",
    "no_copy_not_empty": "Beam search (no copy), empty dropped",
}
#: The paper's five measures.
VOTING = {
    "overlap_1": "overlap_1",
    "precision_1": "precision_1",
    "overlap_2": "overlap_2",
    "precision_2": "precision_2",
    "states": "states",
}
MBR = {"bleu_4": "bleu_4 (MBR)", "smoothed_bleu_4": "smoothed_bleu_4 (MBR)"}
#: The preset "consensus" with voters of all seeds, as `sampled.setting_name` calls it.
PANEL = "overlap_1-4, L = 0.4, voters: panel"
#: What the paper does not have.
BEYOND = {
    "overlap_3": "overlap_3",
    "overlap_1-4": "overlap_1-4",
    "blend": "blend (overlap_1-4@0.25, T = 2)",
    "embedding:universal-sentence-encoder": "meaning (universal sentence encoder)",
    "0.3*overlap_1-4@0.25+0.7*embedding:universal-sentence-encoder": "0.3 overlap_1-4@0.25 + 0.7 meaning",
    "tuned": "tuned on the development set",
    "consensus": "consensus (sampled voters, overlap_1-4, L = 0.4)",
    PANEL: "consensus of a panel of all seeds",
    "chosen": "sampled voters, as the development set chose",
}
#: One sample for each item.
SAMPLING = {
    "top_k_4": "Top-k sampling (k = 4)",
    "top_k_10": "Top-k sampling (k = 10)",
    "nucleus": "Nucleus sampling (p = 0.9)",
}

GROUPS = {"baselines": BASELINES, "voting": VOTING, "mbr": MBR, "beyond": BEYOND, "sampling": SAMPLING}
#: What the paper calls the measure on states, in each experiment.
STATES = {"captions": "lstm_states", "translation": "transformer_states"}


def group_of(method: str) -> str:
    """The group of a method, "" for one that is in none."""
    return next((name for name, group in GROUPS.items() if method in group), "")


def label_of(method: str, experiment: str) -> str:
    """How tables call a method."""
    if method == "states":
        return STATES[experiment]
    return next((group[method] for group in GROUPS.values() if method in group), method)


def in_order(methods: Iterable[str], *groups: str) -> list[str]:
    """Those of some groups, in the order of the groups and of the lists above."""
    found = set(methods)
    return [method for group in groups for method in GROUPS[group] if method in found]
