"""Keys that commands are given: from a file or the environment, never on the command line."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from rangevote.errors import DataError, SetupError


def read_secret(path: str) -> str:
    """The text of a file that nobody else may read."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if os.name == "posix" and mode & 0o077:
                raise SetupError(f"{path} can be read by others (mode {mode:04o}). Use: chmod 600 {path}")
            return file.read(2**20)
    except OSError as error:
        raise SetupError(f"cannot read {path}: {(error.strerror or str(error)).lower()}.") from None
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text.", where=path) from None


def from_environment(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """The value of a variable, which must be there."""
    found = environment.get(name, "")
    if not found.strip():
        raise SetupError(f"the environment variable {name} is not set; it is to hold a key.")
    return found
