r"""N-gram models: trained on a text in seconds, read from and written to ARPA files, scoring as KenLM does.

>>> model = NgramModel.train(["a dog runs", "a dog sits", "a cat sits"], order=2)
>>> model.logprob("a cat runs") > model.logprob("runs cat a")
True
>>> step = model.step(model.start(["a dog"]), None)
>>> model.text([int(step.log_probs[0].argmax())])
'sits'

Training is interpolated modified Kneser-Ney smoothing with the estimator of lmplz (Heafield, Pouzyrevsky,
Clark and Koehn 2013), which is that of Chen and Goodman (1998). Counts are adjusted: an n-gram of fewer
than N words counts once for each different word before it, unless it starts with <s>, which nothing
precedes:

    a(u) = c(u)                        if u has N words or starts with <s>
         = |{v : c(v u) > 0}|          otherwise

Each length has three discounts, from the numbers t_k of n-grams with a = k (Chen and Goodman, equation 26):

    D_k = k - (k + 1) t_1 t_{k+1} / ((t_1 + 2 t_2) t_k),   D(a) = D_min(a, 3),   D(0) = 0

and every context u passes on what was discounted, down to the uniform distribution:

    P(w | u) = (a(u w) - D(a(u w))) / sum_x a(u x)  +  b(u) P(w | u'),   b(u) = sum_x D(a(u x)) / sum_x a(u x)
    P(w)     = the same for the empty u, with 1 / (words without <s>) for P(w | u')

<unk> counts as often as it occurs in the text, usually never, and so gets its share of the uniform part, as
in lmplz (--interpolate_unigrams, its default). Two differences:

* Where the discounts of a length cannot be estimated (t_1, t_2 or t_3 is 0, or a D_k is not above 0 and at
  most k), lmplz stops without --discount_fallback; here its fallbacks 0.5, 1 and 1.5 are used.
* lmplz counts the last n-gram of each shorter length into t_k by c instead of a (kenlm issue 405). That is
  not repeated here; it only matters in tiny texts.

An ARPA file lists log10 p and log10 b (no b: 0; the longest n-grams have none), and P(w | u) is p(u w)
where u w is listed and b(u) P(w | u') where it is not:

    \data\
    ngram 1=5
    ngram 2=3

    \1-grams:
    -0.7    the    -0.3
    ...
    \end\

Files are read as KenLM reads them: blank lines and lines with # may precede `\data\`; without <unk>,
unknown words have log10 p = -100; <UNK> is <unk>; the p of <s> does not matter, since <s> follows nothing.
<s> and </s> must be listed, and so must the context of an n-gram; its last words need not be. An n-gram
that is listed twice, which KenLM accepts, is refused.
"""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rangevote.errors import DataError, SetupError, UsageError
from rangevote.models.protocol import Integers, Step
from rangevote.text import BOM, decompressing, write_atomically

Floats = NDArray[np.float64]
#: A prompt: words with white space between them, or their numbers. "" is the start of a sentence.
Prompt = str | Sequence[int]
Sentences = str | os.PathLike[str] | Iterable[str]

