"""What n samples of a model are worth: how often they are right."""

from __future__ import annotations

from rangevote.evaluation.metrics import right_answers
from rangevote.hypothesis import Hypotheses
from rangevote.similarity.base import Measure


def right_samples(samples: Hypotheses, gold: object, measure: Measure) -> list[bool]:
    """Whether the answer of each sample is right; `gold` passes through the measure's key too.

    >>> from rangevote.similarity import get_similarity
    >>> texts = Hypotheses.of(["2 + 2 = 4", "It is 5.", "no idea"])
    >>> right_samples(texts, "#### 4", get_similarity("exact:last_number"))
    [True, False, False]
    """
    right = right_answers(gold, measure)
    return [key is not None and key in right for key in measure.keys(samples)]
