"""Who is measured, on what, and how much of it: the plan of the speed measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SIZES = (10, 100, 1_000, 10_000)
#: Ballots per round; every round has its own.
LISTS = {10: 10, 100: 2, 1_000: 1, 10_000: 1}
#: Rounds of what is quick; the others stop earlier.
ROUNDS = {10: 5, 100: 9, 1_000: 5, 10_000: 3}


@dataclass(frozen=True)
class Contestant:
    """A function to measure, and where it may stop.

    `like` is the measure of ours that it should agree with, "" where it counts something else.
    `rounds` says in how many rounds it runs at each k; a k that is absent is skipped. At the k in
    `rows` only so many candidates are graded and the time is scaled up.
    """

    label: str
    module: str
    function: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    like: str = ""
    rounds: Mapping[int, int] = field(default_factory=dict)
    rows: Mapping[int, int] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        """Whether it is rangevote itself."""
        return self.module == "ours"

    @property
    def environment(self) -> str:
        """Which worker runs it."""
        return "peers" if self.module == "peers" else "main"


LOOP = {10: 3, 100: 3, 1_000: 1}
LOOP_ROWS = {1_000: 20}


def _ours(similarity: str, rounds: Mapping[int, int] = ROUNDS) -> Contestant:
    return Contestant(
        f"rangevote {similarity}", "ours", "elect", {"similarity": similarity}, similarity, rounds
    )


def _plain(name: str) -> Contestant:
    return Contestant(f"plain Python {name}", "plain", name, {}, name, ROUNDS)


def _loop(
    label: str, function: str, like: str, rounds: Mapping[int, int] = LOOP, **settings: Any
) -> Contestant:
    return Contestant(f"{label} loop", "peers", function, settings, like, rounds, LOOP_ROWS)


def _mbrs(label: str, like: str, **settings: Any) -> Contestant:
    rounds = {10: 1, 100: 1, 1_000: 1}
    return Contestant(f"mbrs BLEU, {label}", "peers", "mbrs", settings, like, rounds)


#: The measure of BLEU that rangevote has, with one worker: least CPU time mbrs can take.
SAME: dict[str, Any] = {"tokenize": "none", "effective_order": False, "num_workers": 1}

ONCE = LOOP | {100: 1}
CONTESTANTS = {
    "overlap_2": _ours("overlap_2"),
    "plain overlap_2": _plain("overlap_2"),
    "precision_2": _ours("precision_2"),
    "plain precision_2": _plain("precision_2"),
    "bleu_4": _ours("bleu_4", ROUNDS | {10_000: 1}),
    "smoothed_bleu_4": _ours("smoothed_bleu_4", ROUNDS | {10_000: 1}),
    "sacrebleu BLEU": _loop("sacrebleu BLEU", "sacrebleu_bleu", "bleu_4", smooth=False),
    "sacrebleu BLEU+1": _loop("sacrebleu BLEU+1", "sacrebleu_bleu", "smoothed_bleu_4", smooth=True),
    "NLTK BLEU": _loop("NLTK BLEU", "nltk_bleu", "bleu_4", ONCE, smooth=False),
    "NLTK BLEU+1": _loop("NLTK BLEU+1", "nltk_bleu", "smoothed_bleu_4", ONCE, smooth=True),
    "mbrs": _mbrs("as it comes", ""),
    "mbrs same": _mbrs("1 worker", "bleu_4", smooth_method="none", **SAME),
    "mbrs same+1": _mbrs("+1, 1 worker", "smoothed_bleu_4", smooth_method="add-k", smooth_value=1, **SAME),
    "chrf": _ours("chrf", ROUNDS | {10_000: 1}),
    "sacrebleu chrF": _loop("sacrebleu chrF", "sacrebleu_chrf", "chrf", ONCE),
    "fastchrf": Contestant("fastchrf", "peers", "fastchrf", {}, "chrf", {10: 3, 100: 5, 1_000: 2}),
}
