"""Where files are written: one that appears when it is complete, or one that is there and is written through.

A link is followed and stays a link. Devices, pipes and open descriptors (`/dev/null`, `/dev/stdout`,
`>(cat)`) take what is written as it comes; they are never replaced by a file.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from rangevote.errors import SetupError

#: Links that are followed at most, as on Linux.
MOST_LINKS = 40


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a device, a pipe or an open descriptor, rather than a file or a name still free."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
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
    own = re.compile(rf"/(?:dev|proc/(?:self|{os.getpid()}))/fd/(\d+)")
    name = os.path.abspath(path)
    for _ in range(MOST_LINKS):
        if match := own.fullmatch(name):
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
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write into that replaces `path` at the end, and vanishes if the end is not reached.

    Where `path` ends in .gz it is packed; where it is a device or a pipe, that is written.
    """
    draft = None
    try:
        if is_stream(path):
            raw = open_stream(path)
        else:
            target = regular_file(path)
            draft = Path(f"{target}.{os.getpid()}.partial")
            raw = draft.open("wb")
        with raw:
            if os.fspath(path).endswith(".gz"):
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
                    yield cast(BinaryIO, packed)
            else:
                yield raw
        if draft is not None:
            os.replace(draft, target)
    except (OSError, ValueError) as error:
        raise cannot_write(path, error) from error
    finally:
        if draft is not None:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def cannot_write(path: str | os.PathLike[str], error: Exception, hint: str = "") -> SetupError:
    """The error for the user, who knows `path` and not the names that are used on the way."""
    if isinstance(error, OSError):
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
    else:
        reason = None
    reason = (reason or str(error) or type(error).__name__).lower()
    return SetupError(f"cannot write {os.fspath(path)}: {reason}.{hint}")
