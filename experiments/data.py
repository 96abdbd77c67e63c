"""Data sets as items: what a model is given, and the references; and the features of images.

A split is a JSON Lines file of `{"id", "source", "references"}`, written once and read by all later steps;
captions have the images' features in an array beside it, in the same order.

Features are the 2,048 numbers of Inception V3's last pooling layer. Two networks of that name give different
ones, so a model can only be used with the kind that it was trained on.
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

from experiments.vocabulary import plain_words
from rangevote.errors import DataError, nearest
from rangevote.models.ngram import read_lines
from rangevote.text import write_atomically


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
    listed = json.loads(captions.read_bytes())["images"]
    images = [image for image in listed if image["split"] == split]
    if not images:
        raise DataError(f"there are no images of the split {split!r}", where=captions.name)
    names = [str(image["file"]) for image in images]
    np.save(beside(output), StoredFeatures(features)(names))
    references = [[plain_words(text) for text in image["captions"]] for image in images]
    _write(output, names, references)


def prepare_translation(
    output: Path, *, split: str, source: Path, target: Path, rows: Sequence[int] = ()
) -> None:
    """Step "data": sentence pairs, as they stand in two files of equally many lines; `rows` are the first of
    them and the one behind the last, none: all."""
    sources, targets = ([_text(line) for line in read_lines(path)] for path in (source, target))
    if len(sources) != len(targets):
        raise DataError(f"{len(sources):,} lines but {len(targets):,} in {target.name}", where=source.name)
    start, stop = rows or (0, len(sources))
    ids = [f"{split}-{number}" for number in range(start + 1, stop + 1)]
    _write(output, ids, [[text] for text in targets[start:stop]], sources[start:stop])


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
    with write_atomically(output) as file:
        for i, id in enumerate(ids):
            row: dict[str, Any] = {"id": id, "references": references[i]}
            if sources is not None:
                row["source"] = sources[i]
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _text(line: bytes) -> str:
    return line.decode().rstrip("\r\n")


class StoredFeatures:
    """Features by the name of the image file, from an .npz file with `names` and `features`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with np.load(path, allow_pickle=False) as arrays:
            names, self.features = arrays["names"], arrays["features"]  # (images,), (images, features)
        self._rows = {str(name): row for row, name in enumerate(names)}

    def __call__(self, names: Sequence[str]) -> NDArray[Any]:
        """Features (images, features)."""
        for name in names:
            if name not in self._rows:
                raise DataError(f"no features of {name!r} in {self.path}.{nearest(name, self._rows)}")
        found: NDArray[Any] = self.features[[self._rows[name] for name in names]]
        return found
