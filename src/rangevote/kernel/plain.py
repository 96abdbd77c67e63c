"""The kernels in plain Python: the same functions as `rangevote._kernels`, giving the same bits.

Short enough to check by eye against the paper's equations. They run where no compiler was at hand,
explain elections (`election/explain.py`), and are what the compiled kernels are tested against.

**Votes are integers.** A vote of strength x is counted as round(x * 2^bits), half to even, so sums do
not depend on the order of the voters. With weights that sum to 1 and grades up to 1, 60 bits
leave room in 64-bit integers; where a sum may exceed 1 (the exponent `a`), `unit_bits` takes fewer.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Item = Any  # hashable: an n-gram, or in a bag an n-gram with its occurrence number
Pair = tuple[dict[Item, None], dict[Item, None]]  # the items of a voter and of a candidate at one order
BITS = 60

#: The kinds of characters: white space, left out, letter or digit, mark, a word by itself.
KINDS = "skwma"
_EVEN, _ODD = 1 << 21, (1 << 21) + 1
#: A word, in a text whose characters are written as their kinds.
_WORD = re.compile("[wm](?:k*[wm])*|a(?:k*m)*")


@cache
def _rows() -> list[tuple[int, ...]]:
    """The rows of the table: first code point, kind, shift to the lower case."""
    lines = Path(__file__).with_name("characters.inc").read_text(encoding="utf-8").splitlines()[1:]
    return [tuple(map(int, line.rstrip(",").split(","))) for line in lines]


class _Characters(dict[int, str | int | None]):
    """Code point -> its kind, or its lower case (None where it is left out), looked up in the table once."""

    def __init__(self, lower: bool) -> None:
        self._lower = lower

    def __missing__(self, point: int) -> str | int | None:
        _, number, shift = _rows()[bisect(_rows(), (point, len(KINDS))) - 1]
        if shift in (_EVEN, _ODD):
            shift = int(point % 2 == shift - _EVEN)
        kind = KINDS[number]
        self[point] = kind if not self._lower else None if kind == "k" else point + shift
        return self[point]


_kinds, _lower = _Characters(lower=False), _Characters(lower=True)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where the words of a text begin and end."""
    return [match.span() for match in _WORD.finditer(text.translate(_kinds))]


def words(text: str) -> list[str]:
    """The unit "words": what n-grams are made of where texts are not cut at white space alone.

    A word is a run of letters, marks and digits in lower case; every other visible character is a word by
    itself, and so is every letter of the scripts that put no spaces between words (Han, Kana, Thai, Lao,
    Khmer, Myanmar). A mark belongs to the character before it. Invisible characters, such as soft hyphens,
    are left out.

    >>> words("It is PARIS!"), words("l'État"), words("你好, world")
    (['it', 'is', 'paris', '!'], ['l', "'", 'état'], ['你', '好', ',', 'world'])

    `characters.inc` says what each character is (`kernels/make_characters.py`); the compiled kernels use the
    same table.
    """
    return [text[begin:end].translate(_lower) for begin, end in word_spans(text)]


#: unit -> what a text is made of
UNITS: dict[str, Callable[[str], Sequence[str]]] = {
    "space": str.split,
    "words": words,
    "chars": lambda text: "".join(text.split()),
}


def softmax(logprobs: Array, temperature: float, again: Sequence[int]) -> Array:
    """P^(1/T), normalised to sum to 1; those in `again` count nothing. All 0 if every P is 0.

    The sum is counted, so that no weight depends on the order of the voters.
    """
    numbers = logprobs.tolist()
    for i in again:
        numbers[i] = -math.inf
    largest = max(numbers, default=0.0)
    if math.isinf(largest):
        return np.zeros(len(numbers))
    masses = [math.exp((number - largest) / temperature) for number in numbers]
    bits = 62 - (len(masses) - len(again)).bit_length()
    total = math.ldexp(float(sum(round(math.ldexp(mass, bits)) for mass in masses)), -bits)
    return np.array([mass / total for mass in masses] if total else masses, dtype=np.float64)


