from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.errors import DataError
from rangevote.formats.stream import Lines


def cut(*chunks: bytes, limit: int = 1000) -> list[bytes | str]:
    return [line if isinstance(line, bytes) else f"error: {line}" for line in Lines(chunks, limit)]


def test_lines_end_at_newline_bytes_only() -> None:
    separators = "a\u2028b\u0085c\x0bd\x0ce\x1cf".encode()
    assert cut(separators + b"\nnext\n") == [separators, b"next"]


def test_a_line_may_span_chunks() -> None:
    assert cut(b"a\nb", b"c", b"", b"d\ne\n") == [b"a", b"bcd", b"e"]


def test_one_carriage_return_is_part_of_the_line_end() -> None:
    assert cut(b"a\r\nb\r\r\n\r\nc") == [b"a", b"b\r", b"", b"c"]


def test_a_line_end_cut_between_chunks_is_still_one() -> None:
    assert cut(b"a\r", b"\nb\n") == [b"a", b"b"]


def test_a_last_line_without_line_end_is_given_and_flagged() -> None:
    lines = Lines([b"a\nhalf"], 100)
    assert list(lines) == [b"a", b"half"]
    assert lines.torn


def test_a_last_line_with_line_end_is_not_torn() -> None:
    lines = Lines([b"a\nwhole\n"], 100)
    assert list(lines) == [b"a", b"whole"]
    assert not lines.torn


def test_blank_lines_are_kept() -> None:
    assert cut(b"\n\na\n\n") == [b"", b"", b"a", b""]


@pytest.mark.parametrize("chunks", [(b"ok\n" + b"x" * 11 + b"\nok\n",), (b"ok\nxxxxxx", b"xxxxx\nok\n")])
def test_the_lines_around_one_too_long_are_still_read(chunks: tuple[bytes, ...]) -> None:
    assert cut(*chunks, limit=10) == [
        b"ok",
        "error: line exceeds --max-line-bytes (10 bytes)",
        b"ok",
    ]


def test_a_line_as_long_as_the_limit_passes() -> None:
    assert cut(b"x" * 10 + b"\n", b"y" * 5, b"y" * 5, limit=10) == [b"x" * 10, b"y" * 10]


def test_an_endless_line_is_never_held() -> None:
    chunks = (b"%d" % i * 10_000 for i in range(2000))  # some 70 MB
    tracemalloc.start()
    (error,) = Lines(chunks, 10**6)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(error, DataError)
    assert peak < 1.5 * 10**6


@given(st.binary(), st.lists(st.integers(0, 8), max_size=8))
def test_where_chunks_are_cut_makes_no_difference(data: bytes, sizes: list[int]) -> None:
    data = data.replace(b"\x00", b"\n").replace(b"\x01", b"\r")
    chunks, start = [], 0
    for size in sizes:
        chunks.append(data[start : start + size])
        start += size
    assert cut(*chunks, data[start:]) == cut(data)


@given(st.lists(st.binary().map(lambda line: line.replace(b"\n", b"").rstrip(b"\r"))))
def test_lines_come_back_as_they_were_joined(lines: list[bytes]) -> None:
    assert cut(b"".join(line + b"\n" for line in lines)) == lines
    assert cut(b"".join(line + b"\r\n" for line in lines)) == lines
