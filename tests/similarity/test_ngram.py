"""What n-grams are made of; overlap, precision, BLEU and chrF against equations and sacrebleu."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

import rangevote as rv
from rangevote.hypothesis import Hypothesis
from rangevote.kernel import plain
from rangevote.similarity import ngram
from tests.election import equations
from tests.similarity.samples import columns, sentence

FAMILY = {
    "overlap_1": ((1,), 0.0, False),
    "overlap_2": ((2,), 0.0, False),
    "overlap_5": ((5,), 0.0, False),
    "overlap_1-4": ((1, 2, 3, 4), 0.0, False),
    "overlap_1-4@0.25": ((1, 2, 3, 4), 0.25, False),
    "overlap_2@0.5": ((2,), 0.5, False),
    "overlap_3@1": ((3,), 1.0, False),
    "precision_1": ((1,), 0.0, True),
    "precision_2": ((2,), 0.0, True),
    "precision_2-3": ((2, 3), 0.0, True),
    "precision_1-4@0.25": ((1, 2, 3, 4), 0.25, True),
    "precision_1@1": ((1,), 1.0, True),
}
the_family = pytest.mark.parametrize(("name", "setting"), FAMILY.items(), ids=FAMILY)
texts = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "aa", "b c"[0]]), max_size=8).map(" ".join),
    min_size=1,
    max_size=6,
)


def naive(candidates, voters, setting):
    """The matrix (voters, candidates) from the equations."""
    orders, a, bag = setting
    return np.array(
        [[equations.family(v.split(), c.split(), orders, a, bag) for c in candidates] for v in voters]
    )


@the_family
@settings(max_examples=15)
@given(candidates=texts, voters=texts)
def test_any_two_lists_are_graded_as_the_equations_say(name, setting, candidates, voters):
    grades = rv.get_similarity(name, "space").matrix(columns(candidates), columns(voters))
    np.testing.assert_allclose(grades, naive(candidates, voters, setting), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "voter", "candidate", "grade"),
    [
        ("overlap_1", "a a b", "a c", Fraction(1, 2)),
        ("precision_1", "a a b", "a c", Fraction(1, 3)),
        ("precision_1", "a a b", "a a a", Fraction(2, 3)),
        ("overlap_2", "a b c d", "b c d e", Fraction(2, 3)),
        ("overlap_2", "b c d e", "b c d e a b", Fraction(1)),
        ("overlap_2", "b c d e a b", "b c d e", Fraction(3, 5)),
        ("overlap_2", "a b", "b a", Fraction(0)),
        ("precision_2", "a b a b", "a b", Fraction(1, 3)),
        ("overlap_2", "a b a b", "a b", Fraction(1, 2)),
        ("overlap_2", "yes", "yes", Fraction(1)),  # shorter than n: its own only n-gram
        ("overlap_2", "yes", "yes yes", Fraction(0)),
        ("overlap_2", "yes yes", "yes", Fraction(0)),
        ("overlap_3", "oh yes", "oh yes", Fraction(1)),
        ("overlap_3", "yes", "oh yes", Fraction(0)),
        ("overlap_1-2", "yes", "yes yes", Fraction(1, 2)),
        ("overlap_1-2", "a b c", "a b", (Fraction(2, 3) + Fraction(1, 2)) / 2),
        ("overlap_1@1", "a b c", "a b", Fraction(1)),
        ("overlap_1@1", "a b", "a b c", Fraction(2, 3)),
        ("overlap_1@0.5", "a b c d", "a", Fraction(1, 2)),
        ("precision_1@1", "a", "a a a a", Fraction(1, 4)),
    ],
)
def test_worked_examples(name, voter, candidate, grade):
    (found,) = rv.get_similarity(name).matrix(columns([candidate]), columns([voter])).ravel()
    assert found == pytest.approx(float(grade), abs=1e-15)


@pytest.mark.parametrize(
    ("orders", "a"),
    [
        (range(0, 3), 0.0),
        (range(2, 2), 0.0),
        (range(1, 3), -0.1),
        (range(1, 3), 1.01),
        (range(1, 3), float("nan")),
    ],
)
def test_orders_below_1_and_exponents_outside_0_and_1_are_refused(orders, a):
    with pytest.raises(rv.UsageError, match=r"orders start at 1, the exponent is from 0 to 1"):
        rv.Ngrams(orders, bag=False, a=a)


def test_weights_that_sum_to_more_than_one_do_not_overflow():
    # found with weights 10 and 20: the tally in units of 2^-60 left 64 bits and came out as 0
    candidates, voters, weights = columns(["a", "b"]), columns(["a", "a"]), np.array([10.0, 20.0])
    for name in ("overlap_1", "bleu_1", "chrf", "exact", "edit"):
        tally = rv.get_similarity(name).tally(candidates, voters, weights)
        np.testing.assert_allclose(tally, [30.0, 0.0], rtol=1e-12)


LETTERS = ["a", "b", "c", "d", "e"]


def pairs(seed: int, size: int, longest: int):
    """Lists of candidates and voters of which many share 4-grams, with empty and short ones."""
    rng = np.random.default_rng(seed)
    base = " ".join(rng.choice(LETTERS, size=longest).tolist())
    near = [swapped(rng, base) for _ in range(size)]
    made = ["", "a", "a b", "a b c", "a b c d", *near, *[sentence(rng, 4, LETTERS) for _ in range(size // 3)]]
    order = rng.permutation(len(made))
    return [made[i] for i in order[: len(made) // 2]], [made[i] for i in order[len(made) // 2 :]]


def swapped(rng: np.random.Generator, text: str) -> str:
    words = text.split()[int(rng.integers(0, 3)) :]
    for _ in range(int(rng.integers(0, 3))):
        if words:
            words[int(rng.integers(len(words)))] = str(rng.choice(LETTERS))
    return " ".join(words)


def sacrebleu_bleu(order: int, smooth: bool) -> BLEU:
    method, value = ("add-k", 1) if smooth else ("none", None)
    return BLEU(
        tokenize="none",
        smooth_method=method,
        smooth_value=value,
        max_ngram_order=order,
        effective_order=False,
    )


@pytest.mark.parametrize(("order", "size"), [(4, 40), (1, 20), (2, 20), (6, 20), (9, 20)])
@pytest.mark.parametrize("smooth", [False, True], ids=["bleu", "smoothed_bleu"])
def test_bleu_is_sacrebleus_sentence_bleu(order, size, smooth):
    candidates, voters = pairs(0, size, 14)
    name = f"{'smoothed_' if smooth else ''}bleu_{order}"
    metric = sacrebleu_bleu(order, smooth)
    expected = [[metric.sentence_score(c, [v]).score / 100 for c in candidates] for v in voters]
    grades = rv.get_similarity(name).matrix(columns(candidates), columns(voters))
    np.testing.assert_allclose(grades, expected, rtol=1e-12, atol=1e-15)
    assert (grades > 0).mean() > 0.1  # the pairs are worth comparing
    assert (grades == 0).any()


SCRIPTS = ["a", "ab", "abc", "bca", "naïve", "日本語", "🙂", "x", "e\u0301"]


def spaced(seed: int, size: int) -> list[str]:
    rng = np.random.default_rng(seed)
    spaces = ["  ", "\t", "\u3000", "\u0085", "\u2028", " \n "]
    drawn = [sentence(rng, 5, SCRIPTS).replace(" ", str(rng.choice(spaces)), 1) for _ in range(size)]
    return ["", " ", "a", "b", "ab", "abcde", "abcdef", "abcdefg", *drawn]


@pytest.mark.parametrize(("order", "beta"), [(6, 2.0), (1, 1.0), (3, 0.0), (4, 3.0)])
def test_chrf_is_sacrebleus_sentence_chrf(order, beta):
    candidates, voters = spaced(0, 40), spaced(100, 40)
    metric = CHRF(char_order=order, word_order=0, beta=int(beta))
    expected = [[metric.sentence_score(c, [v]).score / 100 for c in candidates] for v in voters]
    grades = rv.Chrf(order, beta).matrix(columns(candidates), columns(voters))
    np.testing.assert_allclose(grades, expected, rtol=1e-12, atol=1e-15)
    assert (grades == 0).any()
    assert ((grades > 0) & (grades < 1)).any()


def test_chrf_plus_plus_is_sacrebleus_under_both_kernels(monkeypatch):
    punctuated = ["(well, yes).", "Well , yes .", "no", ".", "a", "a b", "well yes", "(hi) 'there'", "日本 ."]
    candidates, voters = [*spaced(3, 30), *punctuated], [*spaced(4, 30), *punctuated[::-1]]
    metric = CHRF(word_order=2)
    expected = [[metric.sentence_score(c, [v]).score / 100 for c in candidates] for v in voters]
    measure = rv.get_similarity("chrf++")
    grades = measure.matrix(columns(candidates), columns(voters))
    np.testing.assert_allclose(grades, expected, rtol=1e-12, atol=1e-15)
    assert ((grades > 0) & (grades < 1)).any()
    monkeypatch.setattr(ngram, "Index", plain.Index)
    assert measure.matrix(columns(candidates), columns(voters)).tobytes() == grades.tobytes()


@pytest.mark.parametrize(("order", "beta"), [(0, 2.0), (51, 2.0), (6, -1.0), (6, 101.0), (6, float("nan"))])
def test_impossible_orders_and_betas_are_refused(order, beta):
    with pytest.raises(rv.UsageError, match=r"must be from 1 to 50, beta .* from 0 to 100"):
        rv.Chrf(order, beta)


def test_chrf_needs_texts():
    with pytest.raises(rv.DataError, match=r"candidates: chrf compares characters and needs texts"):
        rv.elect([[1, 2], [1, 3]], similarity="chrf")


TEXTS = [
    "It's 3.5 km.",
    "3.5 km it's!",
    "“我来自”中国 — 3.5",
    "Hello, world! It's 3.5 km (or 1,000 m).",
    "Das ist ein &quot;Test&quot; &amp; mehr -- wirklich?",
    "“Quotes” … and – dashes; $5 + £6 = €11",
    "我来自中国，喜欢C++和Python3。",
    "a-b c/d e_f g@h 50% #tag",
    "",
    "   ",
]
SACREBLEU = {"13a": Tokenizer13a, "intl": TokenizerV14International, "zh": TokenizerZh}


@pytest.mark.parametrize("name", SACREBLEU)
@pytest.mark.parametrize("similarity", ["overlap_2", "bleu_2", "edit", "rouge_l"])
def test_sacrebleus_tokenisations_are_sacrebleus(name, similarity):
    tokenise = SACREBLEU[name]()
    cut = columns([tokenise(text) for text in TEXTS])
    expected = rv.get_similarity(similarity, "space").matrix(cut, cut)
    standing = columns(TEXTS)
    grades = rv.get_similarity(similarity, name).matrix(standing, standing)
    assert grades.tobytes() == expected.tobytes()
    assert grades.tobytes() != rv.get_similarity(similarity, "space").matrix(standing, standing).tobytes()


def test_hypotheses_without_text_are_compared_by_their_token_ids():
    result = rv.elect([[1, 2, 3], [1, 2, 4], [9]])
    assert result.winner == (1, 2, 3)
    assert "|on:tokens|" in result.signature


def halves(text: str) -> list[str]:
    return [text[: len(text) // 2], text[len(text) // 2 :]]


def test_a_users_function_makes_the_tokens():
    standing = ["abcd", "abxy", "zzcd", "a b"]
    expected = [[0.5, 0.25, 0.25, 0], [0.25, 0.5, 0, 0], [0.25, 0, 0.5, 0], [0, 0, 0, 0.5]]
    grades = rv.get_similarity("overlap_1", halves).matrix(columns(standing), columns(standing))
    np.testing.assert_allclose(grades / 2, expected)
    assert "|on:halves|" in rv.elect(standing, tokenize=halves).signature


@pytest.mark.parametrize("similarity", ["overlap_2", "edit", "exact"])
def test_an_unknown_tokenisation_is_refused_with_the_known_ones(similarity):
    with pytest.raises(rv.UnknownName, match=r"unknown tokenisation 'wrds'.*Choose from: 13a, chars, intl"):
        rv.elect(["a"], tokenize="wrds", similarity=similarity)


@pytest.mark.parametrize("similarity", ["overlap_2", "edit"])
def test_comparing_token_ids_needs_token_ids(similarity):
    hypotheses = [Hypothesis(text="a", tokens=(1,)), Hypothesis(text="b")]
    with pytest.raises(
        rv.DataError, match=r"candidates\[1\]\.tokens: has no token ids, which tokenize='tokens'"
    ):
        rv.elect(hypotheses, tokenize="tokens", similarity=similarity)
    with pytest.raises(rv.DataError, match=r"voters\[0\]\.tokens: has no token ids"):
        rv.elect([[1, 2]], voters=["a b"], similarity=similarity)


def test_voters_need_text_where_the_candidates_are_compared_by_text():
    with pytest.raises(rv.DataError, match=r"voters: have token ids but no text.*use tokenize='tokens'"):
        rv.elect(["a b"], voters=[[1, 2]])


@pytest.mark.parametrize(
    "similarity",
    ["overlap_2", "precision_1-4", "bleu_4", "chrf", "rouge_l", "edit", "exact", "exact:plain"],
)
def test_a_lone_surrogate_is_named_and_refused(similarity):
    message = r"candidates\[1\]\.text: holds a lone surrogate \(character 2\), which is not valid text"
    with pytest.raises(rv.DataError, match=message):
        rv.elect(["fine", "a \ud800"], similarity=similarity)
    with pytest.raises(rv.DataError, match=r"voters\[0\]\.text: holds a lone surrogate \(character 0\)"):
        rv.elect(["fine"], voters=["\udfff"], similarity=similarity)
