"""One input, read once from front to back: a file, standard input, compressed or not."""

from __future__ import annotations

import os
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, BinaryIO, cast

from rangevote.errors import DataError, SetupError
from rangevote.text import BOM, decompressing

if TYPE_CHECKING:
    from typing_extensions import Self

#: A line longer than this is refused unless the caller says otherwise.
MAX_LINE_BYTES = 256 * 2**20
#: Plain bytes per compressed byte above which a file is taken for a decompression bomb, once it has given so
#: many plain bytes.
MAX_EXPANSION, EXPANSION_FLOOR = 500, 2**26
#: Bytes asked for at a time; a pipe may give fewer.
CHUNK = 2**18
#: What a Parquet file begins with; it is no stream, see `random_access`.
PARQUET = b"PAR1"
_UTF16 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")

Source = str | os.PathLike[str] | BinaryIO


class Closing(ABC):
    """What is closed at the end of a `with` statement."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Stream(Closing):
    """Plain bytes of an input, and how far they were read.

    `name` is what error messages call it. `position` counts the bytes taken from the file itself
    (compressed ones, where it is compressed) and `size` is their total, None for a pipe: what a
    progress bar needs. In memory are one chunk and the current line.
    """

    def __init__(self, raw: BinaryIO, name: str, *, owned: bool = True) -> None:
        self.name, self.position, self.size = name, 0, _size(raw)
        self._raw, self._owned, self._head = raw, owned, b""
        self._ahead: list[bytes] = []
        self._failure: DataError | SetupError | None = None  # met while looking ahead
        self._chunks = self._plain()
        try:
            self._skip_mark()
        except BaseException:
            self.close()
            raise

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
        """All lines, without line ends; an error stands for one that is too long."""
        return lines_of(self.blocks(limit), limit)

    def blocks(self, limit: int = MAX_LINE_BYTES) -> Iterator[bytes | DataError]:
        """All lines, with line ends, as many at a time as were read together."""
        return blocks_of(self.chunks(), limit)

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
        """Close the file; standard input and files opened by the caller stay open."""
        if self._owned:
            self._raw.close()

    def _read(self, size: int) -> bytes:
        """Up to `size` bytes of the file as it stands, counted."""
        if self._head:
            chunk, self._head = self._head[:size], self._head[size:]
            return chunk
        # read1 and raw reads give what is there: a pipe is not waited on until a chunk is full
        take = getattr(self._raw, "read1", self._raw.read)
        try:
            chunk = take(size)
        except OSError as error:
            raise SetupError(f"cannot read {self.name}: {_reason(error)}.") from error
        if chunk is None:
            raise SetupError(f"cannot read {self.name}: it does not wait (non-blocking).")
        self.position += len(chunk)
        return cast(bytes, chunk)

    def _plain(self) -> Iterator[bytes]:
        """Chunks after decompression; none is empty."""
        head = b""
        while len(head) < 8 and (chunk := self._read(CHUNK)):  # enough to know every kind by
            head += chunk
        self._head = head
        raw = cast(BinaryIO, SimpleNamespace(read=self._read))
        try:
            plain, codec, errors = decompressing(raw, head)
        except DataError as error:
            raise error.at(self.name) from None
        take, size = getattr(plain, "read1", plain.read), 0
        try:
            while chunk := take(CHUNK):
                size += len(chunk)
                if codec and size > max(EXPANSION_FLOOR, MAX_EXPANSION * self.position):
                    raise DataError(
                        f"{self.position:,} bytes of {codec} data expand to {size:,}, more than "
                        f"{MAX_EXPANSION} times as many; if this is not a decompression bomb, unpack the "
                        f"file first",
                        where=self.name,
                    )
                yield chunk
        except EOFError:
            problem = f"the {codec} data is cut off: the file ends in the middle of it"
            raise DataError(problem, where=self.name) from None
        except errors as error:
            problem = f"the {codec} data is damaged near byte {self.position:,} ({error}); everything before "
            raise DataError(f"{problem}that was read", where=self.name) from error

    def _skip_mark(self) -> None:
        """Drop the byte-order mark of UTF-8; refuse UTF-16, and what cannot be read at all."""
        head = self.peek(64 if self.size else 4)
        if self._failure is not None and not head:
            raise self._failure
        if head.startswith(BOM):
            self._ahead = [head[len(BOM) :]] if len(head) > len(BOM) else []
        elif _looks_like_utf16(head[:64]) and not head.startswith(PARQUET):
            raise DataError(
                "looks like UTF-16 text; only UTF-8 is read. Convert it with: iconv -f UTF-16 -t UTF-8",
                where=self.name,
            )


def open_stream(source: Source) -> Stream:
    """Open a path, '-' for standard input, or a binary file object."""
    if not isinstance(source, (str, os.PathLike)):
        name = getattr(source, "name", None)
        shown = name if isinstance(name, str) else "input"
        return Stream(source, shown, owned=False)
    if source == "-":
        if sys.stdin is None:
            raise SetupError("cannot read standard input: there is none.")
        return Stream(sys.stdin.buffer, "stdin", owned=False)
    try:
        raw = cast(BinaryIO, Path(source).open("rb", buffering=0))  # noqa: SIM115
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL byte
        raise SetupError(f"cannot read {os.fspath(source)}: {_reason(error)}.") from error
    return Stream(raw, os.fspath(source))


def _reason(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return (reason or str(error) or type(error).__name__).lower()


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


# Bytes to lines


def blocks_of(chunks: Iterable[bytes], limit: int) -> Iterator[bytes | DataError]:
    """Blocks of whole lines, with an error in place of a line that is too long.

    Lines end at b"\\n" and nowhere else: JSON strings may have U+2028, U+0085 or a vertical tab in them, at
    which `str.splitlines` would cut. A line that goes from one chunk into the next is kept as the list of its
    pieces and dropped as soon as it passes the limit, so at most `limit` bytes and one chunk are in memory; a
    line inside a chunk is not held against the limit. The last block of a file that was cut off has no line
    end.
    """
    pieces: list[bytes] = []
    size = 0  # bytes of the current line, also those dropped
    for chunk in chunks:
        start, end = 0, chunk.rfind(b"\n") + 1
        if end and size + (first := chunk.index(b"\n")) > limit:
            yield line_too_long(limit)
            pieces, size, start = [], 0, first + 1
        if start < end:
            yield b"".join([*pieces, memoryview(chunk)[start:end]])
            pieces, size = [], 0
        size += len(chunk) - end
        if size > limit:
            pieces.clear()
        elif end < len(chunk):
            pieces.append(chunk[end:])
    if size:
        yield b"".join(pieces) if size <= limit else line_too_long(limit)


def lines_of(blocks: Iterable[bytes | DataError], limit: int) -> Iterator[bytes | DataError]:
    """The lines of blocks, without line ends."""
    for block in blocks:
        if isinstance(block, DataError):
            yield block
            continue
        for line in block.removesuffix(b"\n").split(b"\n"):
            yield line_too_long(limit) if len(line) > limit else line.removesuffix(b"\r")


def line_too_long(limit: int) -> DataError:
    return DataError(f"line exceeds --max-line-bytes ({limit:,} bytes)")