def unit_bits(masses: Iterable[float]) -> int:
    """Bits after the binary point of a tally that is at most the sum of `masses`: 60 if that is below 2.

    The sum is itself counted (in units of 2^-20), so that no order of the voters gives another unit.
    """
    whole = sum(round(math.ldexp(mass, 20)) for mass in masses)
    return BITS - max(0, whole.bit_length() - 21)


def share(weight: float, size: int, a: float, bits: int) -> int:
    """What each of a voter's items is worth: P(v) / |v|^(1-a), counted in units of 2^-bits."""
    scaled = math.ldexp(weight, bits)
    return round(scaled / size if a == 0 else scaled * math.pow(size, a - 1.0))


def root(x: float, n: int) -> float:
    """The n-th root. Square roots are exact to the last bit everywhere, powers are libm's."""
    if n == 1:
        return x
    if n == 2:
        return math.sqrt(x)
    return math.sqrt(math.sqrt(x)) if n == 4 else math.pow(x, 1.0 / n)


def items_of(tokens: Sequence[Hashable], n: int, bag: bool, short: bool) -> dict[Item, None]:
    """set_n or bag_n of a sequence (equations 2 and 3); a dict keeps the order of the text."""
    grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    if short and not grams and tokens:
        grams = [tuple(tokens)]
    if not bag:
        return dict.fromkeys(grams)
    seen: Counter[Item] = Counter()
    items: dict[Item, None] = {}
    for gram in grams:
        seen[gram] += 1
        items[gram, seen[gram]] = None
    return items


