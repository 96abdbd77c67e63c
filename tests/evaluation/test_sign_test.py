"""The sign test gives the paper's p-values, and scipy's."""

from __future__ import annotations

import pytest

from rangevote.errors import UsageError
from rangevote.evaluation.sign_test import sign_test


# sections 4.1.4 and 4.2.4: captions and translations rated better and worse
@pytest.mark.parametrize(
    ("better", "worse", "p"), [(106, 73, "0.0165"), (27, 40, "0.142"), (69, 44, "0.0235")]
)
def test_the_papers_p_values(better, worse, p):
    assert f"{sign_test(better, worse):.{len(p) - 2}f}" == p


@pytest.mark.parametrize(("better", "worse"), [(0, 0), (0, 1), (3, 3), (10, 40), (900, 1100)])
def test_it_is_scipys_exact_binomial_test_whichever_side_is_which(better, worse):
    stats = pytest.importorskip("scipy.stats")
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
