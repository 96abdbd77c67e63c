"""comet:MODEL: the voter is the reference, the candidate the translation; more is better.

COMET (the user's package `unbabel-comet`) looks at the source too: the ballot's `source`, or that of
`Comet(..., source=...)`. Models since 2022 score from 0 to 1, which is the grade. Older ones give z-scores
without bounds: `comet:MODEL@4` divides them by 4, and what is still beyond -1 and 1 is cut, with a warning.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rangevote.errors import DataError, SetupError, UsageError, warn
from rangevote.similarity.base import short
from rangevote.similarity.hub import bring, is_cached, refuse_unreachable, said
from rangevote.similarity.judged import Judged, Lazy
from rangevote.similarity.tokens import Tokenise

PACKAGE = "unbabel-comet"
#: How far a score may lie beyond 1 before it is told; models trained on 0 to 1 overshoot a little.
OVERSHOOT = 0.05
#: Who writes of what nobody asked.
LOGGERS = ("comet", "lightning", "lightning.pytorch", "pytorch_lightning")


class Comet(Judged):
    """COMET of the candidate, with the voter as its reference; asymmetric.

    `model` is a name on the hub, a folder with `checkpoints/model.ckpt`, or such a file. A checkpoint of
    COMET's is a pickle and can run code when it is read: take one only from whom you trust.
    """

    def __init__(
        self, model: str, *, scale: float = 1.0, source: str | None = None, batch_size: int = 16
    ) -> None:
        if not scale > 0:
            raise UsageError(f"comet: scale must be a number above 0, got {scale!r}.")
        self.model, self.scale, self.source, self.batch_size = model, scale, source, batch_size
        self.name = f"comet:{model}" + ("" if scale == 1.0 else f"@{short(scale)}")
        self._lazy = Lazy()

    def about(self, source: str | None) -> Comet:
        """The same measure, and the same loaded model, for translations of this source."""
        if source is None or source == self.source:
            return self
        bound = Comet(self.model, scale=self.scale, source=source, batch_size=self.batch_size)
        bound._lazy = self._lazy
        return bound

    def judge(self, voters: list[str], candidates: list[str]) -> Sequence[float]:
        """COMET of each candidate against the voter at the same place."""
        if self.source is None:
            raise DataError(
                f"is missing, and {self.name} compares translations with their source. Give the ballot "
                f"one, or similarity=Comet({self.model!r}, source=...).",
                field="source",
            )
        pairs = zip(voters, candidates, strict=True)
        samples = [{"src": self.source, "mt": candidate, "ref": voter} for voter, candidate in pairs]
        with self._lazy.lock:
            if self._lazy.model is None:
                self._lazy.model = load(self.model, self.name)
            model: Any = self._lazy.model
            with hushed():
                found = model.predict(
                    samples, batch_size=self.batch_size, gpus=int(_on_card()), progress_bar=False
                )
        scores = np.asarray(found.scores, dtype=np.float64) / self.scale
        self._tell(scores)
        return scores  # type: ignore[return-value]

    def _tell(self, scores: Any) -> None:
        worst = float(scores[np.argmax(np.abs(scores))])
        if abs(worst) > 1 + OVERSHOOT:
            warn(
                f"{self.name} gave {worst:.3g}, which is cut to {np.sign(worst):.0f}: grades are from -1 to "
                f"1. Divide its scores, as in comet:{self.model}@{short(np.ceil(abs(worst) * self.scale))}."
            )


@contextmanager
def hushed() -> Iterator[None]:
    """Without what COMET and Lightning write at every call, on cards, tips and what will be deprecated."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def load(model: str, measure: str) -> Any:
    """COMET's model from a checkpoint on this machine, or from the hub."""
    with hushed():
        library = bring("comet", PACKAGE, measure)
    path = Path(model).expanduser()
    file = path / "checkpoints" / "model.ckpt" if path.is_dir() else path
    if not file.is_file():
        if path.exists() or model.startswith((".", "~", "/")) or model.endswith(".ckpt"):
            raise SetupError(f"{measure}: there is no checkpoint {str(file)!r}.")
        if not is_cached(model):
            refuse_unreachable(model, measure)
    try:
        with hushed():
            return library.load_from_checkpoint(
                str(file) if file.is_file() else library.download_model(model)
            )
    except Exception as error:
        raise SetupError(
            f"{measure}: COMET cannot load the model ({said(error)}). Check its name."
        ) from error


def _on_card() -> bool:
    """Whether there is a graphics card, of which COMET takes one."""
    import torch

    return bool(torch.cuda.is_available())


def comet(argument: str, tokenize: Tokenise) -> Comet:
    """COMET against the voter: comet:MODEL, or comet:MODEL@SCALE."""
    model, _, scale = argument.rpartition("@")
    if model and _is_number(scale):
        return Comet(model, scale=float(scale))
    if not argument:
        raise UsageError("comet needs a model: a name, folder or file, as comet:Unbabel/wmt22-comet-da.")
    return Comet(argument)


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()
