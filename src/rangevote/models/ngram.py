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

<unk> counts as often as it occurs in the text, usually never, and so gets its share of the uniform part.
Two differences from lmplz: where the discounts of a length cannot be estimated (t_1, t_2 or t_3 is 0, or a
D_k is not above 0 and at most k), its --discount_fallback of 0.5, 1 and 1.5 is used; and the last n-gram of
each shorter length is counted into t_k by a, not by c (kenlm issue 405), which only matters in tiny texts.

An ARPA file lists log10 p and log10 b (no b: 0; the longest n-grams have none), and P(w | u) is p(u w)
where u w is listed and b(u) P(w | u') where it is not. Files are read as KenLM reads them: lines with # may
precede `\data\`; without <unk>, unknown words have log10 p = -100; <UNK> is <unk>; the p of <s> does not
matter. <s> and </s> must be listed, and so must the context of an n-gram; its last words need not be. An
n-gram that is listed twice, which KenLM accepts, is refused.
"""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from rangevote.errors import DataError, UsageError
from rangevote.models.protocol import Integers, Step
from rangevote.text import open_stream, write_atomically

Floats = NDArray[np.float64]
#: A prompt: words with white space between them, or their numbers. "" is the start of a sentence.
Prompt = str | Sequence[int]
#: A file with one sentence per line, or the sentences.
Sentences = str | os.PathLike[str] | Iterable[str]

#: The numbers of the unknown word and of the marks of start and end.
UNKNOWN, START, END = 0, 1, 2
MARKS = ("<unk>", "<s>", "</s>")
#: D_1, D_2 and D_3 where the text is too small or too odd to estimate them.
FALLBACK = (0.5, 1.0, 1.5)
#: log10 p of unknown words where a file has no <unk>.
MISSING_UNKNOWN = -100.0
_LN10 = math.log(10)
_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|-inf)"


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

    def __init__(self, words: Sequence[str], levels: Sequence[Level]) -> None:
        self.words, self.levels, self.order = list(words), list(levels), len(levels)
        self._numbers = {word: number for number, word in enumerate(self.words)}

    @classmethod
    def train(cls, sentences: Sentences, order: int = 3, *, min_count: int = 1) -> NgramModel:
        """Train on sentences, or on a file with one per line, by modified Kneser-Ney smoothing.

        Words that occur fewer than `min_count` times become `<unk>`.
        """
        if order < 1:
            raise UsageError(f"order {order}: an n-gram model has order 1 or more.")
        words, tokens = read_corpus(sentences, min_count)
        return cls(words, estimate(count_ngrams(tokens, len(words), order), len(words)))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> NgramModel:
        """Read an ARPA file, plain or compressed."""
        return cls(*read_arpa(path))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write an ARPA file, as gzip if its name ends in .gz; KenLM reads those of order 2 to 6."""
        write_arpa(path, self.words, self.levels)

    def scores(self, sentence: Prompt) -> Floats:
        """Natural log P of each word and of the end, (words + 1,)."""
        tokens = np.array([*self.source(sentence), END])
        padded = np.concatenate([self.start([""])[0], tokens])
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.order)  # (words + 1, order)
        scores: Floats = self._log_probs(windows[:, :-1])[np.arange(len(tokens)), tokens]
        return scores

    def logprob(self, sentence: Prompt) -> float:
        """Natural log P of a sentence with its end."""
        return math.fsum(self.scores(sentence))

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
            state = np.column_stack([state, tokens])[:, 1:]  # (rows, order - 1)
        log_probs = self._log_probs(state)
        log_probs[:, START] = -math.inf  # whatever a file says of it
        peaks = log_probs.max(axis=1, keepdims=True)  # (rows, 1)
        if (peaks == -math.inf).any():
            raise DataError("the model gives every word probability 0 after one of the prefixes")
        log_probs -= peaks + np.log(np.exp(log_probs - peaks).sum(axis=1, keepdims=True))
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
            [(_, words)] = split_lines([input])
            tokens = [self._numbers.get(word, UNKNOWN) for word in words]
        else:
            tokens = [int(token) for token in input]
            if not all(0 <= token < len(self.words) for token in tokens):
                raise UsageError(
                    f"tokens {min(tokens)} to {max(tokens)}; the model knows 0 to {len(self.words) - 1}."
                )
        if START in tokens or END in tokens:
            raise DataError(f"{input!r:.60} contains <s> or </s>, which the model adds itself")
        return tokens

    def _log_probs(self, history: Integers) -> Floats:
        """log P of every word (rows, words) after each history (rows, order - 1)."""
        contexts = np.full(history.shape, -1)  # index of the last 1, 2, ... words; -1: not listed
        for length in range(1, self.order):
            index = history[:, -length]  # (rows,)
            for n in range(2, length + 1):
                index = self.levels[n - 1].find(index, history[:, n - 1 - length], len(self.words))
            contexts[:, length - 1] = index
        distinct, row = np.unique(contexts, axis=0, return_inverse=True)
        table = [self._log_probs_after(indices) for indices in distinct.tolist()]
        return np.array(table).reshape(-1, len(self.words))[row.reshape(len(history))]

    def _log_probs_after(self, contexts: Sequence[int]) -> Floats:
        """log P of every word (words,): the shortest context first, and over it what longer ones list."""
        log_probs, size = self.levels[0].logprobs.copy(), len(self.words)
        for n, index in enumerate(contexts):
            if index >= 0:
                log_probs += self.levels[n].backoffs[index]
                longer = self.levels[n + 1]
                begin, end = np.searchsorted(longer.keys, [index * size, (index + 1) * size])
                log_probs[longer.keys[begin:end] - index * size] = longer.logprobs[begin:end]
        return log_probs


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


def read_lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The lines of a file, plain or compressed, without line ends."""
    with open_stream(path) as stream:
        yield from stream.lines()


def split_lines(sentences: Sentences) -> Iterator[tuple[str, list[str]]]:
    """Where each line is, and its words; only ASCII white space divides words, as in KenLM."""
    lines: Iterable[object]
    if isinstance(sentences, (str, os.PathLike)):
        name, lines = os.fspath(sentences), read_lines(sentences)
    else:
        name, lines = "sentences", sentences
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        if not isinstance(line, (str, bytes)):
            raise UsageError(f"{where}: expected a text, got {type(line).__name__}.")
        try:
            data = line.encode() if isinstance(line, str) else line
            yield where, [word.decode() for word in data.split()]
        except UnicodeEncodeError:
            raise DataError("contains a lone surrogate", where=where) from None
        except UnicodeDecodeError:
            raise DataError("is not text in UTF-8", where=where) from None


def read_corpus(sentences: Sentences, min_count: int = 1) -> tuple[list[str], Integers]:
    """The word of each number, and the text (tokens,): sentence after sentence, each `<s> ... </s>`.

    Words that occur fewer than `min_count` times become `<unk>`; an empty line is an empty sentence.
    """
    numbers = new_numbers()
    numbered: list[int] = []
    for where, words in split_lines(sentences):
        if "<s>" in words or "</s>" in words:
            problem = "contains the word <s> or </s>, which the model adds itself; remove it"
            raise DataError(problem, where=where)
        numbered += [START, *(numbers[word] for word in words), END]
    if not numbered:
        name = os.fspath(sentences) if isinstance(sentences, (str, os.PathLike)) else "sentences"
        raise DataError("contains no sentences; a model needs some to learn from", where=name)
    vocabulary, tokens = words_of(numbers), np.array(numbered)
    kept = np.bincount(tokens, minlength=len(vocabulary)) >= min_count  # (words,)
    kept[: END + 1] = True
    tokens = np.where(kept, np.cumsum(kept) - 1, UNKNOWN)[tokens]
    return [word for word, keep in zip(vocabulary, kept.tolist(), strict=True) if keep], tokens


def new_numbers() -> defaultdict[str, int]:
    """Word -> number, with both spellings of the unknown word; a new word gets the next number."""
    marks = {"<unk>": UNKNOWN, "<UNK>": UNKNOWN, "<s>": START, "</s>": END}
    return defaultdict(count(END + 1).__next__, marks)


def words_of(numbers: dict[str, int]) -> list[str]:
    return [*MARKS, *(word for word, number in numbers.items() if number > END)]


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
    estimates = k - (k + 1) * t[1] / (t[1] + 2 * t[2]) * t[2:5] / t[1:4]  # (3,)
    return np.array([0.0, *estimates]) if ((estimates > 0) & (estimates <= k)).all() else fallback


def estimate(levels: Sequence[Counts], size: int) -> list[Level]:
    """The probabilities and back-offs of every length."""
    lower = np.array([1 / (size - 1)])  # the uniform distribution, of the one n-gram without words
    done: list[Level] = []
    for n, level in enumerate(levels):
        d = discounts(level.counts)[np.minimum(level.counts, 3)]  # (ngrams,)
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


def read_arpa(path: str | os.PathLike[str]) -> tuple[list[str], list[Level]]:
    """The words and the n-grams of an ARPA file."""
    lines = deque((where, " ".join(fields)) for where, fields in split_lines(path) if fields)
    lines.append((os.fspath(path), ""))

    def expect(pattern: str, meaning: str) -> re.Match[str]:
        """Take the next line, which must match."""
        where, line = lines.popleft()
        match = re.fullmatch(pattern, line)
        if match is None:
            got = f"got {line[:60]!r}" if line else "the file ends"
            raise DataError(f"expected {meaning}, {got}", where=where)
        return match

    while lines[0][1].startswith("#"):
        lines.popleft()
    expect(r"\\data\\", "\\data\\ at the beginning")
    sizes: list[int] = []
    while not sizes or lines[0][1].startswith("ngram "):
        n = len(sizes) + 1
        sizes.append(int(expect(rf"ngram {n} ?= ?(\d{{1,18}})", f"'ngram {n}=' and a number")[1]))
    numbers = new_numbers()
    levels: list[Level] = []
    contexts: dict[tuple[int, ...], int] = {(): 0}  # n-grams one shorter -> their indices
    for n, size in enumerate(sizes, 1):
        expect(rf"\\{n}-grams:", f"\\{n}-grams: after the n-grams that the header counts")
        pattern = rf"{_NUMBER} ([^ ]+(?: [^ ]+){{{n - 1}}})(?: {_NUMBER})?"
        words_of_one = "1 word" if n == 1 else f"{n} words"
        meaning = f"one of {size} {n}-grams (a log10 probability, {words_of_one}, perhaps a back-off)"
        grams: dict[tuple[int, ...], tuple[float, float]] = {}  # their log10 p and b
        for _ in range(size):
            where = lines[0][0]
            match = expect(pattern, meaning)
            words, logprob, backoff = match[2].split(" "), float(match[1]), float(match[3] or 0)
            gram = tuple(numbers[word] if n == 1 or word in numbers else -1 for word in words)
            for wrong, problem in (
                (logprob > 0, f"log10 probability {logprob:g}; it must be 0 or less"),
                (math.isinf(backoff * _LN10), f"log10 back-off {backoff:g}; it must be finite"),
                (backoff and n == len(sizes), f"back-off {backoff:g} of one of the longest, which have none"),
                (-1 in gram, f"a word of {match[2]!r} is not among the 1-grams"),
                (gram[:-1] not in contexts, f"the context of {match[2]!r} is not among the {n - 1}-grams"),
                (gram in grams, f"{match[2]!r} is listed twice"),
            ):
                if wrong:
                    raise DataError(problem, where=where)
            grams[gram] = logprob, backoff
        if n == 1:
            grams.setdefault((UNKNOWN,), (MISSING_UNKNOWN, 0.0))
            for mark in (START, END):
                if (mark,) not in grams:
                    raise DataError(f"{MARKS[mark]} is not among the 1-grams", where=os.fspath(path))
            total = len(grams)
        level, contexts = _sorted_level(grams, contexts, total)
        levels.append(level)
    expect(r"\\end\\", "\\end\\ after the n-grams that the header counts")
    expect("", "nothing after \\end\\")
    return words_of(numbers), levels


def _sorted_level(
    grams: dict[tuple[int, ...], tuple[float, float]], contexts: dict[tuple[int, ...], int], size: int
) -> tuple[Level, dict[tuple[int, ...], int]]:
    """The level of n-grams with these log10 p and b, and the index of each in it.

    `contexts` has the indices of n-grams one shorter; `size`: how many words there are.
    """
    keys = np.array([contexts[gram[:-1]] * size + gram[-1] for gram in grams], np.int64)
    order = np.argsort(keys)
    with np.errstate(over="ignore"):  # a log10 p of -1e308 is P = 0
        logprobs, backoffs = np.array([*grams.values()]).reshape(-1, 2)[order].T * _LN10  # (ngrams,)
    unsorted = list(grams)
    indices = {unsorted[i]: index for index, i in enumerate(order.tolist())}
    return Level(keys[order], logprobs, backoffs), indices


def write_arpa(path: str | os.PathLike[str], words: list[str], levels: Sequence[Level]) -> None:
    """Write the file whole or not at all, with nine digits: more than the 32 bits that KenLM keeps."""
    with write_atomically(path) as out:
        head = ["\\data\\", *(f"ngram {n}={level.keys.size}" for n, level in enumerate(levels, 1))]
        out.write(("\n".join(head) + "\n").encode())
        grams = words
        for n, level in enumerate(levels, 1):
            if n > 1:
                pairs = zip(*(part.tolist() for part in divmod(level.keys, len(words))), strict=True)
                grams = [f"{grams[context]} {words[word]}" for context, word in pairs]
            logprobs, backoffs = level.logprobs / _LN10 + 0.0, level.backoffs / _LN10 + 0.0  # + 0: no -0
            if n == 1:
                logprobs[START] = -99.0  # by custom
            out.write(f"\n\\{n}-grams:\n".encode())
            for gram, logprob, backoff in zip(grams, logprobs.tolist(), backoffs.tolist(), strict=True):
                last = "" if n == len(levels) else f"\t{backoff:.9g}"
                out.write(f"{logprob:.9g}\t{gram}{last}\n".encode())
        out.write(b"\n\\end\\\n")
