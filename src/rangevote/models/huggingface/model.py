"""A transformers model as a `LanguageModel`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rangevote.models.huggingface.inputs import (
    End,
    InputEncoder,
    ends,
    ends_at_separator,
    longest_output,
    sees,
)
from rangevote.models.huggingface.shared_prefix import Trials, shared_where_possible
from rangevote.models.huggingface.steps import Net, Prediction, Prepared, Prompt, Rows, inference
from rangevote.models.protocol import Integers, Step


@dataclass(frozen=True)
class HuggingFaceState:
    """Rows of some prompts: `owner` (rows,) tells whose, `room` (inputs,) is what may follow each prompt.

    Only the owners are kept of rows without tokens, so that selecting from a fresh state copies nothing;
    `rows` begin with the first token.
    """

    prompt: Prompt
    owner: Integers
    room: Integers | None = None
    rows: Rows | None = None


class PreparedModel:
    """What is the same for all that transformers has prepared, for a model of ours or in a user's call."""

    hf: Net
    tokenizer: Any
    ends: Sequence[int]

    def __init__(self, share: bool = True) -> None:
        self._share = share
        self._trials: Trials = {}

    def _read(self, prepared: Prepared, lengths: Integers | None) -> HuggingFaceState:
        """Read what was prepared. `lengths` (inputs,) of the prompts without padding; None: there is none."""
        prompt, most = prepared.read(), longest_output(prepared.net)
        if self._share:
            prompt = shared_where_possible(prompt, most, self._trials)
        count, length = prepared.ids.shape
        lengths = np.full(count, length) if lengths is None else lengths
        room = None if most is None else np.maximum(most - lengths, 0)
        return HuggingFaceState(prompt, np.arange(0, count, prepared.stride), room)

    def step(self, state: HuggingFaceState, tokens: Integers | None) -> Step[HuggingFaceState]:
        prompt = state.prompt
        with inference(prompt.net):
            if tokens is None:
                assert state.rows is None, "only the first step comes without tokens"
                owner = torch.as_tensor(state.owner, device=prompt.ids.device)
                return _ranked(prompt, prompt.first.take(owner), prompt.ids[owner], state)
            added = torch.as_tensor(tokens, dtype=torch.int64, device=prompt.ids.device)  # (rows,)
            rows = prompt.begin(state.owner) if state.rows is None else state.rows
            return _ranked(prompt, rows.step(added), rows.ids, replace(state, rows=rows))

    def select(self, state: HuggingFaceState, rows: Integers) -> HuggingFaceState:
        rows = np.asarray(rows, dtype=np.int64)
        if state.rows is not None:
            with torch.no_grad():
                state.rows.select(rows)
        return replace(state, owner=state.owner[rows])

    def room(self, state: HuggingFaceState) -> Integers | None:
        return None if state.room is None else state.room[state.owner]

    def text(self, tokens: Sequence[int]) -> str | None:
        """The tokens as text, without special ones."""
        if self.tokenizer is None:
            return None
        return str(self.tokenizer.decode(list(tokens), skip_special_tokens=True))


def _ranked(
    prompt: Prompt, prediction: Prediction, ids: Tensor, state: HuggingFaceState
) -> Step[HuggingFaceState]:
    """A step, with a ranking of its own where the model's settings change the probabilities."""
    ranking = None
    if len(prompt.processors):
        ranking = prompt.processors(ids, prediction.log_probs.clone())
    return Step(prediction.log_probs, state, prediction.hidden, ranking)


class HuggingFace(PreparedModel):
    """P(next token | input, prefix) of a transformers model: decoder-only, encoder-decoder or vision-to-text.

    `hf` is the transformers model, `tokenizer` and `processor` what came with it, or None; `reads_images`
    tells whether inputs are images. What the model's
    generation configuration asks for (forbidden words, forced tokens, least lengths) changes the `ranking` of
    a step, never its `log_probs`; temperatures, truncations and a forced end at a greatest length belong to
    the search and are not applied. `share=False` gives every row a copy of its prompt, as transformers
    does.
    """

    def __init__(
        self,
        hf: Net,
        tokenizer: Any = None,
        processor: Any = None,
        *,
        chat: bool = True,
        end: End = None,
        share: bool = True,
    ) -> None:
        super().__init__(share)
        self.hf, self.processor = hf, processor
        self.tokenizer = tokenizer if tokenizer is not None else getattr(processor, "tokenizer", None)
        self.reads_images = sees(hf)
        self.ends = ends(hf, self.tokenizer, end)
        self._settings: dict[str, Any] = {}
        if end is not None and not ends_at_separator(hf):
            self._settings["eos_token_id"] = list(self.ends)
        pads = (getattr(self.tokenizer, "pad_token_id", None), hf.generation_config.pad_token_id)
        pad = next((token for token in pads if token is not None), self.ends[0])
        self._encoder = InputEncoder(hf, self.tokenizer, processor, chat, pad)

    def start(self, inputs: Sequence[Any]) -> HuggingFaceState:
        """Read the inputs, each once; the state has one row for each, in order."""
        tensors, lengths = self._encoder.encode(inputs)
        with inference(self.hf):
            return self._read(Prepared.by(self.hf, {**tensors, **self._settings}), lengths)

    def source(self, input: Any) -> Sequence[int]:
        return self._encoder.source(input)


class Continued(PreparedModel):
    """What transformers prepared for a decoding method, as a model that takes the numbers in `inputs`."""

    def __init__(self, prepared: Prepared, tokenizer: Any = None) -> None:
        super().__init__()
        self.hf, self.tokenizer, self.prepared = prepared.net, tokenizer, prepared
        end_tokens = prepared.settings._eos_token_tensor
        self.ends = () if end_tokens is None else tuple(end_tokens.flatten().tolist())

    @property
    def inputs(self) -> range:
        return range(len(self.prepared.ids) // self.prepared.stride)

    def start(self, inputs: Sequence[int]) -> HuggingFaceState:
        """Read all that was prepared; the state has one row for each of these numbers."""
        mask = None if self.hf.config.is_encoder_decoder else self.prepared.kwargs.get("attention_mask")
        with inference(self.hf):
            state = self._read(self.prepared, None if mask is None else mask.sum(dim=1).cpu().numpy())
        return self.select(state, np.asarray(inputs, dtype=np.int64))

    def source(self, input: int) -> Sequence[int]:
        """The prompt of a model without encoder; of others nothing is known."""
        if self.hf.config.is_encoder_decoder:
            return []
        mask, row = self.prepared.kwargs.get("attention_mask"), input * self.prepared.stride
        ids = self.prepared.ids[row]
        return list((ids if mask is None else ids[mask[row].bool()]).tolist())
