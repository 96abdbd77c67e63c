"""What a target raised that it must not: the first of each kind, shortened, as a file."""

from __future__ import annotations

import sys
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path

from fuzz.mutate import smallest
from fuzz.targets import is_open, place_of, tried

#: Shorter inputs that are tried: all within the time for one.
TRIES = 200


class Findings:
    """Errors, the first of each kind as a file."""

    def __init__(self, function: Callable[[bytes], None], folder: Path) -> None:
        self._function, self._folder, self._known = function, folder, set[str]()

    def __len__(self) -> int:
        return len(self._known)

    def attempt(self, data: bytes) -> None:
        """Run the target on one input."""
        error = tried(self._function, data)
        if error is None or place_of(error) in self._known:
            return
        place = place_of(error)
        self._known.add(place)
        shortest = smallest(data, lambda less: self._same(less, place), TRIES)
        name = f"{'open' if is_open(place) else 'error'}-{zlib.crc32(place.encode()):08x}"
        (self._folder / name).write_bytes(shortest)
        told = "".join(traceback.format_exception(error))
        (self._folder / f"{name}.txt").write_text(
            f"{place}\n{shortest!r}\n{told}", encoding="utf-8", errors="backslashreplace"
        )
        sys.stderr.write(
            f"{name.partition('-')[0].upper()} {place}: {str(error)[:200]!r} {shortest[:200]!r}\n"
        )

    def _same(self, data: bytes, place: str) -> bool:
        error = tried(self._function, data)
        return error is not None and place_of(error) == place
