"""Who is measured, on what, and how often.

Every contestant is a function from texts and log-probabilities to the winner's index and scores. The peers
run in `.venv-peers` (see `setup.sh`). Each function imports its library on first use, so one that is
missing costs only its own rows. Objects a user would make once (a metric, a decoder) are made once. `rows`
grades the first candidates only: to extrapolate where a loop would take minutes.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

Election = tuple[int, Any]


def rangevote(
    texts: list[str], logprobs: list[float], *, similarity: str, weights: str | None = None
) -> Election:
    """rangevote, called as a user calls it; words are cut at white space, as the peers cut them."""
    import rangevote as rv

    units = None if similarity == "chrf" else "space"
    result = rv.elect(texts, logprobs, similarity=similarity, weights=weights, tokenize=units)
    return result.index, result.scores


Items = Iterable[Hashable]


def _elect_by_items(texts: list[str], logprobs: list[float], items: Callable[[list[str]], Items]) -> Election:
    """Linear time, with sets and a dict: what a good programmer would write from the paper's equations.

    It follows the rules of rangevote (a text shorter than n is its own n-gram, the empty text abstains).
    """
    items_of = [set(items(text.split())) for text in texts]
    votes: dict[Hashable, float] = defaultdict(float)  # item -> sum of P(v) / |v|
    for weight, has in zip(softmax(logprobs), items_of, strict=True):
        if has:
            worth = weight / len(has)
            for item in has:
                votes[item] += worth
    scores = [sum(map(votes.__getitem__, has)) for has in items_of]
    winner = max(range(len(texts)), key=lambda i: (scores[i], logprobs[i]))  # first of equals
    return winner, scores


def ngrams(words: list[str], n: int) -> Items:
    """The n-grams of a text."""
    if len(words) <= n:
        return [tuple(words)] if words else []
    return zip(*(words[i:] for i in range(n)), strict=False)


def numbered_ngrams(words: list[str], n: int) -> Items:
    """The n-grams of a text, each with its occurrence number: a multiset as a set."""
    seen: Counter[Hashable] = Counter()
    for gram in ngrams(words, n):
        seen[gram] += 1
        yield gram, seen[gram]


def softmax(logprobs: list[float]) -> list[float]:
    """Probabilities normalised to sum to 1."""
    top = max(logprobs)
    weights = [math.exp(p - top) for p in logprobs]
    total = sum(weights)
    return [w / total for w in weights]


def overlap_2(texts: list[str], logprobs: list[float]) -> Election:
    """The set measure (equation 3) over bigrams."""
    return _elect_by_items(texts, logprobs, partial(ngrams, n=2))


def precision_2(texts: list[str], logprobs: list[float]) -> Election:
    """The bag measure (equation 2) over bigrams."""
    return _elect_by_items(texts, logprobs, partial(numbered_ngrams, n=2))


def _by_score(scores: list[float], logprobs: list[float]) -> Election:
    """Highest score, then highest log-probability, then first: rangevote's order of ties."""
    return max(range(len(scores)), key=lambda i: (scores[i], logprobs[i])), scores


def _loop(
    grade: Callable[[Any, Any], float], items: list[Any], logprobs: list[float], rows: int | None
) -> Election:
    """The double loop: score(c) = sum over v of P(v) grade(v, c)."""
    weights = softmax(logprobs)
    scores = [sum(w * grade(v, c) for v, w in zip(items, weights, strict=True)) for c in items[:rows]]
    return _by_score(scores, logprobs)


@cache
def _sacrebleu(smooth: bool) -> Any:
    from sacrebleu.metrics import BLEU

    # sentence_score warns at every call when effective_order is off: unheard, at next to no cost
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    method = {"smooth_method": "add-k", "smooth_value": 1} if smooth else {"smooth_method": "none"}
    return BLEU(tokenize="none", effective_order=False, **method)


