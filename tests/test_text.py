"""Bytes in: files, pipes, compression, and the cut into lines; and files that are written whole."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import math
import os
import stat
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.errors import DataError, MissingExtra, SetupError
from rangevote.formats import read
from rangevote.text import (
    CHUNK,
    blocks_of,
    draft_of,
    escape_controls,
    finite,
    is_stream,
    open_stream,
    regular_file,
    write_atomically,
)

posix = pytest.mark.skipif(os.name != "posix", reason="devices, pipes and links as on Unix")

TEXT = b"".join(b"line %d of some text\n" % i for i in range(20_000))


# Files


def test_what_cannot_be_opened_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match=r"cannot read .*nowhere\.jsonl: no such file"):
        open_stream(tmp_path / "nowhere.jsonl")
    with pytest.raises(SetupError, match=rf"cannot read {tmp_path}: is a directory"):
        open_stream(str(tmp_path))
    with pytest.raises(SetupError, match="null byte"):
        open_stream("a\0b")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(SetupError, match="cannot read ballots: permission denied"):
        open_stream("ballots")


def test_a_fault_while_reading_is_a_matter_of_setup() -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise OSError(5, "Input/output error")

    class NonBlocking(io.RawIOBase):
        def read(self, size: int = -1) -> None:
            return None

    with pytest.raises(SetupError, match="cannot read input: input/output error"):
        open_stream(Broken())  # type: ignore[arg-type]
    with pytest.raises(SetupError, match="non-blocking"):  # not taken for an empty one
        open_stream(NonBlocking())  # type: ignore[arg-type]


def test_a_dash_is_standard_input_and_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"a\nb\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    with open_stream("-") as opened:
        assert (opened.name, opened.size) == ("stdin", None)
        assert list(opened.lines()) == [b"a", b"b"]
    assert not stdin.buffer.closed
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SetupError, match="there is none"):
        open_stream("-")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf_16_is_recognised_with_and_without_mark(encoding: str) -> None:
    with pytest.raises(DataError, match=r"input: looks like UTF-16 .* iconv -f UTF-16"):
        open_stream(io.BytesIO('{"candidates": ["a"]}'.encode(encoding)))


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"\xef\xbb\xbfa\nb", [b"a", b"b"]),
        (b"\xef\xbb\xbf", []),
        (b'a\0b "\0\0\0" text', [b'a\0b "\0\0\0" text']),  # not UTF-16
    ],
)
def test_a_byte_order_mark_is_skipped_and_nul_bytes_are_not(data: bytes, lines: list[bytes]) -> None:
    assert all_lines(data) == lines


@pytest.mark.parametrize("size", [0, CHUNK])
def test_position_reaches_size(tmp_path: Path, size: int) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"word\n" * size)
    with open_stream(path) as opened:
        assert sum(1 for _ in opened.lines()) == size
        assert opened.position == opened.size == 5 * size


def test_peeking_consumes_nothing() -> None:
    opened = open_stream(io.BytesIO(b"a\nb\n"))
    assert opened.peek(1) == opened.peek(100) == b"a\nb\n"
    assert list(opened.lines()) == [b"a", b"b"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_read_as_its_lines_come(tmp_path: Path) -> None:
    """The second line is sent only after the first was seen: a full chunk must not be waited for."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    seen = threading.Event()

    def feed() -> None:
        with path.open("wb", buffering=0) as pipe:
            pipe.write(b"the first line\n")
            assert seen.wait(10)
            pipe.write(b"the second\n")

    feeder = threading.Thread(target=feed)
    feeder.start()
    with open_stream(path) as opened:
        assert opened.size is None
        lines = opened.lines()
        assert next(lines) == b"the first line"
        seen.set()
        assert list(lines) == [b"the second"]
    feeder.join()


# Compression


def zstd(data: bytes) -> bytes:
    return bytes(pytest.importorskip("backports.zstd").compress(data))


