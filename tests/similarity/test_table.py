"""What every measure of the table must do, and what the names mean."""

from __future__ import annotations

import numpy as np
import pytest

import rangevote as rv
from rangevote.similarity import SIMILARITIES
from tests.similarity.samples import EVERY, columns, full, measure, sentences, weights_for

every_measure = pytest.mark.parametrize("label", EVERY)

#: Measures that say of every sequence that is not empty that it is fully supported by itself.
SELF_SUPPORTING = [
    label
    for label in EVERY
    if not label.startswith(("bleu", "exact:", "0.6*", "a user's function", "a mixture"))
]


def random_election(seed: int, candidates: int = 7, voters: int = 11):
    rng = np.random.default_rng(seed)
    standing = columns(full(rng, sentences(rng, candidates)))
    electors = columns(full(rng, sentences(rng, voters)), role="voters")
    return standing, electors, weights_for(rng, voters)


def test_the_table_of_the_tests_holds_every_measure_of_the_package():
    named = {name for name, _ in EVERY.values() if isinstance(name, str)}
    for stem, listing in SIMILARITIES.items():
        assert any(name == stem or name.startswith((f"{stem}_", f"{stem}:")) for name in named), stem
        assert listing.example in named


@every_measure
@pytest.mark.parametrize("seed", range(2))
def test_a_tally_is_the_weighted_sum_of_the_matrix(label, seed):
    candidates, voters, weights = random_election(seed)
    grades = measure(label).matrix(candidates, voters)
    assert grades.shape == (len(voters), len(candidates))
    tally = measure(label).tally(candidates, voters, weights)
    np.testing.assert_allclose(tally, weights @ grades, rtol=0, atol=1e-12)


@every_measure
def test_candidates_who_vote_count_like_the_same_list_given_as_voters(label):
    candidates, _, _ = random_election(1)
    again = columns(list(candidates), role="voters")
    weights = weights_for(np.random.default_rng(2), len(candidates))
    own, added = (measure(label).tally(candidates, electors, weights) for electors in (candidates, again))
    assert own.tobytes() == added.tobytes()
    own, added = (measure(label).matrix(candidates, electors) for electors in (candidates, again))
    assert own.tobytes() == added.tobytes()


@pytest.mark.parametrize("label", SELF_SUPPORTING)
def test_whoever_is_not_empty_supports_itself_fully(label):
    rng = np.random.default_rng(5)
    texts = [text for text in sentences(rng, 30) if text.strip()]
    standing = columns(full(rng, texts))
    np.testing.assert_allclose(np.diag(measure(label).matrix(standing, standing)), 1.0, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    "label",
    [
        label
        for label in EVERY
        if not label.startswith(("exact", "a ", "0.2", "0.5"))
        and "states" not in label
        and "key" not in label
    ],
)
@pytest.mark.parametrize("empty", ["", "  ", "\u3000\t\u2028"])
def test_the_empty_sequence_abstains_under_every_text_measure(label, empty):
    if label == "overlap_2 on a function" or label == "rouge_l on a function":
        empty = ""  # the function makes tokens of white space
    rng = np.random.default_rng(6)
    standing = columns(full(rng, [empty, "a man sits", "dog"]))
    grades = measure(label).matrix(standing, standing)
    assert not grades[0].any()
    assert not grades[:, 0].any()


@pytest.mark.parametrize("label", [label for label in EVERY if isinstance(EVERY[label][0], str)])
def test_a_named_measure_has_a_name_that_names_it_again(label):
    named, tokenize = EVERY[label]
    name = rv.get_similarity(named, tokenize).name
    assert rv.get_similarity(name, tokenize).name == name


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("blend", "overlap_1-4@0.25"),
        ("overlap_02", "overlap_2"),
        ("overlap_3-3", "overlap_3"),
        ("precision_2@0", "precision_2"),
        ("precision_2@.50", "precision_2@0.5"),
        (" 0.50*overlap_2 + .5 * states ", "0.5*overlap_2+0.5*states"),
        ("lstm_states", "states"),
        ("overlap2", "overlap_2"),
        ("BLEU-4", "bleu_4"),
        ("sacrebleu", "bleu_4"),
        ("Smoothed BLEU 4", "smoothed_bleu_4"),
        ("ChrF", "chrf"),
        ("ROUGE-L", "rouge_l"),
        ("0.5*BLEU-4+0.5*ChrF", "0.5*bleu_4+0.5*chrf"),
        ("Blend", "overlap_1-4@0.25"),
    ],
)
def test_names_for_one_measure_are_written_in_one_way(name, meaning):
    assert rv.get_similarity(name).name == meaning


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "overlaps_2",
            r"unknown similarity 'overlaps_2'\. Did you mean 'overlap_2'\? Choose from: overlap_2,",
        ),
        ("gleam", r"unknown similarity 'gleam'\. Choose from"),
        ("", r"unknown similarity ''\."),
        ("overlap", r"overlap needs an order from 1.*overlap_1-4@0\.25; got overlap_\."),
        ("overlap_0", r"overlap needs an order from 1.*got overlap_0\."),
        ("precision_1-4@1.5", r"exponent from 0 to 1.*got precision_1-4@1\.5\."),
        ("smoothed_bleu_1-4", r"smoothed_bleu takes one highest order"),
        ("bleu_0", r"bleu_0: the order must be from 1 to 50"),
        ("chrf_3", r"chrf takes no order"),
        ("edit:words", r"edit takes no"),
        (
            "exact:last_numbr",
            r"unknown key of exact 'last_numbr'\. Did you mean 'last_number'\? Choose from: after:",
        ),
        (
            "0.5*overlap_2+states",
            r"cannot read 'states' in the mixture .*; write it as 0\.5\*overlap_2",
        ),
        ("0.5*overlap_2-0.5*states", r"cannot read '0\.5\*overlap_2-0\.5\*states' in the mixture"),
        ("0.5*overlap_2+0.5*sates", r"unknown similarity 'sates'\. Did you mean 'states'\?"),
        ("0.7*overlap_2+0.7*exact", r"coefficients of a mixture sum to 1\.4; they must sum to at most 1"),
        ("0*overlap_2", r"coefficients of a mixture sum to 0;"),
    ],
)
def test_a_name_that_means_nothing_is_refused_with_what_is_allowed(name, message):
    with pytest.raises(rv.UsageError, match=message):
        rv.get_similarity(name)
