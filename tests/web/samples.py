"""Ballots that the tests of the election page share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

import rangevote as rv
from rangevote.election.settings import Settings
from rangevote.web.app import Ballots, ElectionPage
from tests.figure1 import CAPTIONS, LOGPROBS


def ballot(texts: Sequence[str], logprobs: Sequence[float] | None = None, **fields: Any) -> rv.Ballot:
    numbers = logprobs or [None] * len(texts)
    return rv.Ballot(
        [rv.Hypothesis(text=t, logprob=p) for t, p in zip(texts, numbers, strict=True)], **fields
    )


def panel(*outputs: tuple[str, str], **fields: Any) -> rv.Ballot:
    """A ballot of (member, text)."""
    return rv.Ballot([rv.Hypothesis(text=text, member=member) for member, text in outputs], **fields)


FIGURE = ballot(CAPTIONS, LOGPROBS, id="figure 1", source="a photograph")

TEXT = st.lists(st.sampled_from(["a", "b", "c", "d", "é"]), max_size=7).map(" ".join)
BALLOTS = st.lists(st.tuples(TEXT, st.floats(-30, 0)), min_size=1, max_size=8).map(
    lambda rows: ballot([t for t, _ in rows], [p for _, p in rows])
)
MIXTURE = "0.5*overlap_2+0.5*precision_1"
DECOMPOSING = ["overlap_1", "overlap_2", "precision_2", "overlap_1-4@0.25", MIXTURE, "exact"]
EVERY = [*DECOMPOSING, "bleu_4", "chrf"]


def page_of(*lists: Sequence[rv.Ballot], kept: int | None = None, **options: Any) -> ElectionPage:
    """The page of lists that are called k1, k2 and so on."""
    named = [Ballots(f"k{i}", ballots) for i, ballots in enumerate(lists, 1)]
    return ElectionPage(named, Settings(**options), kept=kept)
