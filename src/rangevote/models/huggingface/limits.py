"""Ends and lengths: where a model's many configurations keep them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rangevote.errors import SetupError, UsageError
from rangevote.models.huggingface.head import Net

End = int | str | Iterable[int | str] | None


def ends(hf: Net, tokenizer: Any, end: End) -> tuple[int, ...]:
    """The tokens that end a sequence: those named, else the generation configuration's or the tokenizer's."""
    if end is not None:
        several = [end] if isinstance(end, (int, str)) else list(end)
        return tuple(dict.fromkeys(_token(hf, tokenizer, one) for one in several))
    found = _configured(hf)
    if found is None and tokenizer is not None:
        found = tokenizer.eos_token_id
    if found is None:
        raise SetupError(
            "neither the model's generation configuration nor its tokenizer names a token that ends a "
            "sequence. Name one: load(..., end='</s>') or load(..., end=2)."
        )
    return tuple(found) if isinstance(found, (list, tuple)) else (int(found),)


def _configured(hf: Net) -> Any:
    if ends_at_separator(hf):
        return hf.config.text_config.sep_token_id
    return getattr(getattr(hf, "generation_config", None), "eos_token_id", None)


def ends_at_separator(hf: Net) -> bool:
    """Whether a model's `generate` ends at the separator, whatever it is told."""
    return bool(hf.config.model_type == "blip")


def _token(hf: Net, tokenizer: Any, end: Any) -> int:
    token = tokenizer.get_vocab().get(end) if isinstance(end, str) and tokenizer is not None else end
    if isinstance(token, int) and not isinstance(token, bool) and 0 <= token < vocabulary(hf):
        return token
    raise UsageError(f"end={end!r} is no token of this model. Give a token id or the text of one token.")


def vocabulary(hf: Net) -> int:
    """How many tokens the model knows."""
    return int(hf.config.get_text_config(decoder=True).vocab_size)


def most_written(net: Net) -> int | None:
    """How many tokens a sequence may have, with the prompt of a model without encoder; None: any number."""
    names = ("max_decoder_position_embeddings", "max_target_positions", "max_position_embeddings")
    return _first(net.config.get_text_config(decoder=True), names)


def most_read(net: Net) -> int | None:
    """How many tokens an encoder can take; None: any number."""
    config = getattr(net.config, "encoder", None) or net.config
    return _first(config, ("max_encoder_position_embeddings", "max_position_embeddings"))


def _first(config: Any, names: Iterable[str]) -> int | None:
    return next((int(found) for name in names if (found := getattr(config, name, None))), None)
