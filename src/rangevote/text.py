"""What several modules do to strings, numbers and files.

An input is a `Stream`: read once from front to back, compressed or not.

A file that is written appears when it is complete. A link is followed and stays a link. Devices, pipes and
open descriptors (`/dev/null`, `/dev/stdout`, `>(cat)`) are written directly and never replaced by a file.
"""

from __future__ import annotations

import errno
import gzip
import importlib
import math
import os
import re
import stat
import sys
import unicodedata
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from difflib import SequenceMatcher
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, BinaryIO, cast

from rangevote.errors import DataError, SetupError, need

if TYPE_CHECKING:
    from typing_extensions import Self

#: The byte-order mark of UTF-8.
BOM = b"\xef\xbb\xbf"
#: First bytes of compressed files that are not read, and what they are.
_OTHER_CODECS = {b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip", b"\x04\x22\x4d\x18": "lz4"}
#: Endings of image files that browsers show, and of all that models read.
WEB_IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif")
IMAGE_ENDINGS = (*WEB_IMAGE_ENDINGS, ".bmp", ".tif", ".tiff")
#: A line longer than this is refused unless the caller says otherwise.
MAX_LINE_BYTES = 256 * 2**20
#: Plain bytes per compressed byte above which a file is taken for a decompression bomb, once it has given so
#: many plain bytes.
MAX_EXPANSION, EXPANSION_FLOOR = 500, 2**24
#: Bytes asked for at a time; a pipe may give fewer.
CHUNK = 2**16
#: Bytes of a file that are read to see whether it is compressed; few, so that a bomb is found early.
HEAD = 2**14
#: What a Parquet file begins with, which is read from its end (`random_access`).
PARQUET = b"PAR1"
_UTF16 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
#: Links that are followed at most, the limit of Linux.
MOST_LINKS = 40

Source = str | os.PathLike[str] | BinaryIO


def finite(number: float | None) -> float | None:
    """The number, or None where it is infinite or NaN, which JSON cannot express."""
    return None if number is None or not math.isfinite(number) else float(number)


def escape_controls(text: str, keep: str = "") -> str:
    """The text with control and other invisible characters as escapes, because a terminal would obey them.

    >>> escape_controls("red\\x1b[31m\\n"), escape_controls("a\\nb", keep="\\n") == "a\\nb"
    ('red\\\\x1b[31m\\\\n', True)
    """
    if text.isprintable():
        return text
    return "".join(
        c
        if c.isprintable() or c in keep or unicodedata.category(c) == "Zs"
        else c.encode("unicode_escape", "surrogatepass").decode()
        for c in text
    )


def differences(text: str, other: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces, and whether each is a run of words that the other text does not have there.

    Texts of more than 1,000 words are one piece.

    >>> list(differences("a tall man", "a man"))
    [('a', False), (' ', False), ('tall', True), (' man', False)]
    """
    pieces, others = (re.findall(r"\s*(?:\w+|[^\w\s])|\s+", string) for string in (text, other))
    if max(len(pieces), len(others)) > 1000:
        yield text, False
        return
    words, other_words = ([piece.strip() for piece in row] for row in (pieces, others))
    for kind, begin, end, _, _ in SequenceMatcher(None, words, other_words, autojunk=False).get_opcodes():
        run = "".join(pieces[begin:end])
        different = "" if kind == "equal" else run.strip()
        before, _, after = run.partition(different) if different else (run, "", "")
        yield from ((piece, piece is different) for piece in (before, different, after) if piece)


#: Tags around what a model writes to itself.
THINK, THINK_END = "<think>", "</think>"


def split_reasoning(text: str, ended: bool = True) -> tuple[str, str]:
    """What a model wrote to itself before its answer, and the answer: the answer alone votes.

    The reasoning stands in `<think>...</think>` before the answer. Some servers leave out the first tag, the
    end of the prompt; then the second one is on a line of its own. A text that was cut off before the second
    tag has no answer.

    >>> split_reasoning("<think>2 + 2 is 4.</think>\\n\\nFour.")
    ('2 + 2 is 4.', 'Four.')
    >>> split_reasoning("Reasoning ends with </think>.")
    ('', 'Reasoning ends with </think>.')
    """
    before, end, answer = text.partition(THINK_END)
    opened = before.lstrip().startswith(THINK)
    bare = THINK not in before and before.rstrip(" ").endswith("\n")
    if (end and (opened or bare)) or (opened and not ended):
        return before.lstrip().removeprefix(THINK).strip(), answer.lstrip()
    return "", text


# Reading


def _decompressing(file: BinaryIO, head: bytes) -> tuple[BinaryIO, str, tuple[type[Exception], ...]]:
    """The plain content of a gzip, zstd or plain file that begins with `head`, the codec ("" if none), and
    what damage raises. A compressed file that is cut off raises EOFError."""
    if head.startswith(b"\x1f\x8b"):
        plain = cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="rb"))
        return plain, "gzip", (gzip.BadGzipFile, zlib.error)
    # a zstd file may begin with a skippable frame, numbered 0x184D2A50 to 5F
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        try:
            zstd = importlib.import_module("compression.zstd")  # Python 3.14
        except ImportError:
            zstd = need("backports.zstd", "zstd", "reading zstd files")
        return zstd.ZstdFile(file), "zstd", (zstd.ZstdError,)
    for magic, name in _OTHER_CODECS.items():
        if head.startswith(magic):
            raise DataError(f"is a {name} file, which is not supported; unpack it first")
    return file, "", ()


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
    progress bar needs. In memory are one chunk, of `chunk_size` bytes at the most, and the current line.
    """

    def __init__(self, raw: BinaryIO, name: str, *, owned: bool = True) -> None:
        self.name, self.position, self.size = name, 0, _size(raw)
        self.chunk_size = CHUNK
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
        for block in self.blocks(limit):
            if isinstance(block, DataError):
                yield block
                continue
            for line in block.removesuffix(b"\n").split(b"\n"):
                yield line_too_long(limit) if len(line) > limit else line.removesuffix(b"\r")

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
        try:
            chunk = getattr(self._raw, "read1", self._raw.read)(size)
        except OSError as error:
            raise SetupError(f"cannot read {self.name}: {_reason(error)}.") from error
        if chunk is None:
            raise SetupError(f"cannot read {self.name}: it is in non-blocking mode.")
        self.position += len(chunk)
        return cast(bytes, chunk)

    def _plain(self) -> Iterator[bytes]:
        """Chunks after decompression; none is empty."""
        head = b""
        while len(head) < 8 and (chunk := self._read(HEAD)):  # enough to know every kind by
            head += chunk
        self._head = head
        raw = cast(BinaryIO, SimpleNamespace(read=self._read))
        try:
            plain, codec, errors = _decompressing(raw, head)
        except DataError as error:
            raise error.at(self.name) from None
        take, size = getattr(plain, "read1", plain.read), 0
        try:
            while chunk := take(self.chunk_size):
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
    zeros = sorted((head[0::2].count(0), head[1::2].count(0)))
    return len(head) >= 4 and zeros[0] == 0 and zeros[1] > len(head) // 2 / 2


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


def line_too_long(limit: int) -> DataError:
    return DataError(f"line exceeds --max-line-bytes ({limit:,} bytes)")


# Writing


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a device, a pipe or an open descriptor, rather than a file or a name still free."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL byte
        raise cannot_write(path, error) from error
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def open_device(path: str | os.PathLike[str]) -> BinaryIO:
    """Open what `is_stream` for writing; a pipe waits for its reader."""
    try:
        number = _descriptor(path)
        # a copy of the descriptor, not the file anew: what a redirection has written before stays
        opened = os.open(path, os.O_WRONLY) if number is None else os.dup(number)
        return os.fdopen(opened, "wb")
    except OSError as error:
        raise cannot_write(path, error) from error


def _descriptor(path: str | os.PathLike[str]) -> int | None:
    """The number of the open file that `path` names: 1 for `/dev/stdout`, 63 for `/dev/fd/63`."""
    descriptor = re.compile(rf"/(?:dev|proc/(?:self|{os.getpid()}))/fd/(\d+)")
    name = os.path.abspath(path)
    for _ in range(MOST_LINKS):
        if match := descriptor.fullmatch(name):
            return int(match[1])
        if not os.path.islink(name):
            break
        name = os.path.normpath(os.path.join(os.path.dirname(name), os.readlink(name)))
    return None


def regular_file(path: str | os.PathLike[str]) -> Path:
    """The file that is to get the content: `path`, or where it is a link what that points to."""
    if is_stream(path):
        raise SetupError(f"cannot write {os.fspath(path)}: it is a device or a pipe; name a file.")
    return Path(os.path.realpath(path) if os.path.islink(path) else path)


@contextmanager
def _reported(path: str | os.PathLike[str], *errors: type[Exception]) -> Iterator[None]:
    expected: tuple[type[Exception], ...] = (OSError, UnicodeEncodeError, *errors)  # of a lone surrogate
    try:
        yield
    except expected as error:
        raise cannot_write(path, error) from error


@contextmanager
def draft_of(
    path: str | os.PathLike[str], *errors: type[Exception], mode: int = 0o666, locked: bool = False
) -> Iterator[Path]:
    """An empty file that replaces `path` at the end of the `with` block, or is deleted if that fails.

    `errors` are what the caller may raise, beside OSError, when the file cannot be written. If the caller has
    `locked` the path for itself, the draft of an earlier process that was killed is replaced.
    """
    target = regular_file(path)
    draft = Path(f"{target}.{'draft' if locked else os.getpid()}.partial")
    with _reported(path, *errors):
        try:
            draft.unlink(missing_ok=True)
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
            yield draft
            os.replace(draft, target)
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


@contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write into, which replaces `path` when it is complete; compressed if that ends in .gz.

    A device or a pipe is written directly.
    """
    with ExitStack() as stack:
        stack.enter_context(_reported(path))
        if is_stream(path):
            file = stack.enter_context(open_device(path))
        else:
            file = stack.enter_context(stack.enter_context(draft_of(path)).open("wb"))
        if os.fspath(path).endswith(".gz"):
            packed = gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)
            file = cast(BinaryIO, stack.enter_context(packed))
        yield file


def cannot_write(path: str | os.PathLike[str], error: Exception, hint: str = "") -> SetupError:
    """The error for the user, who knows `path` and not the names that are used on the way."""
    full = isinstance(error, OSError) and error.errno == errno.ENOSPC
    reason = "the disk is full" if full else _reason(error)
    return SetupError(f"cannot write {os.fspath(path)}: {reason}.{hint}")
