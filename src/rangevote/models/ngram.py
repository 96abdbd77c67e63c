"""N-gram models: learned from a text in seconds, read from and written to ARPA files, scoring as KenLM does.

>>> model = NgramModel.train(["a dog runs", "a dog sits", "a cat sits"], order=2)
>>> model.logprob("a cat runs") > model.logprob("runs cat a")
True
>>> step = model.step(model.start(["a dog"]), None)
>>> model.text([int(step.log_probs[0].argmax())])
'sits'
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence

import numpy as np

from rangevote.errors import DataError, UsageError
from rangevote.models.arpa import read_arpa, write_arpa
from rangevote.models.backoff import Backoff, Floats
from rangevote.models.corpus import END, START, UNKNOWN, Sentences, read_corpus
from rangevote.models.kneser_ney import count_ngrams, estimate
from rangevote.models.protocol import Integers, Step

#: A prompt: words with white space between them, or their numbers. "" is the start of a sentence.
Prompt = str | Sequence[int]


class NgramModel:
    """P(next word | the last order - 1 words), a `LanguageModel` whose tokens are words.

    `words[token]` is a token's text. Token 0 is `<unk>`, which stands for every unknown word; 1 is `<s>`,
    which is never written (its log-probability is -inf); 2 is `</s>`, the end. The state is the history of
    each row, (rows, order - 1) tokens, -1 before the start.

    `logprob` and `scores` take a file's numbers as they are, as KenLM does. The numbers of a file are
    rounded, and need not have been proper, so `step` divides each distribution by its sum: with the files of
    the usual toolkits this changes a word's log-probability by about 1e-6.
    """

    ends = (END,)

    def __init__(self, words: Sequence[str], table: Backoff, *, exact: bool = False) -> None:
        """`exact`: the distributions sum to 1 as they are."""
        self.words, self.table, self.order = list(words), table, table.order
        self._numbers = {word: number for number, word in enumerate(self.words)}
        self._exact = exact

    @classmethod
    def train(
        cls,
        sentences: Sentences,
        order: int = 3,
        *,
        min_count: int = 1,
        vocabulary: Iterable[str] | None = None,
    ) -> NgramModel:
        """Learn from sentences, or from a file with one on each line, by modified Kneser-Ney smoothing.

        Words that come fewer than `min_count` times, or are not in the `vocabulary`, are learned as `<unk>`.
        Texts too small to estimate the discounts are learned with 0.5, 1 and 1.5 (`kneser_ney.py`).
        """
        if order < 1:
            raise UsageError(f"order {order}: an n-gram model has order 1 or more.")
        words, tokens = read_corpus(sentences, min_count=min_count, vocabulary=vocabulary)
        levels = estimate(count_ngrams(tokens, len(words), order), len(words))
        return cls(words, Backoff(len(words), levels), exact=True)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> NgramModel:
        """Read an ARPA file, plain or gzip."""
        return cls(*read_arpa(path))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write an ARPA file; KenLM reads those of order 2 to 6."""
        write_arpa(path, self.words, self.table)

    def scores(self, sentence: Prompt) -> Floats:
        """Natural log P of each word and of the end, (words + 1,)."""
        start = [-1] * (self.order - 2) + [START] if self.order > 1 else []
        padded = np.array([*start, *self.source(sentence), END])
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.order)  # (words + 1, order)
        return self.table.score(windows[:, :-1], windows[:, -1])

    def logprob(self, sentence: Prompt) -> float:
        """Natural log P of a sentence with its end."""
        return math.fsum(self.scores(sentence))

    def perplexity(self, sentences: Iterable[Prompt]) -> float:
        """exp(-log P / words), the ends counted as words."""
        scores = [self.scores(sentence) for sentence in sentences]
        if not scores:
            raise UsageError("the perplexity of no sentences; give at least one.")
        return math.exp(-np.concatenate(scores).mean())

    def start(self, inputs: Sequence[Prompt]) -> Integers:
        """The history after each prompt, (rows, order - 1)."""
        if isinstance(inputs, str):
            raise UsageError(f"inputs is one text, {inputs[:40]!r}; give a list of prompts.")
        histories = [[-1] * self.order + [START, *self.source(prompt)] for prompt in inputs]
        kept = [history[len(history) - self.order + 1 :] for history in histories]
        return np.array(kept, np.int64).reshape(len(kept), self.order - 1)

    def step(self, state: Integers, tokens: Integers | None) -> Step[Integers]:
        """log P of every word after each history (rows, words), and the histories, one token longer."""
        if tokens is not None:
            tokens = np.asarray(tokens, np.int64)
            self._check(tokens)
            state = np.column_stack([state, tokens])[:, 1:]  # (rows, order - 1)
        log_probs = self.table.rows(state)
        log_probs[:, START] = -math.inf  # whatever a file says of it
        return Step(log_probs if self._exact else _normalised(log_probs), state)

    def select(self, state: Integers, rows: Integers) -> Integers:
        """The chosen rows."""
        return state[rows]

    def room(self, state: Integers) -> None:
        """Sentences of any length are known."""

    def text(self, tokens: Sequence[int]) -> str:
        """The words with spaces between them."""
        return " ".join([self.words[token] for token in tokens])

    def source(self, input: Prompt) -> list[int]:
        """The tokens of a prompt; a word that is not known is `<unk>`."""
        if isinstance(input, str):
            try:
                found = [word.decode() for word in input.encode().split()]
            except UnicodeEncodeError:
                raise DataError(f"the text {input[:40]!r} holds half a character") from None
            tokens = [self._numbers.get(word, UNKNOWN) for word in found]
        else:
            tokens = [int(token) for token in input]
            self._check(np.array(tokens, np.int64))
        if START in tokens or END in tokens:
            raise DataError(f"{input!r:.60} holds <s> or </s>, which the model itself puts around sentences")
        return tokens

    def _check(self, tokens: Integers) -> None:
        if ((tokens < 0) | (tokens >= len(self.words))).any():
            raise UsageError(
                f"tokens {tokens.min()} to {tokens.max()}; they go from 0 to {len(self.words) - 1}."
            )


def _normalised(log_probs: Floats) -> Floats:
    """The distributions (rows, words), each divided by its sum; the argument is overwritten."""
    peaks = log_probs.max(axis=1, keepdims=True)  # (rows, 1)
    if (peaks == -math.inf).any():
        raise DataError("the model gives every word probability 0 after one of the prefixes")
    log_probs -= peaks
    log_probs -= np.log(np.exp(log_probs).sum(axis=1, keepdims=True))
    return log_probs
