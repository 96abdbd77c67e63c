"""Metrics of a corpus: BLEU, chrF, TER, ROUGE, learned metrics, accuracy, length, diversity, copies.

A `Metric` is statistics of sentences that are summed, and a score of the sums: a bootstrap only adds the same
statistics up anew. Each is one entry in `METRICS`, or named with a model or key, for example
comet:Unbabel/wmt22-comet-da (`learned`) or accuracy:last_number.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from operator import itemgetter, or_
from typing import Any, Literal

import numpy as np

from rangevote.errors import DataError, UsageError, choose, need, respelled, shown
from rangevote.evaluation.corpus import EvaluationCorpus, WordUnits
from rangevote.hypothesis import Array, Hypotheses
from rangevote.similarity import get_similarity
from rangevote.similarity.base import Measure
from rangevote.similarity.exact import Exact, get_key
from rangevote.similarity.json_leaves import canonical
from rangevote.similarity.neural import Scored

#: Which value of a column is the best: "closest" is the one nearest to the references' own.
Best = Literal["highest", "lowest", "closest", ""]
Need = Literal["references", "sources", "references and sources", ""]
Words = Sequence[str]


@dataclass(frozen=True)
class Statistics:
    """Numbers for each output of one corpus: `rows` turns all outputs into shape (outputs, statistics)."""

    signature: str
    rows: Callable[[Sequence[str]], Array]


Builder = Callable[[EvaluationCorpus, WordUnits], Statistics]


def by_output(signature: str, row: Callable[[int, str], Sequence[float]]) -> Statistics:
    """Statistics that are made from one output at a time: its index and its text."""
    return Statistics(
        signature, lambda outputs: np.array([row(*item) for item in enumerate(outputs)], dtype=np.float64)
    )


@dataclass(frozen=True)
class Metric:
    """A score of a whole corpus, computed from sums over its sentences.

    `score` takes sums of shape (..., statistics) and gives scores of shape (...): many resamples at a time.
    Metrics with the same `statistics` share them. One that is not `usual` is measured where it is named. One
    whose statistics of a sentence depend on the other sentences is not `resampled`: it has no interval.
    """

    label: str
    statistics: Builder
    score: Callable[[Array], Array]
    needs: Need = "references"
    best: Best = "highest"
    decimals: int = 2
    usual: bool = True
    resampled: bool = True


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

    return by_output(f"nltk|{corpus.signature}|{units.signature}", row)


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


def sacrebleu_statistics(
    corpus: EvaluationCorpus, units: WordUnits, metric: str, **options: Any
) -> Statistics:
    """The numbers that a metric of sacrebleu sums, counted by sacrebleu, and its own signature.

    BLEU has rows of 10 numbers, as above; chrF three for each order: n-grams of the output, of the reference
    with the best score, and in both; TER the fewest edits and the references' mean length.
    """
    metrics = need("sacrebleu.metrics", "evaluate", metric)
    if metric == "BLEU":
        tokenisers = dict.fromkeys(metrics.BLEU.TOKENIZERS)
        choose("tokenisation of sacreBLEU", units.bleu_tokenize, tokenisers)
        options |= {"tokenize": units.bleu_tokenize, "force": True}  # no warning about tokenised texts
    if metric != "TER":
        options["lowercase"] = units.lowercase
    references, (_, most) = corpus.references or (), corpus.references_per_item
    columns = [[item[i] if i < len(item) else None for item in references] for i in range(most)]
    counter = getattr(metrics, metric)(references=columns, **options)
    # private, but what sacrebleu's own significance tests call
    return Statistics(
        str(counter.get_signature()),
        lambda outputs: np.array(counter._extract_corpus_statistics(outputs, None), dtype=np.float64),
    )


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


# chrF: F-score of character n-grams of orders 1 to 6; chrF++: also of word n-grams of orders 1 and 2.
#
#     P, R = means over the orders n of matches_n / n-grams of the outputs, of the references
#     chrF = 100 * (1 + beta^2) P R / (beta^2 P + R),    beta = 2, white space left out

BETA = 2


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


_ROUGE_WORDS = re.compile(r"\w+")


def rouge(corpus: EvaluationCorpus, units: WordUnits, order: int) -> Statistics:
    """F1 of the n-grams of one order, or (order 0) of the longest common subsequence, for each output.

    As the package rouge-score computes them without stemming, but with letters of every script: words are
    runs of letters and digits in lower case, and the reference with the highest F1 counts (Lin 2004).
    """

    def read(text: str) -> Any:
        words = _ROUGE_WORDS.findall(text.lower())
        return words if not order else Counter(zip(*(words[i:] for i in range(order)), strict=False))

    subsequence: Any = order or need("rapidfuzz.distance", "evaluate", "ROUGE").LCSseq.similarity

    def common(ours: Any, theirs: Any) -> int:
        return int((ours & theirs).total() if order else subsequence(ours, theirs))

    size = Counter.total if order else len
    references = [[read(text) for text in item] for item in corpus.references or ()]

    def row(i: int, text: str) -> tuple[float, int]:
        ours = read(text)
        sizes = [(size(ours) + size(theirs), common(ours, theirs)) for theirs in references[i]]
        return max(200 * matches / both if matches else 0.0 for both, matches in sizes), 1

    return by_output(f"rouge|{corpus.signature}|case:lc|stem:no", row)


#: Measures with a model that can be named as metrics.
LEARNED = ("comet", "bleurt", "metricx", "bertscore", "embedding")


def learned(name: str) -> Metric:
    """The metric of a model that the user has installed: comet:MODEL, bleurt:MODEL, metricx:MODEL, bertscore.

    Its value is the mean of the package's own scores of the outputs; of several references of an output the
    mean over them. That of embedding:MODEL is the cosine to the references, in percent.
    """
    measure = get_similarity(name)
    if measure.scores is None:
        raise UsageError(f"{name!r} is a similarity of two texts; it is not a metric.")
    build = partial(mean_scores, signature=measure.name, score=measure.scores)
    kind, _, model = name.partition(":")
    if kind == "embedding":
        return Metric(f"cosine by {model} (%)", build, mean)
    needs: Need = "references and sources" if measure.reads_source else "references"
    best: Best = "highest" if measure.higher_is_better else "lowest"
    return Metric(name, build, mean, needs, best, decimals=4)


def mean_scores(
    corpus: EvaluationCorpus,
    units: WordUnits,
    signature: str,
    score: Callable[[Sequence[Scored], Any], Array],
) -> Statistics:
    """The mean score of each output over its references, and a one."""
    sources, references = corpus.sources or [""] * corpus.size, corpus.references or ()
    cache: dict[str, Any] = {}

    def rows(outputs: Sequence[str]) -> Array:
        texts = [
            Scored(sources[i], text, reference)
            for i, text in enumerate(outputs)
            for reference in references[i]
        ]
        ends = np.cumsum([len(references[i]) for i in range(len(outputs))])[:-1]
        means = [part.mean() for part in np.split(score(texts, cache), ends)]
        return np.stack([means, np.ones(len(means))], axis=1)

    return Statistics(f"{signature}|{corpus.signature}", rows)


def mean(sums: Array) -> Array:
    """Sums of values and of ones (..., 2) -> means (...)."""
    result: Array = sums[..., 0] / sums[..., 1]
    return result


def percent(sums: Array) -> Array:
    """The mean of what is 0 or 1, in percent."""
    return 100 * mean(sums)


def right_answers(gold: object, measure: Measure) -> set[Hashable]:
    """The answers that are right, as the measure's keys, given a text or a number, or a list of those.

    Gold passes through the same key as the outputs, so "6 * 3 = #### 18" is 18 for `last_number`; where the
    key finds nothing in it, it is the answer itself.

    >>> right_answers(18.0, Exact(get_key("last_number"))), sorted(right_answers(["B", "C"], Exact()))
    ({'18'}, ['B', 'C'])
    """
    several = gold if isinstance(gold, (list, tuple)) else [gold]
    kinds = (str, int, float, dict) if measure.name.startswith("exact:json") else (str, int, float)
    if not several or not all(isinstance(one, kinds) for one in several):
        raise DataError(
            f"is {shown(gold)}; a right answer must be a text or a number, or a list of those; of JSON "
            f"(exact:json) an object too. Name a field inside an object as FIELD.NAME."
        )
    texts = [one if isinstance(one, str) else canonical(one) for one in several]
    keys = measure.keys(Hypotheses.of(texts, role="references"))
    return {text.strip() if key is None else key for text, key in zip(texts, keys, strict=True)}


def accuracy(key: str) -> Metric:
    """Outputs whose answer, by a key of `exact`, is that of a reference; without a key: whose plain text."""
    measure = Exact(get_key(key or "plain"))

    def build(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
        right = [right_answers(list(item), measure) for item in corpus.references or ()]

        def row(i: int, text: str) -> tuple[bool, int]:
            [answer] = measure.keys(Hypotheses.of([text]))
            return answer is not None and answer in right[i], 1

        return by_output(f"{measure.name}|{corpus.signature}", row)

    return Metric("accuracy (%)", build, percent)


def spelled_metric(name: str) -> str:
    """The name of a metric that may be spelled differently, such as BLEU, chrF++ or COMET:model."""
    written, colon, rest = name.partition(":")
    return respelled(written, (*METRICS, *LEARNED, "accuracy")) + colon + rest


def get_metric(name: str) -> Metric:
    """The metric of this name; `accuracy:KEY` and learned metrics (comet:MODEL) are made on demand."""
    kind, _, key = str(name).partition(":")
    if kind == "accuracy":
        return accuracy(key)
    return learned(name) if kind in LEARNED else choose("metric", name, METRICS)


def lengths(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
    split = units.splitter()
    return by_output(units.signature, lambda _, text: (len(split(text)), 1))


def empties(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
    return by_output("white space alone is empty", lambda _, text: (not text.strip(), 1))


def copy_metric(label: str, is_copy: Callable[[Words, Words], bool], *, usual: bool = True) -> Metric:
    """The share of outputs for which `is_copy(words of the output, words of the source)`."""

    def build(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
        split = units.splitter()
        sources = [split(text) for text in corpus.sources or ()]
        return by_output(units.signature, lambda i, text: (is_copy(split(text), sources[i]), 1))

    return Metric(label, build, percent, "sources", "lowest", 1, usual)


def half_of_source(words: Words, source: Words) -> bool:
    """Whether at least half of the source's distinct words are among `words` (footnote in section 4.2 of the
    paper); never of an empty source.

    >>> half_of_source("ein cat sat".split(), "the cat sat there".split())
    True
    """
    distinct = set(source)
    return bool(distinct) and 2 * len(distinct.intersection(words)) >= len(distinct)


def half_of_source_by_bags(words: Words, source: Words) -> bool:
    """Whether at least half of the source's words are among `words`, each as often as it occurs in both.

    >>> half_of_source_by_bags("the cat".split(), "the cat the dog the end".split())
    False
    """
    return bool(source) and 2 * (Counter(words) & Counter(source)).total() >= len(source)


def first_seen(corpus: EvaluationCorpus, units: WordUnits) -> Statistics:
    """How many outputs, unigrams and bigrams of each output no output before it has; the sums are the numbers
    of different ones in all outputs together. The empty output is one of them.
    """
    split = units.splitter()

    def rows(outputs: Sequence[str]) -> Array:
        seen: list[set[tuple[str, ...]]] = [set(), set(), set()]
        counts = []
        for text in outputs:
            words = split(text)
            before = [len(kind) for kind in seen]
            seen[0].add(tuple(words))
            seen[1].update((word,) for word in words)
            seen[2].update(pairwise(words))
            counts.append([len(kind) - size for kind, size in zip(seen, before, strict=True)])
        return np.array(counts, dtype=np.float64)

    return Statistics(units.signature, rows)


def distinct(label: str, column: int) -> Metric:
    """The number of different outputs or n-grams (Li et al. 2016; tables 2 and 6 of the paper)."""
    return Metric(label, first_seen, itemgetter((..., column)), "", decimals=0, resampled=False)


METRICS: dict[str, Metric] = {
    "bleu": Metric("BLEU", partial(sacrebleu_statistics, metric="BLEU"), sacre_bleu),
    **{f"bleu_{n}": Metric(f"BLEU-{n}", word_matches, word_bleu(n)) for n in range(1, BLEU_ORDER + 1)},
    "chrf": Metric("chrF", partial(sacrebleu_statistics, metric="CHRF"), f_score),
    "chrf++": Metric(
        "chrF++", partial(sacrebleu_statistics, metric="CHRF", word_order=2), f_score, usual=False
    ),
    "ter": Metric("TER", partial(sacrebleu_statistics, metric="TER"), edit_rate, best="lowest", usual=False),
    "rouge_1": Metric("ROUGE-1", partial(rouge, order=1), mean, usual=False),
    "rouge_2": Metric("ROUGE-2", partial(rouge, order=2), mean, usual=False),
    "rouge_l": Metric("ROUGE-L", partial(rouge, order=0), mean, usual=False),
    "length": Metric("length", lengths, mean, "", "closest"),
    "distinct_outputs": distinct("distinct outputs", 0),
    "distinct_unigrams": distinct("distinct unigrams", 1),
    "distinct_bigrams": distinct("distinct bigrams", 2),
    "empty": Metric("empty (%)", empties, percent, "", "lowest", 1),
    "exact_copies": copy_metric(
        "exact copies (%)", lambda words, source: bool(source) and list(words) == list(source)
    ),
    "partial_copies": copy_metric("partial copies (%)", half_of_source),
    "partial_copies_by_bags": copy_metric("partial copies by bags (%)", half_of_source_by_bags, usual=False),
}
