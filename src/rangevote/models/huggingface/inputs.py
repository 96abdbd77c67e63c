"""Texts, chats, token ids and images to what `generate` takes; and what a model's configuration limits."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from rangevote.errors import DataError, SetupError, UsageError, need, shown
from rangevote.models.huggingface.steps import Net
from rangevote.models.load import quiet
from rangevote.models.protocol import Integers
from rangevote.text import IMAGE_ENDINGS

#: Tokens that end a sequence, by number or by text.
End = int | str | Iterable[int | str] | None


class InputEncoder:
    """Encodes what a user gives; `chat` puts a text into the tokenizer's chat template, if there is one."""

    def __init__(self, hf: Net, tokenizer: Any, processor: Any, chat: bool, pad: int) -> None:
        """`pad`: the token that fills up shorter inputs; it is masked, so any will do."""
        self._hf, self._tokenizer, self._padding = hf, tokenizer, pad
        self._encoder: bool = hf.config.is_encoder_decoder
        self._template = not self._encoder and getattr(tokenizer, "chat_template", None) is not None
        self._chat = chat and self._template
        self._masks = "attention_mask" in inspect.signature(hf.forward).parameters
        self._sees, self._processor = sees(hf), processor

    def encode(self, inputs: Sequence[Any]) -> tuple[dict[str, Any], Integers | None]:
        """All inputs as one batch, padded on the left for a decoder and on the right for an encoder.

        Also the prompts' lengths without padding (inputs,); None: all are the same.
        """
        if self._sees:
            tensors = encoded_images(self._hf, self._processor, inputs)
            mask = tensors.get("attention_mask")
            return tensors, (None if mask is None else mask.sum(dim=1).cpu().numpy())
        ids = []
        for i, input in enumerate(inputs):
            with _naming_input(i):
                ids.append(self._checked(self._ids(input)))
        if not self._masks and len(set(map(len, ids))) > 1:
            raise UsageError(
                f"{type(self._hf).__name__} takes no attention mask, so inputs of different lengths cannot "
                "be read together. Give them one at a time."
            )
        tensors = padded(ids, left=not self._encoder, pad=self._padding, device=self._hf.device)
        return tensors, (None if self._encoder else np.array([len(one) for one in ids]))

    def source(self, input: Any) -> list[int]:
        """The input in the tokens the model writes; of a chat the last message; of an image nothing."""
        if is_chat(input):
            input = next((m.get("content") for m in reversed(input) if m.get("role") == "user"), "")
        if (self._sees and is_image(input)) or is_chat(input):
            return []
        if not isinstance(input, str):
            return [int(token) for token in input]
        if self._tokenizer is None:
            return []
        side = {"text_target": input} if self._encoder else {"text": input}
        with quiet():
            return list(self._tokenizer(**side, add_special_tokens=False)["input_ids"])

    def _ids(self, input: Any) -> list[int]:
        if isinstance(input, str) and not self._chat:
            return self._tokenised(input, special=True)
        messages = [{"role": "user", "content": input}] if isinstance(input, str) else input
        if not is_chat(messages):
            return token_ids(input)
        if not self._template:
            raise DataError("is a chat, but the model has no tokenizer with a chat template. Give a text.")
        return self._tokenised(_templated(self._tokenizer, messages, tokenize=False), special=False)

    def _tokenised(self, text: str, special: bool) -> list[int]:
        if self._tokenizer is None:
            raise DataError(
                f"is the text {shown(text)}, but the model was loaded without a tokenizer. "
                "Give a list of token ids, or load the model with its tokenizer."
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"cannot be encoded as UTF-8: {error}.") from None
        with quiet():
            return list(self._tokenizer(text, add_special_tokens=special)["input_ids"])

    def _checked(self, ids: list[int]) -> list[int]:
        if not ids:
            raise DataError(
                "has no tokens, so there is nothing to continue. Give a text, or the token that begins one."
            )
        size = vocabulary(self._hf)
        wrong = next((token for token in ids if not 0 <= token < size), None)
        if wrong is not None:
            raise DataError(f"contains the token {wrong}; the model knows 0 to {size - 1}.")
        most = longest_source(self._hf) if self._encoder else longest_output(self._hf)
        if most is not None and len(ids) > (most if self._encoder else most - 1):
            output = "" if self._encoder else ", with what it is to write"
            raise DataError(f"has {len(ids)} tokens; the model takes at most {most}{output}. Shorten it.")
        return ids


