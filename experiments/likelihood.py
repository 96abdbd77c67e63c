"""Own likelihood beside the votes: BLEU of stored Multi30k lists, elected by sampled voters or by the beam.

The lists are of test sentences, and every weight of the likelihood is shown, so nothing is chosen here.

    make reproduce NAME=likelihood     # writes results/likelihood.json and RESULTS.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import rangevote as rv
from experiments.searching import read_ballots
from experiments.settings import HERE, Folders
from experiments.steps import write_json
from rangevote.evaluation.corpus import EvaluationCorpus
from rangevote.evaluation.evaluate import Evaluator
from rangevote.evaluation.tables import Column, Table, TableRow, to_markdown
from rangevote.hypothesis import Ballot

LIST = "test_2016_flickr.en-de.{}.jsonl.gz"
KS = (4, 10, 100)
WEIGHTS = (0.0, 0.2, 0.4, 0.8, 1.6)
#: voters and similarity -> whether samples vote, and the options of the election
ELECTIONS: dict[str, tuple[bool, dict[str, Any]]] = {
    "100 samples, overlap_2": (True, {"similarity": "overlap_2", "weights": "count"}),
    "100 samples, overlap_1-4": (True, {"similarity": "overlap_1-4", "weights": "count"}),
    "the beam itself, overlap_1-4, T = 2": (False, {"similarity": "overlap_1-4", "temperature": 2.0}),
}
BASELINES = {"beam search": "most_likely", "length normalisation": "length_normalised"}


def measured(lists: Mapping[int, list[Ballot]], samples: list[Ballot]) -> dict[str, Any]:
    """BLEU of each election and baseline, by k and by the weight of the likelihood."""
    found: dict[str, Any] = {name: {} for name in (*BASELINES, *ELECTIONS)}
    for k, ballots in lists.items():
        evaluator = Evaluator(EvaluationCorpus.of(len(ballots), [b.references for b in ballots]), ["bleu"])
        sampled = [
            Ballot(ballot.candidates, voters=drawn.candidates)
            for ballot, drawn in zip(ballots, samples, strict=True)
        ]

        def bleu(elected: list[Ballot], evaluator: Evaluator = evaluator, **options: Any) -> float:
            texts = [str(result) for result in rv.elect_many(elected, **options)]
            return evaluator.measure(texts).values["bleu"]

        for name, rule in BASELINES.items():
            found[name][str(k)] = bleu(ballots, rule=rule)
        for name, (by_samples, options) in ELECTIONS.items():
            listed = sampled if by_samples else ballots
            found[name][str(k)] = {f"{x:g}": bleu(listed, likelihood=x, **options) for x in WEIGHTS}
    return found


def section(data: Mapping[str, Any]) -> Iterator[str]:
    """The chapter of RESULTS.md."""
    yield "## Own likelihood beside the votes"
    yield (
        "BLEU of the stored lists of Multi30k (1,000 test sentences, English to German, one model), elected "
        "among k beams with x times the candidate's own log-probability per token added to its votes, by "
        "`make reproduce NAME=likelihood`. Nothing is chosen here: every x is shown."
    )
    rows = []
    for name in (*BASELINES, *ELECTIONS):
        for k, values in data[name].items():
            by_weight = values if isinstance(values, dict) else {"0": values}
            rows.append(TableRow(name, [k, *(by_weight.get(f"{x:g}") for x in WEIGHTS)]))
    columns = [Column("k"), *(Column(f"x = {x:g}", decimals=1) for x in WEIGHTS)]
    yield to_markdown(Table(columns, rows, "voters, similarity"))


def main() -> None:
    from experiments.page import write_page

    folders = Folders.usual()
    lists = {k: list(read_ballots(folders.given("nbest", LIST.format(f"k{k}")))) for k in KS}
    data = measured(lists, list(read_ballots(folders.given("nbest", LIST.format("samples100")))))
    write_json(HERE / "results" / "likelihood.json", data)
    write_page(HERE / "results", HERE)