def sacrebleu_bleu(
    texts: list[str], logprobs: list[float], *, smooth: bool, rows: int | None = None
) -> Election:
    """sacrebleu's sentence BLEU over all pairs."""
    score = _sacrebleu(smooth).sentence_score
    return _loop(lambda v, c: score(c, [v]).score / 100, texts, logprobs, rows)


@cache
def _sacrebleu_chrf() -> Any:
    from sacrebleu.metrics import CHRF

    return CHRF()


def sacrebleu_chrf(texts: list[str], logprobs: list[float], *, rows: int | None = None) -> Election:
    """sacrebleu's sentence chrF over all pairs."""
    score = _sacrebleu_chrf().sentence_score
    return _loop(lambda v, c: score(c, [v]).score / 100, texts, logprobs, rows)


def nltk_bleu(texts: list[str], logprobs: list[float], *, smooth: bool, rows: int | None = None) -> Election:
    """NLTK's sentence BLEU over all pairs; each text is split into words once."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    smoothing = SmoothingFunction().method2 if smooth else None
    words = [text.split() for text in texts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about pairs that share no 4-gram
        return _loop(lambda v, c: sentence_bleu([v], c, smoothing_function=smoothing), words, logprobs, rows)


def fastchrf(texts: list[str], logprobs: list[float]) -> Election:
    """fastchrf's chrF of all pairs (Rust), then the weighted sum."""
    import numpy as np
    from fastchrf import pairwise_chrf

    grades = np.asarray(pairwise_chrf([texts], [texts])[0])  # (candidates, voters)
    scores = grades @ np.asarray(softmax(logprobs)) / 100  # (candidates,)
    return _by_score(scores.tolist(), logprobs)


def fastchrf_aggregate(texts: list[str], logprobs: list[float]) -> Election:
    """fastchrf's streamlined variant: each candidate against the mean of all, every text once."""
    from fastchrf import aggregate_chrf

    return _by_score([score / 100 for score in aggregate_chrf([texts], [texts])[0]], logprobs)


@cache
def _mbrs(settings: tuple[tuple[str, Any], ...], decoder: str) -> Any:
    import torch
    from mbrs import decoders
    from mbrs.metrics import MetricBLEU

    torch.set_num_threads(1)
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    chosen = getattr(decoders, decoder)
    return chosen(chosen.Config(), MetricBLEU(MetricBLEU.Config(**dict(settings))))


def mbrs(texts: list[str], logprobs: list[float], decoder: str = "DecoderMBR", **settings: Any) -> Election:
    """mbrs with BLEU, exact or by another decoder; no `settings`: as it comes. Scores: the winner's."""
    import torch

    lprobs = torch.tensor(logprobs)  # (voters,)
    output = _mbrs(tuple(settings.items()), decoder).decode(texts, texts, reference_lprobs=lprobs)
    return int(output.idx[0]), [float(output.score[0]) / 100]


SIZES = (10, 100, 1_000, 10_000)
#: Ballots per round; every round has its own.
LISTS = {10: 10, 100: 2, 1_000: 1, 10_000: 1}
#: Rounds of what is quick; the others stop earlier.
ROUNDS = {10: 5, 100: 9, 1_000: 5, 10_000: 3}
#: CPU seconds that a quick contestant may use in one turn.
QUICK = 0.2


@dataclass(frozen=True)
class Contestant:
    """A function to measure, and where it may stop.

    `like` is the measure of ours that it should agree with, "" where it counts something else.
    `rounds` says in how many rounds it runs at each k; a k that is absent is skipped. At the k in
    `rows` only so many candidates are graded and the time is scaled up.
    """

    label: str
    environment: str  # "main" or "peers": which worker runs it
    function: Callable[..., Election]
    settings: Mapping[str, Any] = field(default_factory=dict)
    like: str = ""
    rounds: Mapping[int, int] = field(default_factory=dict)
    rows: Mapping[int, int] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        """Whether it is rangevote itself."""
        return self.function is rangevote


LOOP = {10: 3, 100: 3, 1_000: 1}
LOOP_ROWS = {1_000: 20}


