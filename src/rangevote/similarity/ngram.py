"""What n-grams are made of, and the measures that count shared ones: overlap_n, precision_n, BLEU and chrF.

    overlap_n(v, c)   = |set_n(v) and set_n(c)| / |set_n(v)|        (equation 3)
    precision_n(v, c) = |bag_n(v) and bag_n(c)| / |bag_n(v)|        (equation 2)

With the exponent a: |v and c| / (|v|^(1-a) |c|^a), averaged over a range of orders. All of it is
linear in the number of tokens, since every n-gram collects its votes once:

    score(c) = |c|^-a * sum over g in c of A[g],   A[g] = sum over v with g of P(v) |v|^(a-1)

BLEU, chrF and chrF++ compare every pair, with the voter as the only reference: minimum Bayes risk decoding.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cache, partial
from typing import Any

import numpy as np

from rangevote.errors import DataError, UsageError, choose, need
from rangevote.hypothesis import Array, Hypotheses
from rangevote.kernel import Index
from rangevote.kernel.plain import UNITS, items_of
from rangevote.similarity.base import (
    Measure,
    PairPoll,
    Poll,
    TextMeasure,
    Tokenise,
    check_pairs,
    number_text,
    refuse_surrogates,
)
from rangevote.similarity.json_leaves import json_leaves

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
    """Refuse an unknown name."""
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
            gram = (names[token] for token in gram)
        words = (": ".join(t) if isinstance(t, tuple) else str(t) for t in gram)  # a leaf of JSON is a tuple
        return ("" if self.unit == "chars" else " ").join(words)


def _token_ids(hypotheses: Hypotheses) -> list[Sequence[int]]:
    columns = hypotheses.tokens or [None] * len(hypotheses)
    for i, ids in enumerate(columns):
        if ids is None:
            raise DataError(
                "has no token ids, which tokenize='tokens' (or candidates without text) needs.",
                field=f"{hypotheses.role}[{i}].tokens",
            )
    return list(columns)  # type: ignore[arg-type]  # none is None


@contextmanager
def readable(hypotheses: Hypotheses) -> Iterator[None]:
    """Name what the kernels cannot read: half a surrogate pair, or a token id beyond 64 bits."""
    try:
        yield
    except (UnicodeEncodeError, OverflowError):
        refuse_surrogates(hypotheses)
        for i, ids in enumerate(hypotheses.tokens or ()):
            for token in ids or ():
                if not -(2**63) <= token < 2**63:
                    raise DataError(
                        f"{token} does not fit in 64 bits.", field=f"{hypotheses.role}[{i}].tokens"
                    ) from None
        raise


_ORDERS = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?(?:@(\d*\.?\d+))?")


class IndexMeasure(Measure):
    """A measure over the n-grams of some orders, as sets or bags; `Index` says what `short` means."""

    bag = True
    tokenize: Tokenise = DEFAULT_UNIT
    #: By which formula the kernels count, and its parameter (`Index.tally`).
    formula = "family"
    parameter = 0.0

    def features(self, candidates: Hypotheses) -> Hashable:
        return (tuple(self.orders), self.bag, self.short, self.tokenize)

    def under(self, poll: Poll) -> Poll:
        other = copy(poll)
        other._measure = self  # type: ignore[attr-defined]
        return other

    def poll(self, candidates: Hypotheses) -> IndexPoll:
        return IndexPoll(self, candidates)

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        """The n-grams of each candidate; None where there are none."""

        @cache
        def grams(tokens: tuple[Any, ...]) -> Hashable:
            sets = (frozenset(items_of(tokens, n, self.bag, self.short)) for n in self.orders)
            return tuple(sets) if tokens else None

        return [grams(tuple(tokens)) for tokens in Reader(self.tokenize, candidates).tokens(candidates)]


class IndexPoll:
    """Candidates and voters in a kernel `Index`.

    Where the candidates themselves are the voters (the same object is added), nothing is read twice.
    """

    def __init__(self, measure: IndexMeasure, candidates: Hypotheses) -> None:
        self._measure, self._candidates = measure, candidates
        self._reader = reader = Reader(measure.tokenize, candidates)
        self._own = False
        self._voters = 0
        with readable(candidates):
            texts = reader.read(candidates)
            self._index = Index(texts, reader.unit, measure.orders, measure.bag, measure.short)

    def add(self, voters: Hypotheses) -> None:
        if voters is self._candidates and self._voters == 0:
            self._own = True
        else:
            for hypotheses in (self._candidates, voters) if self._own else (voters,):
                with readable(hypotheses):
                    self._index.add(self._reader.read(hypotheses))
            self._own = False
        self._voters += len(voters)

    def tally(self, weights: Array) -> Array:
        if not self._measure.linear:
            check_pairs(self._voters, len(self._candidates))
        return self._index.tally(weights, self._measure.parameter, self._own, self._measure.formula)

    def matrix(self) -> Array:
        check_pairs(self._voters, len(self._candidates), matrix=True)
        return self._index.grades(self._measure.parameter, self._own, self._measure.formula)


class Ngrams(IndexMeasure):
    """overlap and precision: sets or bags of n-grams of the given orders, with exponent `a`."""

    linear = decomposes = short = True

    def __init__(
        self, orders: range, *, bag: bool, a: float = 0.0, tokenize: Tokenise = DEFAULT_UNIT
    ) -> None:
        check_tokeniser(tokenize)
        if not orders or orders[0] < 1 or orders.step != 1 or not 0 <= a <= 1:
            raise UsageError(
                f"orders {orders} with exponent {a}: orders start at 1, the exponent is from 0 to 1, and "
                f"orders have no gaps."
            )
        self.orders, self.bag, self.a, self.tokenize = list(orders), bag, a, tokenize
        self.parameter = a
        first, last = orders[0], orders[-1]
        kind = "precision" if bag else "overlap"
        self.name = (
            f"{kind}_{first}" + (f"-{last}" if last > first else "") + (f"@{number_text(a)}" if a else "")
        )


class Bleu(IndexMeasure):
    """Sentence BLEU of the candidate with the voter as its reference, from 0 to 1.

    The same numbers as sacrebleu's sentence BLEU without smoothing, or with add-k smoothing and k = 1
    (1 is added to matches and totals for n > 1), `effective_order=False`, on the same tokens.
    """

    def __init__(self, order: int = 4, *, smooth: bool = False, tokenize: Tokenise = DEFAULT_UNIT) -> None:
        check_tokeniser(tokenize)
        if not 1 <= order <= 50:
            raise UsageError(f"bleu_{order}: the order must be from 1 to 50.")
        self.orders, self.tokenize = list(range(1, order + 1)), tokenize
        self.formula = "smoothed_bleu" if smooth else "bleu"
        self.name = f"{self.formula}_{order}"


class Chrf(IndexMeasure):
    """F-score of character n-grams, recall counted `beta` times as much as precision, from 0 to 1.

    The same numbers as sacrebleu's sentence chrF (divided by 100), white space removed.
    """

    tokenize = "chars"
    formula = "chrf"

    def __init__(self, order: int = 6, beta: float = 2.0) -> None:
        if not 1 <= order <= 50 or not 0 <= beta <= 100:
            raise UsageError(f"chrf: order {order} must be from 1 to 50, beta {beta} from 0 to 100.")
        self.orders, self.parameter = list(range(1, order + 1)), beta
        usual = order == 6 and beta == 2.0
        self.name = "chrf" if usual else f"chrf_{order}b{number_text(beta)}"

    def poll(self, candidates: Hypotheses) -> IndexPoll:
        if candidates.texts is None and len(candidates):
            raise DataError("chrf compares characters and needs texts.", field=candidates.role)
        return super().poll(candidates)


class ChrfPlusPlus(TextMeasure):
    """chrF whose means go over n-grams of 1 and 2 words as well, from 0 to 1.

    The same numbers as sacrebleu's sentence chrF with `word_order=2` (divided by 100). The kernels give means
    of precision and recall as chrF with a `beta` of 0 and of nearly infinity.
    """

    name = "chrf++"
    beta = 2.0
    _precision, _recall = 0.0, 1e150

    def poll(self, candidates: Hypotheses) -> PairPoll:
        return PairPoll(self.texts(candidates), self._grade, self.texts)

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        """The n-grams of each candidate; None where there are none."""
        words = [chrf_words(text) for text in self.texts(candidates)]
        grams = [tuple(frozenset(items_of(w, n, True, False)) for n in CHRF_WORD_ORDERS) for w in words]
        letters = Chrf().keys(candidates)
        return [key and (key, gram) for key, gram in zip(letters, grams, strict=True)]

    def _grade(self, voters: Sequence[str], candidates: Sequence[str]) -> Array:
        """sim(v, c), shape (voters, candidates)."""
        ids: dict[str, int] = {}

        def words(text: str) -> list[int]:
            return [ids.setdefault(word, len(ids)) for word in chrf_words(text)]

        orders, precision, recall = (np.zeros((len(voters), len(candidates))) for _ in range(3))
        for unit, read, last in (("chars", UNITS["chars"], 6), ("ids", words, CHRF_WORD_ORDERS[-1])):
            sides = [[read(text) for text in texts] for texts in (voters, candidates)]
            index = Index(sides[1], unit, list(range(1, last + 1)), True, False)
            index.add(sides[0])
            lengths = [np.array(list(map(len, side)), dtype=int) for side in sides]
            both = np.minimum(np.minimum.outer(*lengths), last)  # orders that both have n-grams of
            orders += both
            precision += both * index.grades(self._precision, False, "chrf")
            recall += both * index.grades(self._recall, False, "chrf")
        factor = self.beta**2
        below = orders * (factor * precision + recall)
        return (1 + factor) * precision * recall / np.where(below > 0, below, 1.0)


#: Orders of the word n-grams in chrF++.
CHRF_WORD_ORDERS = (1, 2)
_PUNCTUATION = frozenset(string.punctuation)


def chrf_words(text: str) -> list[str]:
    """The words of chrF++: a punctuation mark at the end, or one at the beginning, is a word of its own.

    >>> chrf_words("(well, yes).")
    ['(well', ',', 'yes)', '.']
    """
    words: list[str] = []
    for word in text.split():
        if len(word) > 1 and word[-1] in _PUNCTUATION:
            words += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in _PUNCTUATION:
            words += [word[0], word[1:]]
        else:
            words.append(word)
    return words


def formula_of(measure: object) -> tuple[str, float] | None:
    """The kernels' formula for elections in one call, and its parameter; None for other measures."""
    if not isinstance(measure, IndexMeasure) or type(measure) not in (Ngrams, Bleu, Chrf):
        return None
    return measure.formula, measure.parameter


def _ngrams(kind: str, argument: str, tokenize: Tokenise) -> Ngrams:
    match = _ORDERS.fullmatch(argument)
    first, last, a = match.groups() if match else ("0", None, None)
    orders = range(int(first), int(last or first) + 1)
    if not orders or orders[0] < 1 or float(a or 0) > 1:
        raise UsageError(
            f"{kind} needs an order from 1, or a range, and may have an exponent from 0 to 1: "
            f"{kind}_2, {kind}_1-4, {kind}_1-4@0.25; got {kind}_{argument}."
        )
    return Ngrams(orders, bag=kind == "precision", a=float(a or 0), tokenize=tokenize)


def _bleu(kind: str, argument: str, tokenize: Tokenise) -> Bleu:
    """By default of order 4, the usual BLEU."""
    if not (argument or "4").isdecimal():
        raise UsageError(f"{kind} takes one highest order, such as {kind}_4; got {kind}_{argument}.")
    return Bleu(int(argument or 4), smooth=kind == "smoothed_bleu", tokenize=tokenize)


overlap, precision = partial(_ngrams, "overlap"), partial(_ngrams, "precision")
bleu, smoothed_bleu = partial(_bleu, "bleu"), partial(_bleu, "smoothed_bleu")
