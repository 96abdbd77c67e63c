"""A profile: the options of an election in a TOML file, as `rangevote tune` chooses them.

[election]
similarity = "overlap_1-4@0.25"
temperature = 2.0

[tuned]                # how they were found; not read again
metric = "bleu"
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from rangevote.election.settings import Settings
from rangevote.errors import DataError, SetupError, UsageError, choose, shown

#: option of `elect` -> what its value must be
OPTIONS: dict[str, tuple[type, ...]] = {
    "similarity": (str,),
    "preset": (str,),
    "weights": (str,),
    "temperature": (int, float),
    "rule": (str,),
    "winners": (int,),
    "tokenize": (str,),
    "normalize": (str,),
    "merge": (bool,),
}


def read_profile(path: str | PathLike[str]) -> dict[str, Any]:
    """The options in a profile's table `election`, for `elect(ballot, **read_profile(path))`.

    They are checked as `elect` checks them; other tables of the file are left alone.
    """
    found = read_toml(Path(path)).get("election")
    if not isinstance(found, Mapping) or not found:
        raise DataError(
            'there is no table [election] with options in it, as similarity = "overlap_2".', where=str(path)
        )
    try:
        for name, value in found.items():
            _check(name, value)
        Settings.of(**found)
    except UsageError as error:
        raise DataError(str(error), field="election", where=str(path)) from None
    return dict(found)


def _check(name: str, value: object) -> None:
    kinds = choose("option", name, OPTIONS)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise UsageError(
            f"{name} must be {' or '.join(kind.__name__ for kind in kinds)}, got {shown(value)}."
        )


def read_toml(path: Path) -> dict[str, Any]:
    """The contents of a TOML file."""
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text.", where=str(path)) from None
    except ValueError as error:  # a path that can be none
        raise SetupError(f"cannot read {str(path)!r}: {error}.") from None
    try:
        found: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also of numbers and dates that are none, and of depth
        raise DataError(f"is not TOML: {error}", where=str(path)) from None
    return found


def write_tables(tables: Mapping[str, Mapping[str, Any]], comment: str = "") -> str:
    """Tables of plain values as TOML; None is left out.

    >>> print(write_tables({"election": {"similarity": "overlap_2", "merge": True, "weights": None}}), end="")
    [election]
    similarity = "overlap_2"
    merge = true
    """
    lines = [f"# {line}" for line in comment.splitlines()]
    for name, table in tables.items():
        lines += [""] * bool(lines) + [f"[{name}]"]
        lines += [f"{key} = {_value(value)}" for key, value in table.items() if value is not None]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return '"' + "".join(map(_sign, value)) + '"'
    return f"[{', '.join(map(_value, value))}]"


def _sign(character: str) -> str:
    """A character of a basic string."""
    if character in '"\\':
        return f"\\{character}"
    if ord(character) < 32 or ord(character) == 127:
        return f"\\u{ord(character):04X}"
    return character