def _ours(similarity: str, rounds: Mapping[int, int] = ROUNDS) -> Contestant:
    return Contestant(
        f"rangevote {similarity}", "main", rangevote, {"similarity": similarity}, similarity, rounds
    )


def _plain(name: str, function: Callable[..., Election]) -> Contestant:
    return Contestant(f"plain Python {name}", "main", function, {}, name, ROUNDS)


def _double_loop(
    label: str,
    function: Callable[..., Election],
    like: str,
    rounds: Mapping[int, int] = LOOP,
    **settings: Any,
) -> Contestant:
    return Contestant(f"{label} loop", "peers", function, settings, like, rounds, LOOP_ROWS)


def _mbrs_bleu(
    label: str, like: str, rounds: Mapping[int, int] = {10: 1, 100: 1, 1_000: 1}, **settings: Any
) -> Contestant:
    return Contestant(f"mbrs BLEU, {label}", "peers", mbrs, settings, like, rounds)


def _mbrs_approximate(method: str, decoder: str) -> Contestant:
    label = f"{method}, approximate"
    return _mbrs_bleu(label, "bleu_4", MANY, decoder=decoder, smooth_method="none", **SAME)


#: The measure of BLEU that rangevote has, with one worker: least CPU time mbrs can take.
SAME: dict[str, Any] = {"tokenize": "none", "effective_order": False, "num_workers": 1}

ONCE = LOOP | {100: 1}
#: Of approximate ones: lists enough to say how often they elect another.
MANY = {10: 5, 100: 5, 1_000: 2}
CONTESTANTS = {
    "overlap_2": _ours("overlap_2"),
    "plain overlap_2": _plain("overlap_2", overlap_2),
    "precision_2": _ours("precision_2"),
    "plain precision_2": _plain("precision_2", precision_2),
    "bleu_4": _ours("bleu_4", ROUNDS | {10_000: 1}),
    "smoothed_bleu_4": _ours("smoothed_bleu_4", ROUNDS | {10_000: 1}),
    "sacrebleu BLEU": _double_loop("sacrebleu BLEU", sacrebleu_bleu, "bleu_4", smooth=False),
    "sacrebleu BLEU+1": _double_loop("sacrebleu BLEU+1", sacrebleu_bleu, "smoothed_bleu_4", smooth=True),
    "NLTK BLEU": _double_loop("NLTK BLEU", nltk_bleu, "bleu_4", ONCE, smooth=False),
    "NLTK BLEU+1": _double_loop("NLTK BLEU+1", nltk_bleu, "smoothed_bleu_4", ONCE, smooth=True),
    "mbrs": _mbrs_bleu("as it comes", ""),
    "mbrs same": _mbrs_bleu("1 worker", "bleu_4", smooth_method="none", **SAME),
    "mbrs same+1": _mbrs_bleu(
        "+1, 1 worker", "smoothed_bleu_4", smooth_method="add-k", smooth_value=1, **SAME
    ),
    "mbrs aggregate": _mbrs_approximate("aggregate_mbr", "DecoderAggregateMBR"),
    "mbrs pruning": _mbrs_approximate("pruning_mbr", "DecoderPruningMBR"),
    "chrf": _ours("chrf", ROUNDS | {10_000: 1}),
    "chrf, counted": Contestant(
        "rangevote chrf, each text once",
        "main",
        rangevote,
        {"similarity": "chrf", "weights": "count"},
        "chrf, counted",
        MANY,
    ),
    "fastchrf aggregate": Contestant(
        "fastchrf aggregate_chrf, approximate",
        "peers",
        fastchrf_aggregate,
        {},
        "chrf, counted",
        MANY,
    ),
    "sacrebleu chrF": _double_loop("sacrebleu chrF", sacrebleu_chrf, "chrf", ONCE),
    "fastchrf": Contestant("fastchrf", "peers", fastchrf, {}, "chrf", {10: 3, 100: 5, 1_000: 2}),
}