PACKERS = pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
Pack = Callable[[bytes], bytes]


def all_lines(data: bytes) -> list[bytes]:
    return list(open_stream(io.BytesIO(data)).lines())


@PACKERS
def test_compressed_files_are_known_by_their_bytes(pack: Pack, tmp_path: Path) -> None:
    path = tmp_path / "no_telling_name"
    path.write_bytes(pack(b"\xef\xbb\xbf" + TEXT))
    with open_stream(path) as opened:
        assert b"\n".join([*opened.lines(), b""]) == TEXT
        assert opened.position == opened.size == path.stat().st_size


@PACKERS
def test_compressed_files_that_were_joined_are_one(pack: Pack) -> None:
    assert all_lines(pack(b"a\nb") + pack(b"") + pack(b"c\n")) == [b"a", b"bc"]
    assert all_lines(gzip.compress(b"a\n") + b"\0" * 512) == [b"a"]  # zeros after the end are padding


@PACKERS
def test_what_stands_before_the_cut_is_read(pack: Pack) -> None:
    packed = pack(TEXT)
    lines = open_stream(io.BytesIO(packed[: len(packed) * 3 // 4])).lines()
    seen: list[bytes] = []
    with pytest.raises(DataError, match=r"input: the (gzip|zstd) data is cut off"):
        seen.extend(lines)
    assert len(seen) > 1000
    assert seen == TEXT.split(b"\n")[: len(seen)]


def test_a_checksum_that_is_missing_is_a_cut() -> None:
    lines = open_stream(io.BytesIO(gzip.compress(b"a\nb\n")[:-4])).lines()
    assert [next(lines), next(lines)] == [b"a", b"b"]
    with pytest.raises(DataError, match="cut off"):
        next(lines)


@PACKERS
def test_damage_is_named(pack: Pack) -> None:
    packed = bytearray(pack(TEXT))
    packed[-6:] = b"\xff" * 6
    with pytest.raises(DataError, match=r"(gzip|zstd) data is damaged near byte [\d,]+ \("):
        all_lines(bytes(packed) + b"\xff" * 6)
    with pytest.raises(DataError, match=r"damaged near byte .* everything before that was read"):
        all_lines(pack(b"a\n") + b"rubbish that follows")


@PACKERS
@pytest.mark.parametrize("byte", [b"\n", b"{"], ids=["lines", "one line"])
def test_a_bomb_is_refused_within_100_mb_of_memory(pack: Pack, byte: bytes) -> None:
    packed = io.BytesIO(pack(byte * 2**29))
    tracemalloc.start()
    [entry] = read(packed)
    with pytest.raises(DataError, match=r"expand to [\d,]+, more than 500 times .* unpack the file"):
        entry.get()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**8


@pytest.mark.parametrize(
    ("packed", "name"),
    [(bz2.compress(b"a"), "bzip2"), (lzma.compress(b"a"), "xz"), (b"PK\x03\x04" + bytes(20), "zip")],
)
def test_other_kinds_are_named(packed: bytes, name: str) -> None:
    with pytest.raises(DataError, match=f"input: is a {name} file, which is not supported"):
        open_stream(io.BytesIO(packed))


def test_zstd_is_of_the_standard_library_or_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip("backports.zstd")
    packed = zstd(b"a\nb\n")
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    with pytest.raises(MissingExtra, match=r'reading zstd files needs .* "rangevote\[zstd\]"'):
        open_stream(io.BytesIO(packed))
    monkeypatch.setitem(sys.modules, "compression.zstd", package)  # Python 3.14's, which has the same names
    assert all_lines(packed) == [b"a", b"b"]


# Lines


SEPARATORS = "a\u2028b\u0085c\x0bd\x0ce\x1cf".encode()


def cut(*chunks: bytes, limit: int = 1000) -> list[bytes | str]:
    opened = open_stream(io.BytesIO())
    opened.chunks = lambda: iter(chunks)  # type: ignore[method-assign]
    lines = opened.lines_or_errors(limit)
    return [line if isinstance(line, bytes) else f"error: {line}" for line in lines]


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([SEPARATORS + b"\nnext\n"], [SEPARATORS, b"next"]),
        ([b"a\nb", b"c", b"", b"d\ne\n"], [b"a", b"bcd", b"e"]),
        ([b"a\r\nb\r\r\n\r\nc"], [b"a", b"b\r", b"", b"c"]),
        ([b"a\r", b"\nb\n"], [b"a", b"b"]),
        ([b"\n\na\n\n"], [b"", b"", b"a", b""]),
    ],
)
def test_lines_end_at_newline_bytes_only(chunks: list[bytes], lines: list[bytes]) -> None:
    assert cut(*chunks) == lines


def test_the_last_block_of_a_file_that_was_cut_off_has_no_line_end() -> None:
    assert list(blocks_of([b"a\nhalf"], 100)) == [b"a\n", b"half"]
    assert list(blocks_of([b"a\nwho", b"le\n"], 100)) == [b"a\n", b"whole\n"]


@pytest.mark.parametrize("chunks", [(b"ok\n" + b"x" * 11 + b"\nok\n",), (b"ok\nxxxxxx", b"xxxxx\nok\n")])
def test_the_lines_around_one_too_long_are_still_read(chunks: tuple[bytes, ...]) -> None:
    assert cut(*chunks, limit=10) == [b"ok", "error: line exceeds --max-line-bytes (10 bytes)", b"ok"]
    assert cut(b"x" * 10 + b"\n", b"y" * 5, b"y" * 5, limit=10) == [b"x" * 10, b"y" * 10]


def test_an_endless_line_is_never_kept() -> None:
    chunks = (b"%d" % i * 10_000 for i in range(500))  # some 17 MB
    tracemalloc.start()
    (error,) = blocks_of(chunks, 10**6)
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


# Writing


@posix
def test_a_file_is_replaced_at_the_end_and_a_link_stays(tmp_path):
    link, target = tmp_path / "link.gz", tmp_path / "target"
    target.write_bytes(b"old")
    link.symlink_to("target")
    with write_atomically(link) as file:
        file.write(b"new")
        assert target.read_bytes() == b"old"
    assert gzip.decompress(target.read_bytes()) == b"new"  # packed, as the name that was given says
    assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link.gz", "target"]


@posix
def test_a_pipe_is_written_through(tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    with write_atomically(path) as file:
        file.write(b"text")
    reader.join(timeout=120)
    assert read == [b"text"]
    assert stat.S_ISFIFO(os.lstat(path).st_mode)
    with pytest.raises(SetupError, match="it is a device or a pipe; name a file"):
        regular_file(path)


@posix
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/{pid}/fd/1"])
def test_an_open_descriptor_is_a_stream_whatever_it_leads_to(name, tmp_path):
    name = name.format(pid=os.getpid())
    assert is_stream(name)
    link = tmp_path / "link"
    link.symlink_to(name)
    assert is_stream(link)
    assert not is_stream(tmp_path)
    assert not is_stream(tmp_path / "free")


def test_control_characters_are_escaped_and_other_spaces_stay():
    assert escape_controls("a\u3000b\u00a0c") == "a\u3000b\u00a0c"
    assert escape_controls("\x1b[2J\u202e\x85\t\n\ud800", keep="\n\t") == "\\x1b[2J\\u202e\\x85\t\n\\ud800"


def test_numbers_that_json_cannot_express_become_none():
    assert [finite(x) for x in (1.5, None, math.inf, -math.inf, math.nan)] == [1.5, None, None, None, None]


def test_a_draft_is_deleted_when_writing_fails(tmp_path):
    with pytest.raises(SetupError, match=r"cannot write .*out: the disk is full"), draft_of(tmp_path / "out"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert os.listdir(tmp_path) == []
