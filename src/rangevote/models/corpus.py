"""Sentences as numbers: the words of a text, counted off in the order they come.

Words are what stands between ASCII white space, as in KenLM: a no-break space is part of a word.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from rangevote.errors import DataError, UsageError
from rangevote.models.files import read_lines
from rangevote.models.protocol import Integers

#: The numbers of the unknown word and of the marks of start and end, in every n-gram model.
UNKNOWN, START, END = 0, 1, 2
#: How they are written.
MARKS = ("<unk>", "<s>", "</s>")
#: Other ways to write the unknown word; KenLM knows the same.
UNKNOWN_WORDS = (b"<unk>", b"<UNK>")

Sentences = str | os.PathLike[str] | Iterable[str]
_BATCH = 2**16  # lines


class Corpus(NamedTuple):
    """`words`: the text of each number. `tokens` (tokens,): sentence after sentence, each `<s> ... </s>`."""

    words: list[str]
    tokens: Integers


def read_corpus(
    sentences: Sentences, *, min_count: int = 1, vocabulary: Iterable[str] | None = None
) -> Corpus:
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
    return _without_rare(Corpus(words, tokens), min_count)


def _encoded(sentences: Iterable[str]) -> Iterator[bytes]:
    for number, sentence in enumerate(sentences, 1):
        if not isinstance(sentence, str):
            raise UsageError(f"sentences:{number}: expected a text, got {type(sentence).__name__}.")
        try:
            yield sentence.encode()
        except UnicodeEncodeError:
            raise DataError("holds half a character", where=f"sentences:{number}") from None


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
        raise DataError("holds no sentences; a model needs some to learn from", where=name)
    return np.concatenate(pieces)


def is_text(line: bytes) -> bool:
    """Whether bytes are UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fault(batch: list[bytes], name: str, done: int) -> DataError:
    """What is wrong with the first bad line of a batch that has one."""
    for number, line in enumerate(batch, done + 1):
        if not is_text(line):
            return DataError("is not text in UTF-8", where=f"{name}:{number}")
        if {b"<s>", b"</s>"} & set(line.split()):
            return DataError(
                "holds the word <s> or </s>, which the model itself puts around every sentence; remove it",
                where=f"{name}:{number}",
            )
    raise AssertionError("a batch was refused without a bad line")


def _without_rare(corpus: Corpus, min_count: int) -> Corpus:
    """The corpus with the rarest words as the unknown word, and the others numbered anew."""
    if min_count <= 1:
        return corpus
    kept = np.bincount(corpus.tokens, minlength=len(corpus.words)) >= min_count  # (words,)
    kept[: END + 1] = True
    numbers = np.where(kept, np.cumsum(kept) - 1, UNKNOWN)  # (words,)
    words = [word for word, keep in zip(corpus.words, kept.tolist(), strict=True) if keep]
    return Corpus(words, numbers[corpus.tokens])
