"""The module `comet` with models that can be computed by hand, and that count what they are asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


class Prediction(dict[str, Any]):
    """What a model returns: a dictionary whose keys are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class JointModel:
    """Reads source, translation and reference together, as COMET's unified models do.

    The score is the share of the reference's words in the translation.
    """

    def __init__(self) -> None:
        self.calls: list[list[dict[str, str]]] = []
        self.scale = 1.0

    def eval(self) -> JointModel:
        return self

    def to(self, device: str) -> JointModel:
        return self

    def predict(
        self,
        samples: list[dict[str, str]],
        batch_size: int,
        gpus: int,
        progress_bar: bool,
    ) -> Prediction:
        assert not progress_bar
        assert gpus in (0, 1)
        self.calls.append(samples)
        return Prediction(scores=[self.scale * self.one(**sample) for sample in samples])

    @staticmethod
    def one(src: str, mt: str, ref: str) -> float:
        return len(set(mt.split()) & set(ref.split())) / len(set(ref.split()))


class WordEncoder:
    """Words as ids from 1, padded with 0."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.encoded: list[str] = []

    def prepare_sample(self, sample: list[str]) -> dict[str, Any]:
        import torch

        self.encoded += sample
        rows = [[self.ids.setdefault(word, len(self.ids) + 1) for word in text.split()] for text in sample]
        width = max(map(len, rows))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        return {"input_ids": ids, "attention_mask": (ids > 0).long()}


class EncodingModel(JointModel):
    """Encodes each text by itself, as COMET's regression models do; the vector says which words it has.

    The same score, less 0.1 for each word of the source that stands in the translation.
    """

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.device = WordEncoder(), "cpu"
        self.estimated = 0

    def requires_references(self) -> bool:
        return True

    def get_sentence_embedding(self, input_ids: Any, attention_mask: Any) -> Any:
        import torch

        vectors = torch.zeros(len(input_ids), 200).scatter(1, input_ids, attention_mask.float())
        vectors[:, 0] = 0
        return vectors

    def estimate(self, src_sentemb: Any, mt_sentemb: Any, ref_sentemb: Any) -> Prediction:
        self.estimated += len(mt_sentemb)
        shared = (mt_sentemb * ref_sentemb).sum(1) / ref_sentemb.sum(1)
        return Prediction(score=self.scale * shared - 0.1 * (mt_sentemb * src_sentemb).sum(1))

    def predict(self, *arguments: Any, **options: Any) -> Prediction:
        pytest.fail("every pair would be encoded")


def install(model: JointModel, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module `comet`, and a checkpoint in `folder` that its loader takes."""
    module = ModuleType("comet")

    def download_model(model: str) -> str:
        raise KeyError(f"Model '{model}' not supported by COMET.")

    def load_from_checkpoint(checkpoint_path: str) -> JointModel:
        assert checkpoint_path == str(folder / "checkpoints" / "model.ckpt")
        model.calls.append([])
        return model

    module.download_model, module.load_from_checkpoint = download_model, load_from_checkpoint  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "comet", module)
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "model.ckpt").touch()
