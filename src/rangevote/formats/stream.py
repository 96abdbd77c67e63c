"""One input, read once from front to back: a file, standard input, compressed or not."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, cast

from rangevote.errors import DataError, SetupError
from rangevote.formats.compression import MAX_EXPANSION, codec_of, expand
from rangevote.formats.lines import MAX_LINE_BYTES, Lines

if TYPE_CHECKING:
    from typing_extensions import Self

#: Raw bytes asked for at a time; a pipe may give fewer.
CHUNK = 2**19
#: What a Parquet file begins with; it is no stream, see `random_access`.
PARQUET = b"PAR1"
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")

Source = str | os.PathLike[str] | BinaryIO


class Stream:
    """Plain bytes of an input, with the place reached in it.

    `name` is what error messages call it. `position` counts the bytes taken from the file itself
    (compressed ones, where it is compressed) and `size` is their total, None for a pipe: what a
    progress bar needs. Memory held: one chunk, and the line under way.
    """

    def __init__(
        self,
        raw: BinaryIO,
        name: str,
        *,
        owned: bool = True,
        max_expansion: float = MAX_EXPANSION,
    ) -> None:
        self.name, self.position, self.size = name, 0, _size(raw)
        self._raw, self._owned = raw, owned
        self._ahead: list[bytes] = []
        self._failure: DataError | SetupError | None = None  # met while looking ahead
        self._lines: Lines | None = None
        self._chunks = self._plain(max_expansion)
        try:
            self._skip_mark()
        except BaseException:
            self.close()
            raise

    @property
    def torn(self) -> bool:
        """Whether the last line was read and had no line end."""
        return self._lines is not None and self._lines.torn

    def peek(self, size: int) -> bytes:
        """The bytes to come, at least `size` of them unless the input ends; none are consumed.

        Damage met on the way is reported later, after the bytes before it have been read.
        """
        while self._failure is None and sum(map(len, self._ahead)) < size:
            try:
                chunk = next(self._chunks, b"")
            except (DataError, SetupError) as error:
                self._failure = error
                break
            if not chunk:
                break
            self._ahead.append(chunk)
        return b"".join(self._ahead)

    def chunks(self) -> Iterator[bytes]:
        """All bytes from here on, in pieces as they come."""
        while self._ahead:
            yield self._ahead.pop(0)
        if self._failure is not None:
            raise self._failure
        yield from self._chunks

    def lines_or_errors(self, limit: int = MAX_LINE_BYTES) -> Iterator[bytes | DataError]:
        """All lines, without line ends; in the place of one that is too long stands the error."""
        self._lines = Lines(self.chunks(), limit)
        return iter(self._lines)

    def lines(self, limit: int = MAX_LINE_BYTES) -> Iterator[bytes]:
        """All lines, without line ends; one that is too long ends the reading."""
        for number, line in enumerate(self.lines_or_errors(limit), 1):
            if isinstance(line, DataError):
                raise line.at(f"{self.name}:{number}")
            yield line

    def random_access(self) -> BinaryIO:
        """The file itself, for formats that are read from their end; a pipe has none."""
        if not self._raw.seekable():
            raise DataError(
                "cannot be read from a pipe in this format; give the file's name", where=self.name
            )
        return self._raw

    def close(self) -> None:
        """Let the file go; standard input and files opened by the caller stay open."""
        if self._owned:
            self._raw.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _taken(self) -> Iterator[bytes]:
        """Chunks as they stand in the file, counted."""
        # read1 and raw reads give what is there: a pipe is not waited on until a chunk is full
        take = getattr(self._raw, "read1", self._raw.read)
        while True:
            try:
                chunk = take(CHUNK)
            except OSError as error:
                raise SetupError(f"cannot read {self.name}: {_reason(error)}.") from error
            if chunk is None:
                raise SetupError(f"cannot read {self.name}: it does not wait (non-blocking).")
            if not chunk:
                return
            self.position += len(chunk)
            yield chunk

    def _plain(self, max_expansion: float) -> Iterator[bytes]:
        """Chunks after decompression; none is empty."""
        taken = self._taken()
        head = b""
        while len(head) < 8:  # enough to know every kind by
            chunk = next(taken, b"")
            if not chunk:
                break
            head += chunk
        whole = _chain(head, taken)
        try:
            codec = codec_of(head)
            for chunk in expand(whole, codec, max_expansion) if codec else whole:
                if chunk:
                    yield chunk
        except DataError as error:
            raise error.at(self.name) from error

    def _skip_mark(self) -> None:
        """Drop the byte-order mark of UTF-8; refuse UTF-16, and what cannot be read at all."""
        head = self.peek(64 if self.size else 4)
        if self._failure is not None and not head:
            raise self._failure
        if head.startswith(_BOM):
            self._ahead = [head[len(_BOM) :]] if len(head) > len(_BOM) else []
        elif _looks_like_utf16(head[:64]) and not head.startswith(PARQUET):
            raise DataError(
                "looks like UTF-16 text; only UTF-8 is read. Convert it with: iconv -f UTF-16 -t UTF-8",
                where=self.name,
            )


class OnStream:
    """What is read from a stream: how far it has come, and a `with` statement that lets the file go."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    @property
    def position(self) -> int:
        """How many bytes of the file have been taken."""
        return self._stream.position

    @property
    def size(self) -> int | None:
        """How many bytes the file has, None for a pipe."""
        return self._stream.size

    def close(self) -> None:
        """Let the file go."""
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_stream(source: Source, *, max_expansion: float = MAX_EXPANSION) -> Stream:
    """Open a path, '-' for standard input, or a binary file object."""
    if not isinstance(source, (str, os.PathLike)):
        name = getattr(source, "name", None)
        shown = name if isinstance(name, str) else "input"
        return Stream(source, shown, owned=False, max_expansion=max_expansion)
    if source == "-":
        if sys.stdin is None:
            raise SetupError("cannot read standard input: there is none.")
        return Stream(sys.stdin.buffer, "stdin", owned=False, max_expansion=max_expansion)
    try:
        raw = cast(BinaryIO, Path(source).open("rb", buffering=0))  # noqa: SIM115
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL byte
        raise SetupError(f"cannot read {os.fspath(source)}: {_reason(error)}.") from error
    return Stream(raw, os.fspath(source), max_expansion=max_expansion)


def _reason(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return (reason or str(error) or type(error).__name__).lower()


def _chain(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from rest


def _size(raw: BinaryIO) -> int | None:
    """How many bytes the file has, None where that cannot be known."""
    try:
        status = os.fstat(raw.fileno())
    except (AttributeError, OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _looks_like_utf16(head: bytes) -> bool:
    """A mark of UTF-16 or UTF-32, or ASCII characters with a NUL beside each."""
    if head.startswith(_UTF16):
        return True
    left, right = head[0::2], head[1::2]
    half = len(right) / 2
    return len(head) >= 4 and (
        (left.count(0) > half and not right.count(0)) or (right.count(0) > half and not left.count(0))
    )
