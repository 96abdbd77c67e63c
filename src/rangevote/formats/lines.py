"""Bytes to lines, within a limit of memory.

Lines end at b"\\n" and nowhere else: JSON strings may hold U+2028, U+0085 or a vertical tab, at
which `str.splitlines` would cut a record in pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rangevote.errors import DataError

#: A line longer than this is refused unless the caller says otherwise.
MAX_LINE_BYTES = 256 * 2**20


def too_long(limit: int) -> DataError:
    """What is said in place of a line of more than `limit` bytes."""
    return DataError(f"line exceeds --max-line-bytes ({limit:,} bytes)")


class Lines:
    """Cuts chunks of bytes into lines; yields an error in the place of each line that is too long.

    A line under way is held as the list of its chunks and dropped as soon as it passes the limit,
    so at most `limit` bytes and one chunk are in memory. `torn` is set when the last line had no line
    end, as a file has that was cut off.
    """

    def __init__(self, chunks: Iterable[bytes], limit: int) -> None:
        self.torn = False
        self._chunks, self._limit = chunks, limit
        self._held: list[bytes] = []
        self._size = 0  # bytes of the line under way, also those dropped

    def __iter__(self) -> Iterator[bytes | DataError]:
        for chunk in self._chunks:
            pieces: list[bytes] = chunk.split(b"\n")
            tail = pieces.pop()
            if pieces:
                if self._size:
                    self._hold(pieces[0])
                    first = self._release()
                    if isinstance(first, DataError):
                        yield first
                        del pieces[0]
                    else:
                        pieces[0] = first
                yield from self._finished(pieces, chunk)
            self._hold(tail)
        if self._size:
            self.torn = True
            last = self._release()
            yield last if isinstance(last, DataError) else last.removesuffix(b"\r")

    def _finished(self, pieces: list[bytes], chunk: bytes) -> Iterable[bytes | DataError]:
        """Whole lines without their line ends, those over the limit as errors."""
        if b"\r" in chunk or (pieces[:1] and pieces[0].endswith(b"\r")):
            pieces = [piece[:-1] if piece.endswith(b"\r") else piece for piece in pieces]
        if len(chunk) <= self._limit:
            return pieces
        return [piece if len(piece) <= self._limit else too_long(self._limit) for piece in pieces]

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            self._held.clear()
        elif piece:
            self._held.append(piece)

    def _release(self) -> bytes | DataError:
        """The line under way as a whole."""
        whole = too_long(self._limit) if self._size > self._limit else b"".join(self._held)
        self._held, self._size = [], 0
        return whole
