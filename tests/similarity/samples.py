"""Random ballots, and the table of measures that every general test goes through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import rangevote as rv
from rangevote.hypothesis import Hypotheses, Hypothesis

WORDS = ["a", "man", "dog", "Sits,", "on", "naïve", "3.5", "12", "B", "\\boxed{7}", "日本", "bench."]
STATE = 5  # numbers in a state vector


def sentence(rng: np.random.Generator, longest: int = 9, words: Sequence[str] = WORDS) -> str:
    """A text of 0 to `longest` words; few words, so that n-grams repeat and are shared."""
    return " ".join(rng.choice(words, size=rng.integers(0, longest + 1)).tolist())


def sentences(rng: np.random.Generator, size: int, longest: int = 9) -> list[str]:
    """Texts of all lengths, with at least one empty, one of white space, one of one word, one repeated."""
    made = ["", " \t", "dog", "dog dog dog dog dog"] + [sentence(rng, longest) for _ in range(size)]
    return [made[i] for i in rng.permutation(len(made))[:size]]


def full(rng: np.random.Generator, texts: Sequence[str]) -> list[Hypothesis]:
    """Hypotheses with everything a measure may ask for."""
    return [
        Hypothesis(
            text=text,
            tokens=tuple(rng.integers(0, 5, size=len(text.split())).tolist()),
            logprob=float(-rng.exponential(5)),
            state=tuple(rng.normal(size=STATE).tolist()),
        )
        for text in texts
    ]


def columns(hypotheses: Sequence[Any], role: str = "candidates") -> Hypotheses:
    return Hypotheses.of(hypotheses, role=role)


def weights_for(rng: np.random.Generator, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Weights that sum to 1, some of them 0."""
    drawn = rng.exponential(size=size) * (rng.random(size) < 0.9)
    drawn[0] += 0.1
    return np.asarray(drawn / drawn.sum())


def first_letters(voter: str, candidate: str) -> float:
    """A user's own measure: 1, 0 or -1."""
    if not voter or not candidate:
        return 0.0
    return 1.0 if voter[0] == candidate[0] else -1.0


def length_ratio(voters: list[str], candidates: list[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A user's own measure, for all pairs at once."""
    v = np.array([len(text) + 1.0 for text in voters])[:, None]
    c = np.array([len(text) + 1.0 for text in candidates])[None, :]
    return np.asarray(np.minimum(v, c) / np.maximum(v, c))


class SameLength:
    """A similarity that owes nothing to this package: it has a name, a tally and a matrix."""

    name = "same_length"

    def matrix(self, candidates: Hypotheses, voters: Hypotheses) -> Any:
        grades = [[float(len(str(v.text)) == len(str(c.text))) for c in candidates] for v in voters]
        return np.array(grades, dtype=np.float64).reshape(len(voters), len(candidates))

    def tally(self, candidates: Hypotheses, voters: Hypotheses, weights: Any) -> Any:
        return (weights[:, None] * self.matrix(candidates, voters)).sum(axis=0)


class Sourced(rv.Ngrams):
    """overlap_1 that does not vote without the source; `seen` are the sources it was given."""

    def __init__(self, source: str | None = None, seen: list[str] | None = None) -> None:
        super().__init__(range(1, 2), bag=False, tokenize="space")
        self.source, self.seen = source, [] if seen is None else seen

    def about(self, source: str | None) -> Sourced:
        return Sourced(source, self.seen)

    def poll(self, candidates: Hypotheses) -> Any:
        assert self.source is not None
        self.seen.append(self.source)
        return super().poll(candidates)


def letters(text: str) -> list[str]:
    """A user's own tokenisation: pairs of characters."""
    return [text[i : i + 2] for i in range(0, len(text), 2)]


#: label -> (similarity, tokenize); every kind of measure there is.
EVERY: dict[str, tuple[Any, Any]] = {
    name: (name, "space")
    for name in """
        overlap_1 overlap_2 overlap_7 overlap_2@1 overlap_1-4@0.25 blend precision_2 precision_1-4@1
        bleu_2 bleu_4 smoothed_bleu_4 chrf states exact exact:last_number
        chrf++ ter rouge_l edit 0.5*overlap_2+0.5*states 0.6*bleu_2+-0.4*edit
    """.split()  # noqa: SIM905
} | {
    "overlap_2 on chars": ("overlap_2", "chars"),
    "precision_2 on tokens": ("precision_2", "tokens"),
    "bleu_4 on 13a": ("bleu_4", "13a"),
    "overlap_2 on a function": ("overlap_2", letters),
    "edit on tokens": ("edit", "tokens"),
    "chrF of order 3": (rv.Chrf(3, 1.0), "space"),
    "a user's function": (first_letters, "space"),
    "a user's batched function": (rv.Custom(length_ratio, batched=True), "space"),
    "a user's key": (rv.Exact(len), "space"),
    "a user's object": (SameLength(), "space"),
    "a mixture of objects": (rv.Mixture([(0.5, rv.Custom(first_letters)), (0.5, SameLength())]), "space"),
}


def measure(label: str) -> Any:
    """The measure of one line of the table."""
    similarity, tokenize = EVERY[label]
    return rv.get_similarity(similarity, tokenize)
