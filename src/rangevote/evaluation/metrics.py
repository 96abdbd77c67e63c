"""Metrics of a corpus: BLEU, chrF, length, diversity, copies.

A `Metric` is statistics of sentences that are summed, and a score of the sums: a bootstrap only adds the same
statistics up anew. A `Distinct` is a count over all outputs. Each is one entry in `METRICS`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Literal

import numpy as np

from rangevote import __version__
from rangevote.errors import UnknownName, choose, nearest, need
from rangevote.evaluation.texts import EvaluationCorpus, WordUnits
from rangevote.hypothesis import Array, Hypotheses
from rangevote.similarity.answers import get_key
from rangevote.similarity.exact import Exact

#: Which value of a column is the best: "closest" is the one nearest to the references' own.
Best = Literal["highest", "lowest", "closest", ""]
Need = Literal["references", "sources", ""]
Words = Sequence[str]


@dataclass(frozen=True)
class Statistics:
    """Counts for each output, made for one corpus: what is taken from its references is kept.

    `row` gives whole numbers to be summed, for the index and the text of an output.
    """

    signature: str
    row: Callable[[int, str], Sequence[float]]

    def rows(self, outputs: Sequence[str]) -> Array:
        """Shape (outputs, statistics)."""
        return np.array([self.row(i, text) for i, text in enumerate(outputs)], dtype=np.float64)


Builder = Callable[[EvaluationCorpus, WordUnits], Statistics]


@dataclass(frozen=True)
class Metric:
    """A score of a whole corpus, computed from sums over its sentences.

    `score` takes sums of shape (..., statistics) and gives scores of shape (...): many resamples at a time.
    Metrics with the same `statistics` share them.
    """

    label: str
    statistics: Builder
    score: Callable[[Array], Array]
    needs: Need = "references"
    best: Best = "highest"
    decimals: int = 2


@dataclass(frozen=True)
class Distinct:
    """How many different things there are in all outputs together; not a sum, so it has no interval."""

    label: str
    count: Callable[[Sequence[Words]], int]
    needs: Need = ""
    best: Best = "highest"
    decimals: int = 0


# BLEU, twice: over words as NLTK computes it (captions), and sacreBLEU (translation).
#
#     BLEU-N = 100 * BP * exp(mean over n = 1..N of log p_n),    p_n = matches_n / n-grams of the outputs
#     BP = min(1, exp(1 - r / c)),    c words in the outputs, r in the references closest to them in length
#
# Both have the columns: length, closest reference length, matches of orders 1 to 4, n-grams of orders 1 to 4.
# They differ in the words, and where counts are zero.

BLEU_ORDER = 4

NgramCounts = Counter[tuple[str, ...]]


def count_ngrams(words: Words) -> NgramCounts:
    """The n-grams of all orders from 1 to 4, with their counts."""
    counts: NgramCounts = Counter()
    for n in range(1, BLEU_ORDER + 1):
        counts.update(zip(*(words[i:] for i in range(n)), strict=False))
    return counts


def word_matches(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
    """An n-gram matches as often as the reference that has most of it; rows of 10 numbers.

    The number of n-grams of a sentence is at least 1, also where it is too short to have any: so counts NLTK.
    """
    split = units.splitter()
    references = [[split(text) for text in item] for item in corpus.references or ()]
    sizes = [[len(words) for words in item] for item in references]
    most = [reduce(or_, map(count_ngrams, item)) for item in references]

    def row(i: int, text: str) -> list[int]:
        words = split(text)
        size = len(words)
        matches = [0] * BLEU_ORDER
        for ngram, count in count_ngrams(words).items():
            matches[len(ngram) - 1] += min(count, most[i][ngram])
        closest = min(sizes[i], key=lambda length: (abs(length - size), length))
        return [size, closest, *matches, *(max(1, size - n) for n in range(BLEU_ORDER))]

    return Statistics(f"nltk|{corpus.signature}|{units.signature}", row)


def word_bleu(order: int) -> Callable[[Array], Array]:
    """BLEU of orders 1 to `order`: sums (..., 10) -> (...).

    Without a single matching word it is 0; an order above that without a match counts as the smallest
    positive number, which NLTK takes for 0 in a logarithm.
    """

    def score(sums: Array) -> Array:
        matches, totals = sums[..., 2 : 2 + order], sums[..., 2 + BLEU_ORDER : 2 + BLEU_ORDER + order]
        precisions = np.where(matches > 0, matches / totals, sys.float_info.min)  # (..., order)
        product = np.exp(np.log(precisions).sum(axis=-1) / order)
        result: Array = 100 * np.where(matches[..., 0] > 0, _brevity(sums) * product, 0.0)
        return result

    return score


def sacre_matches(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
    """Matches of sacreBLEU's tokens, counted by sacrebleu; n-grams may be 0. Rows of 10 numbers."""
    options = {"tokenize": units.bleu_tokenize, "lowercase": units.lowercase}
    metrics = need("sacrebleu.metrics", "evaluate", "sacreBLEU")
    known = metrics.BLEU.TOKENIZERS
    if units.bleu_tokenize not in known:
        raise UnknownName(
            f"unknown tokenisation of sacreBLEU {units.bleu_tokenize!r}."
            f"{nearest(units.bleu_tokenize, known)} Choose from: {', '.join(sorted(known))}."
        )
    # effective order changes the score of a sentence, not its counts, and keeps sacrebleu from
    # warning about sentences: the scores are ours
    counter = metrics.BLEU(effective_order=True, **options)
    references = corpus.references or ()
    # sacrebleu has a signature only once it has references: here any, since their number is set below
    signature = metrics.BLEU(references=[[""]], **options).get_signature()
    signature.update("nrefs", corpus.signature.removeprefix("nrefs:"))

    def row(i: int, text: str) -> list[int]:
        score = counter.sentence_score(text, references[i])
        return [score.sys_len, score.ref_len, *score.counts, *score.totals]

    return Statistics(str(signature), row)


