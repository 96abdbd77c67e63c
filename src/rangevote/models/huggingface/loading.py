"""Files to models: a folder, a GGUF file or a name on the hub, by way of transformers.

Weights come from safetensors or GGUF only, which contain numbers and nothing that runs; code that comes
with a model is never run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import modeling_gguf_pytorch_utils
from transformers.models.auto import modeling_auto

from rangevote.errors import RangevoteError, SetupError, UsageError, need, warn
from rangevote.models.huggingface.inputs import End, sees
from rangevote.models.huggingface.model import HuggingFace
from rangevote.models.load import is_cached, quiet, refuse_unreachable

#: Which class of transformers' reads which models; the first that knows one is taken.
CLASSES = (
    (modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, transformers.AutoModelForSeq2SeqLM),
    (modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES, transformers.AutoModelForImageTextToText),
    (modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, transformers.AutoModelForCausalLM),
)

#: Files of which a tokenizer has at least one.
TOKENIZERS = ("tokenizer*", "vocab*", "*.model", "*.spm", "merges.txt")

#: transformers' readers, which have no types.
_auto: Any = transformers
_gguf: Any = modeling_gguf_pytorch_utils


def read(
    name: str | Path,
    tokenizer: Any,
    processor: Any,
    *,
    device: str | torch.device | None,
    dtype: str | torch.dtype | None,
    chat: bool,
    end: End,
    revision: str | None,
) -> HuggingFace:
    """A model from a GGUF file, a folder (paths), or by its name on the hub (a text)."""
    where = device_named(device)
    number = dtype_named(dtype, where)
    source = _source(name, revision)
    with _load_errors(name), _local_reading(), quiet():
        config = _auto.AutoConfig.from_pretrained(**source)
        hf = _weights(config, source, number, str(name)).to(where).eval()
        if processor is None and sees(hf):
            processor = _processor(source)
        if tokenizer is None:
            tokenizer = getattr(processor, "tokenizer", None) or _tokenizer(name, source)
        elif isinstance(tokenizer, (str, Path)):
            tokenizer = _auto.AutoTokenizer.from_pretrained(tokenizer, trust_remote_code=False)
    return HuggingFace(hf, tokenizer, processor, chat=chat, end=end)


def _source(name: str | Path, revision: str | None) -> dict[str, Any]:
    """Where transformers is to look; refuses at once what it could not or should not read."""
    source: dict[str, Any] = {"pretrained_model_name_or_path": str(name), "trust_remote_code": False}
    if isinstance(name, Path) and name.is_file():
        if name.suffix != ".gguf":
            raise SetupError(f"{name} is not a model file that can be read. Give a folder, *.gguf or *.arpa.")
        for package in ("gguf", "accelerate"):
            need(package, "models", "reading GGUF files")
        source.update(pretrained_model_name_or_path=str(name.parent), gguf_file=name.name)
    elif isinstance(name, Path):
        check_folder(name)
    else:
        try:
            refuse_unreachable(name, "cannot load the model")
        except SetupError:
            if not is_cached(name, revision):
                raise
            source["local_files_only"] = True  # else transformers would look for what is new, and wait
    return source if revision is None else {**source, "revision": revision}


def device_named(device: str | torch.device | None) -> torch.device:
    """The device asked for; by default a graphics card if there is one."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise UsageError(f"device={str(device)!r} is not available here: {reason}") from None


def dtype_named(dtype: str | torch.dtype | None, device: torch.device) -> Any:
    """The kind of numbers asked for; by default float32 on a processor, which is slow at others."""
    if dtype is None:
        return torch.float32 if device.type == "cpu" else "auto"
    number = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(number, torch.dtype) or not number.is_floating_point:
        raise UsageError(f"dtype={dtype!r} is unknown. Choose from: float32, bfloat16, float16.")
    return number


def check_folder(folder: Path) -> None:
    """Refuse a folder without a model, or one whose weights would have to be unpickled."""
    if not (folder / "config.json").is_file():
        raise SetupError(f"{folder} is not a model: there is no config.json in it.")
    if any(folder.glob("*.safetensors")):
        return
    pickled = sorted(file.name for kind in ("*.bin", "*.pt", "*.pth") for file in folder.glob(kind))
    if pickled:
        raise SetupError(
            f"{folder} has its weights only as {pickled[0]}, a format that can run code when it is read. "
            "Convert them where you trust the file: transformers' from_pretrained(folder), and then "
            "save_pretrained(other_folder), writes safetensors."
        )
    raise SetupError(f"{folder} has no weights: there is no file *.safetensors in it.")


def _weights(config: Any, source: dict[str, Any], dtype: Any, name: str) -> Any:
    safe = {} if "gguf_file" in source else {"use_safetensors": True}
    kind = auto_class(config, name)
    hf, report = kind.from_pretrained(**source, **safe, dtype=dtype, output_loading_info=True)
    missing = sorted(report["missing_keys"])
    if missing:
        warn(f"{name} has no weights for {len(missing)} parts of the model ({missing[0]}); they are random.")
    return hf


def auto_class(config: Any, name: str) -> Any:
    """Which of transformers' classes reads this model: by the architecture it names, else by its type."""
    named = set(config.architectures or ())
    for by_architecture in (True, False):
        for table, kind in CLASSES:
            names = table.get(config.model_type)
            classes = {names} if isinstance(names, str) else set(names or ())
            if classes and (not by_architecture or classes & named):
                return kind
    raise SetupError(
        f"{name} is a model of the type {config.model_type!r}, which does not write text. Choose one that "
        "does: decoder-only, encoder-decoder or image-to-text."
    )


def _tokenizer(name: str | Path, source: dict[str, Any]) -> Any:
    """The tokenizer beside the weights; None where a folder has none."""
    if isinstance(name, Path) and name.is_dir() and not any(any(name.glob(kind)) for kind in TOKENIZERS):
        return None
    return _auto.AutoTokenizer.from_pretrained(**source)


def _processor(source: dict[str, Any]) -> Any:
    """What makes of an image what the model sees."""
    try:
        whole = _auto.AutoProcessor.from_pretrained(**source)
        if hasattr(whole, "image_processor"):
            return whole
    except (OSError, ValueError):
        pass
    return _auto.AutoImageProcessor.from_pretrained(**source)


@contextmanager
def _load_errors(name: str | Path) -> Iterator[None]:
    """Transformers' many ways to fail at reading, as ours."""
    try:
        yield
    except RangevoteError:
        raise
    except Exception as error:  # also those of safetensors, of GGUF and of broken JSON
        what = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".:")
        if "trust_remote_code" in what:
            problem = "it needs code of its author to be run, which is never done here"
            remedy = "Choose a model that transformers knows."
        elif isinstance(name, Path):
            problem, remedy = f"transformers cannot read it ({what})", "Check the file or folder."
        else:
            problem = f"no file or folder has this name, and transformers says of the hub: {what}"
            remedy = "Check the name, or download the model and give its folder."
        raise SetupError(f"cannot load {str(name)!r}: {problem}. {remedy}") from error


@contextmanager
def _local_reading() -> Iterator[None]:
    """No asking a service on the hub to convert weights to safetensors, and no bar while GGUF is read."""
    switch, bar = "DISABLE_SAFETENSORS_CONVERSION", _gguf.tqdm
    before = os.environ.get(switch)
    os.environ[switch] = "1"
    _gguf.tqdm = lambda parts, **_: parts
    try:
        yield
    finally:
        _gguf.tqdm = bar
        if before is None:
            del os.environ[switch]
        else:
            os.environ[switch] = before
