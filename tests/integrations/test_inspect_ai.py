"""The solver and the reducer in Inspect's own evaluation, on its model for tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rangevote.errors import UsageError
from tests.integrations.page import block

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("inspect_ai", reason="make .venv/.tools installs it")

SAMPLES = ["That is 8", "It is 7", "7", "One has 9", "The sum is 7"]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect counts tokens by an encoding that tiktoken would fetch."""
    words = SimpleNamespace(encode=lambda text, **options: text.split())
    monkeypatch.setattr("tiktoken.get_encoding", lambda name: words)


def run(tmp_path: Any, solver: Any = None, *, task: str = "") -> Any:
    """The log of a solver on one question, or of a task of the page."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.scorer import match

    outputs = [ModelOutput.from_content("mockllm/model", text) for text in SAMPLES]
    model = get_model("mockllm/model", custom_outputs=outputs)
    names: dict[str, Any] = {"__name__": "page"}
    exec(block("py", "inspect_ai"), names)
    given = Task(dataset=[Sample("3 + 4", target="7")], solver=solver, scorer=match(numeric=True))
    [log] = eval(names[task]() if task else given, model=model, log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    return log


def accuracy(log: Any) -> float:
    return float(log.results.scores[0].metrics["accuracy"].value)


def test_the_solver_goes_on_with_the_elected_output(tmp_path):
    log = run(tmp_path, task="elected_outputs")
    assert accuracy(log) == 1.0
    [sample] = log.samples
    assert sample.output.completion in ("It is 7", "7", "The sum is 7")
    assert sample.messages[-1].text == sample.output.completion
    election = sample.metadata["election"]
    assert election["candidates"] == 5
    assert (election["score"], election["share"]) == (pytest.approx(0.6), pytest.approx(0.6))
    assert "sim:exact:last_number" in election["signature"]


def test_any_solver_can_be_sampled(tmp_path):
    from inspect_ai.solver import chain as chained
    from inspect_ai.solver import chain_of_thought, generate

    from rangevote.integrations.inspect_ai import elect_solver

    thinking = chained(chain_of_thought(), generate())
    log = run(tmp_path, elect_solver(thinking, samples=5, similarity="exact:last_number"))
    assert accuracy(log) == 1.0
    assert "step-by-step" in log.samples[0].messages[0].text


def test_the_reducer_takes_the_score_of_the_answer_elected_among_the_epochs(tmp_path):
    log = run(tmp_path, task="elected_answers")
    assert accuracy(log) == 1.0  # a mean over epochs would be 0.6
    [reduced] = log.reductions[0].samples
    assert reduced.answer == "7"
    assert reduced.metadata["election"]["share"] == pytest.approx(0.6)


def test_a_reducer_without_answers_says_what_it_needs():
    from inspect_ai.scorer import Score

    from rangevote.integrations.inspect_ai import elect_reducer

    with pytest.raises(UsageError, match="needs a scorer that gives Score"):
        elect_reducer()([Score(value=1.0), Score(value=0.0)])
    scores = [Score(value=1.0), Score(value=0.5, answer="a")]
    assert elect_reducer()(scores).value == 0.5


def test_the_solver_is_found_by_its_name():
    from inspect_ai._util.registry import registry_create
    from inspect_ai.util import registry_info

    assert registry_info(registry_create("solver", "rangevote/elect_solver")).name == "rangevote/elect_solver"


def test_wrong_options_are_refused_at_once():
    from rangevote.integrations.inspect_ai import elect_reducer, elect_solver

    with pytest.raises(UsageError, match="at least 1"):
        elect_solver(samples=0)
    for make in (elect_solver, elect_reducer):
        with pytest.raises(UsageError, match="similarity"):
            make(similarity="nope")
        with pytest.raises(UsageError, match="Did you mean 'similarity'"):
            make(similarty="exact")
