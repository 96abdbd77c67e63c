"""Layouts of other people: found under the usual names, or told by options."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

import rangevote as rv
from rangevote.errors import DataError, UsageError
from rangevote.formats import Entry, ReadOptions, read, read_batches
from rangevote.formats.layouts import LISTS, TEXTS
from rangevote.hypothesis import Ballot

Entries = Callable[..., list[Entry]]
Ballots = Callable[..., list[Ballot]]


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def texts(ballot: Ballot) -> list[str | None]:
    return [hypothesis.text for hypothesis in ballot.candidates]


@pytest.mark.parametrize("name", LISTS)
def test_a_list_under_a_usual_name_is_the_candidates(ballots: Ballots, name: str) -> None:
    [ballot] = ballots(lines({"question_id": 7, "prompt": "?", name: ["a b", "a c"]}))
    assert (ballot.id, ballot.source, texts(ballot)) == (7, "?", ["a b", "a c"])


def test_samples_by_name_count_once_each(ballots: Ballots) -> None:
    [ballot] = ballots(lines({"samples": ["a", "b"], "logprobs": [-1, -2]}))
    assert [(h.sampled, h.logprob) for h in ballot.candidates] == [(True, -1.0), (True, -2.0)]


def test_responses_of_lm_eval_are_read(ballots: Ballots) -> None:
    record = {"doc_id": 3, "doc": {"question": "?"}, "target": "42", "resps": [["41", "42"]]}
    [ballot] = ballots(lines(record))
    assert (ballot.id, texts(ballot), list(ballot.references)) == (3, ["41", "42"], ["42"])


@pytest.mark.parametrize("name", sorted(set(TEXTS) - {"message"}))
def test_one_sample_a_record_is_grouped_by_what_repeats(ballots: Ballots, name: str) -> None:
    records = [{"id": i, "prompt_id": i % 2, name: f"text {i}"} for i in range(4)]
    found = ballots(lines(*records))
    assert [(ballot.id, texts(ballot)) for ballot in found] == [
        (0, ["text 0", "text 2"]),
        (1, ["text 1", "text 3"]),
    ]


def test_samples_of_one_prompt_are_grouped_by_the_prompt(ballots: Ballots) -> None:
    chat = [{"role": "user", "content": "?"}]
    records = [{"prompt": chat, "message": {"role": "assistant", "content": text}} for text in ("a", "b")]
    [ballot] = ballots(lines(*records), group_by="prompt")
    assert (ballot.id, texts(ballot)) == (None, ["a", "b"])


def test_options_name_any_path(ballots: Ballots) -> None:
    record = {"run": {"choices": [{"out": {"t": "a"}, "p": [-1, -0.5]}, {"out": {"t": "b"}, "p": -2}]}}
    [ballot] = ballots(lines(record), field="run.choices", text_field="out.t", logprob_field="p")
    assert [(h.text, h.logprob) for h in ballot.candidates] == [("a", -1.5), ("b", -2.0)]
    assert texts(ballots(lines(record), field="$.run.choices[*].out.t")[0]) == ["a", "b"]


def test_log_probabilities_may_stand_beside_plain_texts(ballots: Ballots) -> None:
    [ballot] = ballots(lines({"texts": ["a", "b"], "lp": [-1, [-2, -0.5]]}), logprob_field="lp")
    assert [h.logprob for h in ballot.candidates] == [-1.0, -2.5]


def test_lists_of_several_records_are_pooled_by_what_they_share(ballots: Ballots) -> None:
    records = [{"task": 1, "outs": ["a"]}, {"task": 2, "outs": ["b"]}, {"task": 1, "outs": ["c", "d"]}]
    found = ballots(lines(*records), field="outs", group_by="task")
    assert [(ballot.id, texts(ballot)) for ballot in found] == [(1, ["a", "c", "d"]), (2, ["b"])]


def test_options_come_before_a_known_format(ballots: Ballots) -> None:
    record = {"prompt": "?", "outputs": [{"text": "a", "raw": "b"}]}
    assert texts(ballots(lines(record), text_field="raw", field="outputs")[0]) == ["b"]
    with pytest.raises(UsageError, match=r"--field, .* not for the format 'moses'"):
        ballots(b"0 ||| a ||| F0= -1 ||| -1\n", field="outputs")


def test_fields_of_the_ballot_file_keep_their_meaning(ballots: Ballots) -> None:
    record = {"outs": [{"text": "a", "logprob": -1, "tokens": [1, 2], "finished": False}], "voters": ["v"]}
    [ballot] = ballots(lines(record), field="outs")
    assert ballot.candidates[0] == rv.Hypothesis("a", tokens=[1, 2], logprob=-1.0, finished=False)
    assert [voter.text for voter in ballot.voters or ()] == ["v"]


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        ([{"outputs": ["a", 5]}], {}, r"input:1: outputs\[1\]: expected a text or an object, got 5"),
        ([{"outs": ["a"]}], {"field": "out"}, "has no 'out', which --field asks for. Did you mean 'outs'"),
        ([{"outputs": [{"x": 1}]}], {"field": "outputs"}, r"outputs\[0\]: has no text under .*: x\)"),
        ([{"os": [{"text": "a", "logprob": 3}]}], {"field": "os"}, r"os\[0\].logprob: 3.0 is not a log"),
        ([{"texts": ["a"], "lp": [1, 2]}], {"logprob_field": "lp"}, "lp: 2 log-probabilities for 1 texts"),
        ([{"texts": ["a"], "lp": ["x"]}], {"logprob_field": "lp"}, r"lp\[0\]: expected a number, got 'x'"),
        ([{"outs": {"a": 1}}], {"field": "outs"}, "outs: expected a list of texts or objects, got dict"),
        ([{"k": 1, "text": "a"}, {"k": 1, "text": 5}], {"group_by": "k"}, "input:2: text: expected a text"),
        ([{"k": 1, "text": "a"}, {"text": "b"}], {"group_by": "k"}, "input:2: has no 'k', which --group-by"),
        ([{"foo": 1}], {"warn": lambda message: None}, "has no candidates; .*--field, .*--group-by"),
        ([{"a": ["b"]}, [1]], {"field": "a"}, "input:2: expected an object, got an array"),
    ],
)
def test_bad_records_are_named(
    fault: Callable[..., DataError], records: list[Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        raise fault(lines(*records), **options)


def test_a_path_that_is_none_is_a_usage_error(entries: Entries) -> None:
    with pytest.raises(UsageError, match=r"'a\[' is no path to a field"):
        entries(lines({"a": ["b"]}), field="a[")


def test_a_bad_sample_spoils_its_ballot_alone(entries: Entries) -> None:
    records = [{"k": 1, "text": "a"}, {"k": 2, "text": "b"}, {"k": 1, "text": None}, {"k": 2, "text": "c"}]
    first, second = entries(lines(*records), group_by="k")
    assert (first.where, second.where, texts(second.get())) == ("input:3", "input:2", ["b", "c"])


def test_fields_are_carried_from_records_of_every_kind(ballots: Ballots) -> None:
    own = {"candidates": ["a"], "meta": {"topic": "x"}, "source": "s"}
    assert ballots(lines(own), carry=["meta.topic", "source"])[0].carry == {"meta.topic": "x", "source": "s"}
    vllm = {"prompt": "?", "outputs": [{"text": "a"}]}
    assert ballots(lines(vllm), carry=["prompt"])[0].carry == {"prompt": "?"}
    rows = [{"k": 1, "text": "a", "meta": 5}, {"k": 1, "text": "b", "meta": 5}]
    assert ballots(lines(*rows), group_by="k", carry=["meta"])[0].carry == {"meta": 5}
    assert ballots(b"S-0\tsrc\nH-0\t-1\ta\nP-0\t-1\n", carry=["source"])[0].carry == {"source": "src"}


def test_a_field_that_is_not_there_is_carried_as_null_and_reported(ballots: Ballots) -> None:
    said: list[str] = []
    record = {"prompt": "?", "responses": ["a"]}
    [ballot] = ballots(lines(record), carry=["promt"], warn=said.append)
    assert (ballot.carry, said) == (
        {"promt": None},
        ["there is no field 'promt' to carry, so it is null. Did you mean 'prompt'?"],
    )
    with pytest.raises(DataError, match="no field 'promt'"):
        ballots(lines(record), carry=["promt"], strict=True)


def test_different_values_within_a_ballot_are_reported(ballots: Ballots) -> None:
    said: list[str] = []
    rows = [{"k": 1, "text": "a", "meta": 5}, {"k": 1, "text": "b", "meta": 6}]
    [ballot] = ballots(lines(*rows), group_by="k", carry=["meta"], warn=said.append)
    assert (ballot.carry, len(said), "different values of meta" in said[0]) == ({"meta": 5}, 1, True)


def test_batches_for_workers_have_the_same_ballots(tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(lines(*({"task_id": i // 3, "completion": f"a {i}"} for i in range(3000))))
    options = ReadOptions()
    with read_batches(str(path), options) as batches:
        found = [entry.get() for batch in batches for entry in batch.entries(options)]
    assert found == list(rv.read(path))
    assert len(found) == 1000


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
    with pytest.raises(rv.UsageError, match=r"no option 'groupby' of read. Did you mean 'group_by'"):
        rv.read(path, groupby="id")
    with pytest.raises(rv.UsageError, match="carry is 'id'; give a list"):
        rv.read(path, carry="id")
