from __future__ import annotations

import gzip
import io
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from rangevote.errors import DataError, SetupError, UnknownName, UsageError
from rangevote.formats import FORMATS, WRITERS, ReadOptions, open_stream, read

LINE = b'{"candidates": ["a"]}\n'


def test_every_line_of_the_table_loads() -> None:
    for format in FORMATS.values():
        assert callable(format.load().decoder if format.by_line else format.load().reader)
        assert format.description


def test_an_unknown_format_gets_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match=r"unknown format 'json'. Did you mean 'jsonl'\? Choose"):
        read(io.BytesIO(LINE), ReadOptions(format="json"))


def test_a_missing_file_is_told_before_reading_begins(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no such file"):
        read(tmp_path / "nowhere")


def test_a_file_is_let_go_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "ballots"
    path.write_bytes(LINE * 3)
    reading = read(path)
    assert (reading.format, reading.size) == ("jsonl", 3 * len(LINE))
    assert len(list(reading)) == 3
    assert reading.position == reading.size
    assert list(reading) == []  # and stays at its end
    assert reading._stream._raw.closed


def test_a_file_is_let_go_when_opening_fails(tmp_path: Path) -> None:
    """A file left open would be a ResourceWarning, and warnings are errors here."""
    path = tmp_path / "ballots"
    path.write_bytes(b"no known format\n")
    with pytest.raises(UsageError):
        read(path)
    path.write_bytes(LINE.decode().encode("utf-16"))
    with pytest.raises(DataError, match="ballots: looks like UTF-16"):
        read(path)


def test_a_stream_can_be_opened_first(tmp_path: Path) -> None:
    path = tmp_path / "ballots"
    path.write_bytes(LINE)
    with open_stream(path) as stream:
        assert [entry.where for entry in read(stream)] == [f"{path}:1"]
        assert stream.position == len(LINE)


def test_a_damaged_end_is_the_last_entry() -> None:
    lines = b"".join(b'{"id": %d, "candidates": ["a"]}\n' % i for i in range(5000))
    whole = gzip.compress(lines)
    found = list(read(io.BytesIO(whole[: len(whole) // 2])))
    assert len(found) > 1000
    # the line at the cut is not taken for a whole one
    assert [entry.get().id for entry in found[:-1]] == list(range(len(found) - 1))
    assert "the gzip data is cut off" in str(found[-1].error)
    assert found[-1].where == "input"


def test_an_error_of_use_ends_the_reading() -> None:
    reading = read(io.BytesIO(b"0 ||| a ||| LM= -1 ||| -1\n"))
    with pytest.raises(UsageError):
        next(reading)
    assert list(reading) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"log_base": "3"}, "unknown log base '3'.* Choose from: 10, 2, e"),
        ({"normalisation": "mean"}, "unknown normalisation 'mean'.* Choose from: length, none"),
        ({"normalisation": -1.0}, "--normalisation is -1.0; a power must be 0 or more"),
        ({"normalisation": float("nan")}, "--normalisation is nan"),
        ({"sign": 0}, "--sign is 0; it must be 1 or -1"),
        ({"per_source": 0}, "--per-source is 0; it must be 1 or more"),
        ({"max_line_bytes": 0}, "--max-line-bytes is 0; it must be 1 or more"),
        ({"score_scale": 0.0}, "--score-scale is 0.0; it must be a number above 0, or 'count'"),
        ({"score_scale": "none"}, "--score-scale is 'none'"),
        ({"score_scale": float("inf")}, "--score-scale is inf"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ReadOptions(**options)  # type: ignore[arg-type]


def test_a_scale_cannot_weigh_infinite_scores() -> None:
    data = b"0 ||| a ||| x= 1 ||| inf\n"
    entry = next(read(io.BytesIO(data), ReadOptions(score_scale=1.0)))
    assert "scores cannot be weighed: the highest is inf" in str(entry.error)


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, json, rangevote.formats; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert not loaded & {"sacrebleu", "rich", "click", "zstandard", "nltk", "scipy", "torch"}


def test_every_writer_has_a_reader() -> None:
    assert {name.partition("-")[0] for name in WRITERS} <= set(FORMATS)


def test_steep_weights_of_equal_scores_are_equal_shares() -> None:
    data = b"0 ||| a ||| x= 1 ||| 0.5\n0 ||| b ||| x= 1 ||| 0.5\n"
    entry = next(read(io.BytesIO(data), ReadOptions(score_scale=1e300)))
    assert [h.logprob for h in entry.get().candidates] == [math.log(0.5)] * 2