def sacre_bleu(sums: Array) -> Array:
    """sacreBLEU with its default smoothing "exp": sums (..., 10) -> (...).

    The first order without a match counts half a match, the second a quarter, and so on; it is 0 where
    there is no match at all or an order without n-grams.
    """
    matches, totals = sums[..., 2 : 2 + BLEU_ORDER], sums[..., 2 + BLEU_ORDER :]
    missing = matches == 0
    counted = np.where(missing, 0.5 ** np.cumsum(missing, axis=-1), matches)
    precisions = counted / np.maximum(totals, 1)
    product = np.exp(np.log(precisions).mean(axis=-1))
    something = (matches > 0).any(axis=-1) & (totals > 0).all(axis=-1)
    result: Array = 100 * np.where(something, _brevity(sums) * product, 0.0)
    return result


def _brevity(sums: Array) -> Array:
    """The brevity penalty, 0 where all outputs are empty."""
    length, closest = sums[..., 0], sums[..., 1]
    penalty = np.exp(np.minimum(0.0, 1 - closest / np.maximum(length, 1)))
    result: Array = np.where(length > 0, penalty, 0.0)
    return result


# chrF: F-score of character n-grams of orders 1 to 6, the same numbers as sacrebleu's.
#
#     P, R = means over the orders n of matches_n / n-grams of the outputs, of the references
#     chrF = 100 * (1 + beta^2) P R / (beta^2 P + R),    beta = 2, white space left out

CHRF_ORDER = 6
BETA = 2

CharacterCounts = list[Counter[str]]  # one for each order


def character_matches(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
    """For each order the n-grams of the output, of the reference, and those in both: rows of 18 numbers.

    Of several references the one counts under which the sentence has the best score.
    """

    def read(text: str) -> CharacterCounts:
        joined = "".join((text.lower() if units.lowercase else text).split())
        orders = range(1, CHRF_ORDER + 1)
        return [Counter([joined[i : i + n] for i in range(len(joined) - n + 1)]) for n in orders]

    references = [[read(text) for text in item] for item in corpus.references or ()]

    def row(i: int, text: str) -> Sequence[int]:
        output = read(text)
        against = [_matches(output, reference) for reference in references[i]]
        best = np.argmax(f_score(np.array(against, dtype=np.float64))) if len(against) > 1 else 0
        return against[best]

    signature = (
        f"rv:{__version__.rpartition('.')[0]}|{corpus.signature}|case:{units.case}|eff:yes|"
        f"nc:{CHRF_ORDER}|nw:0|space:no|beta:{BETA}"
    )
    return Statistics(signature, row)


def _matches(output: CharacterCounts, reference: CharacterCounts) -> list[int]:
    row = []
    for ours, theirs in zip(output, reference, strict=True):
        common = sum(min(count, theirs[ngram]) for ngram, count in ours.items() if ngram in theirs)
        # an order that the reference does not have is not counted against the output
        row += [ours.total() if theirs else 0, theirs.total(), common]
    return row


def f_score(sums: Array) -> Array:
    """chrF: sums (..., 18) -> (...). Orders that one side has no n-grams of are left out of the means."""
    ours, theirs, common = sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]  # (..., 6) each
    present = (ours > 0) & (theirs > 0)
    orders = np.maximum(present.sum(axis=-1), 1)
    precision = (present * common / np.maximum(ours, 1)).sum(axis=-1) / orders
    recall = (present * common / np.maximum(theirs, 1)).sum(axis=-1) / orders
    weighted = BETA**2 * precision + recall
    product = (1 + BETA**2) * precision * recall
    result: Array = 100 * np.divide(product, weighted, out=np.zeros_like(product), where=weighted > 0)
    return result


