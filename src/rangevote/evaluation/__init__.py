"""Results to numbers, tables and pictures: what is measured, by name.

A metric is a `Metric` (statistics of sentences and a score of their sums) or a `Distinct` (a count over all
outputs), and one line in `METRICS`.
"""

from __future__ import annotations

from rangevote.evaluation.bleu import SacreMatches, WordMatches, sacre_bleu, word_bleu
from rangevote.evaluation.chrf import CharacterMatches, f_score
from rangevote.evaluation.diversity import distinct_ngrams, distinct_outputs
from rangevote.evaluation.metric import Distinct, Metric, mean, percent
from rangevote.evaluation.shares import Empties, Lengths, exact_copies, partial_copies

METRICS: dict[str, Metric | Distinct] = {
    "bleu": Metric("BLEU", SacreMatches, sacre_bleu, meaning="sacreBLEU"),
    "bleu_1": Metric("BLEU-1", WordMatches, word_bleu(1), meaning="BLEU over words as NLTK has it"),
    "bleu_2": Metric("BLEU-2", WordMatches, word_bleu(2), meaning="likewise, orders 1 and 2"),
    "bleu_3": Metric("BLEU-3", WordMatches, word_bleu(3), meaning="likewise, orders 1 to 3"),
    "bleu_4": Metric("BLEU-4", WordMatches, word_bleu(4), meaning="likewise, orders 1 to 4"),
    "chrf": Metric("chrF", CharacterMatches, f_score, meaning="F-score of character n-grams"),
    "length": Metric("length", Lengths, mean, "", "closest", meaning="words an output"),
    "distinct_outputs": Distinct("distinct outputs", distinct_outputs, "different outputs"),
    "distinct_unigrams": Distinct("distinct unigrams", distinct_ngrams(1), "different words"),
    "distinct_bigrams": Distinct("distinct bigrams", distinct_ngrams(2), "different pairs of words"),
    "empty": Metric("empty (%)", Empties, percent, "", "lowest", 1, "outputs without a word"),
    "exact_copies": Metric(
        "exact copies (%)", exact_copies, percent, "sources", "lowest", 1, "outputs that are the source"
    ),
    "partial_copies": Metric(
        "partial copies (%)",
        partial_copies,
        percent,
        "sources",
        "lowest",
        1,
        "outputs with at least 50 % of the source's distinct words",
    ),
}
