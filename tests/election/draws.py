"""What Hypothesis draws: texts of few words, so that they share n-grams, and weights for them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

#: One measure of each kind that grades texts from 0 to 1.
MEASURES = [
    "overlap_2",
    "precision_1-4",
    "overlap_1-4@0.25",
    "bleu_2",
    "smoothed_bleu_4",
    "chrf",
    "exact",
    "rouge_l",
    "edit",
    "0.5*precision_2@1+0.5*exact",
]

text = st.lists(st.sampled_from(["a", "b", "c", "dog", "7"]), max_size=7).map(" ".join)
texts = st.lists(text, min_size=1, max_size=7)
measures = st.sampled_from(MEASURES)
logprob = st.floats(-40, 0)


@st.composite
def weighted(draw: st.DrawFn, least: int = 1) -> tuple[list[str], list[float]]:
    """Texts, and weights of which at least one is above 0."""
    drawn = draw(st.lists(st.tuples(text, st.floats(0, 1)), min_size=least, max_size=7))
    weights = [weight for _, weight in drawn]
    weights[0] += 0.5
    return [t for t, _ in drawn], weights


@st.composite
def likely(draw: st.DrawFn, least: int = 1) -> tuple[list[str], list[float]]:
    """Texts with log-probabilities."""
    drawn = draw(st.lists(st.tuples(text, logprob), min_size=least, max_size=7))
    return [t for t, _ in drawn], [lp for _, lp in drawn]


def shuffled(draw: Any, size: int) -> list[int]:
    """An order of 0 to size - 1."""
    return list(draw(st.permutations(range(size))))
