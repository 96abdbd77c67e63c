"""Files by path or URL, on any file system that Arrow or fsspec knows."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from rangevote.errors import SetupError, need

PURPOSE = "--engine ray"
#: File systems that show a file when it has been closed, and not before: object stores.
WHOLE_AT_ONCE = frozenset({"s3", "s3a", "gcs", "gs", "abfs", "abfss", "az", "adl"})


class Place(NamedTuple):
    """A file or folder: where it is, and what messages call it."""

    system: Any  # a pyarrow.fs.FileSystem, which can be sent to other machines
    path: str
    name: str

    @property
    def local(self) -> bool:
        """Whether it is on this machine's own file system."""
        return bool(self.system.type_name == "local")

    def inside(self, *names: str) -> Place:
        """A place below this one."""
        below = "/".join(names)
        return Place(self.system, f"{self.path.rstrip('/')}/{below}", f"{self.name.rstrip('/')}/{below}")

    def info(self) -> Any:
        """What is there: type, size, time of modification."""
        return guarded(self.name, lambda: self.system.get_file_info(self.path))

    def exists(self) -> bool:
        """Whether anything is there."""
        return bool(self.info().type != _types().NotFound)

    def is_folder(self) -> bool:
        """Whether a folder is there."""
        return bool(self.info().type == _types().Directory)

    def files(self) -> list[Place]:
        """The files in a folder and below, in the order of their names; hidden ones are passed over."""
        fs = need("pyarrow.fs", "ray", PURPOSE)
        selector = fs.FileSelector(self.path, recursive=True, allow_not_found=True)
        found = guarded(self.name, lambda: self.system.get_file_info(selector))
        below = [info.path[len(self.path.rstrip("/")) + 1 :] for info in found if info.type == _types().File]
        return [self.inside(name) for name in sorted(below) if not _hidden(name)]

    def open(self) -> Any:
        """The file, for reading anywhere in it."""
        return guarded(self.name, lambda: self.system.open_input_file(self.path))

    def read(self) -> bytes:
        """All bytes."""
        with self.open() as file:
            return bytes(file.read())

    @contextmanager
    def create(self, draft: Place | None = None) -> Iterator[Any]:
        """A file to write, which is there as a whole afterwards, or not at all.

        Object stores show a file when it is complete; elsewhere it is written under another name first, that
        of `draft` with an ending that no other process has, and is on this machine's disk before it gets its
        own.
        """
        whole = not WHOLE_AT_ONCE.isdisjoint(re.findall(r"\w+", self.system.type_name))
        path = self.path if whole else f"{(draft or self).path}.tmp-{secrets.token_hex(6)}"
        try:
            with self.system.open_output_stream(path) as file:
                yield file
            if self.local:
                with open(path, "rb") as written:
                    os.fsync(written.fileno())
            if not whole:
                self.system.move(path, self.path)
        except BaseException:
            if not whole:
                with suppress(OSError):
                    self.system.delete_file(path)
            raise

    def write(self, data: bytes) -> None:
        """Write a file, which is there as a whole or not at all."""
        with self.create() as file:
            file.write(data)

    def remove(self) -> None:
        """Take a file away, if it is there."""
        with suppress(FileNotFoundError):
            self.system.delete_file(self.path)

    def make_folder(self) -> None:
        """Make the folder and those above it."""
        guarded(self.name, lambda: self.system.create_dir(self.path, recursive=True))

    def remove_folder(self) -> None:
        """Take a folder and all that is in it away, if it is there."""
        with suppress(FileNotFoundError):
            self.system.delete_dir(self.path)


def place_of(text: str) -> Place:
    """The place that a path or URL names."""
    fs = need("pyarrow.fs", "ray", PURPOSE)
    if "://" not in text:
        return Place(fs.LocalFileSystem(), os.path.abspath(text), text)
    try:
        system, path = fs.FileSystem.from_uri(text)
    except (ValueError, OSError):  # not one of Arrow's own
        system, path = _by_fsspec(text, fs)
    return Place(system, path, text)


def _by_fsspec(text: str, fs: Any) -> tuple[Any, str]:
    fsspec = need("fsspec", "ray", PURPOSE)
    try:
        system, path = fsspec.core.url_to_fs(text)
    except (ValueError, ImportError, OSError) as error:
        raise SetupError(f"cannot use {text}: {error}") from None
    return fs.PyFileSystem(fs.FSSpecHandler(system)), path


def inputs_of(text: str) -> list[Place]:
    """The files that a path, a URL, a folder or a pattern ('part-*.jsonl') names, in order."""
    place = place_of(text)
    if not place.exists() and "*" in Path(place.path).name:
        folder, pattern = place.path.rpartition("/")[::2]
        parent = Place(place.system, folder, place.name.rpartition("/")[0] or ".")
        found = [file for file in parent.files() if fnmatchcase(file.path[len(folder) + 1 :], pattern)]
    elif place.is_folder():
        found = place.files()
    else:
        return [place] if place.exists() else _missing(text, "no such file or directory")
    return found or _missing(text, "there are no files")


def _missing(text: str, why: str) -> list[Place]:
    raise SetupError(f"cannot read {text}: {why}.")


def guarded(name: str, work: Any) -> Any:
    """What the work gives; a fault of the file system is told with the name of the place."""
    try:
        return work()
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())
        raise SetupError(f"cannot use {name}: {reason.lower()}.") from error


def _hidden(name: str) -> bool:
    return any(part.startswith((".", "_")) for part in name.split("/"))


def _types() -> Any:
    return need("pyarrow.fs", "ray", PURPOSE).FileType
