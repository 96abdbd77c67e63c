"""N-gram models: learned from a text in seconds, read from and written to ARPA files, scoring as KenLM does.

>>> model = NgramModel.train(["a dog runs", "a dog sits", "a cat sits"], order=2)
>>> model.logprob("a cat runs") > model.logprob("runs cat a")
True
>>> step = model.step(model.start(["a dog"]), None)
>>> model.text([int(step.log_probs[0].argmax())])
'sits'

Models are learned by modified Kneser-Ney smoothing, interpolated, with the estimator of lmplz (Heafield,
Pouzyrevsky, Clark and Koehn 2013), which is that of Chen and Goodman (1998). Counts are adjusted: an n-gram
of fewer than N words counts once for each different word before it, unless it starts with <s>, which nothing
precedes:

    a(u) = c(u)                        if u has N words or starts with <s>
         = |{v : c(v u) > 0}|          otherwise

Each length has three discounts, from the numbers t_k of n-grams with a = k (Chen and Goodman, equation 26):

    D_k = k - (k + 1) t_1 t_{k+1} / ((t_1 + 2 t_2) t_k),   D(a) = D_min(a, 3),   D(0) = 0

and every context u passes on what it took away, down to the uniform distribution:

    P(w | u) = (a(u w) - D(a(u w))) / sum_x a(u x)  +  b(u) P(w | u'),   b(u) = sum_x D(a(u x)) / sum_x a(u x)
    P(w)     = the same for the empty u, with 1 / (words without <s>) for P(w | u')

<unk> counts as often as it stands in the text, usually never, and so gets its share of the uniform part, as
in lmplz (--interpolate_unigrams, its default). Two differences:

* Where the discounts of a length cannot be estimated (t_1, t_2 or t_3 is 0, or a D_k is not above 0 and at
  most k), lmplz stops without --discount_fallback; here its fallbacks 0.5, 1 and 1.5 are used.
* lmplz counts the last n-gram of each shorter length into t_k by c instead of a (kenlm issue 405). That is
  not repeated here; it shows in tiny texts only.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from rangevote.errors import DataError, UsageError
from rangevote.models.arpa import (
    END,
    MARKS,
    START,
    UNKNOWN,
    UNKNOWN_WORDS,
    Backoff,
    Floats,
    Level,
    is_text,
    read_arpa,
    read_lines,
    write_arpa,
)
from rangevote.models.protocol import Integers, Step

#: A prompt: words with white space between them, or their numbers. "" is the start of a sentence.
Prompt = str | Sequence[int]
Sentences = str | os.PathLike[str] | Iterable[str]
_BATCH = 2**16  # lines
#: D_1, D_2 and D_3 where the text is too small or too odd to estimate them.
FALLBACK = (0.5, 1.0, 1.5)


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
        Texts too small to estimate the discounts are learned with 0.5, 1 and 1.5 (see the module).
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
                words = [word.decode() for word in input.encode().split()]
            except UnicodeEncodeError:
                raise DataError(f"the text {input[:40]!r} contains a lone surrogate") from None
            tokens = [self._numbers.get(word, UNKNOWN) for word in words]
        else:
            tokens = [int(token) for token in input]
            self._check(np.array(tokens, np.int64))
        if START in tokens or END in tokens:
            raise DataError(f"{input!r:.60} contains <s> or </s>, which the model adds itself")
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


class TrainingText(NamedTuple):
    """`words`: the text of each number. `tokens` (tokens,): sentence after sentence, each `<s> ... </s>`."""

    words: list[str]
    tokens: Integers


def read_corpus(
    sentences: Sentences, *, min_count: int = 1, vocabulary: Iterable[str] | None = None
) -> TrainingText:
    """Number the words of a file (one sentence a line) or of sentences; an empty line is an empty sentence.

    Words that come fewer than `min_count` times, or are not in the `vocabulary`, become `<unk>`.
    """
    if vocabulary is not None and min_count > 1:
        raise UsageError("both a vocabulary and min_count were given; each says which words are known.")
    index = _index(vocabulary)
    if isinstance(sentences, (str, os.PathLike)):
        with closing(read_lines(sentences)) as lines:
            tokens = _numbered(lines, index, os.fspath(sentences))
    else:
        tokens = _numbered(_encoded(sentences), index, "sentences")
    words = [*MARKS, *(word.decode() for word, number in index.items() if number > END)]
    return _without_rare(TrainingText(words, tokens), min_count)


def _encoded(sentences: Iterable[str]) -> Iterator[bytes]:
    for number, sentence in enumerate(sentences, 1):
        if not isinstance(sentence, str):
            raise UsageError(f"sentences:{number}: expected a text, got {type(sentence).__name__}.")
        try:
            yield sentence.encode()
        except UnicodeEncodeError:
            raise DataError("contains a lone surrogate", where=f"sentences:{number}") from None


def _index(vocabulary: Iterable[str] | None) -> defaultdict[bytes, int]:
    """Word -> number. A new word gets the next number, or with a vocabulary that of the unknown word."""
    index: defaultdict[bytes, int] = defaultdict(count(END + 1).__next__)
    index.update(dict.fromkeys(UNKNOWN_WORDS, UNKNOWN))
    index.update({b"<s>": START, b"</s>": END})
    if vocabulary is None:
        return index
    for number, word in enumerate(vocabulary, 1):
        (key,) = _encoded([word])
        if key.split() != [key]:
            raise UsageError(f"{word!r}, word {number} of the vocabulary, is empty or has a space in it.")
        index[key]  # looking it up numbers it
    index.default_factory = lambda: UNKNOWN
    return index


def _numbered(lines: Iterator[bytes], index: defaultdict[bytes, int], name: str) -> Integers:
    """All words of all lines (tokens,), with a start and an end for each line."""
    pieces: list[Integers] = []
    done = 0
    while batch := list(islice(lines, _BATCH)):
        text = b"<s> " + b" </s> <s> ".join(batch) + b" </s>"
        words = text.split()
        tokens = np.fromiter(map(index.__getitem__, words), np.int64, len(words))  # (tokens,)
        marks = np.count_nonzero((tokens == START) | (tokens == END))
        if marks != 2 * len(batch) or not is_text(text):
            raise _fault(batch, name, done)
        pieces.append(tokens)
        done += len(batch)
    if not pieces:
        raise DataError("contains no sentences; a model needs some to learn from", where=name)
    return np.concatenate(pieces)


def _fault(batch: list[bytes], name: str, done: int) -> DataError:
    """What is wrong with the first bad line of a batch that has one."""
    for number, line in enumerate(batch, done + 1):
        if not is_text(line):
            return DataError("is not text in UTF-8", where=f"{name}:{number}")
        if {b"<s>", b"</s>"} & set(line.split()):
            return DataError(
                "contains the word <s> or </s>, which the model itself puts around every sentence; remove it",
                where=f"{name}:{number}",
            )
    raise AssertionError("a batch was refused without a bad line")


def _without_rare(corpus: TrainingText, min_count: int) -> TrainingText:
    """The corpus with the rarest words as the unknown word, and the others numbered anew."""
    if min_count <= 1:
        return corpus
    kept = np.bincount(corpus.tokens, minlength=len(corpus.words)) >= min_count  # (words,)
    kept[: END + 1] = True
    numbers = np.where(kept, np.cumsum(kept) - 1, UNKNOWN)  # (words,)
    words = [word for word, keep in zip(corpus.words, kept.tolist(), strict=True) if keep]
    return TrainingText(words, numbers[corpus.tokens])


@dataclass(frozen=True)
class Counts:
    """The n-grams of one length, all (ngrams,).

    `keys`: index of the context * words + last word, ascending. `shorter`: the index, one length down, of the
    n-gram without its first word. `counts`: the adjusted counts a.
    """

    keys: Integers
    shorter: Integers
    counts: Integers


def count_ngrams(tokens: Integers, size: int, order: int) -> list[Counts]:
    """Adjusted counts of the n-grams of 1 to `order` words in a text (tokens,) of `size` different words."""
    inside = tokens != START  # (tokens,)
    keys, shorter = np.arange(size), np.zeros(size, np.int64)
    counts = np.bincount(tokens[inside], minlength=size)  # (ngrams,), c
    starts = keys == START  # (ngrams,): does it start with <s>?
    indices = tokens.copy()  # (tokens,): the index of the n-gram that ends here; -1: too near to <s>
    levels: list[Counts] = []
    for _ in range(1, order):
        ends = np.flatnonzero(inside[1:] & (indices[:-1] >= 0)) + 1  # where an n-gram one longer ends
        longer, at, repeats = np.unique(
            indices[ends - 1] * size + tokens[ends], return_inverse=True, return_counts=True
        )
        cut = np.empty(longer.size, np.int64)
        cut[at] = indices[ends]
        levels.append(Counts(keys, shorter, np.where(starts, counts, np.bincount(cut, minlength=keys.size))))
        indices[:] = -1
        indices[ends] = at
        keys, shorter, counts, starts = longer, cut, repeats, starts[longer // size]
    return [*levels, Counts(keys, shorter, counts)]


def discounts(counts: Integers) -> Floats:
    """(4,): 0, D_1, D_2 and D_3 of one length, from its adjusted counts (ngrams,)."""
    t = np.bincount(np.minimum(counts, 5), minlength=6).astype(float)  # (6,)
    fallback = np.array([0.0, *FALLBACK])
    if not t[1:4].all():
        return fallback
    k = np.arange(1, 4)
    found = k - (k + 1) * t[1] / (t[1] + 2 * t[2]) * t[2:5] / t[1:4]  # (3,)
    return np.array([0.0, *found]) if ((found > 0) & (found <= k)).all() else fallback


def estimate(levels: Sequence[Counts], size: int, taken: Sequence[Floats] | None = None) -> list[Level]:
    """The probabilities and back-offs of every length; `taken`: its discounts, if not the estimated ones."""
    lower = np.array([1 / (size - 1)])  # the uniform distribution, of the one n-gram without words
    done: list[Level] = []
    for n, level in enumerate(levels):
        d = (discounts(level.counts) if taken is None else taken[n])[np.minimum(level.counts, 3)]  # (ngrams,)
        context = level.keys // size  # (ngrams,)
        total = np.bincount(context, level.counts, lower.size)  # (contexts,), sum_x a(u x)
        passed = np.bincount(context, d, lower.size)  # (contexts,)
        b = np.divide(passed, total, out=np.ones(lower.size), where=total > 0)  # 1: nothing follows u
        p = (level.counts - d) / total[context] + b[context] * lower[level.shorter]  # (ngrams,)
        if n == 0:
            p[START] = 0.0
        else:
            done[-1] = Level(done[-1].keys, done[-1].logprobs, np.log(b))
        with np.errstate(divide="ignore"):  # log 0 of <s>
            done.append(Level(level.keys, np.minimum(np.log(p), 0.0), np.zeros(p.size)))
        lower = p
    return done
