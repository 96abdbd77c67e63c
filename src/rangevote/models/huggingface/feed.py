"""What the network is given at each step, beside its cache.

Transformers' own way is `prepare_inputs_for_generation`, with masks and positions that grow by concatenation:
the general one (`Growing`). Most models need of all that only the token, its position and the cache
(`Direct`).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers import GenerationMixin

from rangevote.models.huggingface.arguments import CACHES, of_inputs, take, without
from rangevote.models.huggingface.head import Net

#: What `Direct` knows how to go on with.
KNOWN = {"use_cache", "attention_mask", "position_ids", "logits_to_keep", "encoder_outputs"}


class Growing:
    """Arguments as transformers' own loop keeps them, with one row for each of ours."""

    needs_ids = True

    def __init__(self, net: Net, kwargs: dict[str, Any], count: int, expand: bool) -> None:
        """`kwargs` have `count` rows; `expand`: those that belong to inputs get one for each of ours too."""
        self._net, self._kwargs, self._count, self._expand = net, kwargs, count, expand

    def inputs(self, ids: Tensor, cache: dict[str, Any]) -> dict[str, Any]:
        """The network's arguments: for the last of the `ids` (rows, length), or without a cache for all."""
        length = 1 if cache else None
        return dict(
            self._net.prepare_inputs_for_generation(ids, next_sequence_length=length, **self._kwargs, **cache)
        )

    def after(self, output: Any) -> None:
        """One token has been read."""
        encoder = self._net.config.is_encoder_decoder
        kwargs = self._net._update_model_kwargs_for_generation(
            output, self._kwargs, is_encoder_decoder=encoder
        )
        self._kwargs = without(kwargs, *CACHES)

    def take(self, rows: Tensor, same_inputs: bool) -> Growing:
        """These rows; `same_inputs`: every row's input stays what it was."""
        fixed = () if self._expand and not same_inputs else of_inputs(self._net)
        kwargs = {
            name: value if name in fixed else take(name, value, rows, self._count)
            for name, value in self._kwargs.items()
        }
        return Growing(self._net, kwargs, len(rows), self._expand)


class Direct:
    """A token, its position and the cache: all that most models need once the prompt is read."""

    needs_ids = False

    def __init__(self, constant: dict[str, Any], key: str, positions: Tensor | None) -> None:
        """`constant`: arguments that never change, `key`: the name of the tokens.

        `positions` (rows, 1) of the next tokens, or (1, 1) for all; None: the network counts what is cached.
        """
        self._constant, self._key, self._positions = constant, key, positions

    @classmethod
    def of(cls, net: Net, kwargs: dict[str, Any]) -> Direct | None:
        """For the rows of these arguments, after the prompt; None where a model wants more."""
        given = {name: value for name, value in kwargs.items() if value is not None}
        own_way = type(net).prepare_inputs_for_generation is not GenerationMixin.prepare_inputs_for_generation
        if own_way or not set(given) <= KNOWN:
            return None
        encoder, positions = net.config.is_encoder_decoder, given.pop("position_ids", None)
        padding = None if encoder else given.pop("attention_mask", None)
        counted = positions is None and padding is None
        if not counted and (positions is None or positions.ndim != 2):
            return None
        key = "decoder_input_ids" if encoder else "input_ids"
        return cls(given, key, None if positions is None else positions[:, -1:])

    def inputs(self, ids: Tensor, cache: dict[str, Any]) -> dict[str, Any]:
        """The network's arguments; `ids` (rows, 1)."""
        given = {**self._constant, **cache, self._key: ids}
        if self._positions is not None:
            given["position_ids"] = self._positions
        return given

    def after(self, output: Any) -> None:
        """One token has been read."""
        if self._positions is not None:
            self._positions = self._positions + 1

    def take(self, rows: Tensor, same_inputs: bool) -> Direct:
        """These rows."""
        positions = self._positions
        if positions is not None and len(positions) > 1:
            positions = positions.index_select(0, rows)
        return Direct(self._constant, self._key, positions)


Feed = Growing | Direct
