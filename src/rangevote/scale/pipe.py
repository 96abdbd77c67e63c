"""A function that takes bytes, as a file that can only be written."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any


class Writable(io.RawIOBase):
    """Hands everything that is written to a function."""

    def __init__(self, take: Callable[[bytes], object]) -> None:
        self._take, self._size = take, 0

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, data: Any) -> int:
        """Hand some bytes on."""
        size = len(data)
        self._take(bytes(data))
        self._size += size
        return size

    def tell(self) -> int:
        """How many bytes were written."""
        return self._size
