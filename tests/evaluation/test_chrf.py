"""chrF of a corpus is sacrebleu's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rangevote.evaluation.metrics import CharacterMatches, f_score
from rangevote.evaluation.texts import Corpus, WordUnits

sacrebleu = pytest.importorskip("sacrebleu")

TEXTS = st.text("ab cdß.", max_size=20)
ITEMS = st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=2, max_size=2)), min_size=1, max_size=5)


def ours(outputs, references, units=None):
    rows = CharacterMatches(Corpus.of(len(outputs), references), units or WordUnits()).rows(outputs)
    return float(f_score(rows.sum(axis=0)))


@settings(max_examples=50)
@given(ITEMS)
def test_chrf_of_the_sums_is_sacrebleus_with_one_reference_and_with_two(items):
    outputs, references = [output for output, _ in items], [listed for _, listed in items]
    columns = [[item[i] for item in references] for i in range(2)]
    assert ours(outputs, references) == pytest.approx(sacrebleu.corpus_chrf(outputs, columns).score, abs=1e-9)
    first = [[item[0]] for item in references]
    assert ours(outputs, first) == pytest.approx(sacrebleu.corpus_chrf(outputs, columns[:1]).score, abs=1e-9)


def test_the_score_of_equal_texts_is_100_and_that_of_nothing_0():
    assert ours(["ein Hund läuft"], ["ein Hund läuft"]) == pytest.approx(100)
    assert ours([""], ["ein Hund läuft"]) == 0
    assert ours(["ab"], ["cd"]) == 0


def test_case_is_folded_when_asked():
    assert ours(["EIN HUND"], ["ein Hund"], WordUnits(lowercase=True)) == pytest.approx(100)
    assert ours(["EIN HUND"], ["ein Hund"]) < 20
