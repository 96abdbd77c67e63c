"""BLEU of a corpus: NLTK's numbers over words, sacrebleu's own for translation."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rangevote.errors import UnknownName
from rangevote.evaluation.metrics import SacreMatches, WordMatches, sacre_bleu, word_bleu
from rangevote.evaluation.texts import Corpus, WordUnits

nltk = pytest.importorskip("nltk.translate.bleu_score")
sacrebleu = pytest.importorskip("sacrebleu")

SENTENCES = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=9).map(" ".join)
ITEMS = st.lists(st.tuples(SENTENCES, st.lists(SENTENCES, min_size=1, max_size=4)), min_size=1, max_size=6)


def by_nltk(outputs, references, order):
    words = [[text.split() for text in item] for item in references]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where an order has no match
        return nltk.corpus_bleu(words, [text.split() for text in outputs], (1 / order,) * order)


def rows_of(statistics, outputs, references, units=None):
    return statistics(Corpus.of(len(outputs), references), units or WordUnits()).rows(outputs)


@settings(max_examples=50)
@given(ITEMS)
def test_word_bleu_is_that_of_nltk_for_every_order(items):
    outputs, references = [output for output, _ in items], [listed for _, listed in items]
    rows = rows_of(WordMatches, outputs, references)
    for order in range(1, 5):
        ours = float(word_bleu(order)(rows.sum(axis=0))) / 100
        assert ours == pytest.approx(by_nltk(outputs, references, order), abs=1e-12, rel=1e-9)


def test_the_example_of_nltks_own_documentation_has_its_score():
    outputs = [
        "It is a guide to action which ensures that the military always obeys the commands of the party",
        "he read the book because he was interested in world history",
    ]
    references = [
        [
            "It is a guide to action that ensures that the military will forever heed Party commands",
            "It is the guiding principle which guarantees the military forces always being under the command "
            "of the Party",
            "It is the practical guide for the army always to heed the directions of the party",
        ],
        ["he was interested in world history because he read the book"],
    ]
    score = word_bleu(4)(rows_of(WordMatches, outputs, references).sum(axis=0))
    assert f"{score / 100:.5f}".startswith("0.5920")


def test_the_brevity_penalty_takes_the_reference_closest_in_length():
    # two words said: of references with one and four words the first is nearer, so nothing is taken off
    rows = rows_of(WordMatches, ["a b"], [["a b c d", "a"]])
    assert rows[0, :2].tolist() == [2, 1]
    assert word_bleu(1)(rows[0]) == 100
    # three are as near to two as to four: the shorter one counts
    assert rows_of(WordMatches, ["a b c"], [["a b c d", "a b"]])[0, 1] == 2


def test_a_word_counts_as_often_as_the_reference_that_has_most_of_it():
    # the example of Papineni et al. (2002): seven times "the", of which two match
    rows = rows_of(WordMatches, ["the the the the the the the"], [["the cat is on the mat"]])
    assert rows[0, 2] == 2
    assert rows[0, 6] == 7


def test_nothing_said_or_nothing_matched_scores_zero():
    for outputs in (["", ""], ["x y", "z"]):
        rows = rows_of(WordMatches, outputs, [["a b"], ["c"]])
        assert word_bleu(4)(rows.sum(axis=0)) == 0
        rows = rows_of(SacreMatches, outputs, [["a b"], ["c"]])
        assert sacre_bleu(rows.sum(axis=0)) == 0


@settings(max_examples=50)
@given(ITEMS)
def test_sacrebleu_of_the_sums_is_sacrebleus_own(items):
    outputs, references = [output for output, _ in items], [listed for _, listed in items]
    score = float(sacre_bleu(rows_of(SacreMatches, outputs, references).sum(axis=0)))
    most = max(map(len, references))
    columns = [[item[i] if i < len(item) else None for item in references] for i in range(most)]
    assert score == pytest.approx(sacrebleu.corpus_bleu(outputs, columns, force=True).score, abs=1e-9)


def test_sacrebleu_tokenises_and_folds_case_as_it_is_told():
    outputs, references = ["Hello, World!", "Das ist gut."], [["hello, world!"], ["das ist sehr gut."]]
    for tokenize, lowercase in (("13a", False), ("13a", True), ("none", False), ("char", True)):
        units = WordUnits(bleu_tokenize=tokenize, lowercase=lowercase)
        score = sacre_bleu(rows_of(SacreMatches, outputs, references, units).sum(axis=0))
        metric = sacrebleu.BLEU(tokenize=tokenize, lowercase=lowercase)
        columns = [[item[0] for item in references]]
        assert float(score) == pytest.approx(metric.corpus_score(outputs, columns).score, abs=1e-9)


def test_the_signature_is_sacrebleus_own():
    outputs, references = ["a b", "c"], [["a b", "b"], ["c", "d"]]
    metric = sacrebleu.BLEU()
    metric.corpus_score(outputs, [["a b", "c"], ["b", "d"]])
    corpus = Corpus.of(2, references)
    assert SacreMatches(corpus, WordUnits()).signature == str(metric.get_signature())
    assert SacreMatches(Corpus.of(2, [["a"], ["b", "c"]]), WordUnits()).signature.startswith("nrefs:var|")


def test_word_bleu_names_the_words_it_counts():
    signature = WordMatches(Corpus.of(1, ["a"]), WordUnits("13a", lowercase=True)).signature
    assert signature == "nltk|nrefs:1|on:13a|case:lc"


def test_an_unknown_tokenisation_of_sacrebleu_offers_the_nearest():
    with pytest.raises(UnknownName, match=r"unknown tokenisation of sacreBLEU '13b'\. Did you mean '13a'\?"):
        SacreMatches(Corpus.of(1, ["a"]), WordUnits(bleu_tokenize="13b"))


def test_many_sums_are_scored_at_a_time():
    rows = rows_of(WordMatches, ["a b c d e", "a c"], [["a b c d"], ["a b"]])
    for score in (word_bleu(1), word_bleu(4), sacre_bleu):
        together = score(np.stack([rows[0], rows[1], rows.sum(axis=0)]))
        assert together.tolist() == [score(rows[0]), score(rows[1]), score(rows.sum(axis=0))]
