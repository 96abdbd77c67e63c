"""Measures in which a network grades every pair of texts: `comet`, `bertscore`, `bleurt` and `metricx`.

The packages are the user's: `unbabel-comet`, `bert-score`, `bleurt-pytorch`, and `metricx24`, a clone of
Google's repository. A model is a folder, an installed package that carries one, or a name on the hub.
Downloaded models are not fetched again, and a hub that cannot be reached is reported at once: the libraries
themselves try for more than a minute.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property, partial
from itertools import islice, product
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from rangevote.errors import DataError, MissingExtra, SetupError, UsageError, warn
from rangevote.hypothesis import Array, Hypotheses
from rangevote.models.load import WhileLoading, is_cached, quiet, refuse_unreachable
from rangevote.similarity import how_to_install
from rangevote.similarity.base import PairPoll, TextMeasure, Tokenise, number_text

#: Pairs that a model is given in one call; it makes batches of them itself.
BLOCK = 1 << 14
#: Pairs whose vectors a COMET model is given in one call: 25 MB of what it computes from 1,024 dimensions.
ESTIMATES = 1 << 10
#: What to install for a module that other packages expect to be there.
INSTALLS = {"pkg_resources": '"setuptools<81"'}
#: How far a COMET score may lie beyond 1 without a warning; models trained on 0 to 1 overshoot a little.
OVERSHOOT = 0.05
#: Loggers of COMET that write at every call.
COMET_LOGGERS = ("comet", "lightning", "lightning.pytorch", "pytorch_lightning")
#: The model that bert-score itself takes for English.
BERTSCORE_MODEL = "roberta-large"


class Scored(NamedTuple):
    """A candidate with its source and reference."""

    source: str
    candidate: str
    reference: str


class LazyModel:
    """A model that is loaded at its first use, and used by one thread at a time."""

    def __init__(self, model: Any = None) -> None:
        self._lock = threading.Lock()
        self.model = model

    @contextmanager
    def use(self, name: str, load: Callable[[], Any]) -> Iterator[Any]:
        with self._lock:
            if self.model is None:
                with WhileLoading.show(name):
                    self.model = load()
            yield self.model


_shared: WeakValueDictionary[tuple[object, ...], LazyModel] = WeakValueDictionary()
_sharing = threading.Lock()


def shared_model(measure: str, model: str | Path, *options: object) -> LazyModel:
    """One model for all measures that name the same folder, however they spell it, as long as one lives."""
    with _sharing:
        key = (measure, os.path.realpath(os.path.expanduser(model)), *options)
        return _shared.setdefault(key, LazyModel())


class NeuralMeasure(TextMeasure):
    """Grades from a model's scores of every two different texts; the empty text abstains."""

    lowest = -1.0
    #: The module, and the package that brings it.
    module: str
    package: str
    model: str
    source: str | None = None

    def poll(self, candidates: Hypotheses) -> PairPoll:
        return PairPoll(self.texts(candidates), partial(self._grade, {}), self.texts)

    @abstractmethod
    def loaded(self, library: ModuleType, path: str) -> Any:
        """The model, by the user's package, from a path or a name on the hub."""

    @abstractmethod
    def score(self, model: Any, texts: Sequence[Scored], vectors: dict[str, Any]) -> Sequence[float]:
        """The package's own score of each candidate.

        `vectors` is for what the model makes of each text alone; it lives as long as the election.
        """

    def scores(self, texts: Sequence[Scored], vectors: dict[str, Any]) -> Array:
        """The same as an array, shape (texts,); the model is loaded where it is not yet."""
        with self._lazy.use(self.name, self._load) as model:
            return np.asarray(self.score(model, texts, vectors), dtype=np.float64)

    @cached_property
    def _lazy(self) -> LazyModel:
        return shared_model(type(self).__name__, self.model, getattr(self, "layer", None))

    def _load(self) -> Any:
        with quiet_comet():  # which writes when it is imported, too
            library = import_package(self.module, self.package, self.name)
            path = self.local()
            if path is None and not is_cached(self.model):
                refuse_unreachable(self.model, self.name)
            try:
                with quiet():
                    return self.loaded(library, path or self.model)
            except UsageError:
                raise
            except Exception as error:  # of transformers, torch, and what else a package uses
                raise SetupError(
                    f"{self.name}: {self.package} cannot load the model ({one_line(error)}). Check its name."
                ) from error

    def local(self) -> str | None:
        """Where the model is on this machine, if it is named by a path."""
        folder = Path(self.model).expanduser()
        return str(folder) if folder.is_dir() else None

    def about(self, source: str | None) -> NeuralMeasure:
        """The same measure, and the same loaded model, for translations of this source."""
        if not self.reads_source or source is None or source == self.source:
            return self
        bound = copy(self)
        bound.source, bound._lazy = source, self._lazy
        return bound

    def grades(self, scores: Array) -> Array:
        """Scores as grades, which are from -1 to 1, and the higher the better."""
        return scores

    def _grade(self, vectors: dict[str, Any], voters: Sequence[str], candidates: Sequence[str]) -> Array:
        """sim(v, c), shape (voters, candidates)."""
        rows, columns = _distinct(voters), _distinct(candidates)
        table = np.zeros((len(rows) + 1, len(columns) + 1))  # the last row and column: empty texts
        if rows and columns:
            table[:-1, :-1] = self._all_pairs(list(rows), list(columns), vectors)
        v = np.array([rows.get(text, -1) for text in voters], dtype=int)
        c = np.array([columns.get(text, -1) for text in candidates], dtype=int)
        return np.asarray(table[v[:, None], c[None, :]])

    def _all_pairs(self, voters: list[str], candidates: list[str], vectors: dict[str, Any]) -> Array:
        """Grades of all pairs of different texts, a block at a time, shape (voters, candidates)."""
        if self.reads_source and self.source is None:
            raise DataError(
                f"is missing, and {self.name} compares translations with their source. Give the ballot "
                f"one, or similarity={type(self).__name__}(..., source=...).",
                field="source",
            )
        pairs = product(voters, candidates)
        blocks = []
        while texts := [Scored(self.source or "", c, v) for v, c in islice(pairs, BLOCK)]:
            grades = self.grades(self.scores(texts, vectors))
            if grades.shape != (len(texts),) or not np.isfinite(grades).all():
                raise SetupError(
                    f"{self.name}: the model must give one finite number for each of {len(texts)} pairs; it "
                    f"gave an array of shape {grades.shape}, or infinite numbers. Choose another model."
                )
            blocks.append(grades)
        return np.clip(np.concatenate(blocks), -1.0, 1.0).reshape(len(voters), len(candidates))


