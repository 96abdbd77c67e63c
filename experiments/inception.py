"""Eyes for `show_and_tell.py`: image files -> the 2,048 numbers of Inception V3's last pooling layer.

Two networks called Inception V3 give different features, so a model can only be used with the kind that it
was trained on: a file of features, or torchvision's weights, for training and use alike.
"""

from __future__ import annotations

import importlib
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.show_and_tell import Floats
from rangevote.errors import DataError, MissingExtra, SetupError, nearest

Paths = Sequence[str | os.PathLike[str]]


class StoredFeatures:
    """Features by the name of the image file, from an .npz file with `names` and `features`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            with np.load(path, allow_pickle=False) as found:
                names, self.features = found["names"], found["features"]  # (images,), (images, features)
        except OSError as error:
            raise SetupError(f"cannot read the features {self.path}: {error.strerror or error}.") from error
        except (KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise SetupError(
                f"{self.path} is no file of features ({error}): it must be an .npz file with the arrays "
                f"'names' and 'features'."
            ) from error
        if self.features.ndim != 2 or len(names) != len(self.features):
            raise SetupError(f"{self.path}: {len(names)} names, but features of shape {self.features.shape}.")
        self._rows = {str(name): row for row, name in enumerate(names)}

    def __call__(self, paths: Paths) -> Floats:
        """Features (images, features); folders in the paths do not matter."""
        return np.stack([self.features[self._row(Path(path).name)] for path in paths]).astype(np.float32)

    def _row(self, name: str) -> int:
        if name not in self._rows:
            raise DataError(f"no features of {name!r} in {self.path}.{nearest(name, self._rows)}")
        return self._rows[name]


class Inception:
    """Features by torchvision's Inception V3 with its ImageNet weights, downloaded at first use."""

    def __init__(self, batch: int = 16) -> None:
        self._batch = batch
        self._models: Any = _package("torchvision.models")
        self._images: Any = _package("PIL.Image")
        self._net: Any = None

    def __call__(self, paths: Paths) -> Floats:
        """Features (images, 2,048)."""
        import torch

        if self._net is None:
            self._load()
        parts = []
        for first in range(0, len(paths), self._batch):
            pixels = torch.stack([self._read(path) for path in paths[first : first + self._batch]])
            with torch.no_grad():
                parts.append(self._net(pixels).float().numpy())
        return np.concatenate(parts)

    def _load(self) -> None:
        import torch

        weights = self._models.Inception_V3_Weights.IMAGENET1K_V1
        try:
            net = self._models.inception_v3(weights=weights)
        except OSError as error:  # no network
            raise SetupError(
                f"cannot load torchvision's weights of Inception V3: {error}. Where there is no network, "
                f"use a file of features (StoredFeatures)."
            ) from error
        net.fc = torch.nn.Identity()  # what is left is the pooling layer's output
        self._net, self._prepare = net.eval(), weights.transforms()

    def _read(self, path: str | os.PathLike[str]) -> Any:
        """Pixels (3, 299, 299)."""
        try:
            with self._images.open(path) as image:
                return self._prepare(image.convert("RGB"))
        except (OSError, ValueError, self._images.DecompressionBombError) as error:
            raise DataError(f"cannot read the image {os.fspath(path)}: {error}") from error


def _package(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"features of image files need {module.partition('.')[0]}, which is not installed. "
            f"Install both with: pip install torchvision pillow; or use a file of features (StoredFeatures)."
        ) from error