def mean(sums: Array) -> Array:
    """Sums of values and of ones (..., 2) -> means (...)."""
    result: Array = sums[..., 0] / sums[..., 1]
    return result


def percent(sums: Array) -> Array:
    """The mean of what is 0 or 1, in percent."""
    return 100 * mean(sums)


def accuracy(key: str) -> Metric:
    """Outputs whose answer, by a key of `exact`, is that of a reference; without a key: whose plain text."""
    measure = Exact(get_key(key or "plain"))

    def answers(texts: Sequence[str]) -> list[Hashable]:
        return measure.keys(Hypotheses.of(list(texts), role="references"))

    def build(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
        known: list[set[Hashable]] = []
        for item in corpus.references or ():
            found = zip(item, answers(item), strict=True)
            known.append({text.strip() if answer is None else answer for text, answer in found})

        def row(i: int, text: str) -> tuple[bool, int]:
            [answer] = answers([text])
            return answer is not None and answer in known[i], 1

        return Statistics(f"{measure.name}|{corpus.signature}", row)

    return Metric("accuracy (%)", build, percent)


def get_metric(name: str) -> Metric | Distinct:
    """The metric of a name; `accuracy` is made for its key, as `accuracy:last_number`."""
    if isinstance(name, str) and name.partition(":")[0] == "accuracy":
        return accuracy(name.partition(":")[2])
    return choose("metric", name, METRICS)


def lengths(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
    split = units.splitter()
    return Statistics(units.signature, lambda _, text: (len(split(text)), 1))


def empties(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
    return Statistics("white space alone is empty", lambda _, text: (not text.strip(), 1))


def copies(is_copy: Callable[[Words, Words], bool]) -> Builder:
    """Outputs for which `is_copy(words of the output, words of the source)`."""

    def build(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
        split = units.splitter()
        sources = [split(text) for text in corpus.sources or ()]
        return Statistics(units.signature, lambda i, text: (is_copy(split(text), sources[i]), 1))

    return build


def whole_source(words: Words, source: Words) -> bool:
    return bool(source) and list(words) == list(source)


def half_of_source(words: Words, source: Words) -> bool:
    """Whether at least half of the source's distinct words are among `words` (footnote in section 4.2 of the
    paper); never of an empty source.

    >>> half_of_source("ein cat sat".split(), "the cat sat there".split())
    True
    """
    distinct = set(source)
    return bool(distinct) and 2 * len(distinct.intersection(words)) >= len(distinct)


def distinct_outputs(outputs: Sequence[Words]) -> int:
    """Different outputs, word by word; the empty one is one of them."""
    return len({tuple(words) for words in outputs})


def distinct_ngrams(order: int) -> Callable[[Sequence[Words]], int]:
    """Different n-grams in all outputs together (Li et al. 2016; tables 2 and 6 of the paper).

    >>> distinct_ngrams(2)([["a", "b", "a"], ["b", "a", "c"]])  # ab, ba, ac
    3
    """

    def count(outputs: Sequence[Words]) -> int:
        ngrams: set[tuple[str, ...]] = set()
        for words in outputs:
            ngrams.update(zip(*(words[i:] for i in range(order)), strict=False))
        return len(ngrams)

    return count


METRICS: dict[str, Metric | Distinct] = {
    "bleu": Metric("BLEU", sacre_matches, sacre_bleu),
    "bleu_1": Metric("BLEU-1", word_matches, word_bleu(1)),
    "bleu_2": Metric("BLEU-2", word_matches, word_bleu(2)),
    "bleu_3": Metric("BLEU-3", word_matches, word_bleu(3)),
    "bleu_4": Metric("BLEU-4", word_matches, word_bleu(4)),
    "chrf": Metric("chrF", character_matches, f_score),
    "length": Metric("length", lengths, mean, "", "closest"),
    "distinct_outputs": Distinct("distinct outputs", distinct_outputs),
    "distinct_unigrams": Distinct("distinct unigrams", distinct_ngrams(1)),
    "distinct_bigrams": Distinct("distinct bigrams", distinct_ngrams(2)),
    "empty": Metric("empty (%)", empties, percent, "", "lowest", 1),
    "exact_copies": Metric("exact copies (%)", copies(whole_source), percent, "sources", "lowest", 1),
    "partial_copies": Metric("partial copies (%)", copies(half_of_source), percent, "sources", "lowest", 1),
}
