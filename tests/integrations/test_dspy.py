"""The module in DSPy itself, on its model for tests."""

from __future__ import annotations

import pytest

from rangevote.errors import UsageError
from tests.integrations.page import block

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("dspy", reason="make .venv/.tools installs it")

ANSWERS = [
    {"reasoning": "eight", "answer": "8"},
    {"reasoning": "three and four", "answer": "7"},
    {"reasoning": "nine", "answer": "9"},
    {"reasoning": "count on from three", "answer": "7"},
]


def test_the_elected_prediction_is_returned_with_all_its_fields(monkeypatch, capsys):
    import dspy
    from dspy.utils import DummyLM

    monkeypatch.setattr(dspy, "LM", lambda name: DummyLM(ANSWERS * 2))
    names: dict[str, object] = {}
    exec(block("py", "dspy"), names)
    assert capsys.readouterr().out == "7\n"
    assert [one.answer for one in names["predictions"]].count("7") == 2  # type: ignore[attr-defined]
    with dspy.context(lm=DummyLM(ANSWERS)):
        prediction = names["solve"](question="3 + 4")  # type: ignore[operator]
    assert prediction.reasoning in ("three and four", "count on from three")


def test_the_election_can_be_had_and_held_by_another_field():
    import dspy
    from dspy.utils import DummyLM

    from rangevote.integrations.dspy import ElectModule

    inner = dspy.Predict("question -> reasoning, answer")
    module = ElectModule(inner, samples=4, field="reasoning", similarity="overlap_1", temperature=2.0)
    module.set_lm(DummyLM(ANSWERS))
    predictions, result = module.election(question="3 + 4")
    assert len(predictions) == len(result.candidates) == 4
    assert sorted(result.candidates.texts) == sorted(one["reasoning"] for one in ANSWERS)
    assert "sim:overlap_1" in result.signature


def test_rollouts_that_fail_do_not_vote_and_if_all_do_the_failure_is_told():
    import dspy
    from dspy.utils import DummyLM

    from rangevote.integrations.dspy import ElectModule

    class Failing(dspy.Module):
        def __init__(self, inner: dspy.Module, fails: set[int]) -> None:
            super().__init__()
            self.inner, self.fails = inner, fails

        def forward(self, **inputs: str) -> dspy.Prediction:
            if self.get_lm().kwargs["rollout_id"] in self.fails:
                raise RuntimeError("the server is gone")
            return self.inner(**inputs)

    inner = dspy.Predict("question -> reasoning, answer")
    module = ElectModule(Failing(inner, {0, 2}), samples=4, similarity="exact", threads=1)
    with dspy.context(lm=DummyLM([ANSWERS[1], ANSWERS[3]])):
        predictions, result = module.election(question="3 + 4")
    assert (len(predictions), result.winner) == (2, "7")
    module = ElectModule(Failing(inner, {0, 1, 2, 3}), samples=4)
    with dspy.context(lm=DummyLM(ANSWERS)), pytest.raises(RuntimeError, match="the server is gone"):
        module(question="3 + 4")


def test_wrong_options_are_refused_at_once():
    import dspy

    from rangevote.integrations.dspy import ElectModule

    inner = dspy.Predict("question -> answer")
    with pytest.raises(UsageError, match="at least 1"):
        ElectModule(inner, samples=0)
    with pytest.raises(UsageError, match="similarity"):
        ElectModule(inner, similarity="nope")
    with pytest.raises(UsageError, match="Did you mean 'similarity'"):
        ElectModule(inner, similarty="exact")
