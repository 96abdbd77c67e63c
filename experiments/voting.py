"""Steps "vote" and "tune": from the hypotheses of one search to the outputs of every method that chooses.

A file of outputs has, by method, one text for each item, and how many of them the length limit had cut.
Settings of an election are tuned on the lists of the development set alone.
"""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from experiments.searching import read_ballots
from experiments.steps import write_json
from rangevote.election.elect import elect
from rangevote.election.settings import read_profile, read_toml
from rangevote.errors import RangevoteWarning
from rangevote.evaluation.corpus import WordUnits
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.similarity import PRESETS
from rangevote.similarity.neural import shared_model
from rangevote.similarity.vectors import UNIVERSAL, UniversalSentenceEncoder
from rangevote.text import write_atomically
from rangevote.tuning.tune import tune


class RememberingEncoder:
    """The universal sentence encoder, which encodes a text once for all elections of a process: captions of
    one image, and of many, are often the same."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    @cached_property
    def _encoder(self) -> UniversalSentenceEncoder:
        return UniversalSentenceEncoder(UNIVERSAL)

    def encode(self, texts: Sequence[str], **options: Any) -> Any:
        """Vectors, shape (texts, 512)."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._encoder.encode(new, **options), strict=True))
        return np.stack([self._known[text] for text in texts])


#: What measures by this name use in a process of the experiments, as long as this is held.
ENCODER = shared_model("embedding", UNIVERSAL)
ENCODER.model = RememberingEncoder()

#: From the hypotheses of one item to the one that is put out.
Choice = Callable[[Ballot], Hypothesis]


def first(ballot: Ballot) -> Hypothesis:
    """What the search ranks first: the baseline."""
    return ballot.candidates[0]


def first_not_empty(ballot: Ballot) -> Hypothesis:
    """The first with a word in it; the first where all are empty."""
    return next((one for one in ballot.candidates if (one.text or "").strip()), ballot.candidates[0])


def reranked(ballot: Ballot) -> Hypothesis:
    """The best of the list by log P / length."""
    return elect(ballot, rule="length_normalised").hypothesis


def elected(**options: Any) -> Choice:
    """The winner of an election with these options."""

    def choose(ballot: Ballot) -> Hypothesis:
        return elect(ballot, **options).hypothesis

    return choose


def elected_by_profile(options: Mapping[str, Any]) -> Choice:
    """The winner by tuned options, whose temperature is for probabilities: samples have other weights."""
    counted = {name: value for name, value in options.items() if name != "temperature"}

    def choose(ballot: Ballot) -> Hypothesis:
        samples = any(voter.sampled or voter.weight is not None for voter in ballot.voters or ())
        return elect(ballot, **(counted if samples else options)).hypothesis

    return choose


def by_measure(measure: str, words: str) -> Choice:
    """The winner by a measure, or a preset, on n-grams of these words."""
    if measure in PRESETS:
        return elected(preset=measure, tokenize=words)
    return elected(similarity=measure, tokenize=words)


def vote(
    output: Path,
    *,
    search: str,
    k: int,
    measures: Sequence[str],
    words: str,
    other_measures: Sequence[str],
    other_words: str,
    not_empty: bool,
    rerank: bool,
    suffix: str,
    ballots: Path,
    profile: Path | None = None,
) -> None:
    """Choose from a file of ballots by each method; `suffix` tells apart votes on another list than usual."""
    choices: dict[str, Choice] = {search: first}
    if not_empty:
        choices[f"{search}_not_empty"] = first_not_empty
    if rerank:
        choices["reranked"] = reranked
    choices |= {f"{measure}{suffix}": by_measure(measure, words) for measure in measures}
    for measure in other_measures:
        choices[f"{measure} ({other_words}){suffix}"] = by_measure(measure, other_words)
    if profile is not None:
        choices["tuned"] = elected(**read_profile(profile))
    write_outputs(output, search, k, chosen(choices, ballots))


def chosen(choices: Mapping[str, Choice], ballots: Path) -> dict[str, list[Hypothesis]]:
    """What each method puts out, item by item; the file is read once for all."""
    found: dict[str, list[Hypothesis]] = {name: [] for name in choices}
    for ballot in read_ballots(ballots):
        for name, choose in choices.items():
            found[name].append(choose(ballot))
    return found


def vote_with_voters(
    output: Path,
    *,
    kind: str,
    number: int,
    measures: Sequence[str],
    words: str,
    subset: bool,
    seed: int,
    candidates: Path,
    voters: Path,
    profile: Path | None = None,
) -> None:
    """Fixed candidates, elected by `number` voters of another list (section 4.2.5 of the paper).

    A `subset` of a larger list is drawn by chance, which of independent samples are independent samples
    again; a smaller number's voters are among a larger one's.
    """
    choices = {measure: by_measure(measure, words) for measure in measures}
    if profile is not None:
        choices["tuned"] = elected_by_profile(read_profile(profile))
    found: dict[str, list[Hypothesis]] = {name: [] for name in choices}
    pairs = zip(read_ballots(candidates), read_ballots(voters), strict=False)  # voters of the first items
    for index, (own, other) in enumerate(pairs):
        if own.id != other.id:
            raise ValueError(f"candidates of {own.id} met voters of {other.id}")
        several = list(other.candidates)
        if subset:
            drawn = np.random.default_rng([seed, index]).permutation(len(several))[:number]
            several = [several[i] for i in drawn]
        ballot = Ballot(
            [_text_and_probability(one) for one in own.candidates],
            [_text_and_probability(one) for one in several],
        )
        for name, choose in choices.items():
            found[name].append(choose(ballot))
    write_outputs(output, kind, number, found)


def _text_and_probability(hypothesis: Hypothesis) -> Hypothesis:
    """Text and probability alone, which are known of all voters."""
    return msgspec.structs.replace(hypothesis, tokens=None, state=None)


def write_outputs(output: Path, search: str, k: int, found: Mapping[str, Sequence[Hypothesis]]) -> None:
    """The outputs of all methods."""
    methods = {
        name: {
            "texts": [one.text or "" for one in outputs],
            "unfinished": sum(not one.finished for one in outputs),
        }
        for name, outputs in found.items()
    }
    write_json(output, {"search": search, "k": k, "methods": methods})


def read_outputs(path: Path) -> dict[str, Any]:
    """What `write_outputs` wrote."""
    with gzip.open(path, "rb") as file:
        found: dict[str, Any] = json.loads(file.read())
    return found


def tune_ballots(output: Path, *, metric: str, words: str, grid: Mapping[str, Any], ballots: Path) -> None:
    """Write the profile that is best on these ballots; `grid` are options of `rangevote.tune`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangevoteWarning)  # the profile says whether the choice is noise
        found = tune(read_ballots(ballots), metric=metric, units=WordUnits(tokenize=words), **grid)
    with write_atomically(output) as file:
        file.write(found.profile().encode())


def profile_facts(profile: Path) -> dict[str, Any]:
    """What a profile says of its choice: the options, and how they were found."""
    found = read_toml(profile)
    return {"options": found["election"], **found["tuned"]}
