"""Layouts of other tools and people: recognised by the usual names, or named by options."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

import rangevote as rv
from rangevote.errors import DataError, UsageError
from rangevote.formats import read
from rangevote.formats.layouts import LISTS, TEXTS
from rangevote.hypothesis import Ballot, Hypothesis, ToolCall
from rangevote.text import split_reasoning
from tests.formats.ballots import Ballots, Entries, Fault, lines, logprobs, texts

# Lists


@pytest.mark.parametrize("name", LISTS)
def test_a_list_under_a_usual_name_is_the_candidates(ballots: Ballots, name: str) -> None:
    [ballot] = ballots(lines({"question_id": 7, "prompt": "?", name: ["a b", "a c"]}))
    assert (ballot.id, ballot.source, texts(ballot)) == (7, "?", ["a b", "a c"])


NESTED = {"run": {"choices": [{"out": {"t": "a"}, "p": [-1, -0.5]}, {"out": {"t": "b"}, "p": -2}]}}
LISTED = {"texts": ["a", "b", "c"], "lp": [-1, [-2, -0.5], math.nan]}
MEAN = {"candidates": [{"text": "a", "tokens": [1], "avg_logprob": -1}]}
CHATS = [{"prompt": [{"content": "?"}], "message": {"role": "assistant", "content": text}} for text in "ab"]
POOLED = [{"task": 1, "outs": ["a"]}, {"task": 2, "outs": ["b"]}, {"task": 1, "outs": ["c", "d"]}]


@pytest.mark.parametrize(
    ("records", "options", "expected"),
    [
        # answers beside an output are the right ones
        ([{"question": "?", "answers": ["x"], "prediction": p} for p in "ab"], {}, [("?", "ab", None)]),
        ([{"samples": ["a", "b"], "logprobs": [-1, -2]}], {}, [(None, "ab", [-1, -2])]),
        (
            [NESTED],
            {"field": "run.choices", "text_field": "out.t", "logprob_field": "p"},
            [(None, "ab", [-1.5, -2])],
        ),
        ([NESTED], {"field": "$.run.choices[*].out.t"}, [(None, "ab", None)]),
        ([LISTED], {"logprob_field": "lp"}, [(None, "abc", [-1, -2.5, None])]),
        ([MEAN], {"logprob_field": "avg_logprob", "normalisation": "length"}, [(None, "a", [-2])]),
        (CHATS, {"group_by": "prompt"}, [(None, "ab", None)]),
        (POOLED, {"field": "outs", "group_by": "task"}, [(1, "acd", None), (2, "b", None)]),
        # options override a known format
        (
            [{"outputs": [{"text": "a", "raw": "b"}]}],
            {"text_field": "raw", "field": "outputs"},
            [(None, "b", None)],
        ),
    ],
)
def test_records_are_read_as_usual_names_and_options_say(
    ballots: Ballots, records: list[Any], options: dict[str, Any], expected: list[Any]
) -> None:
    found = ballots(lines(*records), **options)
    for ballot, (id, letters, scores) in zip(found, expected, strict=True):
        assert (ballot.id, "".join(map(str, texts(ballot)))) == (id, letters)
        assert logprobs(ballot) == (scores or [None] * len(letters))


def test_candidates_under_the_name_samples_are_samples(ballots: Ballots) -> None:
    [ballot] = ballots(lines({"samples": ["a", {"text": "b"}]}))
    assert [h.sampled for h in ballot.candidates] == [True, True]


def test_responses_of_lm_eval_are_read(ballots: Ballots) -> None:
    record = {"doc_id": 3, "doc": {"question": "?"}, "target": "42", "resps": [["41", "42"]]}
    [ballot] = ballots(lines(record))
    assert (ballot.id, texts(ballot), list(ballot.references)) == (3, ["41", "42"], ["42"])
    for arguments in ({"gen_args_0": {"arg_0": "Q: ?"}}, [["Q: ?", {"until": []}]], [{"arg_0": "Q: ?"}]):
        [ballot] = ballots(lines(record | {"arguments": arguments}), carry=["source=prompt"])
        assert (ballot.source, ballot.carry) == ("Q: ?", {"prompt": "Q: ?"})


def test_one_filter_of_an_lm_eval_log_is_read(ballots: Ballots) -> None:
    rows = [
        {"doc_id": i, "resps": [[f"{name} {i}"]], "filter": name}
        for name in ("strict-match", "flexible-extract")
        for i in range(2)
    ]
    warnings: list[str] = []
    for data in (lines(*rows), json.dumps(rows).encode()):
        found = ballots(data, warn=warnings.append)
        assert [(b.id, texts(b)) for b in found] == [(0, ["strict-match 0"]), (1, ["strict-match 1"])]
    assert len(warnings) == 2
    assert "only the answers of the first filter, 'strict-match', are read" in warnings[0]
    [first, _] = ballots(lines(*rows), filter="flexible-extract")
    assert texts(first) == ["flexible-extract 0"]
    assert ballots(lines(*rows), filter="flexible", warn=warnings.append) == []
    assert warnings[2].endswith("'flexible', only strict-match, flexible-extract")
    [ballot] = ballots(lines(rows[0] | {"filter": "none"}))
    assert texts(ballot) == ["strict-match 0"]
    others = [{"id": i, "filter": "x", "outputs": ["a"]} for i in range(2)]  # of no lm-eval log
    assert len(ballots(json.dumps(others).encode(), strict=True)) == 2


def test_options_for_records_do_not_apply_to_other_formats(ballots: Ballots) -> None:
    with pytest.raises(UsageError, match=r"--field, .* not for the format 'moses'"):
        ballots(b"0 ||| a ||| F0= -1 ||| -1\n", field="outputs")


def test_fields_of_the_ballot_file_keep_their_meaning(ballots: Ballots) -> None:
    record = {"outs": [{"text": "a", "logprob": -1, "tokens": [1, 2], "finished": False}], "voters": ["v"]}
    [ballot] = ballots(lines(record), field="outs")
    assert ballot.candidates[0] == Hypothesis("a", tokens=[1, 2], logprob=-1.0, finished=False)
    assert [voter.text for voter in ballot.voters or ()] == ["v"]


# A sample per record


@pytest.mark.parametrize("name", sorted(set(TEXTS) - {"message"}))
def test_one_sample_per_record_is_grouped_by_what_repeats(ballots: Ballots, name: str) -> None:
    records = [{"id": i, "prompt_id": i % 2, name: f"text {i}"} for i in range(4)]
    found = ballots(lines(*records))
    expected = [(0, ["text 0", "text 2"]), (1, ["text 1", "text 3"])]
    assert [(ballot.id, texts(ballot)) for ballot in found] == expected


@pytest.mark.parametrize(
    ("data", "id"),
    [
        (b'{"id": "x", "candidates": 5}\n', "x"),
        (b'{"task_id": 3, "responses": [5]}\n', 3),
        (b'{"id": "b", "custom_id": "r", "response": {"status_code": 500}, "error": null}\n', "r"),
        (b'[{"id": 4, "responses": [5]}]', 4),
        (b"7 ||| a ||| F0= -1 ||| -1\n7 ||| b\n", 7),
        (b"H-8\t-1\ta\nH-8\tx\tb\n", 8),
        (b'{"id": 1, "candidates": ["a"]}\n{"id": 1, "candidates": ["b"]}\n', 1),
        (b'{"id": true, "candidates": 5}\n', None),
        (b'{"id": 5, "candidates": [}\n', None),
    ],
)
def test_a_bad_ballot_keeps_its_id(entries: Entries, data: bytes, id: object) -> None:
    bad = entries(data)[-1]
    assert (bad.error is not None, bad.id) == (True, id)


# Fields that look like scores


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (lines({"candidates": [{"text": "a", "log_prob": -1}]}), "candidates[0].log_prob"),
        (lines({"candidates": ["a", {"text": "b", "score": 0.5}]}), "candidates[1].score"),
        (lines({"candidates": ["a"], "voters": [{"text": "b", "avg_logprob": -1}]}), "voters[0].avg_logprob"),
        (lines({"candidates": ["a", "b"], "scores": [1, 2]}), "scores"),
        (lines({"responses": [{"text": "a", "mean_logprob": -0.1}]}), "responses[0].mean_logprob"),
        (lines({"responses": ["a", "b"], "log_probs": [-1, -2]}), "log_probs"),
        (lines({"responses": ["a", "b"], "cumulative_logprobs": [-1, -2]}), "cumulative_logprobs"),
        (lines({"responses": ["a", "b"], "logprobs": [[-1, -2], [-3]]}), "logprobs"),
        (lines({"task_id": 1, "completion": "a", "score": 0.5}), "score"),
        (b"id,text,score\n1,a,0.5\n", "score"),
    ],
)
def test_a_field_that_looks_like_a_score_is_asked_about(
    entries: Entries, ballots: Ballots, data: bytes, field: str
) -> None:
    name = field.rpartition(".")[2]
    with pytest.raises(UsageError, match=rf"--logprob-field {name}.* --ignore-field {name}\.") as raised:
        entries(data)
    assert str(raised.value).startswith(f"input:{2 if data.startswith(b'id') else 1}: {field} looks")
    [ballot] = ballots(data, ignore_field=[name])
    assert logprobs(ballot) == [None] * len(ballot.candidates)


@pytest.mark.parametrize(
    "record",
    [
        {"candidates": [{"text": "a", "logprob": -1, "score": 0.5}]},  # the log-probability is known
        {"candidates": [{"text": "a", "score": "good"}]},
        {"responses": [{"text": "a", "log_prob": -1, "score": 5}]},
        {"responses": ["a", "b"], "scores": [1, 2, 3]},  # not one for each
        {"responses": ["a", "b"], "scores": {"bleu": 1}},
        {"responses": ["a", "b"], "logprobs": [-1, -2], "scores": [1, 2]},
    ],
)
def test_what_is_not_a_score_is_not_asked_about(ballots: Ballots, record: Any) -> None:
    assert len(ballots(lines(record), warn=lambda message: None)) == 1


# Faults

SUMS = {"normalisation": "none"}


def sockeye(text: str, *scores: Any) -> list[Any]:
    return [{"translations": [text], "scores": [*scores]}]


def openai(**choice: Any) -> list[Any]:
    return [{"choices": [choice]}]


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        ([{"outputs": ["a", 5]}], {}, r"input:1: outputs\[1\]: expected a text or an object, got the number"),
        ([{"outs": ["a"]}], {"field": "out"}, "has no 'out', which --field asks for. Did you mean 'outs'"),
        ([{"outputs": [{"x": 1}]}], {"field": "outputs"}, r"outputs\[0\]: has no text under .*: x\)"),
        ([{"os": [{"text": "a", "logprob": 3}]}], {"field": "os"}, r"os\[0\].logprob: 3.0 is not a log"),
        ([{"texts": ["a"], "lp": [1, 2]}], {"logprob_field": "lp"}, "lp: 2 scores for 1 texts"),
        ([{"texts": ["a"], "lp": ["x"]}], {"logprob_field": "lp"}, r"lp\[0\]: expected a number, got 'x'"),
        (
            [{"a": [{"t": None}]}],
            {"field": "a", "text_field": "t"},
            "null in 't', which --text-field asks for",
        ),
        ([{"texts": ["a"]}], {"logprob_field": "lp"}, "has no 'lp', which --logprob-field asks for"),
        ([{"outs": {"a": 1}}], {"field": "outs"}, "outs: expected a list of texts or objects, got an object"),
        ([{"k": 1, "text": "a"}, {"k": 1, "text": 5}], {"group_by": "k"}, "input:2: text: expected a text"),
        ([{"k": 1, "text": "a"}, {"text": "b"}], {"group_by": "k"}, "input:2: has no 'k', which --group-by"),
        ([{"foo": 1}], {"warn": lambda message: None}, "has no candidates; .*--field, .*--group-by"),
        ([{"a": ["b"]}, [1]], {"field": "a"}, "input:2: expected an object, got an array"),
        # vLLM
        ([{"outputs": [{"text": 5}]}], {}, r"outputs\[0\].text: expected a string, got an integer"),
        ([{"outputs": [{"index": 1}]}], {}, r"outputs\[0\]: has neither text nor tokens"),
        # Sockeye
        (sockeye("a", []), {}, r"scores\[0\]: expected a number"),
        (sockeye("a", [-1]), SUMS, r"\[0\].logprob: 1.0 is not a log-probability.*--sign"),
        (sockeye("a", math.nan), {"score_scale": 1.0}, "one of them is NaN"),
        (
            sockeye("a b c", 1),
            {"normalisation": 999.0},
            "translations: a length of 4 to the power 999 .*beyond",
        ),
        ([{"sentence_id": 3, "translation": None}], {}, "has null in 'translation'"),
        # OpenAI
        ([{"custom_id": ["r"], "response": None, "error": None}], {}, "custom_id: expected a string"),
        ([{"custom_id": "r", "response": {"body": {"data": []}}}], {}, "has no 'response.body.choices'"),
        (openai(message={"tool_calls": [{}]}), {}, r"tool_calls\[0\]: has neither function nor custom"),
        (openai(message={"tool_calls": [{"function": {}}]}), {}, r"calls\[0\].function: .*missing.* name"),
        (
            openai(text="a", logprobs={"token_logprobs": [2.0]}),
            {},
            r"\.token_logprobs\[0\]: 2.0 is not the log",
        ),
    ],
)
def test_bad_records_are_named(
    fault: Fault, records: list[Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=rf"^input:\d+: .*{message}" if "input" not in message else message):
        raise fault(lines(*records), **options)


def test_a_path_that_is_none_is_a_usage_error(entries: Entries) -> None:
    with pytest.raises(UsageError, match=r"'a\[' is not a path to a field"):
        entries(lines({"a": ["b"]}), field="a[")


# Carried fields


def test_fields_are_carried_from_records_of_every_kind(ballots: Ballots) -> None:
    own = {"candidates": ["a"], "meta": {"topic": "x"}, "source": "s"}
    assert ballots(lines(own), carry=["meta.topic", "source"])[0].carry == {"meta.topic": "x", "source": "s"}
    vllm = {"prompt": "?", "outputs": [{"text": "a"}]}
    assert ballots(lines(vllm), carry=["prompt"])[0].carry == {"prompt": "?"}
    rows = [{"k": 1, "text": "a", "meta": 5}, {"k": 1, "text": "b", "meta": 5}]
    assert ballots(lines(*rows), group_by="k", carry=["meta"])[0].carry == {"meta": 5}
    assert ballots(b"S-0\tsrc\nH-0\t-1\ta\nP-0\t-1\n", carry=["source"])[0].carry == {"source": "src"}


def test_a_field_that_is_not_there_is_carried_as_null_and_reported(ballots: Ballots) -> None:
    warned: list[str] = []
    record = {"prompt": "?", "responses": ["a"]}
    [ballot] = ballots(lines(record), carry=["promt"], warn=warned.append)
    assert (ballot.carry, warned) == (
        {"promt": None},
        ["there is no field 'promt' to carry, so it is null. Did you mean 'prompt'?"],
    )
    with pytest.raises(DataError, match="no field 'promt'"):
        ballots(lines(record), carry=["promt"], strict=True)


def test_different_values_within_a_ballot_are_reported(ballots: Ballots) -> None:
    warned: list[str] = []
    rows = [{"k": 1, "text": "a", "meta": 5}, {"k": 1, "text": "b", "meta": 6}]
    [ballot] = ballots(lines(*rows), group_by="k", carry=["meta"], warn=warned.append)
    assert (ballot.carry, len(warned), "different values of meta" in warned[0]) == ({"meta": 5}, 1, True)


# Ways to read


def test_the_first_line_of_a_pipe_is_enough_for_lists() -> None:
    class Pipe(io.RawIOBase):
        """Gives one line, and fails if it is asked for more than is needed to know the layout."""

        def __init__(self) -> None:
            self.given = 0

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            self.given += 1
            assert self.given <= 1, "waits for a second line"
            return lines({"outputs": ["a", "b"]})

    reading = read(Pipe())  # type: ignore[arg-type]
    assert texts(next(reading).get()) == ["a", "b"]


def test_rv_read_gives_ballots_and_names_what_is_wrong(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines({"id": 1, "outs": ["a b", "a c"]}, {"id": 2, "outs": 5}))
    found = rv.read(path, field="outs", carry=["id"])
    assert rv.elect(next(found), similarity="overlap_1").winner == "a b"
    with pytest.raises(rv.DataError, match=r"a\.jsonl:2: outs: expected a list"):
        next(found)
    with pytest.raises(rv.UsageError, match=r"read has no option 'groupby'. Did you mean 'group_by'"):
        rv.read(path, groupby="id")
    with pytest.raises(rv.UsageError, match="carry is 'id'; give a list"):
        rv.read(path, carry="id")


def test_messages_of_read_name_the_options_of_python_and_the_line_of_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines({"candidates": [{"text": "a", "log_prob": -1}]}))
    with pytest.raises(rv.UsageError, match=r"pass logprob_field log_prob, with normalisation='length' if"):
        list(rv.read(path))
    with pytest.raises(rv.UsageError, match=r"^normalisation is -1"):
        rv.read(path, normalisation=-1)
    with pytest.raises(rv.DataError, match="has no 'outs', which field asks for"):
        list(rv.read(path, field="outs"))
    path.write_bytes(lines({"candidates": [{"text": text, "logprob": -0.1} for text in "ab"]}))
    with pytest.warns(UserWarning, match=r"with log_base, or .* score_scale='count'") as warned:
        list(rv.read(path))
    assert warned[0].filename == __file__


# Sockeye

SOCKEYE = {
    "score": 0.4,
    "scores": [[0.4], [0.55]],
    "sentence_id": 1,
    "translation": "a b",
    "translations": ["a b", "a b c"],
}


@pytest.mark.parametrize(
    ("changes", "options", "expected"),
    [
        ({}, {"normalisation": "length"}, [-0.4 * 3, -0.55 * 4]),  # words and the end of the sequence
        ({}, {"normalisation": 0.5}, [-0.4 * math.sqrt(3), -0.55 * 2]),
        ({"scores": [1.4, 2.5]}, {"normalisation": "none"}, [-1.4, -2.5]),
        ({}, {"score_scale": "count"}, [None, None]),
        ({"scores": None, "score": None}, {}, [None, None]),
        ({"translations": None, "scores": None, "score": 2.0}, {"normalisation": "none"}, [-2.0]),
    ],
)
def test_the_scores_of_sockeye_are_costs_divided_by_a_power_of_the_length(
    ballots: Ballots, changes: dict[str, Any], options: dict[str, Any], expected: list[float]
) -> None:
    record = {name: value for name, value in (SOCKEYE | changes).items() if value is not None}
    [ballot] = ballots(lines(record), **options)
    assert (ballot.id, texts(ballot)) == (1, ["a b", "a b c"][: len(expected)])
    assert logprobs(ballot) == (expected if None in expected else pytest.approx(expected))


def test_the_power_by_which_sockeye_divides_is_asked_for(entries: Entries) -> None:
    with pytest.raises(UsageError, match=r"--length-normalised length \(Sockeye's default.*alpha 0"):
        entries(lines(SOCKEYE))


# vLLM

VLLM = {
    "request_id": "0",
    "prompt": "Say hi",
    "outputs": [
        {"text": "Hi", "token_ids": [5, 2], "cumulative_logprob": -1.2, "finish_reason": "stop"},
        {"text": "Hello", "token_ids": [6], "cumulative_logprob": None, "finish_reason": "length"},
    ],
}


def test_outputs_of_vllm_are_samples(ballots: Ballots) -> None:
    (ballot,) = ballots(lines(VLLM))
    assert (ballot.id, ballot.source) == ("0", "Say hi")
    assert ballot.candidates == [
        Hypothesis("Hi", [5], -1.2, sampled=True),
        Hypothesis("Hello", [6], None, sampled=True, finished=False),
    ]
    chat = {"prompt": [{"role": "user", "content": "Hi"}], "outputs": [{"text": ""}]}
    assert ballots(lines(chat)) == [Ballot([Hypothesis("", sampled=True)])]


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({"finish_reason": "stop", "stop_reason": None}, [5]),  # the end of the sequence
        ({"finish_reason": "stop", "stop_reason": 2}, [5]),  # a stop token
        ({"finish_reason": "stop", "stop_reason": "\n"}, [5, 2]),  # a stop string
        ({"finish_reason": "length", "stop_reason": None}, [5, 2]),
        ({"finish_reason": None}, [5, 2]),
        ({"finish_reason": "stop", "token_ids": []}, []),
    ],
)
def test_the_token_that_ends_a_sequence_is_not_one_of_its_tokens(
    ballots: Ballots, fields: dict[str, Any], tokens: list[int]
) -> None:
    (ballot,) = ballots(lines({"outputs": [{"text": "Hi", "token_ids": [5, 2], **fields}]}))
    assert ballot.candidates[0].tokens == tokens


# OpenAI


def batch(*choices: dict[str, Any], **row: Any) -> dict[str, Any]:
    response = {"status_code": 200, "body": {"choices": list(choices)}}
    return {"id": "batch_req_1", "custom_id": "r", "response": response, "error": None, **row}


def chat(content: Any, reason: str | None = "stop", **more: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": content, **more}, "finish_reason": reason}


LOGPROBS = {"content": [{"token": "Hi", "logprob": -0.31}, {"token": "!", "logprob": -0.5}]}
HI = {**chat("Hi"), "logprobs": LOGPROBS}
REFUSAL = chat(None, refusal="I cannot help with that.")
FILTERED = chat("", "content_filter")
ADD = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
RUN = {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "x = 1"}}
CALL = ToolCall("add", '{"a": 1}')


@pytest.mark.parametrize(
    ("choice", "hypothesis"),
    [
        (HI, Hypothesis("Hi", logprob=-0.81, token_logprobs=[-0.31, -0.5])),
        (chat("Hello", "length"), Hypothesis("Hello", finished=False)),
        # what a model wrote to itself does not vote
        (
            {**chat("<think>2 + 2</think>4"), "logprobs": {"content": [{"logprob": -0.5}]}},
            Hypothesis("4", token_logprobs=[-0.5]),
        ),
        (chat(None, "length"), Hypothesis("", finished=False)),
        (chat("yes, but", "content_filter"), Hypothesis("yes, but", finished=False)),
        (chat(None, tool_calls=[ADD, RUN]), Hypothesis(tool_calls=[CALL, ToolCall("run", '"x = 1"')])),
        (chat("See.", tool_calls=[ADD]), Hypothesis("See.", tool_calls=[CALL])),
        (chat(None, function_call=ADD["function"]), Hypothesis(tool_calls=[CALL])),
    ],
)
def test_choices_of_openai_are_samples(
    ballots: Ballots, choice: dict[str, Any], hypothesis: Hypothesis
) -> None:
    expected = Ballot([msgspec.structs.replace(hypothesis, sampled=True)], id="r")
    assert ballots(lines(batch(choice))) == [expected]
    bare = {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]}
    assert ballots(lines(bare))[0] == Ballot(expected.candidates, id="chatcmpl-1")


def message(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(parts)}


CUT_OFF = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
CALLED = {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a": 1}'}


def output_text(text: str, *logprobs: float) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "logprobs": [{"logprob": p} for p in logprobs]}


@pytest.mark.parametrize(
    ("body", "hypothesis"),
    [
        (
            {
                "output": [
                    {"type": "reasoning", "summary": []},
                    message(output_text("Hi", -0.5), output_text("!", -0.25)),
                ]
            },
            Hypothesis("Hi!", logprob=-0.75, sampled=True, token_logprobs=[-0.5, -0.25]),
        ),
        ({**CUT_OFF, "output": [message(output_text("Hi"))]}, Hypothesis("Hi", sampled=True, finished=False)),
        ({"output": [CALLED]}, Hypothesis(sampled=True, tool_calls=[CALL])),
    ],
)
def test_answers_of_the_responses_api_are_read(
    ballots: Ballots, body: dict[str, Any], hypothesis: Hypothesis
) -> None:
    body = {"id": "resp_1", "object": "response", "status": "completed", **body}
    row = {"id": "b", "custom_id": "r", "response": {"status_code": 200, "body": body}, "error": None}
    assert ballots(lines(row)) == [Ballot([hypothesis], id="r")]
    assert ballots(lines(body)) == [Ballot([hypothesis], id="resp_1")]


def test_refusals_and_filtered_answers_are_left_out_with_one_warning(ballots: Ballots, fault: Fault) -> None:
    rows = [batch(REFUSAL, chat("yes", refusal=None), FILTERED, custom_id=f"r{i}") for i in range(2)]
    with pytest.warns(UserWarning, match=r"^response.body.choices: refusals and .* are left out") as warned:
        found = ballots(lines(*rows))
    assert [ballot.candidates for ballot in found] == [[Hypothesis("yes", sampled=True)]] * 2
    assert len(warned) == 1
    assert fault(lines(rows[0]), strict=True).field == "response.body.choices"
    refused = {"object": "response", "output": [message({"type": "refusal", "refusal": "No."})]}
    assert "nothing to vote on" in fault(lines(refused)).problem
    for choices in ([REFUSAL], [FILTERED, REFUSAL]):
        error = fault(lines(batch(*choices)))
        assert (error.field, "nothing to vote on" in error.problem) == ("response.body.choices", True)


def test_failed_requests_are_errors_and_reading_goes_on(entries: Entries) -> None:
    limit = {"status_code": 429, "body": {"error": {"message": "Rate limit reached"}}}
    found = entries(
        lines(
            {"custom_id": "r2", "response": limit, "error": None},
            {"custom_id": "r3", "response": None, "error": {"code": "expired", "message": "too late"}},
            {"custom_id": "r4", "response": None, "error": None},
            batch(HI),
        )
    )
    assert [str(entry.error) for entry in found[:2]] == [
        "input:1: request 'r2' failed with status 429: Rate limit reached",
        "input:2: request 'r3' failed: too late",
    ]
    assert "input:3: has no response body; expected" in str(found[2].error)
    assert found[3].get().id == "r"


@pytest.mark.parametrize(("format", "record"), [("vllm", VLLM), ("openai", batch(HI))])
def test_scores_of_one_meaning_may_be_ignored_but_not_reinterpreted(
    ballots: Ballots, format: str, record: dict[str, Any]
) -> None:
    assert logprobs(ballots(lines(record), score_scale="count")[0])[0] is None
    for option in ({"log_base": "2"}, {"normalisation": "length"}, {"sign": 1}, {"score_scale": 2}):
        with pytest.raises(UsageError, match=rf"--[a-z-]+ does not apply to the format '{format}'"):
            ballots(lines(record), **option)


@pytest.mark.parametrize(
    ("text", "ended", "reasoning", "answer"),
    [
        ("4", True, "", "4"),
        ("<think>\na\n</think>\n\n4\n", True, "a", "4\n"),
        (" <think>a <think> b</think>4", True, "a <think> b", "4"),
        ("<think>\n\n</think>\n\n4", True, "", "4"),  # a model that was told not to think
        ("a\n</think>\n\n4 </think>", True, "a", "4 </think>"),
        ("write </think> here", True, "", "write </think> here"),
        ("a <think>b</think> c", True, "", "a <think>b</think> c"),
        ("<think> is a tag", True, "", "<think> is a tag"),
        ("<think>a", False, "a", ""),  # cut off before the answer
        ("a", False, "", "a"),
    ],
)
def test_reasoning_is_cut_from_the_answer(text: str, ended: bool, reasoning: str, answer: str) -> None:
    assert split_reasoning(text, ended) == (reasoning, answer)


# JSON arrays

PIPELINE = [[{"generated_text": "a"}, {"generated_text": ""}], [{"generated_text": "b"}], []]


TURNS = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        *[(json.dumps(PIPELINE, indent=n).encode() + b"\r\n", [["a", ""], ["b"], []]) for n in (None, 0, 2)],
        *[(json.dumps(PIPELINE[0], indent=n).encode(), [["a", ""]]) for n in (None, 0, 2)],
        (lines(*PIPELINE), [["a", ""], ["b"], []]),
        (b'["a", "b"]\n\n["c"]\n', [["a", "b"], ["c"]]),
        (b'["a",\n "b"]', [["a", "b"]]),
        (lines([[{"generated_text": TURNS}]]), [["Hello"]]),
        (b'[{"translation_text": "a"}, {"summary_text": "b"}]', [["a", "b"]]),
        (b"[]", []),
        (b" \n", []),
    ],
)
def test_each_list_of_an_array_or_on_a_line_is_a_ballot(
    ballots: Ballots, data: bytes, expected: list[list[str]]
) -> None:
    found = ballots(data, format="json")
    assert [(ballot.id, texts(ballot)) for ballot in found] == list(enumerate(expected))


def test_a_bad_list_on_a_line_is_named(entries: Entries) -> None:
    found = entries(lines(*PIPELINE, [{"x": 1}]))
    assert [entry.ballot is not None for entry in found] == [True, True, True, False]
    assert str(found[3].error).startswith("input:4: outputs[0]: has no text under a usual name")


def test_records_in_an_array_are_read_as_those_of_lines(ballots: Ballots) -> None:
    records: list[Any] = [{"task_id": i % 2, "completion": f"text {i}"} for i in range(4)]
    own = {"id": 4, "source": "s", "candidates": ["a", {"text": "b", "logprob": -1}], "voters": ["c"]}
    for written in (records, [own]):
        assert ballots(json.dumps(written, indent=1).encode()) == ballots(lines(*written))


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b'{"generated_text": "a"}', {}, "input: expected an array .* is the format jsonl"),
        (b"[[5]]", {}, r"input\[0\]: outputs\[0\]: expected a text or an object, got the number 5"),
        (b"[5]", {}, r"input\[0\]: outputs: expected a list of texts or objects"),
        (b'[{"x": 1}]', {}, "input: cannot tell where the candidates are among the fields x: name a list"),
        (b'[[{"generated_text": "a"}]', {}, "input: not valid JSON"),
        (b"[" + b" " * 20 + b"]", {"max_line_bytes": 20}, "input: the document exceeds --max-line-bytes"),
    ],
)
def test_bad_documents_are_named(fault: Fault, data: bytes, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        raise fault(data, format="json", **options)


def test_scores_in_a_list_beside_texts_go_to_the_candidates_and_must_be_as_many(
    ballots: Ballots, fault: Fault
) -> None:
    record = b'{"id": 1, "outputs": ["a", "b"], "reward": %s}'
    [ballot] = ballots(record % b"[1, 5]", score_field=["reward"])
    assert [candidate.scores for candidate in ballot.candidates] == [{"reward": 1.0}, {"reward": 5.0}]
    error = fault(record % b"[1]", score_field=["reward"])
    assert (error.field, error.problem) == ("reward", "1 scores for 2 texts")
