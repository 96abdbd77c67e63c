"""Measures in which a network grades every pair of texts: `comet`, `bertscore`, `bleurt` and `metricx`.

The packages are the user's: `unbabel-comet`, `bert-score`, `bleurt-pytorch`, and `metricx24`, a clone of
Google's repository. A model is a folder, an installed package that carries one, or a name on the hub.
Nothing is fetched that is here already, and a hub that cannot be reached is reported at once: the libraries
themselves try again for more than a minute.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import threading
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from rangevote.errors import DataError, MissingExtra, SetupError, UsageError, warn
from rangevote.hypothesis import Array, Hypotheses
from rangevote.models.hub import WhileLoading, is_cached, quiet, refuse_unreachable
from rangevote.similarity.base import Measure, how_to_install, short
from rangevote.similarity.pairwise import PairPoll
from rangevote.similarity.units import Tokenise, texts_of

#: Pairs that a model is given in one call; it makes batches of them itself.
BLOCK = 1 << 14
#: Pairs whose vectors a COMET model is given in one call: 25 MB of what it computes from 1,024 dimensions.
ESTIMATES = 1 << 10
#: What brings a module that other packages take for granted.
INSTALLS = {"pkg_resources": '"setuptools<81"'}
#: How far a COMET score may lie beyond 1 without a warning; models trained on 0 to 1 overshoot a little.
OVERSHOOT = 0.05
#: Loggers of COMET that write at every call.
COMET_LOGGERS = ("comet", "lightning", "lightning.pytorch", "pytorch_lightning")
#: The model that bert-score itself takes for English.
BERTSCORE_MODEL = "roberta-large"


class Scored(NamedTuple):
    """A candidate with what it is held against."""

    source: str
    candidate: str
    reference: str


class LazyModel:
    """A model that is loaded at its first use, and used by one thread at a time."""

    def __init__(self, model: Any = None) -> None:
        self.lock = threading.Lock()
        self.model = model

    def get(self, name: str, load: Callable[[], Any]) -> Any:
        """The model; who asks holds the lock."""
        if self.model is None:
            with WhileLoading.show(name):
                self.model = load()
        return self.model


_shared: WeakValueDictionary[tuple[object, ...], LazyModel] = WeakValueDictionary()
_sharing = threading.Lock()


def shared_model(measure: str, model: str | Path, *options: object) -> LazyModel:
    """One model for all measures that name the same folder, however they spell it, as long as one lives."""
    with _sharing:
        key = (measure, os.path.realpath(os.path.expanduser(model)), *options)
        return _shared.setdefault(key, LazyModel())


class NeuralMeasure(Measure):
    """Grades from `grade_pairs`, called once for every two different texts; the empty text abstains."""

    lowest = -1.0
    model: str
    source: str | None = None

    def poll(self, candidates: Hypotheses) -> PairPoll:
        return PairPoll(self._texts(candidates), partial(self._grade, {}), self._texts)

    @abstractmethod
    def load(self) -> Any:
        """The model, by the user's package."""

    @abstractmethod
    def score(self, model: Any, texts: Sequence[Scored], vectors: dict[str, Any]) -> Sequence[float]:
        """The package's own score of each candidate.

        `vectors` is for what the model makes of each text alone; it lives as long as the election.
        """

    def scores(self, texts: Sequence[Scored], vectors: dict[str, Any]) -> Array:
        """The same as an array, shape (texts,); the model is loaded where it is not yet."""
        with self._lazy.lock:
            model = self._lazy.get(self.name, self.load)
            return np.asarray(self.score(model, texts, vectors), dtype=np.float64)

    @cached_property
    def _lazy(self) -> LazyModel:
        return shared_model(type(self).__name__, self.model, getattr(self, "layer", None))

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

    def grade_pairs(self, voters: list[str], candidates: list[str], vectors: dict[str, Any]) -> Array:
        """The grade of each candidate from the voter at the same index."""
        if self.reads_source and self.source is None:
            raise DataError(
                f"is missing, and {self.name} compares translations with their source. Give the ballot "
                f"one, or similarity={type(self).__name__}(..., source=...).",
                field="source",
            )
        pairs = zip(candidates, voters, strict=True)
        texts = [Scored(self.source or "", candidate, voter) for candidate, voter in pairs]
        return self.grades(self.scores(texts, vectors))

    def _texts(self, hypotheses: Hypotheses) -> list[str]:
        return texts_of(hypotheses, self.name)

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
        width = len(candidates)
        grades = np.empty(len(voters) * width)
        for start in range(0, len(grades), BLOCK):
            pairs = range(start, min(start + BLOCK, len(grades)))
            given = self.grade_pairs(
                [voters[p // width] for p in pairs], [candidates[p % width] for p in pairs], vectors
            )
            grades[start : pairs.stop] = self._checked(given, len(pairs))
        return np.clip(grades, -1.0, 1.0).reshape(len(voters), width)

    def _checked(self, grades: Array, size: int) -> Array:
        if grades.shape != (size,) or not np.isfinite(grades).all():
            raise SetupError(
                f"{self.name}: the model must give one finite number for each of {size} pairs, and gave an "
                f"array of shape {grades.shape}, finite or not. Choose another model."
            )
        return grades


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

    def __init__(
        self, model: str, *, scale: float = 1.0, source: str | None = None, batch_size: int = 16
    ) -> None:
        if not scale > 0:
            raise UsageError(f"comet: scale must be a number above 0, got {scale!r}.")
        self.model, self.scale, self.source, self.batch_size = model, scale, source, batch_size
        self.name = f"comet:{model}" + ("" if scale == 1.0 else f"@{short(scale)}")

    reads_source = True

    def load(self) -> Any:
        return load_comet(self.model, self.name)

    def score(self, model: Any, texts: Sequence[Scored], vectors: dict[str, Any]) -> Sequence[float]:
        return comet_scores(model, texts, self.batch_size, vectors)

    def grades(self, scores: Array) -> Array:
        scores = scores / self.scale
        worst = float(scores[np.argmax(np.abs(scores))])
        if abs(worst) > 1 + OVERSHOOT:
            warn(
                f"{self.name} gave {worst:.3g}, which is cut to {np.sign(worst):.0f}: grades are from -1 to "
                f"1. Divide its scores, as in comet:{self.model}@{short(np.ceil(abs(worst) * self.scale))}."
            )
        return scores


def comet_scores(
    model: Any, texts: Sequence[Scored], batch_size: int, vectors: dict[str, Any]
) -> Sequence[float]:
    """The model's scores.

    COMET's regression models encode source, translation and reference one by one, so a text in many places
    is encoded once, and `vectors` keeps what was encoded. Others read the three together.
    """
    if not (hasattr(model, "estimate") and model.requires_references()):
        samples = [{"src": text.source, "mt": text.candidate, "ref": text.reference} for text in texts]
        with quiet_comet():
            prediction = model.predict(
                samples, batch_size=batch_size, gpus=int(has_gpu()), progress_bar=False
            )
        return list(prediction.scores)
    import torch

    roles = [[text[role] for text in texts] for role in range(3)]  # sources, candidates, references
    distinct = dict.fromkeys(text for role in roles for text in dict.fromkeys(role))
    new = sorted((text for text in distinct if text not in vectors), key=len)  # for little padding
    scores: list[float] = []
    with torch.inference_mode():
        for start in range(0, len(new), batch_size):
            batch = new[start : start + batch_size]
            inputs = model.encoder.prepare_sample(batch)
            ids, mask = (inputs[name].to(model.device) for name in ("input_ids", "attention_mask"))
            vectors.update(zip(batch, model.get_sentence_embedding(ids, mask), strict=True))
        index = {text: i for i, text in enumerate(distinct)}
        table = torch.stack([vectors[text] for text in distinct])  # (distinct texts, dimensions)
        rows = torch.from_numpy(np.array([[index[text] for text in role] for role in roles]))  # (3, texts)
        rows = rows.to(table.device)
        for start in range(0, len(texts), ESTIMATES):
            block = rows[:, start : start + ESTIMATES]
            estimated = model.estimate(*(table.index_select(0, row) for row in block))
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


def load_comet(model: str, measure: str) -> Any:
    """COMET's model from a checkpoint on this machine, or from the hub."""
    with quiet_comet():
        library = import_package("comet", "unbabel-comet", measure)
    path = Path(model).expanduser()
    file = path / "checkpoints" / "model.ckpt" if path.is_dir() else path
    if not file.is_file():
        if path.exists() or model.startswith((".", "~", "/")) or model.endswith(".ckpt"):
            raise SetupError(f"{measure}: there is no checkpoint {str(file)!r}.")
        if not is_cached(model):
            refuse_unreachable(model, measure)
    try:
        with quiet_comet():
            checkpoint = str(file) if file.is_file() else library.download_model(model)
            return library.load_from_checkpoint(checkpoint).eval().to("cuda" if has_gpu() else "cpu")
    except Exception as error:
        raise SetupError(
            f"{measure}: COMET cannot load the model ({one_line(error)}). Check its name."
        ) from error


def has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


class Bertscore(NeuralMeasure):
    """BERTScore's F1 of candidate and voter: best matches between the two texts' word vectors; symmetric.

    Without idf weights and baseline, so that a grade is a mean of cosines. `model` is a name on the hub or a
    folder; `layer` which of its layers gives the vectors, needed for those the package has not tuned.
    """

    def __init__(
        self, model: str = BERTSCORE_MODEL, *, layer: int | None = None, batch_size: int = 64
    ) -> None:
        if layer is not None and layer < 1:
            raise UsageError(f"bertscore: layer must be a whole number from 1, got {layer!r}.")
        self.model, self.layer, self.batch_size = model, layer, batch_size
        self.name = f"bertscore:{model}" + ("" if layer is None else f"@{layer}")

    def load(self) -> Any:
        return load_bertscore(self.model, self.layer, self.name)

    def score(self, model: Any, texts: Sequence[Scored], vectors: dict[str, Any]) -> Sequence[float]:
        candidates, references = ([getattr(t, side) for t in texts] for side in ("candidate", "reference"))
        try:
            _, _, f1 = model.score(candidates, references, batch_size=self.batch_size)
        except Exception as error:  # of tokenizers, transformers, torch
            raise SetupError(
                f"{self.name}: bert-score cannot grade by this model ({one_line(error)})."
            ) from error
        return list(f1.tolist())


def load_bertscore(model: str, layer: int | None, measure: str) -> Any:
    """bert-score's scorer with this model."""
    library = import_package("bert_score", "bert-score", measure)
    folder = Path(model).expanduser()
    if not folder.is_dir() and not is_cached(model):
        refuse_unreachable(model, measure)
    try:
        with quiet():
            scorer = library.BERTScorer(
                model_type=str(folder) if folder.is_dir() else model, num_layers=layer
            )
    except KeyError as error:
        raise UsageError(
            f"{measure}: bert-score has not tuned which layer of this model to take. Name one, as in "
            f"bertscore:{model}@9."
        ) from error
    except Exception as error:
        raise SetupError(f"{measure}: bert-score cannot load the model ({one_line(error)}).") from error
    _limit_length(scorer)
    return scorer


def _limit_length(scorer: Any) -> None:
    """Give the tokenizer the model's longest input, where its folder has none.

    bert-score hands on the placeholder of transformers, 10^30, which tokenizers of today refuse.
    """
    tokenizer, network = getattr(scorer, "_tokenizer", None), getattr(scorer, "_model", None)
    positions = getattr(getattr(network, "config", None), "max_position_embeddings", None)
    if tokenizer is not None and positions and getattr(tokenizer, "model_max_length", 0) > 1 << 31:
        # RoBERTa counts positions from behind its padding index
        first = getattr(getattr(network, "embeddings", None), "padding_idx", -1) + 1
        tokenizer.model_max_length = positions - first


class RegressionMeasure(NeuralMeasure):
    """A model of transformers that gives one number, and its tokenizer; both by the user's package."""

    #: The module, the package that brings it, its model's class, and the name of the model's output.
    module: str
    package: str
    model_class: str
    output: str
    batch_size = 16

    def __init__(self, model: str, *, source: str | None = None) -> None:
        self.model, self.source = model, source
        self.name = f"{type(self).__name__.lower()}:{model}"

    @abstractmethod
    def tokenizer(self, library: ModuleType, path: str) -> Any:
        """What reads texts for the model."""

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

    def load(self) -> tuple[Any, Any]:
        library = import_package(self.module, self.package, self.name)
        folder = Path(self.model).expanduser()
        if not folder.is_dir() and not is_cached(self.model):
            refuse_unreachable(self.model, self.name)
        path = str(folder) if folder.is_dir() else self.model
        try:
            with quiet():
                network = getattr(library, self.model_class).from_pretrained(path)
                tokenizer = self.tokenizer(library, path)
        except Exception as error:
            raise SetupError(f"{self.name}: the model cannot be loaded ({one_line(error)}).") from error
        return network.eval().to("cuda" if has_gpu() else "cpu"), tokenizer


class Bleurt(RegressionMeasure):
    """BLEURT of the candidate with the voter as its reference; asymmetric.

    `model` is a folder or a name on the hub. BLEURT-20 scores about from 0 to 1, which is the grade; what
    lies beyond -1 and 1 is cut.
    """

    module, package = "bleurt_pytorch", "bleurt-pytorch"
    model_class, output = "BleurtForSequenceClassification", "logits"

    def tokenizer(self, library: ModuleType, path: str) -> Any:
        return library.BleurtTokenizer.from_pretrained(path)

    def encoded(self, tokenizer: Any, texts: Sequence[Scored]) -> Any:
        references, candidates = ([getattr(t, side) for t in texts] for side in ("reference", "candidate"))
        return tokenizer(
            references, candidates, padding="longest", truncation=True, max_length=512, return_tensors="pt"
        )


class Metricx(RegressionMeasure):
    """1 - MetricX / 25 of the candidate, with the voter as its reference and the ballot's source.

    `model` is a MetricX-24 model, a folder or a name on the hub; a folder may have its tokenizer with it,
    else that of mT5 is taken (`tokenizer_name`). MetricX counts errors, from 0 to 25.
    """

    module, package = "metricx24.models", "metricx24"
    model_class, output = "MT5ForRegression", "predictions"
    reads_source, higher_is_better = True, False
    worst = 25.0
    tokenizer_name = "google/mt5-xl"
    longest = 1536

    def tokenizer(self, library: ModuleType, path: str) -> Any:
        from transformers import AutoTokenizer

        own = Path(path).is_dir() and any(Path(path).glob("*token*"))
        return AutoTokenizer.from_pretrained(path if own else self.tokenizer_name)

    def encoded(self, tokenizer: Any, texts: Sequence[Scored]) -> Any:
        lines = [f"source: {t.source} candidate: {t.candidate} reference: {t.reference}" for t in texts]
        read = tokenizer(lines, max_length=self.longest, truncation=True)
        # the model was trained without the end of the sequence
        kept = {name: [ids[:-1] for ids in read[name]] for name in ("input_ids", "attention_mask")}
        return tokenizer.pad(kept, padding="longest", return_tensors="pt")

    def grades(self, scores: Array) -> Array:
        return 1.0 - np.clip(scores, 0.0, self.worst) / self.worst


def folder_of(model: str, file: str) -> Path | None:
    """The folder that holds this file: `model` itself, or one inside the package of this name.

    The package is not imported, only looked into. None where the name can only be one on the hub.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        if (path / file).is_file():
            return path
        raise SetupError(f"the folder {model!r} holds no model: there is no {file} in it.")
    if model.startswith((".", "~", "/")) or "\\" in model or model.count("/") > 1:
        raise SetupError(f"there is no folder {model!r} to load a model from.")
    module = model.replace("-", "_")
    if not module.isidentifier():
        return None
    spec = importlib.util.find_spec(module)
    folders = [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]
    return next((match.parent for folder in folders for match in sorted(folder.glob(f"**/{file}"))), None)


def import_package(module: str, package: str, measure: str) -> ModuleType:
    """Import a package that the user installs, or say how."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or module).partition(".")[0]
        if missing == module.partition(".")[0]:
            state, wanted = "not installed", package
        else:
            state, wanted = f"there, but lacks {missing!r}", INSTALLS.get(missing, missing)
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
    return Comet(_named_model("comet", argument))


def bertscore(argument: str, tokenize: Tokenise) -> Bertscore:
    model, _, layer = argument.rpartition("@")
    if model and layer.isdecimal():
        return Bertscore(model, layer=int(layer))
    return Bertscore(argument or BERTSCORE_MODEL)


def bleurt(argument: str, tokenize: Tokenise) -> Bleurt:
    return Bleurt(_named_model("bleurt", argument))


def metricx(argument: str, tokenize: Tokenise) -> Metricx:
    return Metricx(_named_model("metricx", argument))


def _named_model(measure: str, model: str) -> str:
    if not model:
        from rangevote.similarity import WITH_MODELS

        example = WITH_MODELS[measure].example
        raise UsageError(f"{measure} needs a model: a name or folder, such as {example}.")
    return model
