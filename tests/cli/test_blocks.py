"""Blocks of lines through the kernels against line by line through Python: same bytes, errors, warnings."""

# ruff: noqa: E501  (a line of input is a line)

from __future__ import annotations

import importlib
import io
import json
import random
import struct
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from rangevote.cli.blocks import BlockVoting, ElectedBlock
from rangevote.cli.vote import Voting
from rangevote.election.settings import Settings
from rangevote.formats import ReadOptions, open_stream
from rangevote.formats.result_writer import ResultLine, ResultShape
from rangevote.kernel import COMPILED

pytestmark = pytest.mark.skipif(not COMPILED, reason="there are no compiled kernels")

PLAIN = b'{"id": %d, "candidates": [{"text": "a b c", "logprob": -1.5}, {"text": "a b d", "logprob": -2}]}'
#: Lines of which each is usual, unusual or wrong in its own way.
LINES = [
    b'{"id": "x", "source": "s", "references": ["r", "q"], "candidates": ["a b", "a c", "a b"]}',
    b'{"hypotheses": [{"text": "a b", "logprob": -1.0, "tokens": [1, 2]}, {"text": "c", "logprob": -2, "tokens": []}]}',
    b'{"candidates": ["a b", "b c"], "voters": [{"text": "b c", "logprob": -0.25}, {"text": "c", "logprob": -3e0}]}',
    rb'{"id":"\u00e9\n\"\\\/","candidates":["\ud83d\ude00 \u00e4 b","\u0001 b \u007f","c \u2028 \u0000"]}',
    '{"candidates": ["日本 語", "é\u00a0b", "\u3000"], "id": "ü\u2028"}'.encode(),
    b'{"candidates": [{"text": "a", "logprob": -1e-7, "sampled": true}, {"text": "a", "logprob": -1, "sampled": true}]}',
    b'{"candidates": [{"text": "a b", "finished": false, "logprob": -3}, {"text": "c", "logprob": -2.5, "finished": true}]}',
    b'{"candidates": [{"text": "a", "logprob": -1}, {"text": "a", "logprob": -1}, {"text": "b", "logprob": -1}]}',
    b'{"candidates": [{"text": "a", "logprob": -0.1}, {"text": "b", "logprob": -0.1}]}',  # too probable
    b'{"candidates": [{"text": "a", "logprob": -1}, {"text": "b"}]}',
    b'{"candidates": [{"text": "a", "logprob": null}, {"text": "b", "logprob": null, "tokens": null}], "voters": null}',
    b'{"candidates": [{"text": "a", "logprob": -1e400}, {"text": "b", "logprob": -2}]}',
    b'{"candidates": [{"text": "a", "logprob": 0.5}]}',
    b'{"candidates": [{"text": "a", "logprob": -01}]}',
    b'{"candidates": [{"text": "a", "logprob": -1.}]}',
    b'{"candidates": [{"text": "a", "logprob": -12345678901234567890}, {"text": "b", "logprob": -1}]}',
    b'{"candidates": [{"text": "a", "logprob": -1.2345678901234567}, {"text": "a c", "logprob": -0.30000000000000004}]}',
    b'{"candidates": [{"text": "a", "weight": 1.0}, {"text": "b", "weight": 2}]}',
    b'{"candidates": [{"text": "a", "prob": 0.5}]}',
    b'{"candidates": [{"text": "a", "state": [1.0]}]}',
    b'{"candidates": [{"text": "a", "member": "m"}], "voters": [{"text": "a", "member": "m"}]}',
    b'{"candidates": [{"tokens": [1, 2]}, {"tokens": [1, 3]}]}',
    b'{"candidates": [{"text": "a", "text": "b"}, "c"]}',
    b'{"candidates": ["a"], "candidates": ["b"]}',
    b'{"candidates": ["a"], "hypotheses": ["b"]}',
    b'{"candidates": ["a"], "unknown": 1}',
    b'{"candidates": ["a"], "id": 1.0}',
    b'{"candidates": ["a"], "id": -0}',
    b'{"candidates": ["a"], "id": 007}',
    b'{"candidates": ["a"], "id": 123456789012345678901}',
    b'{"candidates": ["a"], "id": true}',
    b'{"candidates": []}',
    b'{"candidates": ["", " "]}',
    b'{"candidates": ["a", null]}',
    b'{"candidates": ["a",]}',
    b'{"candidates": ["a"]} x',
    b'{"candidates": ["a"]}\x00',
    b'{"candidates": ["a\tb"]}',
    b'{"candidates": ["\xff"]}',
    b'{"candidates": ["\xed\xa0\x80"]}',
    b'{"candidates": ["\xc0\xaf"]}',
    rb'{"candidates": ["\ud800"]}',
    rb'{"candidates": ["\ud800\u0041"]}',
    rb'{"candidates": ["\x"]}',
    b'{"candidates": ["a"], "source": null, "references": null, "id": null}',
    b'{"candidates": ["a"], "references": [1]}',
    b'\xef\xbb\xbf{"candidates": ["a"]}',
    b"[]",
    b"null",
    b"{",
    b'{"candidates": ["a"',
    b"",
    b"  \t",
    b'  { "candidates" : [ "a b" , { "text" : "a" } ] , "id" : 12 }  \r',
]
OPTIONS: list[dict[str, Any]] = [
    {"similarity": "overlap_2"},
    {"similarity": "overlap_1-4@0.25", "temperature": 2.0},
    {"similarity": "overlap_1-4@0.25"},
    {"similarity": "chrf"},
    {"similarity": "bleu_4", "likelihood": 0.5},
    {"similarity": "smoothed_bleu_2", "weights": "count"},
    {"similarity": "precision_2", "weights": "probability", "likelihood": 1e300},
    {"similarity": "overlap_1", "likelihood": 1e-12},
]


