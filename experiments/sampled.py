"""Steps for sampled voters: elections under many settings, the choice of one on the development set, numbers.

The voters of a setting are lists of samples taken together, or, for a panel, such lists for each member. All
count the same. The best setting is that with the highest mean over k of the deciding metric.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from experiments.data import read_items
from experiments.measuring import Measurer, gathered
from experiments.searching import read_ballots
from experiments.steps import write_json
from experiments.voting import write_outputs
from rangevote.election.elect import elect
from rangevote.election.rules import leader, own_likelihood
from rangevote.hypothesis import Ballot, Hypotheses, Hypothesis
from rangevote.similarity.base import number_text

#: A kind of voters: names of lists, or, for a panel, such for each member.
Kind = Sequence[str] | Mapping[str, Sequence[str]]


def setting_name(measure: str, likelihood: float, kind: str) -> str:
    """
    >>> setting_name("overlap_2", 0.4, "half")
    'overlap_2, L = 0.4, voters: half'
    """
    return f"{measure}, L = {number_text(likelihood)}, voters: {kind}"


def vote_sampled(
    output: Path,
    *,
    k: int,
    voters: Mapping[str, Kind],
    measures: Sequence[str],
    likelihoods: Sequence[float],
    words: str,
    candidates: Path,
    **lists: Path,
) -> None:
    """Elect the candidates by every kind of voters, measure and likelihood.

    The votes do not depend on the likelihood, so they are counted once for all of them: with x the score is
    the votes plus x log P(c) / |c|.
    """
    outputs: dict[str, list[Hypothesis]] = {}
    for ballot, listed in _together(candidates, lists):
        columns = Hypotheses.of(ballot.candidates)
        own = own_likelihood(columns, 1.0)
        for (kind, names), measure in product(voters.items(), measures):
            votes = elect(
                ballot.candidates, voters=_voters(names, listed), similarity=measure, tokenize=words
            )
            for x in likelihoods:
                winner = columns[leader(votes.scores + x * own, columns)]
                outputs.setdefault(setting_name(measure, x, kind), []).append(winner)
    write_outputs(output, "sampled", k, outputs)


def _together(
    candidates: Path, lists: Mapping[str, Path]
) -> Iterator[tuple[Ballot, dict[str, list[Hypothesis]]]]:
    """Each ballot with the voters of all lists for it."""
    files = [read_ballots(path) for path in lists.values()]
    for ballot, *others in zip(read_ballots(candidates), *files, strict=True):
        if any(other.id != ballot.id for other in others):
            raise ValueError(f"candidates of {ballot.id} met voters of {[other.id for other in others]}")
        kept = [msgspec.structs.replace(one, state=None) for one in ballot.candidates]
        voters = [[Hypothesis(one.text, sampled=True) for one in other.candidates] for other in others]
        yield msgspec.structs.replace(ballot, candidates=kept), dict(zip(lists, voters, strict=True))


def _voters(kind: Kind, lists: Mapping[str, list[Hypothesis]]) -> Any:
    """One list of voters, or one for each member of a panel."""
    if isinstance(kind, Mapping):
        return {member: _voters(names, lists) for member, names in kind.items()}
    return [voter for name in kind for voter in lists[name]]


def choose_sampled(output: Path, *, metric: str, words: str, items: Path, outputs: Sequence[Path]) -> None:
    """The setting with the best mean over k on the development set; of equals the first."""
    values = _values(read_settings(items, outputs, [metric], words), metric)
    means = {name: sum(by_k.values()) / len(by_k) for name, by_k in values.items()}
    best = max(means, key=lambda name: means[name])
    write_json(output, {"chosen": best, "mean": means[best], "means": means, "values": values})


def take_chosen(output: Path, *, k: int, consensus: str, outputs: Path, choice: Path | None = None) -> None:
    """The outputs of the preset, and of the setting that was chosen, as methods of their own."""
    found, _ = gathered([outputs])
    named = {"consensus": consensus}
    if choice is not None:
        named["chosen"] = json.loads(choice.read_bytes())["chosen"]
    methods = {
        method: {"texts": found[setting][k], "unfinished": 0}
        for method, setting in named.items()
        if setting in found
    }
    write_json(output, {"search": "sampled", "k": k, "methods": methods})


def evaluate_sampled(
    output: Path, *, metrics: Sequence[str], words: str, items: Path, outputs: Sequence[Path], choice: Path
) -> None:
    """The numbers of every setting: setting -> k -> metric -> value, and what was chosen by which numbers."""
    write_json(
        output,
        {
            "settings": read_settings(items, outputs, metrics, words),
            "development": json.loads(choice.read_bytes()),
        },
    )


def read_settings(
    items: Path, outputs: Sequence[Path], metrics: Sequence[str], words: str
) -> dict[str, dict[str, dict[str, Any]]]:
    """setting -> k -> values."""
    found, _ = gathered(outputs)
    size = len(next(texts for by_k in found.values() for texts in by_k.values()))
    measurer = Measurer(read_items(items).first(size), metrics, words)
    return {
        name: {str(k): dict(measurer.measure(texts).values) for k, texts in by_k.items()}
        for name, by_k in found.items()
    }


def _values(
    settings: Mapping[str, Mapping[str, Mapping[str, Any]]], metric: str
) -> dict[str, dict[str, float]]:
    return {name: {k: float(v[metric]) for k, v in by_k.items()} for name, by_k in settings.items()}
