"""chrf against sacrebleu's sentence chrF."""

from __future__ import annotations

import numpy as np
import pytest
from sacrebleu.metrics import CHRF

import rangevote as rv
from tests.similarity.samples import columns, sentence

WORDS = ["a", "ab", "abc", "bca", "naïve", "日本語", "🙂", "x", "e\u0301"]


def texts(seed: int, size: int) -> list[str]:
    rng = np.random.default_rng(seed)
    spaces = ["  ", "\t", "\u3000", "\u0085", "\u2028", " \n "]
    drawn = [sentence(rng, 5, WORDS).replace(" ", str(rng.choice(spaces)), 1) for _ in range(size)]
    return ["", " ", "a", "b", "ab", "abcde", "abcdef", "abcdefg", *drawn]


@pytest.mark.parametrize(("order", "beta"), [(6, 2.0), (1, 1.0), (3, 0.0), (4, 3.0)])
@pytest.mark.parametrize("seed", range(2))
def test_grades_are_sacrebleus_sentence_scores(order, beta, seed):
    candidates, voters = texts(seed, 40), texts(seed + 100, 40)
    metric = CHRF(char_order=order, word_order=0, beta=int(beta))
    expected = [[metric.sentence_score(c, [v]).score / 100 for c in candidates] for v in voters]
    grades = rv.Chrf(order, beta).matrix(columns(candidates), columns(voters))
    np.testing.assert_allclose(grades, expected, rtol=1e-12, atol=1e-15)
    assert (grades == 0).any()
    assert ((grades > 0) & (grades < 1)).any()


def test_the_name_chrf_means_orders_1_to_6_and_beta_2():
    slate = columns(texts(9, 10))
    named, made = (m.matrix(slate, slate) for m in (rv.get_similarity("chrf"), rv.Chrf(6, 2.0)))
    assert named.tobytes() == made.tobytes()
    assert rv.Chrf(6, 2.0).name == "chrf"
    assert rv.Chrf(6, 1.0).name != "chrf"


def test_white_space_does_not_count():
    slate = columns(["ab cd", "a b\u2003cd", "abcd"])
    assert (rv.Chrf().matrix(slate, slate) == 1.0).all()


@pytest.mark.parametrize(("order", "beta"), [(0, 2.0), (51, 2.0), (6, -1.0), (6, 101.0), (6, float("nan"))])
def test_impossible_orders_and_betas_are_refused(order, beta):
    with pytest.raises(rv.UsageError, match=r"must be from 1 to 50, beta .* from 0 to 100"):
        rv.Chrf(order, beta)


def test_chrf_needs_texts():
    with pytest.raises(rv.DataError, match=r"candidates: chrf compares characters and needs texts"):
        rv.elect([[1, 2], [1, 3]], similarity="chrf")


def test_voters_without_text_cannot_vote_with_chrf():
    with pytest.raises(rv.DataError, match=r"voters: have token ids but no text"):
        rv.elect(["a b"], voters=[[1, 2]], similarity="chrf")
