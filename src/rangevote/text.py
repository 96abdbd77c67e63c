"""What several modules do to strings, numbers and files.

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
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from difflib import SequenceMatcher
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from rangevote.errors import DataError, SetupError, need

#: The byte-order mark of UTF-8.
BOM = b"\xef\xbb\xbf"
#: First bytes of compressed files that are not read, and what they are.
_OTHER_CODECS = {b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip", b"\x04\x22\x4d\x18": "lz4"}
#: Endings of image files that browsers show, and of all that models read.
WEB_IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif")
IMAGE_ENDINGS = (*WEB_IMAGE_ENDINGS, ".bmp", ".tif", ".tiff")
#: Links that are followed at most, as on Linux.
MOST_LINKS = 40


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


def differences(text: str, other: str, most: int = 1000) -> Iterator[tuple[str, bool]]:
    """The text in pieces, and whether each is a run of words that the other text does not have there.

    Texts of more than `most` words are one piece.

    >>> list(differences("a tall man", "a man"))
    [('a', False), (' ', False), ('tall', True), (' man', False)]
    """
    pieces, others = (re.findall(r"\s*(?:\w+|[^\w\s])|\s+", one) for one in (text, other))
    if max(len(pieces), len(others)) > most:
        yield text, False
        return
    words, compared = ([piece.strip() for piece in some] for some in (pieces, others))
    for kind, begin, end, _, _ in SequenceMatcher(None, words, compared, autojunk=False).get_opcodes():
        run = "".join(pieces[begin:end])
        own = "" if kind == "equal" else run.strip()
        before, _, after = run.partition(own) if own else (run, "", "")
        yield from ((piece, piece is own) for piece in (before, own, after) if piece)


class Decompressed(NamedTuple):
    """The plain content of a file, the codec it was compressed by ("" if none), and what damage raises."""

    file: BinaryIO
    codec: str
    errors: tuple[type[Exception], ...]


def decompressing(file: BinaryIO, head: bytes) -> Decompressed:
    """Read a gzip, zstd or plain file, which begins with `head`. A file that is cut off raises EOFError."""
    if head.startswith(b"\x1f\x8b"):
        plain = cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="rb"))
        return Decompressed(plain, "gzip", (gzip.BadGzipFile, zlib.error, EOFError))
    # a zstd file may begin with a skippable frame, numbered 0x184D2A50 to 5F
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        try:
            zstd = importlib.import_module("compression.zstd")  # Python 3.14
        except ImportError:
            zstd = need("backports.zstd", "zstd", "reading zstd files")
        return Decompressed(zstd.ZstdFile(file), "zstd", (zstd.ZstdError, EOFError))
    for magic, name in _OTHER_CODECS.items():
        if head.startswith(magic):
            raise DataError(f"is a {name} file, which is not supported; unpack it first")
    return Decompressed(file, "", ())


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


def open_stream(path: str | os.PathLike[str]) -> BinaryIO:
    """Open what `is_stream` for writing; a pipe waits for its reader."""
    try:
        number = _descriptor(path)
        # a copy of the descriptor, not the file anew: what a redirection has written before stays
        opened = os.open(path, os.O_WRONLY) if number is None else os.dup(number)
        return os.fdopen(opened, "wb")
    except OSError as error:
        raise cannot_write(path, error) from error


def _descriptor(path: str | os.PathLike[str]) -> int | None:
    """The number of the open file that `path` names, as 1 for `/dev/stdout` and 63 for `/dev/fd/63`."""
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
def draft_of(path: str | os.PathLike[str], *errors: type[Exception], mode: int = 0o666) -> Iterator[Path]:
    """An empty file that replaces `path` at the end of the `with` block, or is deleted if that fails.

    `errors` are what the caller may raise, beside OSError, when the file cannot be written.
    """
    target = regular_file(path)
    draft = Path(f"{target}.{os.getpid()}.partial")
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
            file = stack.enter_context(open_stream(path))
        else:
            file = stack.enter_context(stack.enter_context(draft_of(path)).open("wb"))
        if os.fspath(path).endswith(".gz"):
            packed = gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)
            file = cast(BinaryIO, stack.enter_context(packed))
        yield file


def cannot_write(path: str | os.PathLike[str], error: Exception, hint: str = "") -> SetupError:
    """The error for the user, who knows `path` and not the names that are used on the way."""
    if isinstance(error, OSError):
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
    else:
        reason = None
    reason = (reason or str(error) or type(error).__name__).lower()
    return SetupError(f"cannot write {os.fspath(path)}: {reason}.{hint}")