#: The numbers of the unknown word and of the marks of start and end.
UNKNOWN, START, END = 0, 1, 2
MARKS = ("<unk>", "<s>", "</s>")
#: D_1, D_2 and D_3 where the text is too small or too odd to estimate them.
FALLBACK = (0.5, 1.0, 1.5)
#: log10 p of unknown words where a file has no <unk>.
MISSING_UNKNOWN = -100.0
_LN10 = math.log(10)
_BATCH = 2**16  # lines


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
        """Train on sentences, or on a file with one per line, by modified Kneser-Ney smoothing.

        Words that occur fewer than `min_count` times, or are not in the `vocabulary`, become `<unk>`.
        Texts too small to estimate the discounts get 0.5, 1 and 1.5 (see the module).
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
        if not self._exact:
            peaks = log_probs.max(axis=1, keepdims=True)  # (rows, 1)
            if (peaks == -math.inf).any():
                raise DataError("the model gives every word probability 0 after one of the prefixes")
            log_probs -= peaks
            log_probs -= np.log(np.exp(log_probs).sum(axis=1, keepdims=True))
        return Step(log_probs, state)

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


@dataclass(frozen=True)
class Level:
    """The n-grams of one length: `keys` ascending, natural logs of p and b; all (ngrams,).

    An n-gram is known by its index in its level, a word being its own index in level 1, so that one integer
    is the sorting key: key(u w) = index(u) * words + w. The words after one context are neighbours, and
    finding an n-gram takes one binary search for each word.
    """

    keys: Integers
    logprobs: Floats
    backoffs: Floats

    def find(self, contexts: Integers, words: Integers, size: int) -> Integers:
        """The indices of n-grams, given those of their contexts and their last words; -1: not listed.

        `size`: how many words there are. After a context of -1 nothing is listed: keys are not negative.
        """
        if not self.keys.size:
            return np.full(contexts.shape, -1)
        keys = contexts * size + words
        indices = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        return np.where(self.keys[indices] == keys, indices, -1)


class Backoff:
    """P(next word | history) for histories (rows, order - 1) of word numbers; -1: before the start."""

    def __init__(self, size: int, levels: Sequence[Level]) -> None:
        self.size, self.levels, self.order = size, list(levels), len(levels)
        # where the n-grams of each context begin in the next level, and after the last one where they end
        self._begins = [
            np.searchsorted(longer.keys, np.arange(shorter.keys.size + 1) * size)
            for shorter, longer in zip(self.levels, self.levels[1:], strict=False)
        ]

    def contexts(self, history: Integers) -> Integers:
        """Indices (rows, order - 1) of the last 1, 2, ... words; -1 where they are not listed."""
        indices = np.full(history.shape, -1)
        for length in range(1, self.order):
            index = history[:, -length]  # (rows,)
            for n in range(2, length + 1):
                index = self.levels[n - 1].find(index, history[:, n - 1 - length], self.size)
            indices[:, length - 1] = index
        return indices

    def score(self, history: Integers, words: Integers) -> Floats:
        """log P of one word (rows,) after each history."""
        scores = self.levels[0].logprobs[words]
        for n, context in enumerate(self.contexts(history).T, 2):
            lower, level = self.levels[n - 2], self.levels[n - 1]
            known = context >= 0  # (rows,)
            scores[known] += lower.backoffs[context[known]]
            index = level.find(context, words, self.size)  # (rows,)
            listed = index >= 0  # (rows,)
            scores[listed] = level.logprobs[index[listed]]
        return scores

    def rows(self, history: Integers) -> Floats:
        """log P of every word (rows, words) after each history; equal histories are worked out once."""
        indices = self.contexts(history)
        sizes = [level.keys.size for level in self.levels[:-1]]
        offsets = np.cumsum([0, *sizes])[:-1]  # (order - 1,)
        # the longest listed context says all: the shorter ones are its last words
        longest = np.where(indices >= 0, indices + offsets, -1).max(axis=1, initial=-1)  # (rows,)
        _, first, back = np.unique(longest, return_index=True, return_inverse=True)
        table = np.empty((len(history), self.size))
        for row, contexts in zip(first.tolist(), indices[first].tolist(), strict=True):
            self._fill(table[row], contexts)
        alike = first[back]  # (rows,): the first row with the same context
        again = np.flatnonzero(alike != np.arange(len(history)))
        table[again] = table[alike[again]]
        return table

    def _fill(self, row: Floats, contexts: Sequence[int]) -> None:
        """Write log P of every word (words,): first what backs off the furthest, over it what is listed."""
        known = [(n, index) for n, index in enumerate(contexts) if index >= 0]
        weights = [float(self.levels[n].backoffs[index]) for n, index in known]
        np.add(self.levels[0].logprobs, sum(weights), out=row)
        for i, (n, index) in enumerate(known):
            begin, end = self._begins[n][index : index + 2]
            level = self.levels[n + 1]
            listed = level.keys[begin:end] - index * self.size  # the words after this context
            row[listed] = level.logprobs[begin:end] + sum(weights[i + 1 :])


class TrainingText(NamedTuple):
    """`words`: the text of each number. `tokens` (tokens,): sentence after sentence, each `<s> ... </s>`."""

    words: list[str]
    tokens: Integers


def read_corpus(
    sentences: Sentences, *, min_count: int = 1, vocabulary: Iterable[str] | None = None
) -> TrainingText:
    """Number the words of a file (one sentence per line) or of sentences; an empty line is an empty sentence.

    Words that occur fewer than `min_count` times, or are not in the `vocabulary`, become `<unk>`.
    """
    numbers = _new_numbers()
    if vocabulary is not None:
        if min_count > 1:
            raise UsageError("both a vocabulary and min_count were given; each says which words are known.")
        for i, word in enumerate(_encoded(vocabulary), 1):
            if word.split() != [word]:
                shown = word.decode()
                raise UsageError(f"{shown!r}, word {i} of the vocabulary, is empty or has a space in it.")
            numbers[word]  # looking it up numbers it
        numbers.default_factory = lambda: UNKNOWN
    if isinstance(sentences, (str, os.PathLike)):
        with closing(read_lines(sentences)) as lines:
            tokens = _numbered(lines, numbers, os.fspath(sentences))
    else:
        tokens = _numbered(_encoded(sentences), numbers, "sentences")
    words = _words(numbers)
    if min_count > 1:
        kept = np.bincount(tokens, minlength=len(words)) >= min_count  # (words,)
        kept[: END + 1] = True
        tokens = np.where(kept, np.cumsum(kept) - 1, UNKNOWN)[tokens]
        words = [word for word, keep in zip(words, kept.tolist(), strict=True) if keep]
    return TrainingText(words, tokens)


def _new_numbers() -> defaultdict[bytes, int]:
    """Word -> number, with both spellings of the unknown word; a new word gets the next number."""
    marks = {b"<unk>": UNKNOWN, b"<UNK>": UNKNOWN, b"<s>": START, b"</s>": END}
    return defaultdict(count(END + 1).__next__, marks)


def _words(numbers: dict[bytes, int]) -> list[str]:
    return [*MARKS, *(word.decode() for word, number in numbers.items() if number > END)]


def _encoded(sentences: Iterable[str]) -> Iterator[bytes]:
    for number, sentence in enumerate(sentences, 1):
        if not isinstance(sentence, str):
            raise UsageError(f"sentences:{number}: expected a text, got {type(sentence).__name__}.")
        try:
            yield sentence.encode()
        except UnicodeEncodeError:
            raise DataError("contains a lone surrogate", where=f"sentences:{number}") from None


def _numbered(lines: Iterator[bytes], numbers: defaultdict[bytes, int], name: str) -> Integers:
    """All words of all lines (tokens,), with a start and an end for each line."""
    pieces: list[Integers] = []
    done = 0
    while batch := list(islice(lines, _BATCH)):
        text = b"<s> " + b" </s> <s> ".join(batch) + b" </s>"
        words = text.split()
        tokens = np.fromiter(map(numbers.__getitem__, words), np.int64, len(words))  # (tokens,)
        marks = np.count_nonzero((tokens == START) | (tokens == END))
        if marks != 2 * len(batch) or not _is_text(text):
            for number, line in enumerate(batch, done + 1):
                if not _is_text(line):
                    raise DataError("is not text in UTF-8", where=f"{name}:{number}")
                if {b"<s>", b"</s>"} & set(line.split()):
                    problem = "contains the word <s> or </s>, which the model adds itself; remove it"
                    raise DataError(problem, where=f"{name}:{number}")
        pieces.append(tokens)
        done += len(batch)
    if not pieces:
        raise DataError("contains no sentences; a model needs some to learn from", where=name)
    return np.concatenate(pieces)


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def read_lines(path: str | os.PathLike[str]) -> Generator[bytes, None, None]:
    """The lines of a file, plain or gzip (recognised by its first bytes), without a byte order mark.

    Use `contextlib.closing` if you may stop before the last line.
    """
    name = os.fspath(path)
    number = 0
    try:
        with Path(path).open("rb") as raw:
            stream, codec, errors = decompressing(raw, raw.peek(8))
            try:
                for line in stream:
                    number += 1
                    yield line.removeprefix(BOM) if number == 1 else line
            except errors as error:
                problem = f"damaged or cut off {codec} data ({error})"
                raise DataError(problem, where=f"{name}:{number + 1}") from error
    except DataError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL byte
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise SetupError(f"cannot read {name}: {reason.lower()}.") from error


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
            done[-1] = replace(done[-1], backoffs=np.log(b))
        with np.errstate(divide="ignore"):  # log 0 of <s>
            done.append(Level(level.keys, np.minimum(np.log(p), 0.0), np.zeros(p.size)))
        lower = p
    return done


def read_arpa(path: str | os.PathLike[str]) -> tuple[list[str], Backoff]:
    """The words and the probabilities of an ARPA file, plain or gzip."""
    with closing(read_lines(path)) as lines:
        return _ArpaReader(lines, os.fspath(path)).read()


class _ArpaReader:
    """`line` is the line that comes next, without blank ones (None: the file ends), `number` its number."""

    def __init__(self, lines: Iterator[bytes], name: str) -> None:
        self._name, self._lines, self.number = name, lines, 0
        self._numbers = _new_numbers()
        self._advance()

    def _advance(self) -> None:
        for line in self._lines:
            self.number += 1
            self.line: bytes | None = line.strip()
            if self.line:
                return
        self.number, self.line = self.number + 1, None

    def read(self) -> tuple[list[str], Backoff]:
        sizes = self._header()
        levels: list[Level] = []
        for n in range(1, len(sizes) + 1):
            if self.line != b"\\%d-grams:" % n:
                raise self._expected(rf"\{n}-grams:")
            levels.append(self._level(n, sizes, levels))
        if self.line != b"\\end\\":
            raise self._expected("\\end\\ after the last n-gram")
        self._advance()
        if self.line is not None:
            raise self._expected("nothing after \\end\\")
        words = _words(self._numbers)
        return words, Backoff(len(words), levels)

    def _header(self) -> list[int]:
        r"""How many n-grams of each length there are, from `\data\` to the first section."""
        while self.line is not None and self.line.startswith(b"#"):
            self._advance()
        if self.line is not None and self.line.startswith(b"mmap lm http://kheafield.com/code"):
            raise self._fault("is a binary file of KenLM; give the ARPA file it was made from")
        if self.line != b"\\data\\":
            raise self._expected("\\data\\ at the beginning")
        self._advance()
        sizes: list[int] = []
        while not sizes or (self.line is not None and not self.line.startswith(b"\\")):
            match = re.fullmatch(rb"ngram\s+(\d{1,4})\s*=\s*(\d{1,18})", self.line or b"")
            if match is None or int(match[1]) != len(sizes) + 1:
                raise self._expected(f"'ngram {len(sizes) + 1}=' and a number")
            sizes.append(int(match[2]))
            self._advance()
        return sizes

    def _level(self, n: int, sizes: list[int], levels: list[Level]) -> Level:
        """The n-grams of one length, as many as the header says, sorted."""
        words, logprobs, backoffs, lines = self._section(n, sizes[n - 1], last=n == len(sizes))
        tokens = self._tokens(words, lines, n)  # (ngrams, n)
        size, contexts = len(set(self._numbers.values())), np.zeros(len(tokens), np.int64)
        if n > 1:
            contexts = tokens[:, 0]  # (ngrams,)
            for column, level in zip(tokens.T[1:-1], levels[1:], strict=True):
                contexts = level.find(contexts, column, size)
        for i in np.flatnonzero(contexts < 0)[:1].tolist():
            context = b" ".join(words[i * n : (i + 1) * n - 1]).decode()
            raise self._fault(f"the context {context!r} is not among the {n - 1}-grams", lines[i])
        keys = contexts * size + tokens[:, -1]
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        for i in np.flatnonzero(keys[1:] == keys[:-1])[:1].tolist():
            first, again = order[i : i + 2].tolist()
            gram = b" ".join(words[again * n : (again + 1) * n]).decode()
            raise self._fault(f"{gram!r} is already in line {lines[first]}", lines[again])
        if n > 1:
            return Level(keys, logprobs[order], backoffs[order])
        for mark in (START, END):
            if mark not in keys:
                raise self._fault(f"{MARKS[mark]} is not among the 1-grams; sentences need it")
        every = Level(np.arange(size), np.full(size, MISSING_UNKNOWN * _LN10), np.zeros(size))
        every.logprobs[keys], every.backoffs[keys] = logprobs[order], backoffs[order]
        return every

    def _section(self, n: int, size: int, last: bool) -> tuple[list[bytes], Floats, Floats, list[int]]:
        """The words of all n-grams, one after the other; the logs of p and b and the lines, (ngrams,)."""
        words: list[bytes] = []
        logs: list[float] = []  # p and b in turn
        lines: list[int] = []
        self._advance()
        while (line := self.line) is not None and not line.startswith(b"\\"):
            if len(lines) == size:
                raise self._fault(f"there are more {n}-grams than the {size} of the header")
            fields = line.split()
            try:
                logprob, backoff = float(fields[0]), float(fields[n + 1]) if len(fields) == n + 2 else 0.0
                fits = n < len(fields) <= n + 2
            except ValueError:
                fits = False
            if not fits:
                form = f"a log10 probability, {n} word{'s' * (n > 1)}"
                raise self._expected(form if last else f"{form} and perhaps a back-off")
            if not logprob <= 0:
                raise self._fault(f"log10 probability {logprob:g}; it must be 0 or less")
            if not math.isfinite(backoff * _LN10):
                raise self._fault(f"log10 back-off {backoff:g}; it must be finite")
            if last and backoff:
                raise self._fault(f"back-off {backoff:g} of one of the longest n-grams, which have none")
            logs += (logprob, backoff)
            words += fields[1 : n + 1]
            lines.append(self.number)
            self._advance()
        if len(lines) < size:
            cut = "; the file was cut off" if self.line is None else ""
            raise self._fault(f"only {len(lines)} {n}-grams, where the header says {size}{cut}")
        with np.errstate(over="ignore"):  # a log10 p of -1e308 is P = 0
            logprobs, backoffs = np.array(logs).reshape(-1, 2).T * _LN10  # (ngrams,)
        return words, logprobs, backoffs, lines

    def _tokens(self, words: list[bytes], lines: list[int], n: int) -> Integers:
        """The numbers (ngrams, n) of the words; those of the 1-grams are numbered as they come."""
        if n == 1:
            for word, number in zip(words, lines, strict=True):
                if not _is_text(word):
                    raise self._fault(f"the word {word!r} is not text in UTF-8", number)
        else:
            self._numbers.default_factory = None
        try:
            return np.array([self._numbers[word] for word in words], np.int64).reshape(-1, n)
        except KeyError:
            i = next(i for i, word in enumerate(words) if word not in self._numbers)
            shown = words[i].decode(errors="replace")
            raise self._fault(f"the word {shown!r} is not among the 1-grams", lines[i // n]) from None

    def _fault(self, problem: str, number: int | None = None) -> DataError:
        return DataError(problem, where=f"{self._name}:{self.number if number is None else number}")

    def _expected(self, what: str) -> DataError:
        came = "the file ends" if self.line is None else f"got {self.line[:60].decode(errors='replace')!r}"
        return self._fault(f"expected {what}, {came}")


def write_arpa(path: str | os.PathLike[str], words: list[str], table: Backoff) -> None:
    """Write the file whole or not at all; a name that ends in .gz is written as gzip.

    Numbers have nine digits: more than the 32 bits that KenLM keeps.
    """
    with write_atomically(path) as out:
        head = ["\\data\\", *(f"ngram {n}={level.keys.size}" for n, level in enumerate(table.levels, 1))]
        out.write(("\n".join(head) + "\n").encode())
        grams = words
        for n, level in enumerate(table.levels, 1):
            if n > 1:
                pairs = zip(*(part.tolist() for part in divmod(level.keys, table.size)), strict=True)
                grams = [f"{grams[context]} {words[word]}" for context, word in pairs]
            logprobs, backoffs = level.logprobs / _LN10 + 0.0, level.backoffs / _LN10 + 0.0  # + 0: no -0
            if n == 1:
                logprobs[START] = -99.0  # by custom
            out.write(f"\n\\{n}-grams:\n".encode())
            for gram, logprob, backoff in zip(grams, logprobs.tolist(), backoffs.tolist(), strict=True):
                listed = f"{logprob:.9g}\t{gram}"
                out.write(
                    f"{listed}\n".encode() if n == table.order else f"{listed}\t{backoff:.9g}\n".encode()
                )
        out.write(b"\n\\end\\\n")