@contextmanager
def _naming_input(i: int) -> Iterator[None]:
    """Name the input in errors."""
    try:
        yield
    except DataError as error:
        raise DataError(error.problem, field=f"inputs[{i}]{error.field}") from error


def _templated(source: Any, messages: Sequence[Mapping[str, Any]], **options: Any) -> str:
    """A chat as text, up to where the answer begins; `source` has the template."""
    try:
        text = source.apply_chat_template(list(map(dict, messages)), add_generation_prompt=True, **options)
    except Exception as error:  # templates are programs, and raise anything
        raise DataError(f"is a chat the model's template refuses: {error}.") from error
    return str(text)


def padded(ids: Sequence[Sequence[int]], *, left: bool, pad: int, device: torch.device) -> dict[str, Tensor]:
    """`input_ids` and `attention_mask`, each (inputs, length)."""
    rows = [torch.tensor(one[::-1] if left else one) for one in ids]
    tokens = pad_sequence(rows, batch_first=True, padding_value=pad)
    mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    if left:  # older versions of torch pad on the right alone
        tokens, mask = tokens.flip(1), mask.flip(1)
    return {"input_ids": tokens.to(device), "attention_mask": mask.to(device)}


def is_chat(input: Any) -> bool:
    """Whether this is a list of messages."""
    return isinstance(input, (list, tuple)) and len(input) > 0 and all(isinstance(m, Mapping) for m in input)


def token_ids(input: Any) -> list[int]:
    """A list or array of whole numbers."""
    if isinstance(input, Tensor):
        input = input.cpu().numpy()
    if isinstance(input, np.ndarray) and input.ndim == 1:
        input = input.tolist()
    if not isinstance(input, (list, tuple)):
        kind = f"an array {input.shape}" if isinstance(input, np.ndarray) else shown(input)
        raise DataError(f"is {kind}; give a text, a chat or a list of token ids.")
    for j, token in enumerate(input):
        if isinstance(token, bool) or not isinstance(token, (int, np.integer)):
            raise DataError(f"{shown(token)} is not a token id; ids are whole numbers.", field=f"[{j}]")
    return [int(token) for token in input]


def sees(hf: Net) -> bool:
    """Whether a model takes images."""
    return hf.main_input_name == "pixel_values" or hasattr(hf.config, "vision_config")


def is_image(input: Any) -> bool:
    """Whether this may be an image: an open one, or the path of a file."""
    if isinstance(input, str):
        return Path(input).suffix.lower() in IMAGE_ENDINGS
    return isinstance(input, Path) or hasattr(input, "convert")


def encoded_images(hf: Net, processor: Any, inputs: Sequence[Any]) -> dict[str, Any]:
    """What `generate` takes: `pixel_values` (images, ...), and for chats also tokens and their mask.

    A model with a chat template gets a message for each input: the image, the text, or the chat it is, in
    which images stand as {"type": "image", "image": ...}. The others get images alone.
    """
    if processor is None:
        raise SetupError(
            "the model takes images, but came without an image processor. Load it from a folder or name "
            "that has one, or give one: load(model, processor=...)."
        )
    chats = getattr(processor, "chat_template", None) is not None
    texts: list[str] = []
    images: list[Any] = []
    for i, input in enumerate(inputs):
        with _naming_input(i):
            if not chats:
                images.append(open_image(input))
                continue
            messages = _messages(input)
            parts = [part for message in messages for part in message["content"]]
            images.append([part["image"] for part in parts if part["type"] == "image"])
            texts.append(_templated(processor, messages))
    with quiet():
        if chats:
            some = {"images": images} if any(images) else {}
            tensors = processor(text=texts, **some, padding=True, padding_side="left", return_tensors="pt")
        else:
            alone = getattr(processor, "image_processor", processor)
            tensors = {"pixel_values": alone(images=images, return_tensors="pt")["pixel_values"]}
    return {
        name: tensor.to(hf.device, hf.dtype if tensor.is_floating_point() else None)
        for name, tensor in tensors.items()
    }


