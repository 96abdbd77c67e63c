"""bleu_n and smoothed_bleu_n against sacrebleu, NLTK and exact fractions, on thousands of pairs."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from sacrebleu.metrics import BLEU

import rangevote as rv
from tests.similarity.samples import columns, sentence, sentences

WORDS = ["a", "b", "c", "d", "e"]


def pairs(seed: int, size: int, longest: int):
    """Lists of candidates and voters of which many share 4-grams, with empty and short ones."""
    rng = np.random.default_rng(seed)
    base = " ".join(rng.choice(WORDS, size=longest).tolist())
    near = [swapped(rng, base) for _ in range(size)]
    made = ["", "a", "a b", "a b c", "a b c d", *near, *[sentence(rng, 4, WORDS) for _ in range(size // 3)]]
    order = rng.permutation(len(made))
    return [made[i] for i in order[: len(made) // 2]], [made[i] for i in order[len(made) // 2 :]]


def swapped(rng: np.random.Generator, text: str) -> str:
    words = text.split()[int(rng.integers(0, 3)) :]
    for _ in range(int(rng.integers(0, 3))):
        if words:
            words[int(rng.integers(len(words)))] = str(rng.choice(WORDS))
    return " ".join(words)


def sacrebleu(order: int, smooth: bool) -> BLEU:
    method, value = ("add-k", 1) if smooth else ("none", None)
    return BLEU(
        tokenize="none",
        smooth_method=method,
        smooth_value=value,
        max_ngram_order=order,
        effective_order=False,
    )


@pytest.mark.parametrize(("order", "size"), [(4, 60), (1, 30), (2, 30), (3, 30), (6, 30)])
@pytest.mark.parametrize("smooth", [False, True], ids=["bleu", "smoothed_bleu"])
@pytest.mark.parametrize("seed", range(2))
def test_grades_are_sacrebleus_sentence_scores(order, size, smooth, seed):
    candidates, voters = pairs(seed, size, 14)
    name = f"{'smoothed_' if smooth else ''}bleu_{order}"
    metric = sacrebleu(order, smooth)
    expected = [[metric.sentence_score(c, [v]).score / 100 for c in candidates] for v in voters]
    grades = rv.get_similarity(name).matrix(columns(candidates), columns(voters))
    np.testing.assert_allclose(grades, expected, rtol=1e-12, atol=1e-15)
    assert (grades > 0).mean() > 0.1  # the pairs are worth comparing
    assert (grades == 0).any()


@pytest.mark.parametrize("seed", range(3))
def test_grades_are_nltks_where_every_precision_is_above_zero(seed):
    # NLTK warns of a zero precision and puts in 2e-308; a BLEU of 0 is all sacrebleu and we say of it
    candidates, voters = pairs(seed, 60, 14)
    grades = rv.get_similarity("bleu_4").matrix(columns(candidates), columns(voters))
    found = 0
    for v, voter in enumerate(voters):
        for c, candidate in enumerate(candidates):
            if grades[v, c] > 0:
                expected = sentence_bleu([voter.split()], candidate.split())
                assert grades[v, c] == pytest.approx(expected, rel=1e-12)
                found += 1
    assert found > 200


@pytest.mark.parametrize("seed", range(3))
def test_smoothed_grades_are_nltks_method_2_for_candidates_of_four_words_and_more(seed):
    # of shorter candidates NLTK counts (0 + 1) / (1 + 1) for an order they do not have, sacrebleu 1 / 1
    candidates, voters = pairs(seed, 40, 14)
    candidates = [text for text in candidates if len(text.split()) >= 4]
    voters = [text for text in voters if text]
    grades = rv.get_similarity("smoothed_bleu_4").matrix(columns(candidates), columns(voters))
    smoothing = SmoothingFunction().method2
    for v, voter in enumerate(voters):
        for c, candidate in enumerate(candidates):
            expected = sentence_bleu([voter.split()], candidate.split(), smoothing_function=smoothing)
            assert grades[v, c] == pytest.approx(expected, rel=1e-12, abs=1e-300)


def bleu_by_definition(candidate: list[str], voter: list[str], order: int, smooth: bool) -> float:
    """Papineni et al. (2002) with one reference; the precisions multiplied as fractions."""
    product = Fraction(1)
    for n in range(1, order + 1):
        own, other = (Counter(zip(*(s[i:] for i in range(n)), strict=False)) for s in (candidate, voter))
        add = 1 if smooth and n > 1 else 0
        matches, total = (own & other).total() + add, own.total() + add
        product *= Fraction(matches, total) if total else 0
    if not product:
        return 0.0
    return math.exp(min(0.0, 1 - len(voter) / len(candidate))) * float(product) ** (1 / order)


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 9])
def test_grades_follow_the_definition(order, smooth):
    rng = np.random.default_rng(order)
    texts = sentences(rng, 25, longest=12)
    grades = rv.Bleu(order, smooth=smooth).matrix(columns(texts), columns(texts))
    expected = [[bleu_by_definition(c.split(), v.split(), order, smooth) for c in texts] for v in texts]
    np.testing.assert_allclose(grades, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("length", [4, 5, 20, 300])
def test_a_sequence_of_four_words_and_more_grades_itself_1_exactly(length):
    slate = columns([" ".join(map(str, range(length))), "x"])
    for name in ("bleu_4", "smoothed_bleu_4", "bleu_3"):
        assert rv.get_similarity(name).matrix(slate, slate)[0, 0] == 1.0


def test_voting_with_bleu_is_minimum_bayes_risk_decoding():
    rng = np.random.default_rng(0)
    texts = [text for text in pairs(0, 12, 10)[0] if text]
    p = rng.dirichlet(np.ones(len(texts)))
    metric = sacrebleu(4, True)
    gains = [
        sum(p_v * metric.sentence_score(c, [v]).score for p_v, v in zip(p, texts, strict=True)) for c in texts
    ]
    result = rv.elect(texts, similarity="smoothed_bleu_4", weights=p.tolist())
    assert result.index == int(np.argmax(gains))
    np.testing.assert_allclose(result.scores * 100, gains, rtol=1e-12)


@pytest.mark.parametrize("order", [0, -1, 51])
def test_orders_outside_1_and_50_are_refused(order):
    with pytest.raises(rv.UsageError, match=rf"bleu_{order}: the order must be from 1 to 50"):
        rv.Bleu(order)
