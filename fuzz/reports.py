"""What is compared and judged: outputs, references, sources, pairs; and profiles in TOML."""

from __future__ import annotations

import io

from fuzz import places
from rangevote.election.settings import read_profile, write_tables
from rangevote.errors import RangevoteError
from rangevote.evaluation.read import FileValues, in_step, read_outputs, read_references, read_sources


def outputs(data: bytes) -> None:
    """One file as outputs, as references and as sources: those that can be read go together."""
    found: list[FileValues[object]] = []
    for plain in (False, True):
        for read in (read_outputs, read_sources, _references):
            try:
                found.append(read(io.BytesIO(data), plain=plain))
            except RangevoteError:
                continue
    for one in found:
        assert len(one.values) == len(one.where)
        assert one.ids is None or len(set(one.ids)) == len(one.values)
        for other in found:
            try:
                assert len(in_step(one, other)) == len(other.values)
            except RangevoteError:
                continue


def _references(source: io.BytesIO, *, plain: bool) -> FileValues[object]:
    return read_references([source], plain=plain)[0]


def pairs(data: bytes) -> None:
    """Pairs for people to judge, or a campaign of Pearmut."""
    from rangevote.study.pairs import read_pairs

    found = read_pairs(str(places.file("pairs.jsonl", data)))
    assert len({pair.key for pair in found.pairs}) == len(found.pairs)


def profile(data: bytes) -> None:
    """A profile of `rangevote tune`: written and read again it is the same."""
    found = read_profile(places.file("profile.toml", data))
    again = places.file("again.toml", write_tables({"election": found}).encode())
    assert read_profile(again) == found
