"""Data sets as items: what a model is given, and the references. Written once, read by all later steps.

A split is a JSON Lines file of `{"id", "source", "references"}`; captions have the images' features in an
array beside it, in the same order.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.inception import StoredFeatures
from experiments.vocabulary import plain_words
from rangevote.errors import DataError
from rangevote.models.arpa import read_lines, replacing


@dataclass(frozen=True)
class Items:
    """One split, in order; `features` (items, features) for captions, `sources` for translation."""

    ids: Sequence[str]
    references: Sequence[Sequence[str]]
    sources: Sequence[str] | None = None
    features: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def inputs(self) -> Sequence[Any]:
        """What the model takes."""
        if self.features is not None:
            return list(self.features)
        assert self.sources is not None  # an item has one or the other
        return self.sources

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Sources and their first references, as a translator learns from them."""
        assert self.sources is not None
        return [
            (source, references[0]) for source, references in zip(self.sources, self.references, strict=True)
        ]

    def first(self, number: int) -> Items:
        """The first so many; 0: all."""
        last = number or len(self)
        return Items(
            self.ids[:last],
            self.references[:last],
            None if self.sources is None else self.sources[:last],
            None if self.features is None else self.features[:last],
        )


def prepare_captions(output: Path, *, split: str, captions: Path, features: Path) -> None:
    """Step "data": the images of a split that have features, with their captions as plain words."""
    stored = StoredFeatures(features)
    listed = json.loads(captions.read_bytes())["images"]
    images = [image for image in listed if image["split"] == split]
    if not images:
        raise DataError(f"there are no images of the split {split!r}", where=captions.name)
    names = [str(image["file"]) for image in images]
    np.save(beside(output), stored(names).astype(stored.features.dtype))
    references = [[plain_words(text) for text in image["captions"]] for image in images]
    _write(output, names, references)


def prepare_translation(output: Path, *, split: str, source: Path, target: Path) -> None:
    """Step "data": sentence pairs, as they stand in two files of equally many lines."""
    sources, targets = ([_text(line) for line in read_lines(path)] for path in (source, target))
    if len(sources) != len(targets):
        raise DataError(f"{len(sources):,} lines but {len(targets):,} in {target.name}", where=source.name)
    ids = [f"{split}-{number}" for number in range(1, len(sources) + 1)]
    _write(output, ids, [[text] for text in targets], sources)


def read_items(path: Path) -> Items:
    """What a "data" step wrote."""
    with gzip.open(path, "rb") as file:
        rows: list[Mapping[str, Any]] = [json.loads(line) for line in file]
    features = np.load(beside(path)) if beside(path).exists() else None
    sources = None if features is not None else [row["source"] for row in rows]
    return Items([row["id"] for row in rows], [row["references"] for row in rows], sources, features)


def beside(path: Path) -> Path:
    """The array that belongs to a file of JSON lines: features of images, states of hypotheses."""
    return path.with_name(path.name.partition(".")[0] + ".npy")


def _write(
    output: Path,
    ids: Sequence[str],
    references: Sequence[Sequence[str]],
    sources: Sequence[str] | None = None,
) -> None:
    with replacing(output) as file:
        for i, id in enumerate(ids):
            row: dict[str, Any] = {"id": id, "references": references[i]}
            if sources is not None:
                row["source"] = sources[i]
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _text(line: bytes) -> str:
    return line.decode().rstrip("\r\n")
