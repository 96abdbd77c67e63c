"""A share of the ballots for each of n runs, and the notes by which `merge` knows that all are there.

Run i of n takes every n-th ballot, beginning with the i-th: no run needs to know how many there are, the
shares differ by one ballot at most, and putting them together again is taking turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rangevote.errors import SetupError, UsageError
from rangevote.scale.chunks import Chunk


@dataclass(frozen=True)
class Shard:
    """Share `number` (from 1) of `of`."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """From '3/8'."""
        found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise UsageError(f"--shard is {text!r}; it must be I/N with I from 1 to N, as 1/8.")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class Share(Iterator[Chunk]):
    """The chunks of a shard. Afterwards, `total` and `digest` tell which input the share is of."""

    def __init__(self, chunks: Iterator[Chunk], shard: Shard) -> None:
        self._chunks, self._shard = chunks, shard
        self.total = self.digest = 0

    def __next__(self) -> Chunk:
        while True:
            chunk = next(self._chunks)
            first = (self._shard.number - 1 - self.total) % self._shard.of
            self.total += len(chunk)
            self.digest = chunk.digest(self.digest)
            mine = range(first, len(chunk), self._shard.of)
            if mine:
                return chunk.only(mine)


class ShardNotes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `OUT.shard.json` beside a shard's output says of it.

    `fingerprint` and `options` are of the options that decide the content, `ballots` how many results the
    output has, `skipped` how many of them are errors, `sha256` its digest; `total` and `digest` are of the
    whole input, which every shard has seen.
    """

    shard: int
    of: int
    fingerprint: str
    options: dict[str, str]
    ballots: int
    skipped: int
    sha256: str
    total: int
    digest: int

    def write(self, output: Path) -> None:
        """Put the notes beside the output."""
        draft = output.with_name(f"{output.name}.shard.json.tmp")
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")
        draft.replace(notes_path(output))

    @classmethod
    def read(cls, output: Path) -> ShardNotes:
        """The notes beside an output."""
        path = notes_path(output)
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SetupError(
                f"{output} has no notes beside it: cannot read {path}: {reason}. "
                f"Only what rangevote vote --shard wrote can be merged."
            ) from None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise SetupError(f"{path} cannot be read: {error}. Make the shard again.") from None


def notes_path(output: Path) -> Path:
    """Where the notes of an output are."""
    return output.with_name(f"{output.name}.shard.json")
