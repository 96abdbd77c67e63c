"""The Transformer (Vaswani et al. 2017), an encoder-decoder for translation, behind the seam `protocol.py`.

Pre-norm, with one embedding matrix for source, target and output. `step` keeps the keys and values of the
rows' own tokens, and those of a source once for all of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from experiments.transformer_layers import Cross, DecoderLayer, EncoderLayer, Own, Spare, positions, regroup
from experiments.vocabulary import END, PAD, START, Vocabulary, next_token
from rangevote.errors import UsageError
from rangevote.models.huggingface.shared_prefix import Groups
from rangevote.models.protocol import Integers, Step

#: A source: a text, or its tokens.
Source = str | Sequence[int]
Layer = TypeVar("Layer", bound=nn.Module)


@dataclass(frozen=True)
class TransformerOptions:
    """The shape of a Transformer; `layers` in the encoder and as many in the decoder."""

    dimension: int = 192
    layers: int = 3
    heads: int = 4
    inner: int = 768
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if min(self.dimension, self.layers, self.heads, self.inner) < 1:
            raise UsageError(f"{self}: all sizes must be 1 or more.")
        if self.dimension % (2 * self.heads):
            raise UsageError(
                f"dimension {self.dimension} does not divide into {self.heads} heads of an even size."
            )
        if not 0 <= self.dropout < 1:
            raise UsageError(f"dropout {self.dropout}; it goes from 0 to below 1.")


#: `base` and `big` as in table 3 of the paper; `small` for tens of thousands of sentences; `tiny` for trials.
PRESETS = {
    "tiny": TransformerOptions(64, 2, 4, 128, 0.0),
    "small": TransformerOptions(192, 3, 4, 768, 0.1),
    "base": TransformerOptions(512, 6, 8, 2048, 0.1),
    "big": TransformerOptions(1024, 6, 16, 4096, 0.3),
}


class TransformerNet(nn.Module):
    """The network: source and target tokens -> states of the decoder -> logits."""

    def __init__(self, options: TransformerOptions, vocabulary: int) -> None:
        super().__init__()
        size, layers = options.dimension, range(options.layers)
        shape = (size, options.heads, options.inner, options.dropout)
        self.embedding = nn.Parameter(torch.empty(vocabulary, size))
        self.encoder = _stack([EncoderLayer(*shape) for _ in layers])
        self.decoder = _stack([DecoderLayer(*shape) for _ in layers])
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.dropout = nn.Dropout(options.dropout)
        self._begin()

    def _begin(self) -> None:
        """Weights before training: embeddings that have norm 1 after scaling, Glorot's elsewhere."""
        nn.init.normal_(self.embedding, std=self.embedding.shape[1] ** -0.5)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def embed(self, tokens: Tensor, first: int = 0) -> Tensor:
        """Tokens (batch, length) that begin at position `first`: sqrt(d) E[token] + PE(position)."""
        size = self.embedding.shape[1]
        # functional.embedding and not E[tokens]: its gradient adds up rows, indexing sorts them first
        vectors = nn.functional.embedding(tokens, self.embedding) * math.sqrt(size)
        found = vectors + positions(first, first + tokens.shape[1], size, vectors)
        return cast(Tensor, self.dropout(found))

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor | None]:
        """Padded tokens (batch, length) -> memory (batch, length, dimension), and the mask of padding."""
        mask = padding_mask(source, self.embedding)
        states = self.embed(source)
        for layer in self.encoder:
            states = layer(states, mask)
        return self.encoder_norm(states), mask

    def states(self, source: Tensor, target: Tensor) -> Tensor:
        """The decoder's state at each position of the target (batch, length, dimension).

        `target` (batch, length) begins with START. Its padding, on the right, needs no mask: no token looks
        ahead.
        """
        memory, mask = self.encode(source)
        found = self.embed(target)
        for layer in self.decoder:
            found = layer(found, memory, mask)
        return cast(Tensor, self.decoder_norm(found))

    def logits(self, states: Tensor) -> Tensor:
        """States (..., dimension) to logits (..., vocabulary): products with the embeddings."""
        return nn.functional.linear(states, self.embedding)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """The logits of the token after each one of the target (batch, length, vocabulary)."""
        return self.logits(self.states(source, target))


