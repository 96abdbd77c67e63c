"""Text files as lines of bytes, gzip or not, and files that get their name when they are complete."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from rangevote.errors import DataError, SetupError

_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"


def read_lines(path: str | os.PathLike[str]) -> Generator[bytes, None, None]:
    """The lines of a file, as they stand there; gzip is known by its first bytes, not by the name.

    Who may stop before the last line closes it (`contextlib.closing`), and the file with it.
    """
    name = os.fspath(path)
    number = 0
    try:
        with Path(path).open("rb") as raw:
            packed = raw.peek(2).startswith(_GZIP)
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
            for line in stream:
                number += 1
                yield line.removeprefix(_MARK) if number == 1 else line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"damaged or cut off gzip data ({error})", where=f"{name}:{number + 1}") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL byte
        raise SetupError(f"cannot read {name}: {_reason(error)}.") from error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write into that replaces `path` at the end, and vanishes if the end is not reached."""
    name = os.fspath(path)
    draft = Path(f"{name}.{os.getpid()}.partial")
    try:
        with draft.open("wb") as raw:
            if name.endswith(".gz"):
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
                    yield cast(BinaryIO, packed)
            else:
                yield raw
        os.replace(draft, name)
    except (OSError, ValueError) as error:
        raise SetupError(f"cannot write {name}: {_reason(error)}.") from error
    finally:
        with suppress(OSError, ValueError):
            draft.unlink(missing_ok=True)


def _reason(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return (reason or str(error) or type(error).__name__).lower()
