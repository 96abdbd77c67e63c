from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from rangevote.errors import DataError
from rangevote.formats import Entry
from rangevote.hypothesis import Ballot, Hypothesis

Entries = Callable[..., list[Entry]]
Ballots = Callable[..., list[Ballot]]

INPUTS = [[{"generated_text": "a"}, {"generated_text": ""}], [{"generated_text": "b"}], []]


def texts(found: list[Ballot]) -> list[list[str | None]]:
    return [[h.text for h in ballot.candidates] for ballot in found]


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_one_list_for_each_input(ballots: Ballots, indent: int | None) -> None:
    found = ballots(json.dumps(INPUTS, indent=indent).encode() + b"\r\n")
    assert texts(found) == [["a", ""], ["b"], []]
    assert [ballot.id for ballot in found] == [0, 1, 2]
    assert found[0].candidates[0] == Hypothesis("a")


@pytest.mark.parametrize("indent", [None, 2])
def test_a_flat_list_is_one_input(ballots: Ballots, indent: int | None) -> None:
    assert texts(ballots(json.dumps(INPUTS[0], indent=indent).encode())) == [["a", ""]]


def test_one_list_a_line_is_read_line_by_line(entries: Entries) -> None:
    data = b"".join(json.dumps(item).encode() + b"\n" for item in INPUTS) + b'[{"x": 1}]\n'
    found = entries(data)
    assert texts([entry.get() for entry in found[:3]]) == [["a", ""], ["b"], []]
    assert str(found[3].error).startswith("input:4: outputs[0]: has no text under a usual name")


def test_the_last_message_of_a_chat_is_the_text(ballots: Ballots) -> None:
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    assert texts(ballots(json.dumps([[{"generated_text": chat}]]).encode())) == [["Hello"]]


def test_translations_and_summaries_are_read(ballots: Ballots) -> None:
    assert texts(ballots(b'[{"translation_text": "a"}, {"summary_text": "b"}]')) == [["a", "b"]]


def test_records_are_read_as_those_of_lines_are(ballots: Ballots) -> None:
    records = [{"task_id": i % 2, "completion": f"text {i}"} for i in range(4)]
    found = ballots(json.dumps(records, indent=1).encode())
    assert [(ballot.id, texts([ballot])) for ballot in found] == [
        (0, [["text 0", "text 2"]]),
        (1, [["text 1", "text 3"]]),
    ]
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    assert found == ballots(lines)


def test_ballots_in_an_array_are_those_of_the_ballot_file(ballots: Ballots) -> None:
    line = b'{"id": 4, "source": "s", "candidates": ["a", {"text": "b", "logprob": -1}], "voters": ["c"]}'
    assert ballots(b"[" + line + b"]") == ballots(line)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"generated_text": "a"}', "input: expected an array .* are the format jsonl"),
        (b"[[5]]", r"input\[0\]: outputs\[0\]: expected a text or an object, got 5"),
        (b'[[{"generated_text": 5}]]', r"input\[0\]: outputs\[0\].generated_text: expected a text, got 5"),
        (b"[5]", r"input\[0\]: outputs: expected a list of texts or objects"),
        (b'[{"x": 1}]', "input: cannot tell where the candidates are among the fields x: name a list"),
        (b'[[{"generated_text": "a"}]', "input: not valid JSON"),
    ],
)
def test_bad_documents_are_named(fault: Callable[..., DataError], data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        raise fault(data, format="json")


def test_a_document_over_the_limit_is_named(fault: Callable[..., DataError]) -> None:
    data = json.dumps(INPUTS).encode()
    assert str(fault(data, max_line_bytes=20)) == ("input: the document exceeds --max-line-bytes (20 bytes)")


def test_an_empty_document_has_no_ballots(entries: Entries) -> None:
    assert entries(b" \n", format="json") == []
    assert entries(b"[]", format="json") == []
