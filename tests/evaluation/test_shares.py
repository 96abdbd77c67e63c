"""Lengths, empty outputs, copies of the source, diversity: counted by hand."""

from __future__ import annotations

import pytest

from rangevote.errors import UnknownName
from rangevote.evaluation.evaluate import evaluate
from rangevote.evaluation.texts import WordUnits

SOURCES = ["the cat sat on the mat", "a dog", "hello"]


def value(metric, outputs, sources=None, **options):
    found = evaluate(outputs, sources=sources, metrics=[metric], resamples=0, **options)
    return found.first.scores[metric].value


def test_length_is_the_mean_number_of_words():
    assert value("length", ["a b c", "", "a  b\t"]) == pytest.approx(5 / 3)


def test_words_may_be_other_units():
    text = ["Es ist gut, oder?"]
    nltk_tokenize = pytest.importorskip("nltk.tokenize")
    assert value("length", text) == 4
    for unit, number in (("wordpunct", 6), ("13a", 6), ("chars", 14)):
        assert value("length", text, units=WordUnits(unit)) == number
    assert nltk_tokenize.wordpunct_tokenize(text[0]) == list(WordUnits("wordpunct").splitter()(text[0]))
    assert value("length", text, units=WordUnits(lambda text: text.split(","))) == 2


def test_an_unknown_unit_offers_the_nearest():
    with pytest.raises(UnknownName, match=r"unknown tokenisation 'word'\. Did you mean 'words'\?"):
        value("length", ["a"], units=WordUnits("word"))


def test_empty_outputs_are_those_of_white_space_alone():
    assert value("empty", ["a", "", " \t", "b"]) == 50


def test_an_exact_copy_is_the_source_word_by_word():
    assert value("exact_copies", ["the cat sat on the mat", "a  dog ", "Hello"], SOURCES) == pytest.approx(
        200 / 3
    )
    assert value("exact_copies", ["HELLO"], ["hello"], units=WordUnits(lowercase=True)) == 100


@pytest.mark.parametrize(
    ("output", "is_copy"),
    [
        ("the cat sat", True),  # 3 of the 5 distinct words
        ("cat mat", False),  # 2 of 5
        ("the the the the cat", False),  # 2 distinct ones, however often
        ("on the cat on the", True),
        ("", False),
    ],
)
def test_a_partial_copy_has_at_least_half_of_the_sources_distinct_words(output, is_copy):
    assert value("partial_copies", [output], SOURCES[:1]) == 100 * is_copy


def test_exactly_half_is_a_partial_copy_and_nothing_is_a_copy_of_nothing():
    assert value("partial_copies", ["ein dog"], ["a dog"]) == 100
    assert value("partial_copies", ["", "a"], ["", " "]) == 0
    assert value("exact_copies", [""], [""]) == 0


def test_distinct_outputs_and_ngrams_are_counted_over_all_outputs():
    outputs = ["a b a", "b a c", "a  b a", ""]
    assert value("distinct_outputs", outputs) == 3
    assert value("distinct_unigrams", outputs) == 3
    assert value("distinct_bigrams", outputs) == 3  # ab, ba, ac; none across outputs


def test_bigrams_are_those_of_nltk():
    util = pytest.importorskip("nltk.util")
    outputs = ["the dog saw the dog", "a dog saw", "x"]
    expected = {pair for text in outputs for pair in util.bigrams(text.split())}
    assert value("distinct_bigrams", outputs) == len(expected)
