"""A published translator (Marian, in Hugging Face's layout), searched by CTranslate2 or by rangevote itself.

CTranslate2 is twice as fast and does beam search, length normalisation and sampling; what it lacks (states,
diverse decoding, diverse and stochastic beams, epsilon sampling, the copy filter) `rangevote.search` does.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from experiments.checkpoint import is_checkpoint, load_checkpoint
from rangevote.decoding import get_search
from rangevote.decoding.base import Search
from rangevote.decoding.beam import Beam, LengthNormalised
from rangevote.decoding.sample import Nucleus, Sample, TopK
from rangevote.engines.ctranslate2 import hypotheses_of
from rangevote.hypothesis import Hypothesis
from rangevote.models.load import load

#: CTranslate2 sorts the whole vocabulary for a nucleus, at a sixth of the speed, unless it is cut first.
LARGEST_NUCLEUS = 200
#: Rows of a batch: larger ones are no faster on a CPU.
ROWS = 120


VOCABULARY = ("source.spm", "target.spm", "vocab.json")
#: Where a converted model has the one it was made of.
ORIGINAL = "original"


def take(output: Path, *, quantization: str, weights: Path) -> None:
    """Step "train" of a model that is trained already: a copy of its folder, with a `quantization` (as
    "int8") inside a folder that CTranslate2 reads."""
    if quantization:
        from ctranslate2.converters import TransformersConverter

        converter = TransformersConverter(str(weights.parent), copy_files=list(VOCABULARY))
        converter.convert(str(output), quantization=quantization, force=True)  # which empties the folder
        output = output / ORIGINAL
    shutil.copytree(weights.parent, output, dirs_exist_ok=True)


def open_model(folder: Path, device: str, spec: str) -> Any:
    """The model in a folder for this search: one that was trained here, one for CTranslate2 (for what it
    lacks the original), or one of Hugging Face."""
    if is_checkpoint(folder):
        return load_checkpoint(folder, device=device)
    if (folder / "model.bin").is_file():
        if translate_options(get_search(spec)):
            return Ctranslate2Model(folder)
        folder = folder / ORIGINAL
    return load(str(folder), device=device, dtype="float32")


class Ctranslate2Model:
    """A converted model, in a folder that has its vocabulary too."""

    def __init__(self, folder: Path) -> None:
        import ctranslate2
        from sentencepiece import SentencePieceProcessor

        self.translator = ctranslate2.Translator(str(folder), compute_type="int8", intra_threads=1)
        self.source = SentencePieceProcessor(str(folder / "source.spm"))
        self.target = SentencePieceProcessor(str(folder / "target.spm"))
        self.folder = folder

    @cached_property
    def ids(self) -> dict[str, int]:
        found: dict[str, int] = json.loads((self.folder / "vocab.json").read_bytes())
        return found

    def text(self, pieces: list[str]) -> str:
        """Pieces that only the source language has are unknown to the target's: their word marks stay."""
        return str(self.target.decode_pieces(pieces)).replace("▁", " ")

    def search(self, texts: Sequence[str], spec: str, first: int) -> Iterator[list[Hypothesis]]:
        """The hypotheses of each text, the model's own log P with them.

        `first` is the index of the first text in the whole: with the seed it fixes the random numbers of this
        call, so parts of a run must be cut the same way to give the same samples.
        """
        import ctranslate2

        search = get_search(spec)
        options = translate_options(search)
        seed = getattr(search, "seed", None)
        if seed is not None:
            ctranslate2.set_random_seed((seed * 1_000_003 + first) % 2**31)
        results = self.translator.translate_batch(
            [[*self.source.encode(text, out_type=str), "</s>"] for text in texts],
            max_batch_size=max(1, ROWS // search.size),
            max_decoding_length=search.max_new_tokens,
            min_decoding_length=0,  # else the end is forbidden as the first token, and P another
            return_scores=True,
            **options,
        )
        for result in results:
            found = hypotheses_of(
                [result],
                text=self.text,
                length_penalty=options["length_penalty"],
                max_length=search.max_new_tokens,
                sampled=search.random,
            )[0]
            yield [
                msgspec.structs.replace(one, tokens=tuple(self.ids[piece] for piece in pieces))
                for one, pieces in zip(found, result.hypotheses, strict=True)
            ]


def translate_options(search: Search) -> dict[str, Any]:
    """The same search in the words of CTranslate2; nothing where it has no such search."""
    if search.copy_filter is None:
        if isinstance(search, (Beam, LengthNormalised)):
            penalty = 1.0 if isinstance(search, LengthNormalised) else 0.0
            return {"beam_size": search.k, "num_hypotheses": search.k, "length_penalty": penalty}
        samples = {"beam_size": 1, "num_hypotheses": search.size, "length_penalty": 0.0}
        if isinstance(search, Sample):
            return {**samples, "sampling_topk": 0, "sampling_temperature": search.temperature}
        if isinstance(search, Nucleus):
            return {**samples, "sampling_topk": LARGEST_NUCLEUS, "sampling_topp": search.p}
        if isinstance(search, TopK):
            return {**samples, "sampling_topk": search.top}
    return {}
