"""Step "evaluate": the numbers of one system and seed, every method at every k; what became of winners."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.checkpoint import read_card
from experiments.items import Items, read_items
from experiments.searching import read_ballots
from experiments.stage import write_json
from experiments.voting import read_outputs
from rangevote.evaluation.evaluate import Evaluator, Measured, selection, texts_of
from rangevote.evaluation.texts import EvaluationCorpus, WordUnits

#: method -> k -> outputs; k is 0 for what does not depend on it
Outputs = dict[str, dict[int, list[str]]]


class Measurer:
    """Measures lists of outputs, equal ones once: at k = 1 most methods put out the same."""

    def __init__(self, items: Items, metrics: Sequence[str], words: str) -> None:
        corpus = EvaluationCorpus.of(len(items), items.references, items.sources)
        self.evaluator = Evaluator(corpus, metrics, WordUnits(tokenize=words))
        self._known: dict[tuple[str, ...], Measured] = {}

    def measure(self, texts: Sequence[str]) -> Measured:
        """Values, and the sentence statistics behind them."""
        key = tuple(texts)
        if key not in self._known:
            self._known[key] = self.evaluator.measure(texts)
        return self._known[key]


def evaluate(
    output: Path,
    *,
    metrics: Sequence[str],
    words: str,
    small: Sequence[int],
    followed: Mapping[str, str],
    model: Path,
    items: Path,
    outputs: Sequence[Path],
    large: Sequence[Path],
) -> None:
    """Measure everything; `followed` are the methods whose winners at `small` k are looked for in the `large`
    lists, with the search that made the list."""
    measurer = Measurer(read_items(items), metrics, words)
    found, unfinished = gathered(outputs)
    methods = {
        name: {
            str(k): {**measurer.measure(texts).values, "unfinished": unfinished[name, k]}
            for k, texts in by_k.items()
        }
        for name, by_k in found.items()
    }
    facts = read_card(model)["training"]
    told = ("dev_loss", "best_step", "steps", "tokens", "examples", "threads")  # no times: they differ
    data = {
        "methods": methods,
        "references": measurer.evaluator.references(),
        "signatures": {name: measurer.evaluator.signature(name) for name in metrics},
        "items": measurer.evaluator.corpus.size,
        "selection": list(_selections(found, small, followed, large)),
        "training": {name: facts[name] for name in told},
    }
    write_json(output, data)


def evaluate_voters(
    output: Path, *, metrics: Sequence[str], words: str, items: Path, outputs: Sequence[Path]
) -> None:
    """Figure 3: kind of voters -> measure -> number of voters -> values, on the items that have voters."""
    known = [read_outputs(path) for path in outputs]
    size = len(next(iter(known[0]["methods"].values()))["texts"])
    measurer = Measurer(read_items(items).first(size), metrics, words)
    curves: dict[str, Any] = {}
    for one in known:
        for measure, found in one["methods"].items():
            points = curves.setdefault(one["search"], {}).setdefault(measure, {})
            points[str(one["k"])] = measurer.measure(found["texts"]).values
    write_json(output, {"items": size, "curves": curves})


def gathered(paths: Iterable[Path]) -> tuple[Outputs, dict[tuple[str, int], int]]:
    """The outputs in all files, and how many of each were cut by the length limit."""
    outputs: Outputs = {}
    unfinished: dict[tuple[str, int], int] = {}
    for path in paths:
        found = read_outputs(path)
        for name, method in found["methods"].items():
            outputs.setdefault(name, {})[found["k"]] = method["texts"]
            unfinished[name, found["k"]] = method["unfinished"]
    return outputs, unfinished


def _selections(
    outputs: Outputs, small: Sequence[int], followed: Mapping[str, str], large: Sequence[Path]
) -> Iterator[dict[str, Any]]:
    """Shares of the winners that the larger list lacks, and that it elects again (section 4.2.1)."""
    for path in large:
        search, k = name_of(path)
        methods = [m for m, s in followed.items() if s == search and k in outputs.get(m, {})]
        if not methods:
            continue
        lists = [texts_of(ballot) for ballot in read_ballots(path)]
        for method in methods:
            for smaller in small:
                if smaller in outputs[method]:
                    one = selection(outputs[method][smaller], lists, outputs[method][k])
                    yield {
                        "method": method,
                        "k": smaller,
                        "large": k,
                        "absent": one.absent_share,
                        "again": one.again_share,
                    }


def name_of(path: Path) -> tuple[str, int]:
    """The search and the k that a file of ballots is named after.

    >>> name_of(Path("test-no_copy-k100.jsonl.gz"))
    ('no_copy', 100)
    """
    _, search, k = path.name.partition(".")[0].split("-")
    return search, int(k.removeprefix("k"))


def read_numbers(path: Path) -> dict[str, Any]:
    """What an "evaluate" or a "compare" step wrote."""
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found
