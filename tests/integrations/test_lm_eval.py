"""The filter in lm-evaluation-harness itself: a task of its own, run by its evaluator."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from rangevote.errors import DataError, RangevoteWarning, UsageError
from tests.integrations.page import block

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("lm_eval", reason="make .venv/.tools installs it")

TASK = """
task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
PAGE  - name: first
    filter:
      - function: regex
        regex_pattern: (\\d+)\\.$
      - function: take_first
metric_list:
  - metric: exact_match
"""
ANSWERS = {
    "3 + 4": ["That is 8.", "It is 7.", "7.", "One has 9.", "The sum is 7."],
    "2 + 2": ["4.", "5.", "Four, so 4.", "5.", "The answer: 4."],
}


def test_a_task_elects_among_its_repeats(tmp_path):
    from lm_eval import simple_evaluate
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    class Samples(LM):
        """Gives the answers above in turn."""

        def __init__(self) -> None:
            super().__init__()
            self.answers: dict[str, Iterator[str]] = defaultdict(lambda: iter(()))
            self.answers.update({question: iter(texts) for question, texts in ANSWERS.items()})

        def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
            return [next(self.answers[request.args[0]]) for request in requests]

        def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> Any:
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    rows = [{"question": "3 + 4", "answer": "7"}, {"question": "2 + 2", "answer": "4"}]
    data = tmp_path / "sums.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "sums.yaml").write_text(
        TASK.replace("DATA", str(data)).replace("PAGE", block("yaml", "filter_list"))
    )
    tasks = TaskManager(include_path=str(tmp_path), include_defaults=False)
    found = simple_evaluate(Samples(), tasks=["sums"], task_manager=tasks, bootstrap_iters=0)
    scores = found["results"]["sums"]
    assert scores["exact_match,elected"] == 1.0
    assert scores["exact_match,first"] == 0.5


def test_wrong_options_and_responses_that_are_no_texts_are_refused():
    from rangevote.integrations.lm_eval import ElectFilter

    with pytest.raises(UsageError, match="similarity"):
        ElectFilter(similarity="nope")
    with pytest.raises(UsageError, match="Did you mean 'similarity'"):
        ElectFilter(similarty="exact")
    for responses, kind in (([(-1.0, True), (-2.0, False)], "tuple"), ([["a"], ["b"]], "list")):
        with pytest.raises(DataError, match=rf"got {kind} .* generate_until"):
            ElectFilter().apply([responses], [{}])


def test_equal_responses_to_most_documents_are_warned_about():
    from rangevote.integrations.lm_eval import ElectFilter

    with pytest.warns(RangevoteWarning, match=r"in 2 of 3 documents all responses are equal"):
        assert ElectFilter().apply([["7"] * 5, ["8"] * 5, ["9", "10"]], [{}] * 3)[:2] == [["7"], ["8"]]