def _distinct(texts: Sequence[str]) -> dict[str, int]:
    """The different texts that are not empty, each with its index."""
    return {text: i for i, text in enumerate(dict.fromkeys(t for t in texts if t.strip()))}


class Comet(NeuralMeasure):
    """COMET of the candidate as a translation of the source, with the voter as its reference; asymmetric.

    `model` is a name on the hub, a folder with `checkpoints/model.ckpt`, or such a file. A checkpoint of
    COMET's is a pickle and can run code when it is read: take one only from people you trust. The source is
    the ballot's, or `source`. Models since 2022 score from 0 to 1, which is the grade. Older ones give
    z-scores without bounds, which `scale` (as in comet:MODEL@4) divides; what is still beyond -1 and 1 is
    cut, with a warning.
    """

    module, package = "comet", "unbabel-comet"
    reads_source = True

    def __init__(
        self, model: str, *, scale: float = 1.0, source: str | None = None, batch_size: int = 16
    ) -> None:
        if not scale > 0:
            raise UsageError(f"comet: scale must be a number above 0, got {scale!r}.")
        self.model, self.scale, self.source, self.batch_size = model, scale, source, batch_size
        self.name = f"comet:{model}" + ("" if scale == 1.0 else f"@{number_text(scale)}")

    def local(self) -> str | None:
        path = Path(self.model).expanduser()
        file = path / "checkpoints" / "model.ckpt" if path.is_dir() else path
        if file.is_file():
            return str(file)
        if path.exists() or self.model.startswith((".", "~", "/")) or self.model.endswith(".ckpt"):
            raise SetupError(f"{self.name}: there is no checkpoint {str(file)!r}.")
        return None

    def loaded(self, library: ModuleType, path: str) -> Any:
        checkpoint = path if self.local() else library.download_model(path)
        return library.load_from_checkpoint(checkpoint).eval().to(device())

    def grades(self, scores: Array) -> Array:
        scores = scores / self.scale
        worst = float(scores[np.argmax(np.abs(scores))])
        if abs(worst) > 1 + OVERSHOOT:
            scale = number_text(np.ceil(abs(worst) * self.scale))
            warn(
                f"{self.name} gave {worst:.3g}, which is cut to {np.sign(worst):.0f}: grades are from -1 to "
                f"1. Divide its scores: comet:{self.model}@{scale}."
            )
        return scores

    def score(self, model: Any, texts: Sequence[Scored], vectors: dict[str, Any]) -> Sequence[float]:
        """The model's scores.

        COMET's regression models encode source, translation and reference one by one, so a text in many
        places is encoded once, and `vectors` keeps what was encoded. Others read the three together.
        """
        if not (hasattr(model, "estimate") and model.requires_references()):
            samples = [{"src": text.source, "mt": text.candidate, "ref": text.reference} for text in texts]
            options = {"batch_size": self.batch_size, "gpus": int(device() == "cuda"), "progress_bar": False}
            with quiet_comet():
                return list(model.predict(samples, **options).scores)
        import torch

        distinct = dict.fromkeys(text for role in zip(*texts, strict=True) for text in role)
        new = sorted((text for text in distinct if text not in vectors), key=len)  # for little padding
        scores: list[float] = []
        with torch.inference_mode():
            for start in range(0, len(new), self.batch_size):
                batch = new[start : start + self.batch_size]
                inputs = model.encoder.prepare_sample(batch)
                ids, mask = (inputs[name].to(model.device) for name in ("input_ids", "attention_mask"))
                vectors.update(zip(batch, model.get_sentence_embedding(ids, mask), strict=True))
            for start in range(0, len(texts), ESTIMATES):
                roles = zip(*texts[start : start + ESTIMATES], strict=True)  # sources, candidates, references
                estimated = model.estimate(*(torch.stack([vectors[text] for text in role]) for role in roles))
                scores += estimated["score"].flatten().tolist()
        return scores


