"""Texts, chats, token ids and images to what `generate` takes; what cannot be read is refused."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rangevote.errors import DataError, UsageError
from rangevote.models.huggingface.head import Net
from rangevote.models.huggingface.images import Images, is_image, sees
from rangevote.models.huggingface.limits import most_read, most_written, vocabulary
from rangevote.models.protocol import Integers
from rangevote.quiet import quiet


@dataclass(frozen=True)
class Encoded:
    """What `generate` takes, and the prompts' lengths without padding (inputs,); None: all are the same."""

    tensors: dict[str, Any]
    lengths: Integers | None


class Inputs:
    """Reads what a user gives; `chat` puts a text into the tokenizer's chat template, if there is one."""

    def __init__(self, hf: Net, tokenizer: Any, processor: Any, chat: bool, pad: int) -> None:
        """`pad`: a token for where there is none; it is masked, so any will do."""
        self._hf, self._tokenizer, self._padding = hf, tokenizer, pad
        self._encoder: bool = hf.config.is_encoder_decoder
        self._template = not self._encoder and getattr(tokenizer, "chat_template", None) is not None
        self._chat = chat and self._template
        self._masks = "attention_mask" in inspect.signature(hf.forward).parameters
        self._images = Images(hf, processor) if sees(hf) else None

    def encode(self, inputs: Sequence[Any]) -> Encoded:
        """All inputs as one batch, padded on the left for a decoder and on the right for an encoder."""
        if self._images is not None:
            tensors = self._images.encode(inputs)
            mask = tensors.get("attention_mask")
            return Encoded(tensors, None if mask is None else mask.sum(dim=1).cpu().numpy())
        ids = [self._checked(self._ids(input, i), i) for i, input in enumerate(inputs)]
        if not self._masks and len(set(map(len, ids))) > 1:
            raise UsageError(
                f"{type(self._hf).__name__} takes no attention mask, so inputs of different lengths cannot "
                "be read together. Give them one at a time."
            )
        tensors = padded(ids, left=not self._encoder, pad=self._padding, device=self._hf.device)
        return Encoded(tensors, None if self._encoder else np.array([len(one) for one in ids]))

    def source(self, input: Any) -> list[int]:
        """The input in the tokens the model writes; of a chat the last message; of an image nothing."""
        if is_chat(input):
            input = next((m.get("content") for m in reversed(input) if m.get("role") == "user"), "")
        if (self._images is not None and is_image(input)) or is_chat(input):
            return []
        if not isinstance(input, str):
            return [int(token) for token in input]
        if self._tokenizer is None:
            return []
        side = {"text_target": input} if self._encoder else {"text": input}
        with quiet():
            return list(self._tokenizer(**side, add_special_tokens=False)["input_ids"])

    def _ids(self, input: Any, i: int) -> list[int]:
        if isinstance(input, str) and not self._chat:
            return self._tokenised(input, i, special=True)
        if isinstance(input, str):
            return self._templated([{"role": "user", "content": input}], i)
        if is_chat(input):
            return self._templated(input, i)
        return token_ids(input, i)

    def _tokenised(self, text: str, i: int, special: bool) -> list[int]:
        if self._tokenizer is None:
            raise DataError(
                f"is the text {_short(text)}, but the model was loaded without a tokenizer. "
                "Give a list of token ids, or load the model with its tokenizer.",
                field=_field(i),
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"is no text that can be encoded: {error}.", field=_field(i)) from None
        with quiet():
            return list(self._tokenizer(text, add_special_tokens=special)["input_ids"])

    def _templated(self, messages: Sequence[Mapping[str, Any]], i: int) -> list[int]:
        """A chat, up to where the answer begins."""
        if not self._template:
            raise DataError(
                "is a chat, but the model has no tokenizer with a chat template. Give a text.",
                field=_field(i),
            )
        try:
            text = self._tokenizer.apply_chat_template(
                [dict(message) for message in messages], add_generation_prompt=True, tokenize=False
            )
        except Exception as error:  # templates are programs of their own, and raise what they like
            raise DataError(f"is a chat the model's template refuses: {error}.", field=_field(i)) from error
        return self._tokenised(text, i, special=False)

    def _checked(self, ids: list[int], i: int) -> list[int]:
        if not ids:
            raise DataError(
                "has no tokens: there is nothing to go on from. Give a text, or the token that begins one.",
                field=_field(i),
            )
        size = vocabulary(self._hf)
        wrong = next((token for token in ids if not 0 <= token < size), None)
        if wrong is not None:
            raise DataError(f"holds the token {wrong}; the model knows 0 to {size - 1}.", field=_field(i))
        most = most_read(self._hf) if self._encoder else most_written(self._hf)
        if most is not None and len(ids) > (most if self._encoder else most - 1):
            told = "" if self._encoder else ", with what it is to write"
            raise DataError(
                f"has {len(ids)} tokens, and the model takes at most {most}{told}. Shorten it.",
                field=_field(i),
            )
        return ids


def padded(ids: Sequence[Sequence[int]], *, left: bool, pad: int, device: torch.device) -> dict[str, Tensor]:
    """`input_ids` and `attention_mask`, each (inputs, length)."""
    most = max(map(len, ids))
    tokens = np.full((len(ids), most), pad, dtype=np.int64)
    mask = np.zeros_like(tokens)
    for i, one in enumerate(ids):
        where = slice(most - len(one), most) if left else slice(0, len(one))
        tokens[i, where], mask[i, where] = one, 1
    return {
        "input_ids": torch.as_tensor(tokens, device=device),
        "attention_mask": torch.as_tensor(mask, device=device),
    }


def is_chat(input: Any) -> bool:
    """Whether this is a list of messages."""
    return isinstance(input, (list, tuple)) and len(input) > 0 and all(isinstance(m, Mapping) for m in input)


def token_ids(input: Any, i: int) -> list[int]:
    """A list or array of whole numbers."""
    if isinstance(input, Tensor):
        input = input.cpu().numpy()
    if isinstance(input, np.ndarray) and input.ndim == 1:
        input = input.tolist()
    if not isinstance(input, (list, tuple)):
        told = f"an array {input.shape}" if isinstance(input, np.ndarray) else _short(input)
        raise DataError(f"is {told}; give a text, a chat or a list of token ids.", field=_field(i))
    for j, token in enumerate(input):
        if isinstance(token, bool) or not isinstance(token, (int, np.integer)):
            raise DataError(
                f"{_short(token)} is no token id; ids are whole numbers.", field=f"{_field(i)}[{j}]"
            )
    return [int(token) for token in input]


def _field(i: int) -> str:
    return f"inputs[{i}]"


def _short(thing: Any) -> str:
    told = repr(thing)
    return told if len(told) <= 60 else told[:57] + "..."
