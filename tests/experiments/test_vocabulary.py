"""Words and byte-pair encoding: what is kept, what comes back, and files that are not theirs."""

from __future__ import annotations

import pytest
from experiments.vocabulary import (
    END,
    MARKS,
    PAD,
    START,
    UNKNOWN,
    Bpe,
    Words,
    plain_words,
    read_vocabulary,
    write_vocabulary,
)
from hypothesis import given
from hypothesis import strategies as st

TEXTS = ["ein Hund läuft", "zwei Hunde laufen über die Straße", "a dog runs", "two dogs run over the street"]


@pytest.fixture(scope="module")
def bpe():
    return Bpe.train(TEXTS * 3, 310)


def test_the_most_frequent_words_are_kept_and_of_equals_the_first():
    words = Words.train(["b a c", "b a", "b d"], size=3)
    assert words.words[len(MARKS) :] == ["b", "a", "c"]
    assert len(words) == 3 + len(MARKS)


def test_a_word_beyond_the_vocabulary_is_unknown():
    words = Words.train(["a a b"], size=1)
    assert words.encode("a b  zebra") == [4, UNKNOWN, UNKNOWN]
    assert words.decode([4, UNKNOWN]) == "a <unk>"


def test_start_end_and_padding_leave_no_trace_in_a_text(bpe):
    words = Words.train(TEXTS)
    for vocabulary in (words, bpe):
        tokens = [START, *vocabulary.encode("a dog"), END, PAD]
        assert vocabulary.decode(tokens) == "a dog"


def test_a_text_that_spells_a_mark_is_a_text(bpe):
    assert Words.train(["a </s> b"]).encode("</s>")[0] > UNKNOWN
    tokens = bpe.encode("</s> <pad>")
    assert min(tokens) > UNKNOWN
    assert bpe.decode(tokens) == "</s> <pad>"


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_every_text_comes_back_from_its_parts_as_it_was(bpe, text):
    assert bpe.decode(bpe.encode(text)) == text


def test_half_characters_that_a_model_may_write_become_the_replacement_mark(bpe):
    (first, *_) = bpe.encode("日")[1:]  # after the space: the first byte of three
    assert "�" in bpe.decode([first])


def test_both_kinds_come_back_from_their_files(bpe, tmp_path):
    for vocabulary in (Words.train(TEXTS), bpe):
        write_vocabulary(vocabulary, tmp_path / "vocabulary.json")
        found = read_vocabulary(tmp_path / "vocabulary.json")
        assert type(found) is type(vocabulary)
        assert len(found) == len(vocabulary)
        assert [found.encode(text) for text in TEXTS] == [vocabulary.encode(text) for text in TEXTS]
    assert [path.name for path in tmp_path.iterdir()] == ["vocabulary.json"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A child in a pink dress .", "a child in a pink dress"),
        ("It 's a T-shirt - really ; 'yes'!", "it s a t-shirt really yes"),
        ("Two-piece, 3.5 m", "two-piece 3 5 m"),
        ("Größe & co", "größe co"),
    ],
)
def test_plain_words_are_lower_case_without_punctuation(text, words):
    assert plain_words(text) == words
