"""Read a JSON Lines file and write it again with msgspec alone: the measure of `rangevote vote`.

    python benchmarks/roundtrip.py IN OUT [--typed]

`--typed` reads the lines into classes, which is faster than into dicts.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec


class Candidate(msgspec.Struct):
    """A hypothesis of a ballot file."""

    text: str
    logprob: float


class Ballot(msgspec.Struct):
    """A line of a ballot file."""

    id: str
    candidates: list[Candidate]


def rewrite(source: str, target: str, kind: Any) -> None:
    """Decode and encode every line."""
    decode, encode = msgspec.json.Decoder(kind).decode, msgspec.json.Encoder().encode
    with open(source, "rb") as lines, open(target, "wb") as out:
        for line in lines:
            out.write(encode(decode(line)))
            out.write(b"\n")


if __name__ == "__main__":
    rewrite(sys.argv[1], sys.argv[2], Ballot if "--typed" in sys.argv else Any)
