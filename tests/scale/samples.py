"""Ballots for the tests of many of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rangevote.formats import read
from rangevote.formats.parquet_write import write_parquet


def ballot(id: object, *texts: str) -> dict[str, Any]:
    listed = [{"text": text, "logprob": -1.0 - i} for i, text in enumerate(texts)]
    return {"id": id, "candidates": listed}


def line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def lines(number: int, *, faults: bool = False) -> bytes:
    """Some ballots; with faults, a bad line, blank lines and an id that is there twice are among them."""
    rows = [
        line(ballot(f"n{i * 7919 % 10007}", f"a b {i % 7} é", "a b c", f"c b {i}")) for i in range(number)
    ]
    if faults:
        rows[number // 4] = b"broken\n"
        rows[number // 2] = line(ballot("n0", "x"))
        rows[3] = b"\n \n" + rows[3]
    return b"".join(rows)


def as_parquet(source: Path, path: Path) -> Path:
    with read(source) as entries:
        write_parquet(path, (entry.get() for entry in entries))
    return path
