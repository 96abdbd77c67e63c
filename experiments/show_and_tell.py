"""Show and Tell (Vinyals et al. 2015) as the paper uses it: features of an image -> an LSTM -> a caption.

The features, those of Inception V3's last pooling layer, set the LSTM's hidden and cell state; the words
follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from experiments.vocabulary import END, PAD, START, Vocabulary, next_token
from rangevote.errors import UsageError
from rangevote.models.protocol import Integers, Step

Floats = NDArray[np.floating[Any]]
#: The features of an image (features,).
Image = Floats


@dataclass(frozen=True)
class ShowAndTellOptions:
    """The shape: `features` of an image, `units` of the LSTM, size of the words' `embedding`."""

    features: int = 2048
    units: int = 512
    embedding: int = 512
    dropout: float = 0.4

    def __post_init__(self) -> None:
        if min(self.features, self.units, self.embedding) < 1:
            raise UsageError(f"{self}: all sizes must be 1 or more.")
        if not 0 <= self.dropout < 1:
            raise UsageError(f"dropout {self.dropout}; it goes from 0 to below 1.")


class ShowAndTellNet(nn.Module):
    """The network: features and words -> hidden states of the LSTM -> logits."""

    def __init__(self, options: ShowAndTellOptions, vocabulary: int) -> None:
        super().__init__()
        self.image = nn.Linear(options.features, 2 * options.units)
        self.embedding = nn.Embedding(vocabulary, options.embedding)
        self.lstm = nn.LSTM(options.embedding, options.units, batch_first=True)
        self.output = nn.Linear(options.units, vocabulary)
        self.dropout = nn.Dropout(options.dropout)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    def begin(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Features (batch, features) -> hidden and cell state before the first word, each (batch, units)."""
        hidden, cell = self.image(self.dropout(features)).chunk(2, dim=-1)
        return hidden.tanh(), cell

    def states(self, features: Tensor, words: Tensor) -> Tensor:
        """The hidden state after each word (batch, length, units), 0 at padding; `words` begin with START.

        Padding is not computed: in a batch of mixed lengths it would be half of the LSTM's work.
        """
        hidden, cell = self.begin(features)
        lengths = (words != PAD).sum(dim=1).cpu()
        embedded = pack_padded_sequence(
            self.dropout(self.embedding(words)), lengths, batch_first=True, enforce_sorted=False
        )
        packed, _ = self.lstm(embedded, (hidden[None], cell[None]))
        found, _ = pad_packed_sequence(packed, batch_first=True, total_length=words.shape[1])
        return cast(Tensor, found)

    def logits(self, states: Tensor) -> Tensor:
        """Hidden states (..., units) to logits (..., vocabulary)."""
        return cast(Tensor, self.output(self.dropout(states)))

    def forward(self, features: Tensor, words: Tensor) -> Tensor:
        """The logits of the word after each one (batch, length, vocabulary)."""
        return self.logits(self.states(features, words))

    def step(self, words: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """One more word (rows,) of every row: hidden and cell state after it, each (rows, units)."""
        return torch.lstm_cell(self.embedding(words), (hidden, cell), *self.lstm.all_weights[0])


@dataclass(frozen=True)
class State:
    """The LSTM's memory of every row, each (rows, units)."""

    hidden: Tensor
    cell: Tensor


class ShowAndTell:
    """P(next word | image, words), a `LanguageModel` whose inputs are feature vectors."""

    kind = "show_and_tell"
    ends = (END,)

    def __init__(self, options: ShowAndTellOptions, vocabulary: Vocabulary) -> None:
        self.options, self.vocabulary = options, vocabulary
        self.net = ShowAndTellNet(options, len(vocabulary))

    @torch.no_grad()
    def start(self, inputs: Sequence[Image]) -> State:
        """Look at the images, each once."""
        self.net.eval()
        weight = self.net.output.weight
        vectors = np.stack(inputs).astype(np.float32)  # (images, features)
        features = torch.as_tensor(vectors, dtype=weight.dtype, device=weight.device)
        return State(*self.net.begin(features))

    @torch.no_grad()
    def step(self, state: State, tokens: Integers | None) -> Step[State]:
        """The next word of each row; `hidden` (rows, units) is the LSTM's hidden state."""
        self.net.eval()
        if tokens is None:
            tokens = np.full(len(state.hidden), START)
        words = torch.as_tensor(tokens, dtype=torch.int64, device=state.hidden.device)
        hidden, cell = self.net.step(words, state.hidden, state.cell)
        return Step(next_token(self.net.logits(hidden)), State(hidden, cell), hidden)

    def select(self, state: State, rows: Integers) -> State:
        """The chosen rows, copied."""
        index = torch.as_tensor(np.asarray(rows, dtype=np.int64), device=state.hidden.device)
        return State(state.hidden.index_select(0, index), state.cell.index_select(0, index))

    def room(self, state: State) -> None:
        """Captions of any length can be written."""

    def text(self, tokens: Sequence[int]) -> str:
        """The words with spaces between them."""
        return self.vocabulary.decode(tokens)

    def source(self, input: Image) -> list[int]:
        """An image is no text."""
        return []
