"""Files for readers that want a path: in a folder of this process, gone at its end."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def folder() -> Path:
    """The folder; libFuzzer ends a process without a last word, so run.py takes away what is left of it."""
    made = Path(tempfile.mkdtemp(prefix="rangevote-fuzz-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def file(name: str, data: bytes) -> Path:
    """A file with these bytes."""
    path = folder() / name
    path.write_bytes(data)
    return path


def clean(kept: dict[str, bytes], place: Path) -> None:
    """Leave just these files in a folder, as they were."""
    for path in place.iterdir():
        if path.name not in kept:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, data in kept.items():
        path = place / name
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)
