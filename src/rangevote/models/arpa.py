r"""Back-off n-gram tables, and the ARPA files in which all toolkits keep them.

    P(w | u) = p(u w)              where the n-gram u w is listed,
             = b(u) P(w | u')      where it is not; u' is u without its first word

b(u) is 1 where u is not listed. An ARPA file lists p and b:

    \data\
    ngram 1=5
    ngram 2=3

    \1-grams:
    -0.7    the    -0.3           log10 p, the n-gram, log10 b (no b: 0; the longest n-grams have none)
    ...
    \end\

Files are read as KenLM reads them: blank lines and lines with # may precede `\data\`; without <unk>, unknown
words have log10 p = -100; <UNK> is <unk>; the p of <s> does not matter, since <s> follows nothing. <s> and
</s> must be there, and the context of an n-gram must be listed one length down; its last words need not be.
One thing that KenLM accepts is refused: an n-gram that is listed twice.
"""

from __future__ import annotations

import gzip
import math
import os
import re
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from rangevote.errors import DataError, SetupError
from rangevote.models.protocol import Integers
from rangevote.text import BOM, write_atomically

Floats = NDArray[np.float64]

#: The numbers of the unknown word and of the marks of start and end, in every n-gram model.
UNKNOWN, START, END = 0, 1, 2
MARKS = ("<unk>", "<s>", "</s>")
#: Other ways to write the unknown word; KenLM knows the same.
UNKNOWN_WORDS = (b"<unk>", b"<UNK>")

_LN10 = math.log(10)
#: log10 p of unknown words where the file has no <unk>.
MISSING_UNKNOWN = -100.0
_COUNT = re.compile(rb"ngram\s+(\d{1,4})\s*=\s*(\d{1,18})")
_KENLM = b"mmap lm http://kheafield.com/code"
_GZIP = b"\x1f\x8b"


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


def read_lines(path: str | os.PathLike[str]) -> Generator[bytes, None, None]:
    """The lines of a file, as they stand there; gzip is known by its first bytes, not by the name.

    Who may stop before the last line closes it (`contextlib.closing`), and the file with it.
    """
    name = os.fspath(path)
    number = 0
    try:
        with Path(path).open("rb") as raw:
            packed = raw.peek(2).startswith(_GZIP)
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
            for line in stream:
                number += 1
                yield line.removeprefix(BOM) if number == 1 else line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"damaged or cut off gzip data ({error})", where=f"{name}:{number + 1}") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL byte
        raise SetupError(f"cannot read {name}: {_reason(error)}.") from error


