"""How outputs of a panel are scored, by references or by stored judgements, and compared with its members."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from experiments.panel_tables import BEST, ELECTED, MEAN, SHOWN
from rangevote.evaluation.corpus import EvaluationCorpus, WordUnits
from rangevote.evaluation.evaluate import Evaluator
from rangevote.evaluation.metrics import Metric
from rangevote.evaluation.significance import RESAMPLES, difference, resampled_sums
from rangevote.hypothesis import Array

#: sacreBLEU's tokenisation for each target language that is not cut at white space and punctuation.
TOKENISERS = {"ja": "ja-mecab"}

Ballot = Mapping[str, Any]
Score = Callable[[Array], Array]


def texts_of(ballots: Sequence[Ballot], member: str) -> list[str]:
    """A member's own outputs; a missing one is an empty text."""
    found = ([one["text"] for one in ballot["candidates"] if one["member"] == member] for ballot in ballots)
    return [texts[0] if texts else "" for texts in found]


def judgements(ballot: Ballot, judged: Callable[[Ballot], float | None]) -> dict[str, float]:
    """text -> the mean of its judgements, over all members that wrote it and were judged."""
    marks: dict[str, list[float]] = {}
    for one in ballot["candidates"]:
        mark = judged(one)
        if mark is not None:
            marks.setdefault(one["text"], []).append(mark)
    return {text: fmean(several) for text, several in marks.items()}


def mark_rows(known: Sequence[Mapping[str, float]], texts: Sequence[str]) -> Array:
    """Statistics of a mean: the judgement of each text and 1, or zeros where there is none."""
    marks = [by_text.get(text) for by_text, text in zip(known, texts, strict=True)]
    return np.array([(0.0, 0.0) if mark is None else (mark, 1.0) for mark in marks])


def mean_mark(sums: Array) -> Array:
    """The mean over what was judged."""
    mean: Array = sums[..., 0] / sums[..., 1]
    return mean


def compare(
    score: Score,
    members: Mapping[str, Array],
    others: Mapping[str, Array],
    pairs: Sequence[tuple[str, str]] = ((ELECTED, MEAN), (ELECTED, BEST)),
) -> dict[str, Any]:
    """The scores of members and of others, and the differences of pairs under the same resamples.

    Each has its statistics, shape (ballots, s), in the order of the ballots. The mean member has the mean of
    the members' scores, the best one is the one with the highest.
    """
    systems = {**members, **others}
    rows = np.stack(list(systems.values()), axis=1)  # (ballots, systems, s)
    sums = resampled_sums(rows.reshape(len(rows), -1)).reshape(RESAMPLES, *rows.shape[1:])
    drawn = dict(zip(systems, score(sums).T, strict=True))
    values = dict(zip(systems, score(rows.sum(axis=0)).tolist(), strict=True))
    best = max(members, key=lambda name: values[name])
    drawn |= {MEAN: np.mean([drawn[name] for name in members], axis=0), BEST: drawn[best]}
    values |= {MEAN: fmean(values[name] for name in members), BEST: values[best]}
    return {
        "ballots": len(rows),
        "values": {name: values[name] for name in (MEAN, BEST, *others)},
        "best_member": best,
        "members": {name: values[name] for name in members},
        "differences": [
            {"of": ours, "to": theirs}
            | _data(difference(drawn[ours], drawn[theirs], values[ours] - values[theirs]))
            for ours, theirs in pairs
        ],
    }


def _data(found: Any) -> dict[str, Any]:
    return {"difference": found.value, "interval": list(found.interval), "p": found.p}


def choose(found: Mapping[str, Any], settings: Sequence[str]) -> str:
    """The setting with the highest BLEU + chrF if it is above the first by both with p < 0.05; else that."""
    default = settings[0]
    best = max(settings, key=lambda name: sum(found[metric]["values"][name] for metric in SHOWN))
    against = [one for metric in SHOWN for one in found[metric]["differences"] if one["of"] == best]
    clear = best != default and all(one["difference"] > 0 and one["p"] < 0.05 for one in against)
    return best if clear else default


class References:
    """Measures texts by the first reference of each ballot; statistics are counted once for each system."""

    def __init__(self, ballots: Sequence[Ballot], language: str) -> None:
        self.tokeniser = TOKENISERS.get(language, "13a")
        known = self.tokeniser == "13a" or importlib.util.find_spec("MeCab") is not None
        self.metrics = [name for name in SHOWN if known or name != "bleu"]
        corpus = EvaluationCorpus.of(len(ballots), [ballot["references"][0] for ballot in ballots])
        units = WordUnits(bleu_tokenize=self.tokeniser if known else "13a")
        self._evaluator = Evaluator(corpus, self.metrics, units)
        self.signatures = {name: self._evaluator.signature(name) for name in self.metrics}

    def rows(self, texts: Sequence[str]) -> dict[str, Array]:
        """metric -> the statistics of these texts."""
        measured = self._evaluator.measure(texts)
        return {name: measured.rows[self.metric(name).statistics] for name in self.metrics}

    def metric(self, name: str) -> Metric:
        return self._evaluator.metrics[name]

    def compare(
        self,
        members: Mapping[str, Mapping[str, Array]],
        others: Mapping[str, Mapping[str, Array]],
        **pairs: Any,
    ) -> dict[str, Any]:
        """`compare` by each metric."""
        return {
            name: compare(
                self.metric(name).score,
                {system: rows[name] for system, rows in members.items()},
                {system: rows[name] for system, rows in others.items()},
                **pairs,
            )
            for name in self.metrics
        }


def by_marks(
    ballots: Sequence[Ballot],
    judged: Callable[[Ballot], float | None],
    members: Sequence[str],
    elected: Mapping[str, Sequence[str]],
    pairs: Sequence[tuple[str, str]] = ((ELECTED, MEAN), (ELECTED, BEST)),
) -> dict[str, Any]:
    """`compare` by the mean of stored judgements."""
    known = [judgements(ballot, judged) for ballot in ballots]
    return compare(
        mean_mark,
        {member: mark_rows(known, texts_of(ballots, member)) for member in members},
        {name: mark_rows(known, texts) for name, texts in elected.items()},
        pairs,
    )
