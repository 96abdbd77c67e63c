"""rouge_l and edit against plain dynamic programming; ter against sacrebleu; a user's own functions."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from rangevote.similarity import base
from tests.similarity.samples import columns, first_letters, length_ratio, letters, sentences


def common_subsequence(v, c) -> int:
    """Length of the longest common subsequence, by its recursion."""

    @cache
    def best(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return 0
        if v[i - 1] == c[j - 1]:
            return best(i - 1, j - 1) + 1
        return max(best(i - 1, j), best(i, j - 1))

    return best(len(v), len(c))


def edits(v, c) -> int:
    """Fewest insertions, deletions and substitutions (Levenshtein), row by row."""
    row = list(range(len(c) + 1))
    for i, x in enumerate(v, 1):
        above, row[0] = row[0], i
        for j, y in enumerate(c, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (x != y))
    return row[-1]


def rouge_l_by_definition(v, c) -> float:
    """F1 of LCS / |v| (recall) and LCS / |c| (precision), Lin (2004)."""
    shared = common_subsequence(tuple(v), tuple(c))
    if not shared:
        return 0.0
    recall, precision = shared / len(v), shared / len(c)
    return 2 * precision * recall / (precision + recall)


def edit_by_definition(v, c) -> float:
    return 1 - edits(v, c) / max(len(v), len(c)) if v and c else 0.0


DEFINITIONS = {"rouge_l": rouge_l_by_definition, "edit": edit_by_definition}
UNITS = {"space": str.split, "chars": lambda text: list("".join(text.split())), letters: letters}


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("tokenize", UNITS, ids=["space", "chars", "function"])
@pytest.mark.parametrize("seed", range(3))
def test_grades_follow_the_definition(name, tokenize, seed):
    rng = np.random.default_rng(seed)
    candidates, voters = sentences(rng, 10, 7), sentences(rng, 12, 7)
    cut = UNITS[tokenize]
    expected = [[DEFINITIONS[name](cut(v), cut(c)) for c in candidates] for v in voters]
    grades = rv.get_similarity(name, tokenize).matrix(columns(candidates), columns(voters))
    np.testing.assert_allclose(grades, expected, rtol=0, atol=1e-14)


# ids that a hash could confuse: hash(-1) == hash(-2), and hash(x) is x modulo 2^61 - 1
ids = st.lists(st.sampled_from([-2, -1, 0, 1, 2**61 - 1, 2**61 - 2, 2**61, -(2**61)]), max_size=5)


@pytest.mark.parametrize("name", DEFINITIONS)
@given(v=ids, c=ids)
def test_token_ids_are_compared_by_value(name, v, c):
    grades = rv.get_similarity(name).matrix(columns([c]), columns([v]))
    assert grades[0, 0] == pytest.approx(DEFINITIONS[name](v, c), abs=1e-14)


@pytest.mark.parametrize("chunk", [1, 7, 40])
@pytest.mark.parametrize("name", ["rouge_l", "edit", first_letters])
def test_grading_in_chunks_changes_no_bit(monkeypatch, name, chunk):
    rng = np.random.default_rng(0)
    texts = sentences(rng, 20)
    whole = rv.elect(texts, similarity=name).scores
    monkeypatch.setattr(base, "CHUNK", chunk)
    assert rv.elect(texts, similarity=name).scores.tobytes() == whole.tobytes()


def test_ter_is_one_minus_sacrebleus_rate_and_never_below_minus_one():
    rng = np.random.default_rng(7)
    candidates = [*sentences(rng, 12), "a b c d e f g h i j", "b a"]
    voters = [*sentences(rng, 12), "a b", "x"]
    rate = pytest.importorskip("sacrebleu").metrics.TER().sentence_score
    grades = rv.get_similarity("ter").matrix(columns(candidates), columns(voters, "voters"))
    for v, voter in enumerate(voters):
        for c, candidate in enumerate(candidates):
            own = max(-1.0, 1 - rate(candidate, [voter]).score / 100)
            assert grades[v, c] == pytest.approx(own if voter.strip() and candidate.strip() else 0)
    assert grades.min() == -1


def test_a_function_is_asked_with_the_voter_first():
    asked = []

    def grade(voter: str, candidate: str) -> float:
        asked.append((voter, candidate))
        return 0.5

    rv.elect(["c", "d"], voters=["v"], similarity=grade)
    assert asked == [("v", "c"), ("v", "d")]


def test_a_batched_function_gets_lists_and_gives_rows_of_voters():
    candidates, voters = ["a", "bb", "cccc"], ["dd", "e"]
    measure = rv.Custom(length_ratio, batched=True)
    np.testing.assert_allclose(
        measure.matrix(columns(candidates), columns(voters)), [[2 / 3, 1, 3 / 5], [1, 2 / 3, 2 / 5]]
    )


@pytest.mark.parametrize("grade", [1.001, -2, float("nan"), float("inf")])
def test_grades_outside_minus_1_and_1_are_refused(grade):
    table = {("a", "b"): grade}
    with pytest.raises(
        rv.UsageError, match=r"'mine' gave .* to voter 0 and candidate 1; grades must be from -1 to 1"
    ):
        rv.elect(["a", "b"], similarity=rv.Custom(lambda v, c: table.get((v, c), 0), name="mine"))


@pytest.mark.parametrize("shape", [(2,), (3, 2), (2, 3, 1)])
def test_a_batched_function_that_returns_another_shape_is_refused(shape):
    measure = rv.Custom(lambda v, c: np.zeros(shape), name="mine", batched=True)
    with pytest.raises(
        rv.UsageError, match=r"'mine' returned shape .* for 2 voters and 3 candidates; expected \(2, 3\)"
    ):
        rv.elect(["a", "b", "c"], voters=["v", "w"], similarity=measure)
