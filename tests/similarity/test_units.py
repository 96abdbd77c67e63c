"""What n-grams are made of."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

import rangevote as rv
from rangevote.hypothesis import Hypothesis
from tests.kernel.both import compiled, needs_compiled
from tests.similarity.samples import columns

SPACES = [chr(c) for c in range(sys.maxunicode + 1) if chr(c).isspace()]


def same_bag(kernel, unit: str, text: str, other: str) -> bool:
    """Whether two texts have the same tokens, order aside: each fully covers the other."""
    index = kernel.Index([text, other], unit, [1], True, True)
    return bool((index.grades(0.0, True) == 1.0).all())


def test_python_knows_29_white_space_characters():
    # str.split() is the rule; if a later Unicode adds one, kernels/text.hpp must learn it
    assert len(SPACES) == 29
    assert {"\x1c", "\x1f", "\x85", "\xa0", "\u1680", "\u2028", "\u202f", "\u205f", "\u3000"} <= set(SPACES)


@needs_compiled
def test_the_compiled_kernel_splits_at_every_character_of_unicode_as_python_does():
    scalars = [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c <= 0xDFFF]
    for part in np.array_split(np.array(scalars, dtype=object), 8):
        text = "".join(f"a{c}b." for c in part)
        assert same_bag(compiled, "space", text, " ".join(text.split()))
        assert same_bag(compiled, "chars", text, "".join(text.split()))
        # and the words are different words: as many as Python finds
        words = text.split()
        index = compiled.Index([text, " ".join(words[:-1])], "space", [1], True, True)
        assert index.grades(0.0, True)[0, 1] == (len(words) - 1) / len(words)


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
