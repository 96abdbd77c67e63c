"""Metrics of a corpus: BLEU, chrF, chrF++, TER, learned metrics, length, diversity, copies.

A `Metric` is statistics of sentences that are summed, and a score of the sums: a bootstrap only adds the same
statistics up anew. A `Distinct` is a count over all outputs. Each is one entry in `METRICS`, or named with a
model, as comet:Unbabel/wmt22-comet-da (`learned`).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Literal

import numpy as np

from rangevote import __version__
from rangevote.errors import UnknownName, UsageError, choose, nearest, need, respelled
from rangevote.evaluation.corpus import EvaluationCorpus, WordUnits
from rangevote.hypothesis import Array, Hypotheses
from rangevote.similarity import get_similarity
from rangevote.similarity.answers import get_key
from rangevote.similarity.exact import Exact
from rangevote.similarity.neural import NeuralMeasure, Scored
from rangevote.similarity.ngram import CHRF_WORD_ORDERS, chrf_words
from rangevote.similarity.vectors import Embedding

#: Which value of a column is the best: "closest" is the one nearest to the references' own.
Best = Literal["highest", "lowest", "closest", ""]
Need = Literal["references", "sources", "references and sources", ""]
Words = Sequence[str]


@dataclass(frozen=True)
class Statistics:
    """Numbers for each output, made for one corpus: what is taken from its references is kept.

    `row` gives the numbers that are summed, for the index and the text of an output; `batch` those of all
    outputs, shape (outputs, statistics), where that is quicker than one by one.
    """

    signature: str
    row: Callable[[int, str], Sequence[float]]
    batch: Callable[[Sequence[str]], Array] | None = None

    def rows(self, outputs: Sequence[str]) -> Array:
        """Shape (outputs, statistics)."""
        if self.batch is not None:
            return self.batch(outputs)
        return np.array([self.row(i, text) for i, text in enumerate(outputs)], dtype=np.float64)


Builder = Callable[[EvaluationCorpus, WordUnits], Statistics]


@dataclass(frozen=True)
class Metric:
    """A score of a whole corpus, computed from sums over its sentences.

    `score` takes sums of shape (..., statistics) and gives scores of shape (...): many resamples at a time.
    Metrics with the same `statistics` share them. One that is not `usual` is measured where it is named.
    """

    label: str
    statistics: Builder
    score: Callable[[Array], Array]
    needs: Need = "references"
    best: Best = "highest"
    decimals: int = 2
    usual: bool = True


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
    signature = sacre_signature(metrics.BLEU(references=[[""]], **options), corpus)

    def row(i: int, text: str) -> list[int]:
        score = counter.sentence_score(text, references[i])
        return [score.sys_len, score.ref_len, *score.counts, *score.totals]

    return Statistics(str(signature), row)


def sacre_signature(metric: Any, corpus: EvaluationCorpus) -> str:
    """sacrebleu's own. It has one only once it has references: any will do, and their number is set here."""
    signature = metric.get_signature()
    signature.update("nrefs", corpus.signature.removeprefix("nrefs:"))
    return str(signature)


