"""What stored samples are worth: votes, stopping, coverage and stages on made-up answers."""

from __future__ import annotations

import gzip
import json

import pytest
from experiments.samples import CHEAP, LARGE, Answers

from experiments import samples

FOUR = CHEAP["4 prompts of gpt-3.5-turbo"]
RIGHT = frozenset({"1"})


def answers(cheap, large="1111"):
    """A question whose right answer is 1, with the answers of four cheap prompts and four larger ones."""
    given = dict(zip((*FOUR, *LARGE), (*cheap, *large), strict=True))
    return Answers({name: None if key == "-" else key for name, key in given.items()}, RIGHT)


def test_stages_go_on_where_the_cheap_answers_differ():
    questions = [answers("1111"), answers("2222"), answers("1112", "1112"), answers("112-", "2222")]
    escalated, right = samples.stage(questions, FOUR, 1.0)
    assert escalated.tolist() == [False, False, True, True]
    assert right.tolist() == [1, 0, 0.75, 0]  # the mean over the prompts of the larger model
    escalated, right = samples.stage(questions, FOUR, 0.75)
    assert escalated.tolist() == [False, False, False, True]
    assert right.tolist() == [1, 0, 1, 0]
    assert samples.stage(questions, FOUR, 1.0, LARGE[:3]).right.tolist() == [1, 0, 1, 0]


def test_a_setting_of_the_stages_is_chosen_on_the_even_questions_alone():
    even, odd = [answers("1111"), answers("1122")], [answers("2222"), answers("1111", "2222")]
    found = samples.stages([one for pair in zip(even, odd, strict=True) for one in pair])
    assert found["looked_at"] == 9
    assert found["chosen"] == {"panel": "2 prompts of gpt-3.5-turbo", "below": 0.5}
    assert found["reported"]["accuracy"] == 50
    assert found["asked"]["questions"] == 4
    assert found["asked"]["escalated"] == 25
    assert found["asked"]["alone"] == 75


def test_stopping_saves_samples_only_where_an_answer_is_clear():
    clear = Answers({str(i): "1" for i in range(64)}, RIGHT)
    open_ = Answers({str(i): str(i % 2) for i in range(64)}, RIGHT)
    found = samples.stopping([clear, clear])
    assert found["chosen"] == "0.8"
    reported = found["reported"]["0.95"]
    assert (reported["early"], reported["wrong"], reported["accuracy"]) == (100, 0, 100)
    assert reported["drawn"] < reported["of"] == 64
    assert samples.stopping([open_, open_])["reported"]["0.99"]["accuracy"] == pytest.approx(50, abs=5)


def test_a_share_that_keeps_the_risk_is_chosen_and_measured_on_the_other_half():
    sure, unsure = answers("1111"), answers("2221")
    found = samples.coverage([sure, sure] * 100 + [unsure, unsure] * 40, FOUR)
    assert (found["share"], found["risk"]) == (1.0, 0.0)
    assert found["coverage"] == pytest.approx(100 / 140)
    assert found["risk_of_all"] == pytest.approx(40 / 140)
    assert samples.coverage([unsure, unsure] * 40, FOUR)["share"] is None


def test_the_given_files_are_read_with_missing_answers_as_none(tmp_path):
    puzzle = {"ys": ["Answer: 4 * 6 = 24", "no"], "infos": [{"r": 1}, {"r": 0}]}
    (tmp_path / "game.json.gz").write_bytes(gzip.compress(json.dumps([puzzle]).encode()))
    [read] = samples.read_puzzles(tmp_path / "game.json.gz")
    assert (read.question().counts, read.question().abstained, read.question().accuracy) == ((1,), 1, 1)
    ballots = [
        {"gold": "3", "candidates": [{"member": "a", "answer": "3.0"}, {"member": "b", "answer": None}]},
        {"gold": "4", "candidates": [{"member": "b", "answer": "5"}]},
    ]
    lines = "\n".join(map(json.dumps, ballots))
    (tmp_path / "gsm.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    first, second = samples.read_questions(tmp_path / "gsm.jsonl.gz")
    assert (first.of(["a", "b"]), first.question().accuracy) == (["3", None], 1)
    assert second.of(["a", "b"]) == [None, "5"]


def test_what_is_measured_becomes_a_chapter_and_a_picture(tmp_path):
    davinci = CHEAP["4 prompts of text-davinci-003"]
    questions = [answers("1112"), answers("1111"), answers("2211"), answers("1111")]
    questions = [one._replace(given=one.given | dict.fromkeys(davinci, "1")) for one in questions]
    data = json.loads(json.dumps(samples.measured(questions, questions)))
    text = "\n".join(samples.section(data))
    assert all(name in text for name in ("maj@n", "Stopping early", "Stages", *CHEAP))
    samples.draw(data, tmp_path)
    assert (tmp_path / "samples.svg").is_file()