class NoSink:
    done, last = 0, b""


class Trickle(io.BytesIO):
    """A file that gives a few bytes at a time."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self._most = most

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.read(self._most)


def contents(line: ResultLine) -> list[bytes]:
    """The lines of each ballot, of which a block may give many at once."""
    found = line.content.splitlines(keepends=True) or [b""]
    assert len(found) == line.ballots
    return found


def written(
    data: bytes,
    options: Any,
    shape: ResultShape,
    *,
    blocks: bool,
    most: int = 1 << 20,
    workers: int = 1,
    **reading: Any,
) -> Any:
    """The lines of output with their errors, what ended the run, and the warnings."""
    warned: list[str] = []
    format = "parquet" if data.startswith(b"PAR1") else "jsonl"
    read = ReadOptions(format=format, warn=warned.append, **reading)
    voting = Voting(Settings(**options), shape, read, allow_empty=False)
    sink: Any = NoSink()
    lines: list[ResultLine] = []
    ended = None
    with warnings.catch_warnings(record=True) as caught, ExitStack() as files:
        warnings.simplefilter("always")
        stream = files.enter_context(open_stream(Trickle(data, most)))
        if blocks:
            assert BlockVoting.can(voting, format)
            made = BlockVoting(voting).lines(stream, sink, workers)
        else:
            _, made = voting.one_by_one(files, stream, {}, sink)
        try:
            lines.extend(made)
        except Exception as error:
            ended = (type(error), str(error))
    shown = [
        (content, type(line.error), str(line.error or "")) for line in lines for content in contents(line)
    ]
    most = max((line.candidates for line in lines), default=0)  # what is known of single ones differs
    return shown, most, ended, warned, [str(warning.message) for warning in caught]


def same(data: bytes, options: Any, shape: ResultShape = ResultShape(), **how: Any) -> Any:  # noqa: B008
    kept = {name: value for name, value in how.items() if name in ("strict", "unique_ids")}
    careful = written(data, options, shape, blocks=False, **kept)
    assert written(data, options, shape, blocks=True, **how) == careful
    return careful


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", [ResultShape(), ResultShape(scores=True), ResultShape(text=True)], ids=str)
def test_every_kind_of_line_gives_the_same_bytes_and_errors(options: Any, shape: ResultShape) -> None:
    data = b"\n".join(line + (b"\n" + PLAIN % i) for i, line in enumerate(LINES))
    for strict in (False, True):
        same(data, options, shape, strict=strict)
    for line in LINES if shape == ResultShape() else ():  # alone, as a last line without an end
        same(line, options)


@given(
    st.lists(st.sampled_from(LINES) | st.integers(0, 5).map(lambda i: PLAIN % i), max_size=12),
    st.sampled_from(OPTIONS),
    st.integers(1, 300),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    st.booleans(),
)
def test_however_the_bytes_come(lines: Any, options: Any, most: int, end: bytes, torn: bool) -> None:
    data = end.join(lines) + (b"" if torn else end)
    same(data, options, most=most, workers=1 + most % 2)
    same(data, options, most=most, unique_ids=False)


@given(st.sampled_from(LINES), st.randoms(use_true_random=False), st.sampled_from(OPTIONS))
def test_lines_with_changed_bytes(line: bytes, random: random.Random, options: Any) -> None:
    changed = bytearray(line)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(changed) + 1)
        changed[at : at + random.randrange(3)] = random.choices(
            b'0123-+.eE"\\{}[],: \tnulrtafsd\x80\xc3\xa9', k=random.randrange(3)
        )
    same(bytes(changed), options)


@given(
    st.lists(st.text(max_size=12), min_size=1, max_size=4),
    st.text(max_size=5) | st.integers(-(2**70), 2**70),
    st.booleans(),
)
def test_any_text_is_written_as_it_was(texts: Any, id: Any, ascii: bool) -> None:
    data = json.dumps({"id": id, "candidates": texts}, ensure_ascii=ascii).encode("utf-8", "surrogatepass")
    same(data, OPTIONS[0], ResultShape(scores=True))
    same(data, OPTIONS[0], ResultShape(text=True))


def test_numbers_of_all_sizes_are_written_alike() -> None:
    rng = random.Random(18)
    numbers = [-abs(struct.unpack("<d", rng.randbytes(8))[0]) for _ in range(3000)]
    numbers += [-m * 10.0**e for e in range(-8, 24) for m in (1, 1.5, 1.23456789012345678, 9.999999999999999)]
    usual = [number for number in numbers if number == number]
    data = b"".join(
        json.dumps({"candidates": [{"text": "a", "logprob": x}, {"text": "b", "logprob": x / 2}]}).encode()
        + b"\n"
        for x in usual
    )
    lines, *_ = same(
        data, {"similarity": "overlap_1", "likelihood": 2.0, "weights": "count"}, ResultShape(scores=True)
    )
    assert len(lines) == len(usual)


def test_a_block_is_held_by_the_kernels_as_far_as_its_lines_are_usual() -> None:
    voting = Voting(
        Settings(similarity="overlap_2"), ResultShape(), ReadOptions(format="jsonl"), allow_empty=False
    )
    blocks = BlockVoting(voting)
    number, lines, ids, unusual, most = blocks._elect(b"\n".join(LINES))
    assert number == len(LINES)
    assert most == 3
    assert [*unusual][:2] == [7, 8]
    assert len(lines.splitlines()) == len(ids) - len(unusual) == 11
    assert b"\n".join(LINES)[slice(*unusual[7][1:])] == LINES[unusual[7][0]] == LINES[7]
    assert ids[:4] == ["x", None, None, 'é\n"\\/']
    with open_stream(io.BytesIO(b"".join(PLAIN % i + b"\n" for i in range(9)))) as stream:
        assert blocks.suits(stream)
    with open_stream(io.BytesIO(b'{"candidates": [{"text": "a", "weight": 1.0}]}\n' * 9)) as stream:
        assert not blocks.suits(stream)


@pytest.mark.parametrize(
    ("settings", "shape", "reading"),
    [
        ({"similarity": "exact"}, {}, {}),
        ({"preset": "consensus"}, {}, {}),
        ({"similarity": "overlap_2"}, {"carry": ("source",)}, {}),
        ({"similarity": "overlap_2"}, {}, {"group_by": "id"}),
        ({"similarity": "overlap_2"}, {"explain": True}, {}),
        ({"similarity": "overlap_2"}, {}, {"log_base": "2"}),
        ({"similarity": "overlap_2"}, {}, {"score_scale": 1.0}),
        ({"similarity": "overlap_2"}, {}, {"max_line_bytes": 1000}),
    ],
)
def test_what_asks_for_more_goes_line_by_line(settings: Any, shape: Any, reading: Any) -> None:
    voting = Voting(Settings(**settings), ResultShape(**shape), ReadOptions(**reading), allow_empty=False)
    assert not BlockVoting.can(voting, "jsonl")


def test_a_block_without_memory_is_held_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise MemoryError

    data = b"\n".join(LINES)
    careful = written(data, OPTIONS[0], ResultShape(), blocks=False)
    monkeypatch.setattr("rangevote.cli.blocks.partial", lambda *_, **__: full)
    assert written(data, OPTIONS[0], ResultShape(), blocks=True) == careful


def test_pairs_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANGEVOTE_MAX_PAIRS", "3")
    _, _, ended, *_ = same(PLAIN % 1, {"similarity": "chrf"})
    assert "over the limit of 3" in ended[1]


#: Rows of Parquet; a file has one of the tables.
USUAL = {"text": "a b c", "logprob": -1.5}
TABLES: list[list[dict[str, Any]]] = [
    [{"id": i, "candidates": [USUAL, {"text": "a b d", "logprob": -2.0 - i}]} for i in range(5)]
    * 2,  # ids twice
    [
        {"id": "x", "candidates": ["a b", "a c", "é"]},
        {"id": "y", "candidates": []},
        {"id": None, "candidates": None},
    ],
    [
        {
            "candidates": [USUAL | {"finished": True, "weight": None}, {"text": "b", "logprob": -2.0}],
            "voters": None,
        }
    ],
    [{"candidates": [USUAL, {"text": "b", "logprob": None}]}, {"candidates": [USUAL]}],
    [{"candidates": [USUAL | {"sampled": True}, {"text": "b", "logprob": -1.0, "sampled": True}]}],
    [{"candidates": [USUAL | {"tokens": [1, 2]}], "voters": [USUAL | {"tokens": [1]}]}],
    [
        {"candidates": [{"text": "a", "logprob": -0.1}, {"text": "b", "logprob": -0.1}]},
        {"candidates": [USUAL]},
    ],
    [
        {"candidates": [{"text": "a", "logprob": 0.5}]},
        {"candidates": [{"text": "a", "logprob": float("nan")}]},
    ],
    [{"candidates": [USUAL], "source": "s", "references": ["r"], "other": 1}],
    [{"candidates": [{"text": None, "logprob": -1.0}]}],
    [{"hypotheses": [USUAL]}],
]


@pytest.mark.parametrize("rows", TABLES, ids=range(len(TABLES)))
@pytest.mark.parametrize("options", OPTIONS[:5], ids=str)
def test_rows_of_parquet_give_what_they_give_one_by_one(rows: Any, options: Any, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'rangevote[parquet]'")
    path = tmp_path / "ballots.parquet"
    importlib.import_module("pyarrow.parquet").write_table(pa.Table.from_pylist(rows), path)
    same(path.read_bytes(), options, ResultShape(scores=True))
    same(path.read_bytes(), options, unique_ids=False, workers=2)


@pytest.mark.parametrize(
    "texts", [[b"a", b"\xc3", b"\xa9", b"b"], [b"a", b"\xff", b"b", "\u00e9".encode()]], ids=str
)
def test_rows_that_are_no_text_are_told_from_their_neighbours(texts: list[bytes], tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'rangevote[parquet]'")
    path = tmp_path / "ballots.parquet"
    column = pa.ListArray.from_arrays(range(len(texts) + 1), pa.array(texts, pa.binary()).view(pa.string()))
    importlib.import_module("pyarrow.parquet").write_table(pa.table({"candidates": column}), path)
    lines, *_ = same(path.read_bytes(), OPTIONS[0])
    assert ["UTF-8" in error for _, _, error in lines] == [not valid(text) for text in texts]


def valid(text: bytes) -> bool:
    return text.decode(errors="ignore").encode() == text


def test_the_usual_rows_of_parquet_are_held_by_the_kernels(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'rangevote[parquet]'")
    voting = Voting(Settings(similarity="overlap_2"), ResultShape(), ReadOptions(), allow_empty=False)
    usual = [False] * len(TABLES)
    for i, rows in enumerate(TABLES):
        elected = BlockVoting(voting)._elected(pa.RecordBatch.from_pylist(rows))
        assert isinstance(elected, ElectedBlock)
        usual[i] = not elected.unusual
    assert usual == [True, False, True, *[False] * (len(TABLES) - 3)]
    part = pa.RecordBatch.from_pylist(TABLES[0]).slice(2, 3)  # which shares its columns with the whole
    elected = BlockVoting(voting)._elected(part)
    assert isinstance(elected, ElectedBlock)
    assert elected.ids == [2, 3, 4]
    assert [json.loads(line)["score"] for line in elected.written.splitlines()] == [
        result.score
        for row in TABLES[0][2:5]
        if (
            result := rv.elect(
                [c["text"] for c in row["candidates"]],
                [c["logprob"] for c in row["candidates"]],
                similarity="overlap_2",
            )
        )
    ]
