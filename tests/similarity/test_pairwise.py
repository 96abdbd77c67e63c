"""rouge_l, edit and ter against their definitions; a user's own functions; mixtures, cutoffs and clusters."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from rangevote.election.settings import Settings
from rangevote.similarity import base, get_similarity
from rangevote.similarity.pairwise import Cutoff
from tests.similarity.samples import (
    columns,
    first_letters,
    full,
    length_ratio,
    letters,
    sentences,
    weights_for,
)


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


PARTS = {
    "0.5*overlap_2+0.5*states": [(0.5, "overlap_2"), (0.5, "states")],
    "0.25*bleu_4+0.25*chrf+0.5*edit": [(0.25, "bleu_4"), (0.25, "chrf"), (0.5, "edit")],
    "0.75*precision_1-4@0.25+-0.25*exact": [(0.75, "precision_1-4@0.25"), (-0.25, "exact")],
    "1*overlap_1": [(1.0, "overlap_1")],
}


@pytest.mark.parametrize(("name", "parts"), PARTS.items(), ids=PARTS)
def test_a_mixture_is_the_weighted_sum_of_its_parts(name, parts):
    rng = np.random.default_rng(0)
    standing, electors = (
        columns(full(rng, sentences(rng, 8))),
        columns(full(rng, sentences(rng, 6)), "voters"),
    )
    weights = weights_for(rng, 6)
    mixture = rv.get_similarity(name)
    grades = sum(share * rv.get_similarity(part).matrix(standing, electors) for share, part in parts)
    np.testing.assert_allclose(mixture.matrix(standing, electors), grades, rtol=0, atol=1e-15)
    np.testing.assert_allclose(
        mixture.tally(standing, electors, weights), weights @ grades, rtol=0, atol=1e-12
    )
    assert mixture.name == name


@pytest.mark.parametrize(
    ("name", "linear", "lowest"),
    [
        ("0.5*overlap_2+0.5*exact", True, 0.0),
        ("0.5*overlap_2+0.5*states", True, -1.0),
        ("0.5*overlap_2+0.5*chrf", False, 0.0),
        ("0.5*overlap_2+-0.5*exact", True, -1.0),
    ],
)
def test_a_mixture_is_linear_where_all_its_parts_are_and_negative_where_one_can_be(name, linear, lowest):
    mixture = rv.get_similarity(name)
    assert mixture.linear is linear
    assert mixture.lowest == lowest


def test_a_mixture_says_what_its_parts_are_made_of():
    result = rv.elect(["a b", "a c"], similarity="0.5*overlap_2+0.5*chrf", tokenize="13a")
    assert "|sim:0.5*overlap_2+0.5*chrf|on:13a+chars|" in result.signature


@pytest.mark.parametrize(
    "parts", [[], [(0.0, "exact")], [(0.6, "exact"), (-0.6, "chrf")], [(float("nan"), "exact")]]
)
def test_coefficients_must_sum_to_at_most_1(parts):
    with pytest.raises(
        rv.UsageError, match=r"coefficients of a mixture sum to .*; they must sum to at most 1"
    ):
        rv.Mixture([(share, rv.get_similarity(part)) for share, part in parts])


#: Two things are said, and one text that is a little like both.
TEXTS = [
    "take the red bus to the station at ten",
    "take the red bus to the station at noon",
    "go by the blue train from the harbour now",
    "go by the blue train from the harbour later",
    "go by the blue train from the old harbour",
    "the bus the train the station the harbour",
]


@pytest.mark.parametrize("similarity", ["overlap_2", "overlap_1-4@0.25", "chrf", "rouge_l", "embedding"])
def test_grades_below_the_cutoff_are_no_votes(similarity):
    if similarity == "embedding":
        similarity = rv.Custom(lambda v, c: 1.0 if v == c else -0.5, name="cosine")
    plain = get_similarity(similarity, "space")
    weights = [0.3, 0.1, 0.2, 0.2, 0.1, 0.1]
    result = rv.elect(TEXTS, similarity=similarity, cutoff=0.4, weights=weights)
    candidates = result.candidates
    grades = plain.matrix(candidates, candidates)
    expected = np.array(weights) @ np.where(grades >= 0.4, grades, 0.0)
    assert result.scores == pytest.approx(expected, abs=1e-12)
    assert (grades < 0.4).any()
    assert "|cut:0.4|" in result.signature
    assert sum(vote.score for vote in result.explain().voters) == pytest.approx(result.score)


def test_exact_answers_are_as_similar_as_can_be_so_nothing_is_cut_off():
    assert Settings(similarity="exact", cutoff=0.5).measure is get_similarity("exact")
    overlap = get_similarity("overlap_2")
    once = Settings(similarity="overlap_2", cutoff=0.5)
    assert once.replace(cutoff=None).measure is overlap
    again = once.replace(cutoff=0.2).measure
    assert isinstance(again, Cutoff)
    assert (again.inner, again.least) == (overlap, 0.2)
    candidates = rv.elect(TEXTS).candidates
    assert once.measure.keys(candidates) == overlap.keys(candidates)


def naive_cluster(grades: np.ndarray, weights: np.ndarray, least: float) -> tuple[int, np.ndarray]:
    """The heaviest neighbourhood, and the scores that its voters give."""
    cut = np.where(grades >= least, grades, 0.0)
    sizes = [sum(w for w, g in zip(weights, cut[:, c], strict=True) if g > 0) for c in range(cut.shape[1])]
    support = weights @ cut
    center = max(range(len(sizes)), key=lambda c: (round(sizes[c], 12), support[c]))
    scores = np.where(cut[:, center] > 0, weights, 0.0) @ cut
    return int(scores.argmax()), scores


@pytest.mark.parametrize("similarity", ["overlap_1", "overlap_2", "chrf"])
@pytest.mark.parametrize("cutoff", [None, 0.2, 0.8])
def test_the_best_of_the_largest_group_is_elected(similarity, cutoff):
    weights = [0.31, 0.12, 0.2, 0.19, 0.09, 0.09]
    result = rv.elect(TEXTS, similarity=similarity, rule="cluster", cutoff=cutoff, weights=weights)
    grades = get_similarity(similarity, "space").matrix(result.candidates, result.candidates)
    winner, scores = naive_cluster(grades, np.array(weights), 0.5 if cutoff is None else cutoff)
    assert result.scores == pytest.approx(scores, abs=1e-12)
    assert result.index == winner
    assert "|rule:cluster|" in result.signature
    assert f"|cut:{0.5 if cutoff is None else cutoff}|" in result.signature
    assert sum(vote.score for vote in result.explain().voters) == pytest.approx(result.score)


def test_the_largest_group_wins_over_a_compromise_and_the_next_winner_is_of_the_next_group():
    options = {"similarity": "overlap_1", "weights": "count", "cutoff": 0.7, "rule": "cluster"}
    assert rv.elect(TEXTS, **options).winner in TEXTS[2:5]
    first, second = rv.elect(TEXTS, winners=2, **options).winners
    assert first in TEXTS[2:5]
    assert second in TEXTS[:2]
    everyone = rv.elect(TEXTS[:3], similarity="exact", weights="count", rule="cluster", winners=3)
    assert sorted(everyone.elected) == [0, 1, 2]


def test_a_cluster_is_not_decided_early():
    electorate = rv.Electorate(TEXTS, similarity="overlap_1", rule="cluster").add(TEXTS)
    with pytest.raises(rv.UsageError, match="rule='cluster'"):
        electorate.decided()
