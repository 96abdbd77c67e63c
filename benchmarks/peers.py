"""The peers, each as a function of texts and log-probabilities that returns winner and scores.

Run in `.venv-peers` (see `setup_peers.sh`). Every function imports its library on first use, so one
that is missing costs only its own rows. Objects a user would make once (a metric, a decoder) are
made once. `rows` grades the first candidates only: to extrapolate where a loop would take minutes.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

from plain import softmax

Election = tuple[int, list[float]]


def _elect(scores: list[float], logprobs: list[float]) -> Election:
    """Highest score, then highest log-probability, then first: rangevote's order of ties."""
    return max(range(len(scores)), key=lambda i: (scores[i], logprobs[i])), scores


def _loop(
    grade: Callable[[Any, Any], float], items: list[Any], logprobs: list[float], rows: int | None
) -> Election:
    """The double loop: score(c) = sum over v of P(v) grade(v, c)."""
    weights = softmax(logprobs)
    scores = [sum(w * grade(v, c) for v, w in zip(items, weights, strict=True)) for c in items[:rows]]
    return _elect(scores, logprobs)


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
    return _elect(scores.tolist(), logprobs)


@cache
def _mbrs(settings: tuple[tuple[str, Any], ...]) -> Any:
    import torch
    from mbrs.decoders import DecoderMBR
    from mbrs.metrics import MetricBLEU

    torch.set_num_threads(1)
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    return DecoderMBR(DecoderMBR.Config(), MetricBLEU(MetricBLEU.Config(**dict(settings))))


def mbrs(texts: list[str], logprobs: list[float], **settings: Any) -> Election:
    """mbrs' exact `mbr` decoder with BLEU; no `settings`: as it comes. Scores: the winner's."""
    import torch

    lprobs = torch.tensor(logprobs)  # (voters,)
    output = _mbrs(tuple(settings.items())).decode(texts, texts, reference_lprobs=lprobs)
    return int(output.idx[0]), [float(output.score[0]) / 100]