@contextmanager
def quiet_comet() -> Iterator[None]:
    """Without what COMET and Lightning write at every call about devices, tips and deprecations."""
    loggers = [logging.getLogger(name) for name in COMET_LOGGERS]
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


def device() -> str:
    """Where models run."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


class Bertscore(NeuralMeasure):
    """BERTScore's F1 of candidate and voter: best matches between the two texts' word vectors; symmetric.

    Without idf weights and baseline, so that a grade is a mean of cosines. `model` is a name on the hub or a
    folder; `layer` which of its layers gives the vectors, needed for those the package has not tuned.
    """

    module, package = "bert_score", "bert-score"

    def __init__(
        self, model: str = BERTSCORE_MODEL, *, layer: int | None = None, batch_size: int = 64
    ) -> None:
        if layer is not None and layer < 1:
            raise UsageError(f"bertscore: layer must be a whole number from 1, got {layer!r}.")
        self.model, self.layer, self.batch_size = model, layer, batch_size
        self.name = f"bertscore:{model}" + ("" if layer is None else f"@{layer}")

    def loaded(self, library: ModuleType, path: str) -> Any:
        try:
            scorer = library.BERTScorer(model_type=path, num_layers=self.layer)
        except KeyError as error:
            raise UsageError(
                f"{self.name}: bert-score has not tuned which layer of this model to take. Name one: "
                f"bertscore:{self.model}@9."
            ) from error
        # bert-score hands on the placeholder of transformers for the longest input where a folder has none,
        # 10^30, which tokenizers of today refuse
        tokenizer, network = getattr(scorer, "_tokenizer", None), getattr(scorer, "_model", None)
        positions = getattr(getattr(network, "config", None), "max_position_embeddings", None)
        if tokenizer is not None and positions and getattr(tokenizer, "model_max_length", 0) > 1 << 31:
            # RoBERTa counts positions from behind its padding index
            first = getattr(getattr(network, "embeddings", None), "padding_idx", -1) + 1
            tokenizer.model_max_length = positions - first
        return scorer

    def score(self, model: Any, texts: Sequence[Scored], vectors: dict[str, Any]) -> Sequence[float]:
        _, candidates, references = zip(*texts, strict=True)
        try:
            _, _, f1 = model.score(list(candidates), list(references), batch_size=self.batch_size)
        except Exception as error:  # of tokenizers, transformers, torch
            raise SetupError(
                f"{self.name}: bert-score cannot grade by this model ({one_line(error)})."
            ) from error
        return list(f1.tolist())


class RegressionMeasure(NeuralMeasure):
    """A model of transformers that gives one number, and its tokenizer; both by the user's package."""

    #: The name of the model's output.
    output: str
    batch_size = 16

    def __init__(self, model: str, *, source: str | None = None) -> None:
        self.model, self.source = model, source
        self.name = f"{type(self).__name__.lower()}:{model}"

    @abstractmethod
    def encoded(self, tokenizer: Any, texts: Sequence[Scored]) -> Any:
        """Tensors of a batch, padded."""

    def score(self, model: Any, texts: Sequence[Scored], vectors: dict[str, Any]) -> Sequence[float]:
        import torch

        network, tokenizer = model
        numbers: list[float] = []
        with torch.inference_mode():
            for start in range(0, len(texts), self.batch_size):
                inputs = self.encoded(tokenizer, texts[start : start + self.batch_size])
                output = network(**{name: tensor.to(network.device) for name, tensor in inputs.items()})
                numbers += getattr(output, self.output).flatten().tolist()
        return numbers


