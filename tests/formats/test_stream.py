from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from rangevote.errors import DataError, SetupError
from rangevote.formats.stream import CHUNK, open_stream


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"cannot read .*nowhere\.jsonl: no such file"):
        open_stream(tmp_path / "nowhere.jsonl")


def test_a_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=rf"cannot read {tmp_path}: is a directory"):
        open_stream(str(tmp_path))


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read all")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.touch(mode=0o000)
    with pytest.raises(SetupError, match="secret: permission denied"):
        open_stream(path)


def test_no_permission_is_a_matter_of_setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(SetupError, match="cannot read ballots: permission denied"):
        open_stream("ballots")


def test_a_path_with_a_nul_byte_is_no_traceback() -> None:
    with pytest.raises(SetupError, match="null byte"):
        open_stream("a\0b")


def test_a_fault_of_the_disk_is_a_matter_of_setup() -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(SetupError, match="cannot read input: input/output error"):
        open_stream(Broken())  # type: ignore[arg-type]


def test_a_dash_is_standard_input_and_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"a\nb\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    with open_stream("-") as stream:
        assert stream.name == "stdin"
        assert stream.size is None
        assert list(stream.lines()) == [b"a", b"b"]
    assert not stdin.buffer.closed


def test_a_process_without_standard_input_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SetupError, match="there is none"):
        open_stream("-")


def test_a_non_blocking_input_is_not_taken_for_an_empty_one() -> None:
    class Empty(io.RawIOBase):
        def read(self, size: int = -1) -> None:
            return None

    with pytest.raises(SetupError, match="non-blocking"):
        open_stream(Empty())  # type: ignore[arg-type]


def test_a_byte_order_mark_is_skipped() -> None:
    assert list(open_stream(io.BytesIO(b"\xef\xbb\xbfa\nb")).lines()) == [b"a", b"b"]
    assert list(open_stream(io.BytesIO(b"\xef\xbb\xbf")).lines()) == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf_16_is_recognised_with_and_without_mark(encoding: str) -> None:
    with pytest.raises(DataError, match=r"input: looks like UTF-16 .* iconv -f UTF-16"):
        open_stream(io.BytesIO('{"candidates": ["a"]}'.encode(encoding)))


def test_nul_bytes_alone_are_not_utf_16() -> None:
    text = b'a\0b "\0\0\0" text\n'
    assert list(open_stream(io.BytesIO(text)).lines()) == [text[:-1]]


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    with open_stream(path) as stream:
        assert list(stream.lines()) == []
        assert (stream.position, stream.size) == (0, 0)


def test_position_reaches_size(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"word\n" * CHUNK)
    with open_stream(path) as stream:
        lines = stream.lines()
        assert next(lines) == b"word"
        assert stream.position == CHUNK
        assert sum(1 for _ in lines) == CHUNK - 1
        assert stream.position == stream.size == 5 * CHUNK


def test_peeking_consumes_nothing() -> None:
    stream = open_stream(io.BytesIO(b"a\nb\n"))
    assert stream.peek(1) == b"a\nb\n"
    assert stream.peek(100) == b"a\nb\n"
    assert list(stream.lines()) == [b"a", b"b"]


def test_a_line_too_long_is_named_by_its_number() -> None:
    stream = open_stream(io.BytesIO(b"a\n" + b"b" * 20))
    with pytest.raises(DataError, match=r"input:2: line exceeds --max-line-bytes \(10 bytes\)"):
        list(stream.lines(10))


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
    with open_stream(path) as stream:
        assert stream.size is None
        lines = stream.lines()
        assert next(lines) == b"the first line"
        seen.set()
        assert list(lines) == [b"the second"]
    feeder.join()
