from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest

from rangevote.errors import UsageError
from rangevote.formats import FORMATS, ReadOptions, read
from rangevote.formats.detect import format_of

EXAMPLES = {
    "jsonl": b'{"id": 1, "candidates": ["a"]}\n',
    "moses": b"0 ||| Das ist gut . ||| F0= -2.41205 ||| -0.48241\n",
    "fairseq": b"S-7\thead massager\nH-7\t-0.2639\thyp\nP-7\t-0.2926 -0.7546\n",
    "sockeye": b'{"score":0.4,"scores":[[0.4]],"sentence_id":1,"translation":"a","translations":["a"]}\n',
    "mbrs": b"first hypothesis\nsecond\n",
    "vllm": b'{"prompt": "a", "outputs": [{"text": "b"}]}\n',
    "openai": b'{"id":"b","custom_id":"r","response":{"status_code":200,"body":{"choices":[]}}}\n',
    "json": b'[[{"generated_text": "a"}]]\n',
    "csv": b"id,text\n1,a\n",
    "tsv": b"prompt\tresponse\nq\ta\n",
}
SETTLED: dict[str, dict[str, Any]] = {"mbrs": {"per_source": 2}, "sockeye": {"normalisation": "length"}}


def found(data: bytes, **options: Any) -> str | None:
    with read(io.BytesIO(data), ReadOptions(**options)) as reading:
        return reading.format


def test_there_is_an_example_of_every_format_of_text() -> None:
    assert set(EXAMPLES) == set(FORMATS) - {"parquet"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_format_is_known_by_its_first_bytes(name: str) -> None:
    options = SETTLED.get(name, {})
    with read(io.BytesIO(EXAMPLES[name]), ReadOptions(**options)) as reading:
        assert reading.format == name
        assert [entry.error for entry in reading] == [None]


@pytest.mark.parametrize("name", EXAMPLES)
def test_marks_blank_lines_crlf_and_compression_do_not_hide_a_format(name: str) -> None:
    data = EXAMPLES[name].replace(b"\n", b"\r\n")
    blank = b"" if name == "mbrs" else b"\r\n"  # there, a blank line is an empty hypothesis
    packed = gzip.compress(b"\xef\xbb\xbf" + blank + data)
    assert found(packed, **SETTLED.get(name, {})) == name


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b'{"hypotheses": ["a"], "outputs": 5}\n', "jsonl"),
        (b'{"source": "\\"outputs\\": [", "candidates": ["a"]}\n', "jsonl"),
        (b'{"source": "\\"outputs\\": [", "candidates": ["cut o', "jsonl"),
        (b'{"meta": {"choices": 1}, "candidates": []}\n', "jsonl"),
        (b'{"something": "else"}\n', "jsonl"),
        (b'{"broken\n', "jsonl"),
        (b'["a", "b"]\n', "jsonl"),
        (b'[{"candidates": ["a"]}]', "json"),
        (b'{"prompt": "a", "outputs": ["b", "c"]}\n', "jsonl"),
        (b'{"prompt": "a", "outputs": ["b", "cut o', "jsonl"),
        (b'{"prompt": "a", "outputs": [{"text": "cut o', "vllm"),
        (b'{"prompt": "a", "response": "b"}\n', "jsonl"),
        (b'{"prompt": "a", "translation": "b"}\n', "jsonl"),
        (b'{"question": "a", "choices": ["b", "c"]}\n', "jsonl"),
        (b'{"translations": ["a"], "scores": [[NaN]]}\n', "sockeye"),
        (b'{"choices": []}', "openai"),
        (b"log | INFO | generating\nmore\nH-0\t-1\ta\nP-0\t-1\n", "fairseq"),
        (b"doc.1 ||| text |||  ||| 1\n", "moses"),
    ],
)
def test_lookalikes_are_told_apart(data: bytes, name: str) -> None:
    assert found(data) == name


def test_a_long_first_line_is_known_by_its_keys() -> None:
    prompt = "x" * 700_000
    assert found(json.dumps({"prompt": prompt, "outputs": [{"text": prompt}]}).encode()) == "vllm"


def test_half_a_line_is_enough_if_no_more_can_be_had() -> None:
    assert format_of(b'{"id": 3, "candidates": [{"te') == "jsonl"
    assert format_of(b'{"id": 3, "candidates": [{"te', whole=False) is None
    assert format_of(b'{"id": 3, "cand') is None


def test_an_empty_input_has_no_format_and_no_entries() -> None:
    for data in (b"", b"\n \r\n", b"\xef\xbb\xbf", gzip.compress(b"")):
        with read(io.BytesIO(data)) as reading:
            assert reading.format is None
            assert list(reading) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"just some text\nand more\n", r"input, which begins 'just some text'; .*--per-source N"),
        (b'{\n  "candidates": []\n}\n', r"which begins '\{'; name it with --format.* jq -c \. FILE"),
        (b"a,b\n1,2\n", "if it is CSV or TSV, name a column with --group-by or --field"),
        (b"\xff\xfd\xfc\n", "cannot tell the format of input"),
        (b"a,b\rc,d\n", "cannot tell the format of input"),
    ],
)
def test_what_cannot_be_told_is_asked_for(data: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(io.BytesIO(data))
