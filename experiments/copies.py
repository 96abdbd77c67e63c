"""Partial copies of the source, counted in both ways, in the stored translations.

An output is a partial copy if it has at least half of the source's unigrams. The paper does not say whether a
word that the source has twice counts twice: by sets it counts once, by bags as often as both have it.

    make reproduce NAME=copies     # writes results/copies.json and RESULTS.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import rangevote as rv
from experiments.settings import HERE, Folders
from experiments.steps import write_json
from experiments.units import read_list
from rangevote.evaluation.corpus import EvaluationCorpus
from rangevote.evaluation.evaluate import Evaluator
from rangevote.evaluation.tables import Column, Table, TableRow, to_markdown
from rangevote.hypothesis import Ballot

#: label -> file
LISTS = {
    "Multi30k English-German, beam 4": "nbest/test_2016_flickr.en-de.k4.jsonl.gz",
    "beam 10": "nbest/test_2016_flickr.en-de.k10.jsonl.gz",
    "beam 100": "nbest/test_2016_flickr.en-de.k100.jsonl.gz",
    "newstest2014 English-French, beam 4": "panels/en-fr/newstest2014_1-400.en-fr.k4.jsonl.gz",
    "newstest, beam 10": "panels/en-fr/newstest2014_1-400.en-fr.k10.jsonl.gz",
}
#: method -> options of the election
METHODS: dict[str, dict[str, Any]] = {
    "most likely": {"rule": "most_likely"},
    "overlap_2": {"preset": "paper"},
    "blend": {"preset": "blend"},
}
SHOWN = {"partial_copies": "by sets (%)", "partial_copies_by_bags": "by bags (%)"}


def measured(ballots: Sequence[Ballot]) -> dict[str, Any]:
    """Copies among the outputs of each method, in percent."""
    sources = [ballot.source or "" for ballot in ballots]
    evaluator = Evaluator(EvaluationCorpus.of(len(ballots), sources=sources), list(SHOWN))
    methods = {
        name: evaluator.measure([str(result) for result in rv.elect_many(ballots, **options)]).values
        for name, options in METHODS.items()
    }
    return {"ballots": len(ballots), "methods": methods}


def section(data: Mapping[str, Any]) -> Iterator[str]:
    """The chapter of RESULTS.md."""
    yield "## Partial copies by sets and by bags"
    yield (
        "Outputs with at least half of the source's words, in the stored lists, by `make reproduce "
        "NAME=copies`. By sets a word counts once, by bags as often as both texts have it. The tables of "
        "TABLES.md count by sets, and the outputs behind them are not stored."
    )
    columns = [Column("ballots", decimals=0)]
    columns += [Column(f"{name} {label}", decimals=1) for name in METHODS for label in SHOWN.values()]
    rows = []
    for label, found in data.items():
        values = [found["methods"][name][metric] for name in METHODS for metric in SHOWN]
        rows.append(TableRow(label, [found["ballots"], *values]))
    yield to_markdown(Table(columns, rows, "lists"))


def main() -> None:
    from experiments.page import write_page

    folders = Folders.usual()
    data = {label: measured(read_list(folders.given(*path.split("/", 1)))) for label, path in LISTS.items()}
    write_json(HERE / "results" / "copies.json", data)
    write_page(HERE / "results", HERE)
