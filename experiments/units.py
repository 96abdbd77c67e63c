"""What n-grams are made of: `blend` by `words` and by `space` on the same lists, measured by references.

Candidates and weights are the same; only the unit differs. The lists of the experiments' own development sets
are not stored, so the first 500 of the stored lists stand for them.

    make reproduce NAME=units     # writes results/units.json and the table of docs/reference/similarities.md
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import rangevote as rv
from experiments.settings import HERE, ROOT, Folders
from experiments.steps import write_json, write_table
from rangevote.evaluation.corpus import EvaluationCorpus
from rangevote.evaluation.evaluate import Evaluator
from rangevote.evaluation.significance import paired_bootstrap
from rangevote.evaluation.tables import Column, Table, TableRow, to_markdown
from rangevote.hypothesis import Ballot

#: label -> file, how many of its ballots, further options of the election
LISTS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "Multi30k English-German, beam 4": ("nbest/test_2016_flickr.en-de.k4.jsonl.gz", 500, {}),
    "beam 10": ("nbest/test_2016_flickr.en-de.k10.jsonl.gz", 500, {}),
    "beam 100": ("nbest/test_2016_flickr.en-de.k100.jsonl.gz", 500, {}),
    "100 samples": ("nbest/test_2016_flickr.en-de.samples100.jsonl.gz", 500, {"weights": "count"}),
    "Flickr8k captions, beam 10": ("nbest/flickr8k_test.k10.jsonl.gz", 500, {}),
    "captions, beam 100": ("nbest/flickr8k_test.k100.jsonl.gz", 500, {}),
    "newstest2014 English-French, beam 4": ("panels/en-fr/newstest2014_1-400.en-fr.k4.jsonl.gz", 400, {}),
    "newstest, beam 10": ("panels/en-fr/newstest2014_1-400.en-fr.k10.jsonl.gz", 400, {}),
    "WMT23 English-German, 12 systems": ("panels/wmt23-en-de.jsonl.gz", 557, {"weights": "count"}),
    "Multi30k, beam 100, by overlap_2": (
        *("nbest/test_2016_flickr.en-de.k100.jsonl.gz", 500),
        {"similarity": "overlap_2"},
    ),
}
#: Texts without spaces between words.
JAPANESE = "panels/flores-en-ja.jsonl.gz"
UNITS = ("space", "words")
SHOWN = {"bleu": "BLEU", "chrf": "chrF"}
RESAMPLES, SEED = 2000, 1
BEGIN, END = "<!-- units: begin -->", "<!-- units: end -->"


def compare(ballots: Sequence[Ballot], options: Mapping[str, Any]) -> dict[str, Any]:
    """Each metric under `space`, and the difference of `words` with its interval."""
    evaluator = Evaluator(
        EvaluationCorpus.of(len(ballots), [ballot.references for ballot in ballots]), list(SHOWN)
    )
    space, words = (
        [str(result) for result in rv.elect_many(ballots, tokenize=unit, **options)] for unit in UNITS
    )
    before, after = evaluator.measure(space), evaluator.measure(words)
    same = sum(a == b for a, b in zip(space, words, strict=True)) / len(ballots)
    found: dict[str, Any] = {"ballots": len(ballots), "same": same}
    for name, metric in evaluator.metrics.items():
        rows = after.rows[metric.statistics], before.rows[metric.statistics]
        change = paired_bootstrap(metric.score, *rows, resamples=RESAMPLES, seed=SEED)
        found[name] = {"space": before.values[name], "words": change.value, "interval": list(change.interval)}
    return found


def tied(ballots: Sequence[Ballot]) -> dict[str, int]:
    """How many ballots give all candidates the same score, by unit."""
    found = {"ballots": len(ballots)}
    for unit in UNITS:
        results = rv.elect_many(ballots, tokenize=unit, weights="count")
        found[unit] = sum(len(set(result.scores.tolist())) == 1 for result in results)
    return found


def read_list(path: Path, most: int | None = None) -> list[Ballot]:
    """Texts, log-probabilities, sources and references; the token ids of some lists are words."""
    ballots = []
    for line in gzip.decompress(path.read_bytes()).splitlines()[:most]:
        ballot = json.loads(line)
        listed = ballot.get("hypotheses") or ballot["candidates"]
        candidates = [rv.Hypothesis(one["text"], logprob=one.get("logprob")) for one in listed]
        sides = {"source": ballot.get("source"), "references": ballot["references"]}
        ballots.append(Ballot(candidates, **sides))
    return ballots


def table(data: Mapping[str, Any]) -> str:
    columns = [Column("ballots"), Column("same winner")]
    for label in SHOWN.values():
        columns += [Column(f"{label}, space"), Column("words - space")]
    rows = []
    for label, found in data["lists"].items():
        cells = [str(found["ballots"]), f"{found['same']:.0%}"]
        for name in SHOWN:
            space, change, (low, high) = (found[name][key] for key in ("space", "words", "interval"))
            cells += [f"{space:.2f}", f"{change:.2f} [{low:.2f}, {high:.2f}]"]
        rows.append(TableRow(label, cells))
    return to_markdown(Table(columns, rows, "lists"))


def main() -> None:
    folders = Folders.usual()
    lists = {
        label: compare(read_list(folders.given(*path.split("/", 1)), most), options)
        for label, (path, most, options) in LISTS.items()
    }
    data = {"lists": lists, "japanese": tied(read_list(folders.given(*JAPANESE.split("/", 1))))}
    write_json(HERE / "results" / "units.json", data)
    write_table(table(data), ROOT / "docs" / "reference" / "similarities.md", BEGIN, END)