def _messages(input: Any) -> list[dict[str, Any]]:
    """A chat whose messages are lists of parts, with images opened."""
    if is_image(input):
        input = [{"role": "user", "content": [{"type": "image", "image": input}]}]
    elif isinstance(input, str):
        input = [{"role": "user", "content": input}]
    messages = []
    try:
        for message in input:
            content = message["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else map(dict, content)
            opened = [
                {**part, "image": open_image(part["image"])} if part["type"] == "image" else part
                for part in parts
            ]
            messages.append({"role": message["role"], "content": opened})
    except (TypeError, KeyError) as error:
        raise DataError(
            f"is not an image, text or chat ({error!r}). A chat is a list of "
            '{"role": ..., "content": ...}, the content a text or a list of {"type": "text", "text": ...} '
            'and {"type": "image", "image": ...}.'
        ) from None
    return messages


def open_image(input: Any) -> Any:
    """An image in red, green and blue."""
    pil = need("PIL.Image", "models", "reading images")
    if not is_image(input):
        raise DataError(f"is {shown(input)}; the model takes images. Give a PIL image or the path of one.")
    bombs = (pil.DecompressionBombError, pil.DecompressionBombWarning)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pil.DecompressionBombWarning)
            if isinstance(input, pil.Image):
                return input.convert("RGB")
            with pil.open(input) as image:
                return image.convert("RGB")
    except FileNotFoundError:
        raise DataError(f"there is no file {str(input)!r}.") from None
    except (OSError, ValueError, SyntaxError, *bombs) as error:
        raise DataError(f"{str(input)!r} cannot be read as an image: {error}.") from error


def ends(hf: Net, tokenizer: Any, end: End) -> tuple[int, ...]:
    """The tokens that end a sequence: those named, else the generation configuration's or the tokenizer's."""
    if end is not None:
        tokens: dict[int, None] = {}
        for one in [end] if isinstance(end, (int, str)) else end:
            token = tokenizer.get_vocab().get(one) if isinstance(one, str) and tokenizer is not None else one
            if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < vocabulary(hf):
                raise UsageError(f"end={one!r} is not a token of this model; give its id or text.")
            tokens[token] = None
        return tuple(tokens)
    if ends_at_separator(hf):
        eos = hf.config.text_config.sep_token_id
    else:
        eos = getattr(getattr(hf, "generation_config", None), "eos_token_id", None)
    if eos is None and tokenizer is not None:
        eos = tokenizer.eos_token_id
    if eos is None:
        raise SetupError(
            "neither the model's generation configuration nor its tokenizer names a token that ends a "
            "sequence. Name one: load(..., end='</s>') or load(..., end=2)."
        )
    return tuple(eos) if isinstance(eos, (list, tuple)) else (int(eos),)


def ends_at_separator(hf: Net) -> bool:
    """Whether a model's `generate` ends at the separator, whatever the configuration names."""
    return bool(hf.config.model_type == "blip")


def vocabulary(hf: Net) -> int:
    """How many tokens the model knows."""
    return int(hf.config.get_text_config(decoder=True).vocab_size)


def longest_output(net: Net) -> int | None:
    """How many tokens a sequence may have, with the prompt of a model without encoder; None: any number."""
    names = ("max_decoder_position_embeddings", "max_target_positions", "max_position_embeddings")
    return _first(net.config.get_text_config(decoder=True), names)


def longest_source(net: Net) -> int | None:
    """How many tokens an encoder can take; None: any number."""
    config = getattr(net.config, "encoder", None) or net.config
    return _first(config, ("max_encoder_position_embeddings", "max_position_embeddings"))


def _first(config: Any, names: Iterable[str]) -> int | None:
    return next((int(value) for name in names if (value := getattr(config, name, None))), None)
