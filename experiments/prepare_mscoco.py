"""MSCOCO as the captions experiment reads it: `captions.json`, and a file of features for each split.

.venv/bin/python experiments/prepare_mscoco.py COCO_FOLDER "$RANGEVOTE_DATA/mscoco"

COCO_FOLDER holds `annotations/captions_{train,val}2014.json` and the images in `train2014/` and `val2014/`.
As in the paper, the validation images are what is reported on; the last 2,000 training images are kept out
to stop by. Features are those of torchvision's Inception V3, whose weights are downloaded (pip install
torchvision pillow).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HELD_OUT = 2000
FeatureReader = Callable[[Sequence[Path]], Any]


def images_of(folder: Path, part: str) -> list[dict[str, Any]]:
    """The images of `train` or `val`, by number, each with its captions."""
    found = json.loads((folder / "annotations" / f"captions_{part}2014.json").read_bytes())
    captions: dict[int, list[str]] = {}
    for note in sorted(found["annotations"], key=lambda note: note["id"]):
        captions.setdefault(note["image_id"], []).append(" ".join(note["caption"].split()))
    listed = sorted(found["images"], key=lambda image: image["id"])
    return [{"file": image["file_name"], "captions": captions[image["id"]]} for image in listed]


def prepare(folder: Path, output: Path, read_features: FeatureReader, held_out: int = HELD_OUT) -> None:
    """Write the files of all splits."""
    output.mkdir(parents=True, exist_ok=True)
    train, test = images_of(folder, "train"), images_of(folder, "val")
    splits = {"train": train[:-held_out], "dev": train[-held_out:], "test": test}
    images = [{**image, "split": split} for split, listed in splits.items() for image in listed]
    for split, listed in splits.items():
        originals = folder / ("val2014" if split == "test" else "train2014")
        names = [image["file"] for image in listed]
        features = np.asarray(
            read_features([originals / name for name in names]), dtype=np.float16
        )  # (images, features)
        np.savez(output / f"inception_v3_pool_{split}.npz", names=np.array(names), features=features)
    (output / "captions.json").write_text(json.dumps({"images": images}), encoding="utf-8")


class Inception:
    """Features by torchvision's Inception V3 with its ImageNet weights, downloaded at first use."""

    def __init__(self, batch: int = 64) -> None:
        import torch
        from torchvision.models import Inception_V3_Weights, inception_v3

        weights = Inception_V3_Weights.IMAGENET1K_V1
        net = inception_v3(weights=weights)
        net.fc = torch.nn.Identity()  # what is left is the pooling layer's output
        self._net, self._pixels, self._batch = net.eval(), weights.transforms(), batch

    def __call__(self, paths: Sequence[Path]) -> Any:
        """Features (images, 2,048)."""
        import torch
        from PIL import Image

        parts = []
        for first in range(0, len(paths), self._batch):
            images = [Image.open(path).convert("RGB") for path in paths[first : first + self._batch]]
            with torch.no_grad():
                parts.append(self._net(torch.stack(list(map(self._pixels, images)))).float().numpy())
        return np.concatenate(parts)


def main() -> int:
    """Parse, look at 123,287 images, write."""
    parser = argparse.ArgumentParser(description="MSCOCO 2014 as the captions experiment reads it.")
    parser.add_argument("folder", type=Path, help="annotations/, train2014/ and val2014/")
    parser.add_argument("output", type=Path, help="where captions.json and the features go")
    options = parser.parse_args()
    prepare(options.folder, options.output, Inception())
    return 0


if __name__ == "__main__":
    sys.exit(main())