def edits(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
    """The fewest edits to a reference and the references' mean length, counted by sacrebleu: rows of 2."""
    metrics = need("sacrebleu.metrics", "evaluate", "TER")
    counter, references = metrics.TER(), corpus.references or ()

    def row(i: int, text: str) -> tuple[float, float]:
        score = counter.sentence_score(text, references[i])
        return score.num_edits, score.ref_length

    return Statistics(sacre_signature(metrics.TER(references=[[""]]), corpus), row)


def edit_rate(sums: Array) -> Array:
    """TER: sums (..., 2) -> (...); 100 for outputs where all references are empty."""
    changed, length = sums[..., 0], sums[..., 1]
    rate: Array = 100 * np.where(length > 0, changed / np.maximum(length, 1e-9), changed > 0)
    return rate


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


# chrF: F-score of character n-grams of orders 1 to 6, the same numbers as sacrebleu's. chrF++: and of word
# n-grams of orders 1 and 2.
#
#     P, R = means over the orders n of matches_n / n-grams of the outputs, of the references
#     chrF = 100 * (1 + beta^2) P R / (beta^2 P + R),    beta = 2, white space left out

CHRF_ORDER = 6
BETA = 2

ChrfCounts = list[Counter[Sequence[str]]]  # one for each order


def character_matches(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
    """What chrF counts: rows of 18 numbers."""
    return _chrf_matches(corpus, units, ())


def character_and_word_matches(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
    """What chrF++ counts: rows of 24 numbers."""
    return _chrf_matches(corpus, units, CHRF_WORD_ORDERS)


def _chrf_matches(corpus: EvaluationCorpus, units: WordUnits, word_orders: Sequence[int]) -> Statistics:
    """For each order the n-grams of the output, of the reference, and those in both.

    Of several references the one counts under which the sentence has the best score.
    """

    def count(units: Sequence[str], n: int) -> Counter[Sequence[str]]:
        return Counter(units[i : i + n] for i in range(len(units) - n + 1))

    def read(text: str) -> ChrfCounts:
        text = text.lower() if units.lowercase else text
        joined, words = "".join(text.split()), tuple(chrf_words(text) if word_orders else ())
        return [
            *(count(joined, n) for n in range(1, CHRF_ORDER + 1)),
            *(count(words, n) for n in word_orders),
        ]

    references = [[read(text) for text in item] for item in corpus.references or ()]

    def row(i: int, text: str) -> Sequence[int]:
        output = read(text)
        against = [_matches(output, reference) for reference in references[i]]
        best = np.argmax(f_score(np.array(against, dtype=np.float64))) if len(against) > 1 else 0
        return against[best]

    signature = (
        f"rv:{__version__.rpartition('.')[0]}|{corpus.signature}|case:{units.case}|eff:yes|"
        f"nc:{CHRF_ORDER}|nw:{len(word_orders)}|space:no|beta:{BETA}"
    )
    return Statistics(signature, row)


def _matches(output: ChrfCounts, reference: ChrfCounts) -> list[int]:
    row = []
    for ours, theirs in zip(output, reference, strict=True):
        common = sum(min(count, theirs[ngram]) for ngram, count in ours.items() if ngram in theirs)
        # an order that the reference does not have is not counted against the output
        row += [ours.total() if theirs else 0, theirs.total(), common]
    return row


def f_score(sums: Array) -> Array:
    """chrF: sums (..., 3 an order) -> (...). Orders that one side lacks are left out of the means."""
    ours, theirs, common = sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]  # (..., orders)
    present = (ours > 0) & (theirs > 0)
    orders = np.maximum(present.sum(axis=-1), 1)
    precision = (present * common / np.maximum(ours, 1)).sum(axis=-1) / orders
    recall = (present * common / np.maximum(theirs, 1)).sum(axis=-1) / orders
    weighted = BETA**2 * precision + recall
    product = (1 + BETA**2) * precision * recall
    result: Array = 100 * np.divide(product, weighted, out=np.zeros_like(product), where=weighted > 0)
    return result


#: Measures with a model that can be named as metrics.
LEARNED = ("comet", "bleurt", "metricx", "bertscore", "embedding")


def learned(name: str) -> Metric:
    """The metric of a model that the user has installed: comet:MODEL, bleurt:MODEL, metricx:MODEL, bertscore.

    Its value is the mean of the package's own scores of the outputs; of several references of an output the
    mean over them. That of embedding:MODEL is the cosine to the references, in percent.
    """
    measure = get_similarity(name)
    if isinstance(measure, Embedding):
        label = f"cosine by {name.partition(':')[2]} (%)"
        return by_scores(label, measure.name, lambda: cosines(measure))
    if not isinstance(measure, NeuralMeasure):
        raise UsageError(f"{name!r} is a similarity of two texts alone, and no metric of outputs.")
    needs: Need = "references and sources" if measure.reads_source else "references"
    best: Best = "highest" if measure.higher_is_better else "lowest"
    return by_scores(name, measure.name, lambda: lambda texts: measure.scores(texts, {}), needs, best, 4)


def cosines(measure: Embedding) -> Callable[[Sequence[Scored]], Array]:
    """Of candidates to references, in percent; each text is encoded once."""
    known: dict[str, Array] = {}

    def of(texts: Sequence[Scored]) -> Array:
        vectors = [
            measure.vectors([getattr(text, side) for text in texts], known)
            for side in ("candidate", "reference")
        ]
        found: Array = 100 * np.einsum("ij,ij->i", *vectors)
        return found

    return of


def by_scores(
    label: str,
    signature: str,
    scorer: Callable[[], Callable[[Sequence[Scored]], Array]],
    needs: Need = "references",
    best: Best = "highest",
    decimals: int = 2,
) -> Metric:
    """A mean over outputs, of several references of an output over them; a `scorer` is made for a corpus."""

    def build(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
        sources, references = corpus.sources or [""] * corpus.size, corpus.references or ()
        score = scorer()

        def scores(indexed: Sequence[tuple[int, str]]) -> Array:
            texts = [
                Scored(sources[i], text, reference) for i, text in indexed for reference in references[i]
            ]
            ends = np.cumsum([len(references[i]) for i, _ in indexed])[:-1]
            means = [part.mean() for part in np.split(score(texts), ends)]
            return np.stack([means, np.ones(len(means))], axis=1)

        return Statistics(
            f"{signature}|{corpus.signature}",
            lambda i, text: scores([(i, text)])[0].tolist(),
            lambda outputs: scores(list(enumerate(outputs))),
        )

    return Metric(label, build, mean, needs, best, decimals)


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


def spelled_metric(name: str) -> str:
    """The name of a metric that was perhaps written in another way, as BLEU, chrF++ or COMET:model."""
    written, colon, rest = name.partition(":")
    return respelled(written, (*METRICS, *LEARNED, "accuracy")) + colon + rest


def get_metric(name: str) -> Metric | Distinct:
    """The metric of a name; `accuracy` is made for its key, as `accuracy:last_number`, learned ones for a
    model."""
    if isinstance(name, str) and name.partition(":")[0] == "accuracy":
        return accuracy(name.partition(":")[2])
    if isinstance(name, str) and name.partition(":")[0] in LEARNED:
        return learned(name)
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
    "chrf++": Metric("chrF++", character_and_word_matches, f_score, usual=False),
    "ter": Metric("TER", edits, edit_rate, best="lowest", usual=False),
    "length": Metric("length", lengths, mean, "", "closest"),
    "distinct_outputs": Distinct("distinct outputs", distinct_outputs),
    "distinct_unigrams": Distinct("distinct unigrams", distinct_ngrams(1)),
    "distinct_bigrams": Distinct("distinct bigrams", distinct_ngrams(2)),
    "empty": Metric("empty (%)", empties, percent, "", "lowest", 1),
    "exact_copies": Metric("exact copies (%)", copies(whole_source), percent, "sources", "lowest", 1),
    "partial_copies": Metric("partial copies (%)", copies(half_of_source), percent, "sources", "lowest", 1),
}