def _reason(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return (reason or str(error) or type(error).__name__).lower()


def is_text(line: bytes) -> bool:
    """Whether bytes are UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Lines:
    """The lines of a file without white space around them, one at a time, with the number of the last."""

    def __init__(self, lines: Iterator[bytes], name: str) -> None:
        self.name, self.number = name, 0
        self._lines, self._again = lines, False
        self.line: bytes | None = b""

    def next(self) -> bytes | None:
        """The next line that is not blank; None at the end of the file."""
        if self._again:
            self._again = False
            return self.line
        for line in self._lines:
            self.number += 1
            self.line = line.strip()
            if self.line:
                return self.line
        self.number, self.line = self.number + 1, None
        return None

    def back(self) -> None:
        """Let the next line be this one again."""
        self._again = True

    def fault(self, problem: str, number: int | None = None) -> DataError:
        return DataError(problem, where=f"{self.name}:{self.number if number is None else number}")

    def expected(self, what: str) -> DataError:
        """The line is not what must stand here."""
        came = "the file ends" if self.line is None else f"got {self.line[:60].decode(errors='replace')!r}"
        return self.fault(f"expected {what}, {came}")


class _Section(NamedTuple):
    """The n-grams of one length as they stand in the file: logs and line numbers (ngrams,).

    `words` has those of all n-grams, one after the other: many small lists would take twice the time.
    """

    n: int
    words: list[bytes]
    logprobs: Floats
    backoffs: Floats
    lines: list[int]

    def gram(self, i: int) -> list[bytes]:
        return self.words[i * self.n : (i + 1) * self.n]


def read_arpa(path: str | os.PathLike[str]) -> tuple[list[str], Backoff]:
    """The words and the probabilities of an ARPA file, plain or gzip."""
    with closing(read_lines(path)) as lines:
        return _read(_Lines(lines, os.fspath(path)))


def _read(lines: _Lines) -> tuple[list[str], Backoff]:
    sizes = _header(lines)
    index, unigrams = _unigrams(lines, _section(lines, 1, sizes))
    levels = [unigrams]
    for n in range(2, len(sizes) + 1):
        levels.append(_level(lines, _section(lines, n, sizes), index, levels))
    if lines.next() != b"\\end\\":
        raise lines.expected("\\end\\ after the last n-gram")
    if lines.next() is not None:
        raise lines.expected("nothing after \\end\\")
    words = sorted((number, word.decode()) for word, number in index.items())
    return [word for _, word in words], Backoff(len(words), levels)


def _header(lines: _Lines) -> list[int]:
    r"""How many n-grams of each length there are, from `\data\` to the first section."""
    while (line := lines.next()) is not None and line.startswith(b"#"):
        pass
    if line is not None and line.startswith(_KENLM):
        raise lines.fault("is a binary file of KenLM; give the ARPA file it was made from")
    if line != b"\\data\\":
        raise lines.expected("\\data\\ at the beginning")
    sizes: list[int] = []
    while (line := lines.next()) is not None and not line.startswith(b"\\"):
        match = _COUNT.fullmatch(line)
        if match is None or int(match[1]) != len(sizes) + 1:
            raise lines.expected(f"'ngram {len(sizes) + 1}=' and a number")
        sizes.append(int(match[2]))
    if not sizes:
        raise lines.expected("'ngram 1=' and a number")
    lines.back()
    return sizes


def _section(lines: _Lines, n: int, sizes: list[int]) -> _Section:
    """Read all n-grams of one length, and check that there are as many as the header says."""
    size, last = sizes[n - 1], n == len(sizes)
    if lines.next() != b"\\%d-grams:" % n:
        raise lines.expected(rf"\{n}-grams:")
    words: list[bytes] = []
    logs: list[float] = []  # p and b in turn
    numbers: list[int] = []
    while (line := lines.next()) is not None and not line.startswith(b"\\"):
        if len(numbers) == size:
            raise lines.fault(f"there are more {n}-grams than the {size} of the header")
        fields = line.split()
        logs += _logs(lines, fields, n, last)
        words += fields[1 : n + 1]
        numbers.append(lines.number)
    if len(numbers) < size:
        cut = "; the file was cut off" if line is None else ""
        raise lines.fault(f"only {len(numbers)} {n}-grams, where the header says {size}{cut}")
    lines.back()
    with np.errstate(over="ignore"):  # a log10 p of -1e308 is P = 0
        logprobs, backoffs = np.array(logs).reshape(-1, 2).T * _LN10  # (ngrams,)
    return _Section(n, words, logprobs, backoffs, numbers)


def _logs(lines: _Lines, fields: list[bytes], n: int, last: bool) -> tuple[float, float]:
    """log10 p and log10 b of one line."""
    try:
        logprob, backoff = float(fields[0]), float(fields[n + 1]) if len(fields) == n + 2 else 0.0
        fits = n < len(fields) <= n + 2
    except ValueError:
        fits = False
    if not fits:
        form = f"a log10 probability, {n} word{'s' * (n > 1)}"
        raise lines.expected(form if last else f"{form} and perhaps a back-off")
    if not logprob <= 0:
        raise lines.fault(f"log10 probability {logprob:g}; it must be 0 or less")
    if not math.isfinite(backoff * _LN10):
        raise lines.fault(f"log10 back-off {backoff:g}; it must be finite")
    if last and backoff:
        raise lines.fault(f"back-off {backoff:g} of one of the longest n-grams, which have none")
    return logprob, backoff


def _unigrams(lines: _Lines, section: _Section) -> tuple[dict[bytes, int], Level]:
    """The number of each word, the marks first and the others as they come, and the first level."""
    index = {mark.encode(): number for number, mark in enumerate(MARKS)}
    tokens, seen = [], dict[int, int]()
    for word, number in zip(section.words, section.lines, strict=True):
        if not is_text(word):
            raise lines.fault(f"the word {word!r} is not text in UTF-8", number)
        token = UNKNOWN if word in UNKNOWN_WORDS else index.setdefault(word, len(index))
        if seen.setdefault(token, number) != number:
            raise lines.fault(f"{word.decode()!r} is already in line {seen[token]}", number)
        tokens.append(token)
    for mark in (START, END):
        if mark not in seen:
            raise lines.fault(f"{MARKS[mark]} is not among the 1-grams; sentences need it")
    logprobs = np.full(len(index), MISSING_UNKNOWN * _LN10)
    backoffs = np.zeros(len(index))
    logprobs[tokens], backoffs[tokens] = section.logprobs, section.backoffs
    return index, Level(np.arange(len(index)), logprobs, backoffs)


def _level(lines: _Lines, section: _Section, index: dict[bytes, int], levels: list[Level]) -> Level:
    """The level of the n-grams of two words and more, sorted."""
    n, size = len(levels) + 1, len(index)
    numbers = _word_numbers(lines, section, index).reshape(-1, n)
    contexts = numbers[:, 0]  # (ngrams,)
    for column, level in zip(numbers.T[1:-1], levels[1:], strict=True):
        contexts = level.find(contexts, column, size)
    for i in np.flatnonzero(contexts < 0)[:1].tolist():
        context = b" ".join(section.gram(i)[:-1]).decode()
        raise lines.fault(f"the context {context!r} is not among the {n - 1}-grams", section.lines[i])
    keys = contexts * size + numbers[:, -1]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    for i in np.flatnonzero(keys[1:] == keys[:-1])[:1].tolist():
        first, again = order[i : i + 2].tolist()
        gram = b" ".join(section.gram(again)).decode()
        raise lines.fault(f"{gram!r} is already in line {section.lines[first]}", section.lines[again])
    return Level(keys, section.logprobs[order], section.backoffs[order])


def _word_numbers(lines: _Lines, section: _Section, index: dict[bytes, int]) -> Integers:
    """The numbers of all words of all n-grams, one after the other."""
    known = {**index, **dict.fromkeys(UNKNOWN_WORDS, UNKNOWN)}
    try:
        return np.array([known[word] for word in section.words], np.int64)
    except KeyError:
        i = next(i for i, word in enumerate(section.words) if word not in known)
        shown = section.words[i].decode(errors="replace")
        number = section.lines[i // section.n]
        raise lines.fault(f"the word {shown!r} is not among the 1-grams", number) from None


def write_arpa(path: str | os.PathLike[str], words: list[str], table: Backoff) -> None:
    """Write the file whole or not at all; a name that ends in .gz is written as gzip."""
    with write_atomically(path) as out:
        head = ["\\data\\", *(f"ngram {n}={level.keys.size}" for n, level in enumerate(table.levels, 1))]
        out.write(("\n".join(head) + "\n").encode())
        grams = words
        for n, level in enumerate(table.levels, 1):
            if n > 1:
                pairs = zip(*(part.tolist() for part in divmod(level.keys, table.size)), strict=True)
                grams = [f"{grams[context]} {words[word]}" for context, word in pairs]
            lines = _written(grams, level, first=n == 1, last=n == table.order)
            out.write(f"\n\\{n}-grams:\n".encode())
            out.writelines(line.encode() for line in lines)
        out.write(b"\n\\end\\\n")


def _written(grams: list[str], level: Level, *, first: bool, last: bool) -> Iterator[str]:
    """The lines of one section, with nine digits: more than the 32 bits that KenLM keeps."""
    logprobs = level.logprobs / _LN10 + 0.0  # + 0: no -0
    if first:
        logprobs[START] = -99.0  # by custom
    backoffs = (level.backoffs / _LN10 + 0.0).tolist()
    for gram, logprob, backoff in zip(grams, logprobs.tolist(), backoffs, strict=True):
        yield f"{logprob:.9g}\t{gram}\n" if last else f"{logprob:.9g}\t{gram}\t{backoff:.9g}\n"
