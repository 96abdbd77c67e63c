"""The paired bootstrap has sacrebleu's resamples and p-values, the sign test the paper's and scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rangevote.errors import DataError, UnknownName, UsageError
from rangevote.evaluation import significance
from rangevote.evaluation.evaluate import compare
from rangevote.evaluation.metrics import mean
from rangevote.evaluation.significance import (
    best_of_many,
    centred,
    interval,
    koehn,
    paired_bootstrap,
    resampled_sums,
    sign_test,
    two_tailed,
)


def texts(seed, count, spoiled):
    """References, and outputs in which a share of the words is replaced."""
    generator = np.random.default_rng(seed)
    vocabulary = np.array([f"w{i}" for i in range(40)])
    references = [vocabulary[generator.integers(0, 40, generator.integers(4, 15))] for _ in range(count)]
    systems = []
    for share in spoiled:
        changed = []
        for words in references:
            noise = vocabulary[generator.integers(0, 40, len(words))]
            changed.append(" ".join(np.where(generator.random(len(words)) < share, noise, words)))
        systems.append(changed)
    return [" ".join(words) for words in references], systems


@pytest.mark.parametrize("spoiled", [(0.30, 0.27), (0.25, 0.30)])
def test_p_values_are_sacrebleus_under_its_definition_and_its_seed(spoiled):
    significance = pytest.importorskip("sacrebleu.significance")
    metrics = pytest.importorskip("sacrebleu.metrics")
    references, (first, second) = texts(3, 120, spoiled)
    test = significance.PairedTest(
        [("first", first), ("second", second)],
        {"BLEU": metrics.BLEU(references=[references]), "chrF": metrics.CHRF(references=[references])},
        references=None,
        test_type="bs",
        n_samples=400,
    )
    _, expected = test()
    systems, metrics = {"first": first, "second": second}, ["bleu", "chrf"]
    found = compare(systems, references, metrics=metrics, resamples=400, p_value="centred").systems[1]
    for name, theirs in (("bleu", "BLEU"), ("chrf", "chrF2")):
        against, (base, own) = found.against_first[name], expected[theirs]
        assert against.p == pytest.approx(own.p_value, abs=1e-12)
        assert against.difference == pytest.approx(own.score - base.score)


def test_the_draws_are_those_of_numpys_choice_also_in_blocks(monkeypatch):
    drawn = np.random.default_rng(12345).choice(7, size=(50, 7), replace=True)
    expected = np.stack([np.bincount(row, minlength=7) for row in drawn])
    assert (resampled_sums(np.eye(7), resamples=50) == expected).all()
    monkeypatch.setattr(significance, "_BLOCK", 7 * 3)
    assert (resampled_sums(np.eye(7), resamples=50) == expected).all()


def beside_ones(values):
    """The rows whose sums `mean` takes."""
    return np.stack([np.asarray(values, dtype=np.float64), np.ones(len(values))], axis=1)


def test_the_interval_of_a_mean_is_near_its_normal_one():
    values = np.random.default_rng(5).integers(0, 30, 400)
    found = interval(mean(resampled_sums(beside_ones(values))))
    expected = stats.norm.interval(0.95, values.mean(), values.std() / 20)
    assert found == pytest.approx(expected, abs=0.05)


def test_the_p_value_of_a_mean_difference_is_near_that_of_the_paired_t_test():
    generator = np.random.default_rng(8)
    first = generator.integers(0, 30, 500)
    second = first + generator.integers(-4, 6, 500)
    for shift in (0, 1):
        ours, theirs = second - shift, first
        found = paired_bootstrap(mean, beside_ones(ours), beside_ones(theirs))
        assert found.p == pytest.approx(stats.ttest_rel(ours, theirs).pvalue, abs=0.02)


def test_a_system_compared_with_itself_differs_by_nothing():
    rows = beside_ones([3, 1, 4, 1, 5])
    found = paired_bootstrap(mean, rows, rows)
    assert (found.value, found.interval, found.p) == (0, (0, 0), 1)


def test_the_definitions_of_p_by_hand():
    differences = np.array([1.0, 2.0, 3.0, -1.0, 0.0])
    assert koehn(differences, 1.0) == 3 / 6  # -1 and 0 are not wins; one more for the set itself
    assert koehn(differences, -1.0) == 5 / 6
    assert two_tailed(differences, 1.0) == 1
    assert two_tailed(np.ones(999), 0.5) == 2 / 1000
    assert centred(differences, 1.0) == 2 / 6  # |d| less their mean of 1.4: only 1.6 is above 1


def best_p_values(values, **options):
    """p-values of systems, columns of `values` (sentences, systems + 1), against the last column."""
    size, number = values.shape
    rows = beside_ones(values.ravel())
    outputs = np.arange(size * number).reshape(size, number)
    sentences = np.repeat(np.arange(size), number)
    return best_of_many(mean, rows, sentences, outputs[:, :-1], outputs[:, -1], **options)


def test_of_one_system_p_is_near_that_of_the_paired_t_test_and_grows_with_the_number_of_systems():
    generator = np.random.default_rng(4)
    values = generator.normal(size=(60, 40))
    values[:, 0] += 0.35
    alone = best_p_values(values[:, [0, -1]], resamples=4000)
    expected = stats.ttest_rel(values[:, 0], values[:, -1], alternative="greater").pvalue
    assert alone == pytest.approx(expected, abs=0.02)
    assert best_p_values(values, resamples=500)[0] > alone[0]
    assert best_p_values(values[:, [0, 0]], resamples=50) == 1  # the base itself


@pytest.mark.parametrize("binary", [False, True])
def test_equally_good_systems_rarely_beat_the_base(binary):
    """Also where few sentences differ: of 0 and 1 the differences are skewed."""
    generator = np.random.default_rng(7)
    low = 0
    for seed in range(200):
        values = generator.random((12, 21)) < 0.2 if binary else generator.normal(size=(12, 21))
        low += best_p_values(values.astype(float), resamples=100, seed=seed).min() < 0.05
    assert low / 200 <= 0.05 + 2 * (0.05 * 0.95 / 200) ** 0.5


@pytest.mark.parametrize(
    ("rows", "base", "options", "error", "told"),
    [
        (0, 0, {}, DataError, r"there are no sentences to draw from"),
        (3, 3, {"resamples": 0}, UsageError, r"resamples must be 1 or more, got 0"),
        (3, 4, {}, DataError, r"shapes \(3, 2\) and \(4, 2\); both systems must"),
        (3, 3, {"p_value": "kohn"}, UnknownName, r"unknown p-value 'kohn'\. Did you mean 'koehn'\?"),
    ],
)
def test_what_cannot_be_resampled_is_refused(rows, base, options, error, told):
    with pytest.raises(error, match=told):
        paired_bootstrap(mean, np.ones((rows, 2)), np.ones((base, 2)), **options)


# sections 4.1.4 and 4.2.4: captions and translations rated better and worse
@pytest.mark.parametrize(
    ("better", "worse", "p"), [(106, 73, "0.0165"), (27, 40, "0.142"), (69, 44, "0.0235")]
)
def test_the_papers_p_values(better, worse, p):
    assert f"{sign_test(better, worse):.{len(p) - 2}f}" == p


@pytest.mark.parametrize(("better", "worse"), [(0, 0), (0, 1), (3, 3), (10, 40), (900, 1100)])
def test_it_is_scipys_exact_binomial_test_whichever_side_is_which(better, worse):
    expected = stats.binomtest(better, better + worse, 0.5).pvalue if better + worse else 1
    assert sign_test(better, worse) == pytest.approx(expected, rel=1e-9)
    assert sign_test(worse, better) == sign_test(better, worse)


def test_a_very_uneven_split_of_many_is_no_overflow():
    assert sign_test(5000, 0) == 0
    assert 0 < sign_test(5200, 4800) < 0.0001


@pytest.mark.parametrize("count", [-1, 2.5, True, "3"])
def test_what_is_not_a_count_is_refused(count):
    with pytest.raises(UsageError, match=r"better must be a whole number from 0, got"):
        sign_test(count, 3)
