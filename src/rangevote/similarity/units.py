"""What n-grams are made of: words, pieces between white space, characters, leaves of JSON, model ids."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from rangevote.errors import DataError, choose, need
from rangevote.hypothesis import Hypotheses
from rangevote.kernel.plain import UNITS
from rangevote.similarity.json_leaves import json_leaves

Tokenise = str | Callable[[str], Sequence[str]]

#: What n-grams are made of by default.
DEFAULT_UNIT = "words"
#: name -> (unit of the kernels, sacrebleu's tokeniser as "module:class" or None)
TOKENISERS: dict[str, tuple[str, str | None]] = {
    "space": ("space", None),
    "words": ("words", None),
    "chars": ("chars", None),
    "tokens": ("ids", None),
    "13a": ("space", "sacrebleu.tokenizers.tokenizer_13a:Tokenizer13a"),
    "intl": ("space", "sacrebleu.tokenizers.tokenizer_intl:TokenizerV14International"),
    "zh": ("space", "sacrebleu.tokenizers.tokenizer_zh:TokenizerZh"),
    "json": ("ids", None),
}


def check_tokeniser(tokenize: Tokenise) -> None:
    """Refuse a name that no tokeniser has."""
    if not callable(tokenize):
        choose("tokenisation", tokenize, TOKENISERS)


class Reader:
    """Turns the hypotheses of one election into what the kernels take, all of them in the same way.

    `tokenize` is what `check_tokeniser` accepts.
    """

    def __init__(self, tokenize: Tokenise, candidates: Hypotheses) -> None:
        self._call: Callable[[str], Any] | None = None
        self._ids: dict[str, int] = {}  # of the tokens a user's function gives
        self.unit = "ids"
        if candidates.texts is None and len(candidates):
            return
        if callable(tokenize):
            self._call = tokenize
            return
        self.unit, path = TOKENISERS[tokenize]
        if tokenize == "json":
            self._call = json_leaves
        if path is not None:
            module, _, name = path.partition(":")
            self._call = getattr(need(module, "evaluate", f"the tokenisation {tokenize!r}"), name)()

    def read(self, hypotheses: Hypotheses) -> Sequence[Any]:
        """Texts for the units "space", "words" and "chars", lists of ids for the unit "ids"."""
        if self.unit == "ids" and self._call is None:
            return _token_ids(hypotheses)
        if hypotheses.texts is None:
            if not len(hypotheses):
                return []
            raise DataError(
                "have token ids but no text, while the candidates have text; use tokenize='tokens' or "
                "give texts.",
                field=hypotheses.role,
            )
        if self._call is None:
            return hypotheses.texts
        tokenised = [self._call(text) for text in hypotheses.texts]
        if self.unit == "space":
            return tokenised
        ids = self._ids
        return [[ids.setdefault(token, len(ids)) for token in tokens] for tokens in tokenised]

    def tokens(self, hypotheses: Hypotheses) -> list[Sequence[Any]]:
        """The tokens of each hypothesis, which mean the same whichever reader gives them."""
        if self._call is not None and self.unit == "ids":
            return list(map(self._call, hypotheses.texts or ()))
        read = self.read(hypotheses)
        if self.unit == "ids":
            return list(read)
        return [UNITS[self.unit](text) for text in read]

    def spell(self, gram: Iterable[Any]) -> str:
        """An n-gram as a person reads it."""
        if self._call is not None and self.unit == "ids":
            names = list(self._ids)
            tokens = (names[token] for token in gram)  # a leaf of JSON is shown as `path: value`
            return " ".join(": ".join(t) if isinstance(t, tuple) else str(t) for t in tokens)
        return ("" if self.unit == "chars" else " ").join(map(str, gram))


def _token_ids(hypotheses: Hypotheses) -> list[Sequence[int]]:
    if not len(hypotheses):
        return []
    tokens = hypotheses.tokens or [None] * len(hypotheses)
    listed: list[Sequence[int]] = []
    for i, ids in enumerate(tokens):
        if ids is None:
            raise DataError(
                "has no token ids, which tokenize='tokens' (or candidates without text) needs.",
                field=f"{hypotheses.role}[{i}].tokens",
            )
        listed.append(ids)
    return listed


def refuse_unreadable(hypotheses: Hypotheses) -> None:
    """Name what the kernels could not read: half a surrogate pair, or a token id beyond 64 bits."""
    refuse_surrogates(hypotheses)
    for i, ids in enumerate(hypotheses.tokens or ()):
        for token in ids or ():
            if not -(2**63) <= token < 2**63:
                raise DataError(f"{token} does not fit in 64 bits.", field=f"{hypotheses.role}[{i}].tokens")


def refuse_surrogates(hypotheses: Hypotheses) -> None:
    """Refuse a text that holds half a surrogate pair, which no encoding can write."""
    for i, text in enumerate(hypotheses.texts or ()):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"holds a lone surrogate (character {error.start}), which is not valid text.",
                field=f"{hypotheses.role}[{i}].text",
            ) from None


def texts_of(hypotheses: Hypotheses, name: str) -> list[str]:
    """The texts, which the measure of this name needs."""
    if hypotheses.texts is None:
        if not len(hypotheses):
            return []
        raise DataError(f"have token ids but no text, which {name} needs.", field=hypotheses.role)
    refuse_surrogates(hypotheses)
    return hypotheses.texts


def texts_or_none(hypotheses: Hypotheses, name: str) -> list[Hashable]:
    """The same, with None for an empty text, which abstains."""
    return [text if text.strip() else None for text in texts_of(hypotheses, name)]
