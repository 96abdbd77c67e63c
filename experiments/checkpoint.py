"""A model that was trained here, as a folder: `rangevote.json`, `model.safetensors` and `vocabulary.json`.

`rangevote.json` has the kind of model, its options and facts about its training. Nothing is ever pickled.
Each file is replaced in one move, and of one training run they all fit together at any time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from experiments.show_and_tell import ShowAndTell, ShowAndTellOptions
from experiments.transformer import Transformer, TransformerOptions
from experiments.vocabulary import Vocabulary, read_vocabulary, write_vocabulary
from rangevote.errors import SetupError, UsageError, nearest
from rangevote.text import write_atomically

CARD, WEIGHTS, WORDS = "rangevote.json", "model.safetensors", "vocabulary.json"
#: Raised when older readers would misunderstand a folder.
FORMAT = 1
AGAIN = "Copy or train the model again."

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
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"cannot make the folder {path}: {error.strerror or error}.") from error
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
    vocabulary = read_vocabulary(_inside(folder, card["vocabulary"]))
    shape = _options(folder, options, card["options"])
    weights, _ = read_tensors(Path(folder, WEIGHTS))
    if shape.least(len(vocabulary)) > sum(tensor.numel() for tensor in weights.values()):
        raise SetupError(  # before memory is taken for it
            f"{Path(folder, WEIGHTS)} does not fit {CARD}, whose network has more weights: "
            f"the files come from different models."
        )
    model: Model = _build(kind, shape, vocabulary)
    load_weights(model.net, weights, Path(folder, WEIGHTS))
    model.net.to(device=device, dtype=dtype).eval()
    return model


def read_card(folder: Folder) -> dict[str, Any]:
    """The contents of `rangevote.json`, once they are known to be ours."""
    path = Path(folder, CARD)
    try:
        card = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise SetupError(
            f"no model in {Path(folder)}: {CARD} is missing; was it trained to the end?"
        ) from None
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{path} is damaged: {error!s:.80}. {AGAIN}") from error
    needed = {"format": int, "kind": str, "options": dict, "vocabulary": str, "training": dict}
    if not isinstance(card, dict) or any(not isinstance(card.get(k), t) for k, t in needed.items()):
        raise SetupError(f"{path} is no card of a rangevote model: it must have {', '.join(needed)}.")
    if card["format"] != FORMAT:
        raise SetupError(
            f"{path} has format {card['format']}, and this rangevote reads {FORMAT}; another version made it."
        )
    if card["kind"] not in KINDS:
        raise SetupError(f"{path}: unknown kind {card['kind']!r:.40}; known are {', '.join(sorted(KINDS))}.")
    return card


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: str = "") -> None:
    """Write a safetensors file; `about` is a text kept in its head."""
    metadata = {"rangevote": about} if about else None
    packed = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, metadata)
    with write_atomically(path) as file:
        file.write(packed)


def read_tensors(path: Path, remedy: str = AGAIN) -> tuple[dict[str, Tensor], str]:
    """Read a safetensors file, and the text in its head; `remedy` is what to do if that fails."""
    if not path.is_file():
        raise SetupError(f"{path} is missing. {remedy}")
    try:
        with safe_open(path, framework="pt") as file:
            about = (file.metadata() or {}).get("rangevote", "")
            return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise SetupError(f"{path} is damaged or no safetensors file: {error!s:.80}. {remedy}") from error


def load_weights(net: torch.nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Put weights into a network, if they are its own: the same names and shapes, and numbers all."""
    expected = net.state_dict()
    wrong = sorted(expected.keys() ^ weights.keys())
    wrong += [n for n, t in weights.items() if n in expected and t.shape != expected[n].shape]
    if wrong:
        raise SetupError(
            f"{path} does not fit {CARD} ({len(wrong)} tensors differ, such as {wrong[0]!r}): "
            f"the files come from different models."
        )
    if not all(bool(tensor.isfinite().all()) for tensor in weights.values()):
        raise SetupError(f"{path} holds weights that are no numbers; the training went wrong.")
    net.load_state_dict(weights)


def _inside(folder: Folder, name: str) -> Path:
    """A file of the folder; a card from elsewhere must not point out of it."""
    if Path(name).name != name:
        raise SetupError(f"{Path(folder, CARD)}: {name!r:.60} is no name of a file beside it.")
    return Path(folder, name)


def _options(folder: Folder, kind: type[Any], found: Mapping[str, Any]) -> Any:
    known = {field.name: (int,) if isinstance(field.default, int) else (int, float) for field in fields(kind)}
    for name, value in found.items():
        if name not in known or isinstance(value, bool) or not isinstance(value, known[name]):
            raise SetupError(f"{Path(folder, CARD)}: options.{name} = {value!r:.40}.{nearest(name, known)}")
    try:
        return kind(**found)
    except (UsageError, TypeError) as error:
        raise SetupError(f"{Path(folder, CARD)}: {error}") from error


def _build(kind: Any, options: Any, vocabulary: Vocabulary) -> Any:
    """A model whose weights are about to be read; making up random ones first would only take time."""
    with torch.random.fork_rng(devices=[]):
        return kind(options, vocabulary)
