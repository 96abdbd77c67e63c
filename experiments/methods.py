"""The methods by name: what tables call them, and which group they belong to.

A name is that of a search, of a measure, or of one of the choices of `voting.py`; a method that votes on
another list than usual is called "overlap_2 on beam", one on other words "overlap_2 (13a)".
"""

from __future__ import annotations

from collections.abc import Iterable

#: Methods that choose the best by (penalised) probability: what voting is to beat, in the paper's order.
BASELINES = {
    "beam": "Beam search",
    "beam_not_empty": "Beam search, empty dropped",
    "length_normalised": "Length normalisation",
    "reranked": "Length normalisation, re-ranking",
    "diverse_decoding": "Diverse decoding",
    "diverse_beam": "Diverse beam search",
    "no_copy": "Beam search (no copy)",
    "no_copy_not_empty": "Beam search (no copy), empty dropped",
}
#: The paper's five measures.
VOTING = {
    "overlap_1": "overlap_1",
    "precision_1": "precision_1",
    "overlap_2": "overlap_2",
    "precision_2": "precision_2",
    "states": "states",
}
MBR = {"bleu_4": "bleu_4 (MBR)", "smoothed_bleu_4": "smoothed_bleu_4 (MBR)"}
#: What the paper does not have.
BEYOND = {
    "overlap_3": "overlap_3",
    "overlap_1-4": "overlap_1-4",
    "blend": "blend (overlap_1-4@0.25, T = 2)",
    "tuned": "tuned on the development set",
}
#: One sample for each item.
SAMPLING = {
    "top_k_4": "Top-k sampling (k = 4)",
    "top_k_10": "Top-k sampling (k = 10)",
    "nucleus": "Nucleus sampling (p = 0.9)",
}

GROUPS = {"baselines": BASELINES, "voting": VOTING, "mbr": MBR, "beyond": BEYOND, "sampling": SAMPLING}
#: What the paper calls the measure on states, in each experiment.
STATES = {"captions": "lstm_states", "translation": "transformer_states"}


def group_of(method: str) -> str:
    """The group of a method, "" for one that is in none."""
    return next((name for name, group in GROUPS.items() if method in group), "")


def label_of(method: str, experiment: str) -> str:
    """How tables call a method."""
    if method == "states":
        return STATES[experiment]
    return next((group[method] for group in GROUPS.values() if method in group), method)


def in_order(methods: Iterable[str], *groups: str) -> list[str]:
    """Those of some groups, in the order of the groups and of the lists above."""
    found = set(methods)
    return [method for group in groups for method in GROUPS[group] if method in found]
