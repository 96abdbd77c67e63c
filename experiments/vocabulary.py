"""Texts as numbers and back, for the models that are trained here: whole words, or parts of words (BPE).

Numbers 0 to 3 are marks that stand for no text, in both kinds; models never write any but `END`.

>>> words = Words.train(["a dog runs", "a dog sits", "a cat"], size=2)
>>> words.encode("a dog barks"), words.decode([4, 5])
([4, 5, 3], 'a dog')
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rangevote.errors import DataError, UsageError, need
from rangevote.text import write_atomically

if TYPE_CHECKING:
    from torch import Tensor

PAD, START, END, UNKNOWN = range(4)
MARKS = ("<pad>", "<s>", "</s>", "<unk>")

#: What ends up in no word: everything but letters, digits, and the signs inside of words.
_NO_WORD = re.compile(r"[^\w\s'-]|(?<!\w)['-]|['-](?!\w)")


def plain_words(text: str) -> str:
    """Lower-cased words without punctuation, as captions are usually compared.

    >>> plain_words("A man's T-shirt , 'red' !")
    "a man's t-shirt red"
    """
    return " ".join(_NO_WORD.sub(" ", text.lower()).split())


class Vocabulary(Protocol):
    """Texts <-> numbers below `len(vocabulary)`."""

    def __len__(self) -> int: ...

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without start and end."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of the tokens; start, end and padding leave no trace."""

    def to_json(self) -> dict[str, Any]:
        """All that `read_vocabulary` needs."""


class Words:
    """The most frequent words; every other one is `<unk>`. Words are what stands between white space."""

    kind = "words"

    def __init__(self, words: Sequence[str]) -> None:
        self.words = [*MARKS, *words]
        self._numbers = {word: number for number, word in enumerate(self.words) if number > UNKNOWN}
        if len(self._numbers) != len(words):
            raise DataError("a word stands twice in the vocabulary")

    @classmethod
    def train(cls, texts: Iterable[str], size: int = 5000) -> Words:
        """The `size` most frequent words; of equally frequent ones those that come first."""
        _check_size(size, 1)
        counts = Counter(word for text in texts for word in text.split())
        return cls([word for word, _ in counts.most_common(size)])

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, text: str) -> list[int]:
        """The number of each word."""
        return [self._numbers.get(word, UNKNOWN) for word in text.split()]

    def decode(self, tokens: Sequence[int]) -> str:
        """The words with spaces between them."""
        return " ".join([self.words[token] for token in tokens if token >= UNKNOWN])

    def to_json(self) -> dict[str, Any]:
        """The words in order, without the marks."""
        return {"kind": self.kind, "words": self.words[len(MARKS) :]}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Words:
        """The inverse of `to_json`."""
        return cls([str(word) for word in found["words"]])


class Bpe:
    """Byte-pair encoding over bytes (Sennrich et al. 2016): no text is unknown, and none is changed.

    A word has the same tokens at the start of a text and inside of it, since each text is encoded with a
    space before it, which `decode` takes away again. The marks are no part of the `tokenizers` object, whose
    numbers follow theirs: a text that spells "</s>" is a text.
    """

    kind = "bpe"

    def __init__(self, tokenizer: Any) -> None:
        """`tokenizer`: of the `tokenizers` library, byte level."""
        self._tokenizer = tokenizer
        self._size = len(MARKS) + int(tokenizer.get_vocab_size())

    @classmethod
    def train(cls, texts: Iterable[str], size: int = 4000) -> Bpe:
        """Learn at most `size` tokens from texts: for a joint encoding, those of both languages."""
        _check_size(size, len(MARKS) + 256)
        tokenizers = need("tokenizers", "models", "BPE")
        found = tokenizers.Tokenizer(tokenizers.models.BPE())
        found.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        found.decoder = tokenizers.decoders.ByteLevel()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=size - len(MARKS),
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        found.train_from_iterator((" " + text for text in texts), trainer)
        return cls(found)

    def __len__(self) -> int:
        return self._size

    def encode(self, text: str) -> list[int]:
        """The numbers of the parts."""
        return [token + len(MARKS) for token in self._tokenizer.encode(" " + text).ids]

    def decode(self, tokens: Sequence[int]) -> str:
        """The parts joined; bytes that make no character become U+FFFD."""
        text: str = self._tokenizer.decode([token - len(MARKS) for token in tokens if token > UNKNOWN])
        return text.removeprefix(" ")

    def to_json(self) -> dict[str, Any]:
        """The `tokenizers` library's own description."""
        return {"kind": self.kind, "tokenizer": json.loads(self._tokenizer.to_str())}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Bpe:
        """The inverse of `to_json`."""
        tokenizers = need("tokenizers", "models", "BPE")
        return cls(tokenizers.Tokenizer.from_str(json.dumps(found["tokenizer"])))


#: kind -> class
VOCABULARIES: dict[str, type[Words] | type[Bpe]] = {"words": Words, "bpe": Bpe}


def write_vocabulary(vocabulary: Vocabulary, path: str | os.PathLike[str]) -> None:
    """Save as JSON."""
    with write_atomically(path) as file:
        file.write(json.dumps(vocabulary.to_json(), ensure_ascii=False).encode())


def read_vocabulary(path: str | os.PathLike[str]) -> Vocabulary:
    """Read what `write_vocabulary` wrote."""
    found = json.loads(Path(path).read_bytes())
    return VOCABULARIES[found["kind"]].from_json(found)


def _check_size(size: int, least: int) -> None:
    if size < least:
        raise UsageError(f"a vocabulary of {size} tokens; give {least} or more.")


def next_token(logits: Tensor) -> Tensor:
    """Logits (rows, vocabulary), overwritten, to log-probabilities over what may be written.

    The padding and the start are in no text, and an unknown word is no output: the other tokens share out
    their probability, so that log P(token) = log P(token | text so far, a token that can be written).
    """
    logits[:, [PAD, START, UNKNOWN]] = -math.inf
    return logits.log_softmax(dim=-1)