def _stack(layers: list[Layer]) -> list[Layer]:
    """A `ModuleList`, under the name of what is in it for who checks types."""
    return cast("list[Layer]", nn.ModuleList(layers))


def padding_mask(tokens: Tensor, like: Tensor) -> Tensor | None:
    """(batch, 1, 1, length): 0 at tokens, -inf at padding; None where there is no padding."""
    padded = tokens == PAD
    if not bool(padded.any()):
        return None
    zeros = torch.zeros(tokens.shape, dtype=like.dtype, device=like.device)
    return zeros.masked_fill(padded, -torch.inf)[:, None, None]


@dataclass
class State:
    """Rows of some sources; `owner` (rows,) says whose they are.

    Rows without tokens have nothing but their owner, so that selecting from a fresh state copies nothing.
    """

    owner: Integers
    cross: list[Cross]
    own: list[Own] | None = None
    length: int = 0
    spare: Spare = field(default_factory=list)


class Transformer:
    """P(next token | source, prefix), a `LanguageModel` whose inputs are texts, or the tokens of one."""

    kind = "transformer"
    ends = (END,)

    def __init__(self, options: TransformerOptions, vocabulary: Vocabulary) -> None:
        self.options, self.vocabulary = options, vocabulary
        self.net = TransformerNet(options, len(vocabulary))

    @torch.no_grad()
    def start(self, inputs: Sequence[Source]) -> State:
        """Run the encoder over the sources, each once."""
        self.net.eval()
        device = self.net.embedding.device
        memory, mask = self.net.encode(padded([[*self.source(one), END] for one in inputs]).to(device))
        owner = np.arange(len(inputs))
        groups = Groups(owner, len(inputs), device)
        return State(
            owner, [Cross.of(*layer.cross.memory(memory), mask, groups) for layer in self.net.decoder]
        )

    @torch.no_grad()
    def step(self, state: State, tokens: Integers | None) -> Step[State]:
        """The next token of each row; `hidden` (rows, dimension): the decoder's state after the last norm."""
        self.net.eval()
        if tokens is None:
            tokens = np.full(len(state.owner), START)
        added = torch.as_tensor(tokens, dtype=torch.int64, device=self.net.embedding.device)
        own = [Own() for _ in state.cross] if state.own is None else state.own
        states = self.net.embed(added[:, None], state.length)[:, 0]  # (rows, dimension)
        for layer, kept, cross in zip(self.net.decoder, own, state.cross, strict=True):
            states = layer.step(states, kept, cross)
        hidden = self.net.decoder_norm(states)
        log_probs = next_token(self.net.logits(hidden))
        return Step(log_probs, replace(state, own=own, length=state.length + 1), hidden)

    def select(self, state: State, rows: Integers) -> State:
        """Reorder the rows' own keys and values; the sources' stay where they are."""
        rows = np.asarray(rows, dtype=np.int64)
        if state.own is not None and not np.array_equal(rows, np.arange(len(state.owner))):
            index = torch.as_tensor(rows, device=self.net.embedding.device)
            for layer in state.own:
                layer.select(index, state.spare)
        owner = state.owner[rows]
        if np.array_equal(owner, state.owner):
            return state
        cross = regroup(state.cross, owner)
        return replace(state, owner=cross[0].groups.owner, cross=cross)

    def room(self, state: State) -> None:
        """Sinusoids go on for ever."""

    def text(self, tokens: Sequence[int]) -> str:
        """The tokens as text."""
        return self.vocabulary.decode(tokens)

    def source(self, input: Source) -> list[int]:
        """The tokens of a source, without its end."""
        return self.vocabulary.encode(input) if isinstance(input, str) else [int(token) for token in input]


def padded(sequences: Sequence[Sequence[int]]) -> Tensor:
    """Tokens (batch, longest), with PAD on the right."""
    found = np.full((len(sequences), max(map(len, sequences), default=0)), PAD, dtype=np.int64)
    for row, tokens in zip(found, sequences, strict=True):
        row[: len(tokens)] = tokens
    return torch.from_numpy(found)
