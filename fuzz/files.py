"""Files other than n-best lists: n-gram models, texts, outputs, pairs to judge, profiles."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path

import numpy as np

from fuzz.targets import scratch, scratch_file
from rangevote.election.settings import read_profile, write_tables
from rangevote.errors import RangevoteError
from rangevote.evaluation.corpus import FileValues, align, read_outputs, read_references, read_sources
from rangevote.models.ngram import END, START, read_arpa, read_corpus, write_arpa


def arpa(data: bytes) -> None:
    """A model of n-grams: what it says are probabilities; written and read again it is the same model."""
    words, levels = read_arpa(scratch_file("model.arpa", data))
    for level in levels:
        assert not np.isnan(level.logprobs).any(), "NaN"
        assert np.isfinite(level.backoffs).all(), "a back-off without end"
    first, second = scratch() / "first.arpa", scratch() / "second.arpa"
    write_arpa(first, words, levels)
    again, same = read_arpa(first)
    assert again == words
    assert [level.keys.tolist() for level in same] == [level.keys.tolist() for level in levels]
    write_arpa(second, again, same)
    assert _alike(first, second), "the written file is read as another model"


def _alike(first: Path, second: Path) -> bool:
    """The same but for the ninth digit, which may be rounded twice."""
    for one, two in zip(*(path.read_bytes().split() for path in (first, second)), strict=True):
        if one != two and not np.isclose(float(one), float(two), rtol=1e-8):
            return False
    return True


def corpus(data: bytes) -> None:
    """Sentences as numbers."""
    path = scratch_file("corpus.txt", data)
    words, tokens = read_corpus(path)
    assert tokens.min() >= 0
    assert tokens.max() < len(words)
    assert (tokens == START).sum() == (tokens == END).sum()
    assert len(set(words)) == len(words)
    _, rare = read_corpus(path, min_count=2)
    assert len(rare) == len(tokens)


def outputs(data: bytes) -> None:
    """One file as outputs, as references and as sources: those that can be read go together."""
    listed: list[FileValues[object]] = []
    for plain in (False, True):
        for read in (read_outputs, read_sources, _references):
            with suppress(RangevoteError):
                listed.append(read(io.BytesIO(data), plain=plain))
    for one in listed:
        assert len(one.values) == len(one.where)
        assert one.ids is None or len(set(one.ids)) == len(one.values)
        for other in listed:
            with suppress(RangevoteError):
                assert len(align(one, other)) == len(other.values)


def _references(source: io.BytesIO, *, plain: bool) -> FileValues[object]:
    return read_references([source], plain=plain)[0]


def pairs(data: bytes) -> None:
    """Pairs for people to judge."""
    from rangevote.study.create import read_pairs

    listed = read_pairs(str(scratch_file("pairs.jsonl", data))).pairs
    assert len({pair.key for pair in listed}) == len(listed)


def profile(data: bytes) -> None:
    """A profile of `rangevote tune`: written and read again it is the same."""
    options = read_profile(scratch_file("profile.toml", data))
    again = scratch_file("again.toml", write_tables({"election": options}).encode())
    assert read_profile(again) == options
