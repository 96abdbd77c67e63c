"""The files of a run beside its checkpoint (`training.safetensors`, `log.jsonl`).

The state of a run is one file, replaced in one move: whenever a run is killed, the file is complete.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from experiments.checkpoint import read_tensors, write_tensors
from rangevote.errors import SetupError
from rangevote.text import write_atomically

STATE, LOG = "training.safetensors", "log.jsonl"
#: Options that may change while a run goes on: they have no part in the weights.
HARMLESS = ("save_every", "log_every")


@dataclass(frozen=True)
class Position:
    """How far a run has come: `step` steps in all, of which `batch` in this `epoch` (from 0).

    `best` is the lowest development loss, `waited` the evaluations since; `loss` and `counted` are the sum
    and the number of the training losses that are not logged yet; `seconds` were spent on `tokens`
    target tokens.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    best: float | None = None
    best_step: int = 0
    waited: int = 0
    loss: float = 0.0
    counted: int = 0
    tokens: int = 0
    seconds: float = 0.0


class State:
    """The state of a run on disk: weights, the optimiser's moments, and the position."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.path, self._fingerprint = folder / STATE, fingerprint

    def save(self, net: nn.Module, optimizer: torch.optim.Optimizer, position: Position) -> None:
        """Write all that the next step depends on."""
        tensors = {f"model.{name}": tensor for name, tensor in net.state_dict().items()}
        moments = optimizer.state_dict()["state"]
        for number, (name, _) in enumerate(in_order(net)):
            for kind, value in moments.get(number, {}).items():
                tensors[f"optimizer.{name}.{kind}"] = torch.as_tensor(value)
        head = {"fingerprint": self._fingerprint, "position": asdict(position)}
        write_tensors(self.path, tensors, json.dumps(head))

    def load(self, net: nn.Module, optimizer: torch.optim.Optimizer) -> Position | None:
        """Put everything back as it was saved; None where nothing was."""
        if not self.path.exists():
            return None
        tensors, about = read_tensors(self.path)
        head = json.loads(about)
        check_fingerprint(head["fingerprint"], self._fingerprint, self.path)
        net.load_state_dict(_under("model.", tensors))
        moments: dict[int, dict[str, Tensor]] = {}
        for number, (name, _) in enumerate(in_order(net)):
            moments[number] = _under(f"optimizer.{name}.", tensors)
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": {n: m for n, m in moments.items() if m}, "param_groups": groups})
        return Position(**head["position"])

    def remove(self) -> None:
        """The run has ended."""
        self.path.unlink(missing_ok=True)


def check_fingerprint(found: Any, expected: str, path: Path) -> None:
    """Refuse to mix runs."""
    if found != expected:
        raise SetupError(
            f"{path} comes from a run with other options or data (fingerprints differ). Take another folder, "
            f"or remove this one to begin again."
        )


def fingerprint(options: Any, *data: Any) -> str:
    """A number for options and data: arrays, and whatever JSON can hold."""
    known = {name: value for name, value in asdict(options).items() if name not in HARMLESS}
    digest = hashlib.sha256(json.dumps(known, sort_keys=True).encode())
    for part in data:
        packed = part.tobytes() if hasattr(part, "tobytes") else json.dumps(part).encode()
        digest.update(hashlib.sha256(packed).digest())
    return digest.hexdigest()[:32]


def in_order(net: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The parameters as an optimiser with one group for matrices and one for the rest numbers them."""
    return sorted(net.named_parameters(), key=lambda named: named[1].ndim < 2)


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


class Log:
    """Losses as JSON lines."""

    def __init__(self, folder: Path, step: int) -> None:
        """Goes on after `step`: what was logged beyond the state that was saved is done again."""
        self._path = folder / LOG
        kept = [line for line in _lines(self._path) if _step(line) <= step]
        with write_atomically(self._path) as file:
            file.write("".join(f"{line}\n" for line in kept).encode())

    def write(self, facts: Mapping[str, Any]) -> None:
        """One line, at once on disk: the file is opened anew, which costs nothing beside a training step."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(facts) + "\n")


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    return []


def _step(line: str) -> float:
    """The step that a line tells of; a torn line tells of none that is wanted."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, TypeError, KeyError):
        return float("inf")


def duration(seconds: float) -> str:
    """Minutes and seconds, or hours and minutes.

    >>> duration(75), duration(3 * 3600 + 62)
    ('1:15 min', '3:01 h')
    """
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    return f"{minutes}:{rest:02} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02} h"
