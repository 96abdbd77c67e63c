"""Why a candidate has its score: the parts sum to it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rangevote as rv
from tests.similarity.samples import EVERY, full, sentences


def random_result(label: str, seed: int, **options):
    rng = np.random.default_rng(seed)
    similarity, tokenize = EVERY[label]
    candidates, voters = full(rng, sentences(rng, 5)), full(rng, sentences(rng, 8))
    return rv.elect(candidates, voters=voters, similarity=similarity, tokenize=tokenize, **options)


@pytest.mark.parametrize("label", EVERY)
def test_what_the_voters_gave_and_what_ngrams_earned_sum_to_the_score(label):
    result = random_result(label, 0, weights="probability")
    for i, score in enumerate(result.scores):
        explanation = result.explain(i)
        assert explanation.score == score
        assert explanation.index == i
        for parts in (explanation.voters, explanation.ngrams or explanation.voters):
            assert math.fsum(part.score for part in parts) == pytest.approx(score, abs=1e-12)
        assert sorted(vote.voter for vote in explanation.voters) == list(range(8))
        for vote in explanation.voters:
            assert vote.score == vote.weight * vote.grade
            assert vote.weight == result.weights[vote.voter]


@pytest.mark.parametrize("label", ["overlap_2", "bleu_4"])
def test_own_likelihood_is_a_part_of_its_own(label):
    result = random_result(label, 0, weights="count", likelihood=0.8)
    for i, score in enumerate(result.scores):
        explanation = result.explain(i)
        assert explanation.evidence == result.evidence[i] < 0
        for parts in (explanation.voters, explanation.ngrams):
            if parts is not None:
                votes = math.fsum(part.score for part in parts)
                assert votes + explanation.evidence == pytest.approx(score, abs=1e-12)
        assert str(explanation).endswith(f"\n  {explanation.evidence:.6f}  (evidence beside the votes)")
    assert random_result(label, 0, weights="count").explain().evidence is None


def test_each_ngram_earns_what_its_voters_gave_it():
    # v1 has 2 bigrams and weight 1/2, v2 has 1 and weight 1/2
    result = rv.elect(["a b c", "x"], voters=["a b d", "b c"], similarity="overlap_2")
    earned = {part.ngram: part.score for part in result.explain(0).ngrams}
    assert earned == pytest.approx({"a b": 0.25, "b c": 0.5})


def test_repeated_ngrams_of_a_bag_are_one_line():
    result = rv.elect(["a a b"], voters=["a a a b"], similarity="precision_1")
    parts = result.explain().ngrams
    assert [(part.ngram, part.order) for part in parts] == [("a", 1), ("b", 1)]
    assert [part.score for part in parts] == pytest.approx([0.5, 0.25])


TOKENISATIONS = {
    "space": ("space", "a b", {"a b"}),
    "words": ("words", "Hi!", {"hi !"}),
    "chars": ("chars", "ab", {"ab"}),
    "13a": ("13a", "hi!", {"hi !"}),
    "zh": ("zh", "你好", {"你 好"}),
    "a function": (lambda text: text.split("-"), "left-right", {"left right"}),
}


@pytest.mark.parametrize(("tokenize", "text", "ngrams"), TOKENISATIONS.values(), ids=TOKENISATIONS)
def test_ngrams_are_shown_as_the_tokens_they_are_made_of(tokenize, text, ngrams):
    parts = rv.elect([text], similarity="overlap_2", tokenize=tokenize).explain().ngrams
    assert {part.ngram for part in parts} == ngrams


def test_an_explanation_reads_as_lines():
    shown = str(rv.elect(["a b", "a b", "x"], similarity="overlap_1").explain())
    assert shown.splitlines() == ["score 0.666667 of candidate 0", "  0.333333  a", "  0.333333  b"]
    shown = str(rv.elect(["a b", "x"], similarity="edit").explain())
    assert "does not decompose over n-grams" in shown
    assert "  0.500000  voter 0: 0.5000 x 1.0000" in shown


def test_indices_may_count_from_the_end_and_must_exist():
    result = rv.elect(["a", "b", "c"])
    assert result.explain(-1).index == 2
    for index in (3, -4):
        with pytest.raises(rv.UsageError, match=rf"there is no candidate {index}; indices go from 0 to 2"):
            result.explain(index)


@pytest.mark.parametrize("rule", ["most_likely", "length_normalised"])
def test_where_nobody_voted_there_is_nothing_to_explain(rule):
    with pytest.raises(rv.UsageError, match=r"nobody voted in this election, so there is nothing to explain"):
        rv.elect(["a"], [-1.0], rule=rule).explain()
