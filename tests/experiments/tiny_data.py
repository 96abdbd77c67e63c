"""Made-up data sets in the shape of the real ones, small enough to train on in a second."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np

NOUNS = {"dog": "Hund", "man": "Mann", "boy": "Junge", "bird": "Vogel"}
VERBS = {"runs": "rennt", "sits": "sitzt", "jumps": "springt"}
PLACES = {"on the grass": "auf dem Gras", "in the water": "im Wasser", "near a tree": "bei einem Baum"}
SIZES = {"train": 60, "dev": 8, "test": 10}


def make_captions(folder: Path) -> None:
    """Images whose features tell the noun, the verb and the place, each with three captions."""
    place = folder / "tiny-captions"
    place.mkdir(parents=True)
    rng = np.random.default_rng(1)
    images = []
    for split, size in SIZES.items():
        names, features = [], []
        for number in range(size):
            noun, verb, where = (int(rng.integers(len(table))) for table in (NOUNS, VERBS, PLACES))
            vector = rng.normal(0, 0.1, 12)
            vector[[noun, 4 + verb, 7 + where]] += 1
            words = list(NOUNS)[noun], list(VERBS)[verb], list(PLACES)[where]
            texts = [
                f"A {words[0]} {words[1]} {words[2]} .",
                f"The {words[0]} {words[1]} .",
                f"A {words[0]} {words[2]}",
            ]
            names.append(f"{split}{number}.jpg")
            features.append(vector)
            images.append({"file": names[-1], "split": split, "captions": texts})
        arrays = {"names": np.array(names), "features": np.array(features, dtype=np.float16)}
        np.savez(place / f"features_{split}.npz", **arrays)
    (place / "captions.json").write_text(json.dumps({"images": images}))


def make_translation(folder: Path) -> None:
    """Sentences translated word by word."""
    place = folder / "tiny-translation"
    place.mkdir(parents=True)
    rng = np.random.default_rng(2)
    for split, size in SIZES.items():
        sides: dict[str, list[str]] = {"en": [], "de": []}
        for _ in range(size):
            parts = [list(table.items())[rng.integers(len(table))] for table in (NOUNS, VERBS, PLACES)]
            for language, side in zip(("en", "de"), zip(*parts, strict=True), strict=True):
                sides[language].append(("A " if language == "en" else "Ein ") + " ".join(side) + ".")
        for language, lines in sides.items():
            with gzip.open(place / f"{split}.{language}.gz", "wt", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)


MAKE = {"captions": make_captions, "translation": make_translation}