class Index:
    """The n-grams of an election's candidates and voters, and the counting of votes.

    `unit` says what a sequence is made of: one of `UNITS` for texts, or "ids" (token ids). For each of
    the `orders` a sequence has a set of n-grams, or with `bag` a multiset, kept as the set of
    (n-gram, occurrence number), so that the smaller of two counts is the size of an intersection.
    With `short`, a non-empty sequence shorter than n has itself as its only n-gram.
    """

    def __init__(
        self, sequences: Sequence[Any], unit: str, orders: Sequence[int], bag: bool, short: bool
    ) -> None:
        self.unit, self.orders, self.bag, self.short = unit, list(orders), bag, short
        tokens = [self.tokens(s) for s in sequences]
        self._candidates = [[items_of(t, n, bag, short) for t in tokens] for n in self.orders]
        self._candidate_lengths = [len(t) for t in tokens]
        self._added: list[list[dict[Item, None]]] = [[] for _ in self.orders]
        self._added_lengths: list[int] = []

    @property
    def voters(self) -> int:
        """How many voters were added."""
        return len(self._added_lengths)

    def add(self, sequences: Sequence[Any]) -> None:
        """Add voters; each costs its own length."""
        tokens = [self.tokens(s) for s in sequences]
        for n, added in zip(self.orders, self._added, strict=True):
            added.extend(items_of(t, n, self.bag, self.short) for t in tokens)
        self._added_lengths.extend(map(len, tokens))

    def tokens(self, sequence: Any) -> tuple[Hashable, ...]:
        """What the n-grams of a sequence are made of."""
        if self.unit == "ids":
            ids = tuple(map(int, sequence))
            if ids and not -(2**63) <= min(ids) <= max(ids) < 2**63:
                raise OverflowError("a token id beyond 64 bits")  # as compiled
            return ids
        sequence.encode("utf-8")  # a lone surrogate is not text: UnicodeEncodeError, as compiled
        return tuple(UNITS[self.unit](sequence))

    def _electorate(self, self_voting: bool) -> list[list[dict[Item, None]]]:
        return self._candidates if self_voting else self._added

    def votes(
        self, order: int, weights: Sequence[float], a: float, self_voting: bool
    ) -> tuple[dict[Item, int], int]:
        """A[g] = sum of P(v) / |v|^(1-a) over the voters that have item g, in units of 2^-bits."""
        voters = self._electorate(self_voting)[order]
        bits = unit_bits(
            weight if a == 0 else weight * math.pow(len(items), a)
            for weight, items in zip(weights, voters, strict=True)
        )
        votes: dict[Item, int] = {}
        for weight, items in zip(weights, voters, strict=True):
            if items:
                worth = share(weight, len(items), a, bits)
                for item in items:
                    votes[item] = votes.get(item, 0) + worth
        return votes, bits

    def tally(self, weights: Array, parameter: float, self_voting: bool, formula: str = "family") -> Array:
        """score(c), shape (candidates,), by "family", "bleu", "smoothed_bleu" or "chrf". The parameter is the
        exponent a of the family, beta of chrF.

        In the family score(c) is the mean over orders of sum of A[g] over c's items, divided by |c|^a.
        """
        if formula != "family":
            grades = self.grades(parameter, self_voting, formula)
            return counted(weights[:, None] * grades, unit_bits(weights.tolist()), axis=0)
        scores = [0.0] * len(self._candidate_lengths)
        for order, candidates in enumerate(self._candidates):
            votes, bits = self.votes(order, weights.tolist(), parameter, self_voting)
            for c, items in enumerate(candidates):
                if items:
                    won = math.ldexp(float(sum(votes.get(item, 0) for item in items)), -bits)
                    scores[c] += won if parameter == 0 else won * math.pow(len(items), -parameter)
        return np.array([score / len(self.orders) for score in scores], dtype=np.float64)

    def grades(self, parameter: float, self_voting: bool, formula: str = "family") -> Array:
        """sim(v, c), shape (voters, candidates)."""
        lengths = self._candidate_lengths if self_voting else self._added_lengths
        grades = np.zeros((len(lengths), len(self._candidate_lengths)))
        orders = list(zip(self._electorate(self_voting), self._candidates, strict=True))
        for v, voter_length in enumerate(lengths):
            for c, length in enumerate(self._candidate_lengths):
                pairs = [(rows[v], columns[c]) for rows, columns in orders]
                if formula == "family":
                    grades[v, c] = self._family(pairs, parameter)
                elif formula == "chrf":
                    grades[v, c] = self._chrf(pairs, voter_length, length, parameter)
                else:
                    grades[v, c] = self._bleu(pairs, voter_length, length, formula == "smoothed_bleu")
        return grades

    def _family(self, pairs: Sequence[Pair], a: float) -> float:
        """The mean over orders of |v and c| / (|v|^(1-a) |c|^a)."""
        total = 0.0
        for voter, candidate in pairs:
            shared = len(voter.keys() & candidate.keys())
            if shared and a == 0:
                total += shared / len(voter)
            elif shared:
                total += shared * math.pow(len(voter), a - 1.0) * math.pow(len(candidate), -a)
        return total / len(self.orders)

    def _bleu(self, pairs: Sequence[Pair], voter_length: int, length: int, smooth: bool) -> float:
        """BLEU of the candidate with the voter as its only reference."""
        matches, totals = 1.0, 1.0
        for n, (voter, candidate) in zip(self.orders, pairs, strict=True):
            add = 1 if smooth and n > 1 else 0
            matches *= len(voter.keys() & candidate.keys()) + add
            totals *= max(length - n + 1, 0) + add
        if not matches:
            return 0.0
        brevity = 1.0 if length >= voter_length else math.exp(1 - voter_length / length)
        return root(matches, len(pairs)) / root(totals, len(pairs)) * brevity

    def _chrf(self, pairs: Sequence[Pair], voter_length: int, length: int, beta: float) -> float:
        """F_beta of the mean precision and the mean recall over the orders that both sides have."""
        precision = recall = 0.0
        for n, (voter, candidate) in zip(self.orders, pairs, strict=True):
            shared = len(voter.keys() & candidate.keys())
            if shared:
                precision += shared / (length - n + 1)
                recall += shared / (voter_length - n + 1)
        if not precision:
            return 0.0
        factor, effective = beta * beta, sum(n <= min(length, voter_length) for n in self.orders)
        return ((1.0 + factor) * precision * recall) / (effective * (factor * precision + recall))


def counted(terms: Array, bits: int, axis: int) -> Array:
    """The sum along an axis, counted in units of 2^-bits: the same for every order of the terms."""
    votes = np.rint(np.ldexp(terms, bits)).astype(np.int64).sum(axis=axis)
    return np.asarray(np.ldexp(votes.astype(np.float64), -bits))