class Bleurt(RegressionMeasure):
    """BLEURT of the candidate with the voter as its reference; asymmetric.

    `model` is a folder or a name on the hub. BLEURT-20 scores about from 0 to 1, which is the grade; what
    lies beyond -1 and 1 is cut.
    """

    module, package = "bleurt_pytorch", "bleurt-pytorch"
    output = "logits"

    def loaded(self, library: ModuleType, path: str) -> tuple[Any, Any]:
        network = library.BleurtForSequenceClassification.from_pretrained(path).eval().to(device())
        return network, library.BleurtTokenizer.from_pretrained(path)

    def encoded(self, tokenizer: Any, texts: Sequence[Scored]) -> Any:
        _, candidates, references = map(list, zip(*texts, strict=True))
        return tokenizer(
            references, candidates, padding="longest", truncation=True, max_length=512, return_tensors="pt"
        )


class Metricx(RegressionMeasure):
    """1 - MetricX / 25 of the candidate, with the voter as its reference and the ballot's source.

    `model` is a MetricX-24 model, a folder or a name on the hub; a folder may have its tokenizer with it,
    else that of mT5 is taken (`tokenizer_name`). MetricX counts errors, from 0 to 25.
    """

    module, package = "metricx24.models", "metricx24"
    output = "predictions"
    reads_source, higher_is_better = True, False
    worst = 25.0
    tokenizer_name = "google/mt5-xl"
    longest = 1536

    def loaded(self, library: ModuleType, path: str) -> tuple[Any, Any]:
        from transformers import AutoTokenizer

        network = library.MT5ForRegression.from_pretrained(path).eval().to(device())
        brought = Path(path).is_dir() and any(Path(path).glob("*token*"))
        return network, AutoTokenizer.from_pretrained(path if brought else self.tokenizer_name)

    def encoded(self, tokenizer: Any, texts: Sequence[Scored]) -> Any:
        lines = [f"source: {t.source} candidate: {t.candidate} reference: {t.reference}" for t in texts]
        read = tokenizer(lines, max_length=self.longest, truncation=True)
        # the model was trained without the end of the sequence
        kept = {name: [ids[:-1] for ids in read[name]] for name in ("input_ids", "attention_mask")}
        return tokenizer.pad(kept, padding="longest", return_tensors="pt")

    def grades(self, scores: Array) -> Array:
        return 1.0 - np.clip(scores, 0.0, self.worst) / self.worst


def import_package(module: str, package: str, measure: str) -> ModuleType:
    """Import a package, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or module).partition(".")[0]
        state, wanted = f"installed but lacks {missing!r}", INSTALLS.get(missing, missing)
        if missing == module.partition(".")[0]:
            state, wanted = "not installed", package
        raise MissingExtra(
            f"the similarity {measure!r} needs the package {package!r}, which is {state}. "
            f"Install it with: {how_to_install(wanted)}"
        ) from error
    except Exception as error:  # a package at odds with the others fails in any way
        raise SetupError(
            f"the similarity {measure!r} needs the package {package!r}, which is installed but cannot be "
            f"imported: {one_line(error)}. Install one that fits: pip install --upgrade {package}"
        ) from error


def one_line(error: BaseException) -> str:
    """A library's error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".:")


def comet(argument: str, tokenize: Tokenise) -> Comet:
    model, _, scale = argument.rpartition("@")
    if model and scale.replace(".", "", 1).isdecimal():
        return Comet(model, scale=float(scale))
    return Comet(argument)


def bertscore(argument: str, tokenize: Tokenise) -> Bertscore:
    model, _, layer = argument.rpartition("@")
    if model and layer.isdecimal():
        return Bertscore(model, layer=int(layer))
    return Bertscore(argument or BERTSCORE_MODEL)
