"""What n samples are worth: right answers, votes, coverage, calibration, stopping."""

from __future__ import annotations

import pytest

from rangevote.errors import DataError
from rangevote.evaluation.metrics import right_answers
from rangevote.evaluation.samples import right_samples
from rangevote.hypothesis import Hypotheses
from rangevote.similarity import get_similarity


def measure(name):
    return get_similarity(name)


@pytest.mark.parametrize(
    ("key", "gold", "right"),
    [
        ("last_number", "6 * 3 = 18\n#### 18", {"18"}),
        ("last_number", 18, {"18"}),
        ("last_number", 18.0, {"18"}),
        ("last_number", ["18", 1.5], {"18", "1.5"}),
        ("choice", "B", {"B"}),
        ("after:the answer is", "Rome", {"Rome"}),  # the key finds nothing: gold is the answer itself
        ("json:price", {"price": 3.0}, {"3"}),
        ("json:price", 3, {"3"}),
    ],
)
def test_gold_passes_through_the_key_of_the_samples(key, gold, right):
    assert right_answers(gold, measure(f"exact:{key}")) == right


@pytest.mark.parametrize("gold", [None, [], [None], {"answer": 3}, [["3"]]])
def test_gold_of_another_type_is_refused(gold):
    with pytest.raises(DataError):
        right_answers(gold, measure("exact:last_number"))


def test_a_sample_without_an_answer_is_wrong():
    samples = Hypotheses.of(["so 4", "4.0", "five", "5"])
    assert right_samples(samples, "4", measure("exact:last_number")) == [True, True, False, False]
