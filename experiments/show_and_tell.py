"""Show and Tell (Vinyals et al. 2015) as the paper uses it: features of an image -> an LSTM -> a caption.

The features, those of Inception V3's last pooling layer, set the LSTM's hidden and cell state; the words
follow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from experiments.vocabulary import END, PAD, START, Vocabulary, next_token
from rangevote.errors import DataError, UsageError
from rangevote.models.protocol import Integers, Step

Floats = NDArray[np.floating[Any]]
#: The features of an image (features,), or the path of one for a model that can see.
Image = Floats | Sequence[float] | str | os.PathLike[str]
#: Paths of images -> their features (images, features); `inception.py` has two.
FeatureReader = Callable[[Sequence[str | os.PathLike[str]]], Floats]


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
    """P(next word | image, words), a `LanguageModel` whose inputs are feature vectors.

    With `read_features`, which turns image files into the kind of features that the model was trained on,
    paths are inputs too.
    """

    kind = "show_and_tell"
    ends = (END,)

    def __init__(
        self,
        options: ShowAndTellOptions,
        vocabulary: Vocabulary,
        *,
        read_features: FeatureReader | None = None,
    ) -> None:
        self.options, self.vocabulary, self.read_features = options, vocabulary, read_features
        self.net = ShowAndTellNet(options, len(vocabulary))

    @torch.no_grad()
    def start(self, inputs: Sequence[Image]) -> State:
        """Look at the images, each once."""
        self.net.eval()
        weight = self.net.output.weight
        features = torch.as_tensor(self._features(inputs), dtype=weight.dtype, device=weight.device)
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

    def _features(self, inputs: Sequence[Image]) -> Floats:
        """Features (images, features) of all inputs, whether vectors or paths."""
        if isinstance(inputs, (str, os.PathLike)):
            raise UsageError(f"inputs is one path, {os.fspath(inputs)!r}; give a list of images.")
        paths = [one for one in inputs if isinstance(one, (str, os.PathLike))]
        if paths and self.read_features is None:
            raise UsageError(
                f"{os.fspath(paths[0])!r} is a path, and this model takes feature vectors. "
                f"Give it `read_features`: StoredFeatures or Inception, as in training."
            )
        seen = iter(self.read_features(paths)) if paths and self.read_features is not None else iter(())
        vectors = [next(seen) if isinstance(one, (str, os.PathLike)) else one for one in inputs]
        return np.stack([self._vector(i, vector) for i, vector in enumerate(vectors)])

    def _vector(self, number: int, vector: Any) -> Floats:
        found = np.asarray(vector, dtype=np.float32)
        if found.shape != (self.options.features,):
            raise DataError(
                f"features of shape {found.shape}; this model takes {self.options.features} an image",
                field=f"inputs[{number}]",
            )
        if not np.isfinite(found).all():
            raise DataError("a feature is infinite or no number", field=f"inputs[{number}]")
        return found
