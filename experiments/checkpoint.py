"""A model that was trained here, as a folder: `rangevote.json`, `model.safetensors` and `vocabulary.json`.

`rangevote.json` has the kind of model, its options and facts about its training. Nothing is ever pickled.
Each file is replaced in one move, and of one training run they all fit together at any time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from experiments.show_and_tell import ShowAndTell, ShowAndTellOptions
from experiments.transformer import Transformer, TransformerOptions
from experiments.vocabulary import read_vocabulary, write_vocabulary
from rangevote.errors import SetupError
from rangevote.text import write_atomically

CARD, WEIGHTS, WORDS = "rangevote.json", "model.safetensors", "vocabulary.json"
#: Of the folder, for readers to come.
FORMAT = 1

Model = ShowAndTell | Transformer
Folder = str | os.PathLike[str]

#: kind -> the model and its options
KINDS: dict[str, tuple[type[Model], type[Any]]] = {
    ShowAndTell.kind: (ShowAndTell, ShowAndTellOptions),
    Transformer.kind: (Transformer, TransformerOptions),
}


def is_checkpoint(folder: Folder) -> bool:
    """Whether a model of ours lies in this folder."""
    return Path(folder, CARD).is_file()


def save_checkpoint(model: Model, folder: Folder, training: Mapping[str, Any] | None = None) -> None:
    """Write a model; `training` are facts about it that JSON can hold."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    write_vocabulary(model.vocabulary, path / WORDS)
    write_tensors(path / WEIGHTS, model.net.state_dict())
    write_card(model, path, training or {})


def write_card(model: Model, folder: Folder, training: Mapping[str, Any]) -> None:
    """Write `rangevote.json` alone."""
    card = {
        "format": FORMAT,
        "kind": model.kind,
        "options": asdict(model.options),
        "vocabulary": WORDS,
        "training": dict(training),
    }
    with write_atomically(Path(folder, CARD)) as file:
        file.write(json.dumps(card, indent=2, ensure_ascii=False).encode() + b"\n")


def load_checkpoint(
    folder: Folder, *, device: str | torch.device | None = None, dtype: torch.dtype | None = None
) -> Model:
    """The model in a folder, ready for `rangevote.search`; by default in float32, on the processor."""
    card = read_card(folder)
    kind, options = KINDS[card["kind"]]
    weights, _ = read_tensors(Path(folder, WEIGHTS))
    model: Any = kind(options(**card["options"]), read_vocabulary(Path(folder, WORDS)))
    model.net.load_state_dict(weights)
    model.net.to(device=device, dtype=dtype).eval()
    found: Model = model
    return found


def read_card(folder: Folder) -> dict[str, Any]:
    """The contents of `rangevote.json`."""
    path = Path(folder, CARD)
    if not path.is_file():
        raise SetupError(f"no model in {path.parent}: {CARD} is missing; was it trained to the end?")
    card: dict[str, Any] = json.loads(path.read_bytes())
    return card


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: str = "") -> None:
    """Write a safetensors file; `about` is a text kept in its head."""
    metadata = {"rangevote": about} if about else None
    packed = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, metadata)
    with write_atomically(path) as file:
        file.write(packed)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], str]:
    """Read a safetensors file, and the text in its head."""
    with safe_open(path, framework="pt") as file:
        about = (file.metadata() or {}).get("rangevote", "")
        return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118
