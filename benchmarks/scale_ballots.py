"""A file of as many ballots as asked for, quickly: some hundred generated ones in turn, ids of their own."""

from __future__ import annotations

import json
from pathlib import Path

import generate

#: Different ballots, and hypotheses in each.
DISTINCT, K = 500, 10


def bodies() -> list[bytes]:
    """The ballots without their ids."""
    made = generate.ballots(K, DISTINCT)
    rows = [[{"text": t, "logprob": p} for t, p in zip(*one, strict=True)] for one in made]
    return [b'"candidates": ' + json.dumps(row).encode() + b"}\n" for row in rows]


def write(path: Path, size: int, *, numbered: bool) -> int:
    """Write ballots up to about `size` bytes; ids are numbers, or texts that no run can hold. How many."""
    listed = bodies()
    count = written = 0
    with path.open("wb", buffering=2**22) as file:
        while written < size:
            name = b"%d" % count if numbered else b'"%016x-"' % (count * 0x9E3779B97F4A7C15 % 2**64)
            line = b'{"id": ' + name + b", " + listed[count % DISTINCT]
            file.write(line)
            written += len(line)
            count += 1
    return count
