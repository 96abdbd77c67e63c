"""The first page of RESULTS.md: one setting for all tasks, what people say, samples of an LLM."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.copies import section as copies_section
from experiments.findings import BEYOND, PANEL, Findings
from experiments.judgement import table as table_of_judgements
from experiments.likelihood import section as likelihood_section
from experiments.meaning import section as meaning_section
from experiments.panel_tables import section as panel_section
from experiments.samples import section as samples_section
from experiments.tables import difference_cell
from rangevote.evaluation.tables import Column, Table, TableRow, to_markdown

#: Settings that were fixed, or chosen on development data; the notes say which were tested after a look.
FIXED = ("blend", "tuned", "consensus", PANEL, "chosen")


def summary(every: Sequence[Findings], results: Path, folder: Path) -> Iterator[str]:
    """One page: what to use when; one setting for all tasks; then what other data say."""
    notes = folder / "notes-summary.md"
    if notes.is_file():
        yield notes.read_text(encoding="utf-8")
    yield "## Is one setting above every baseline at every k from 4 on?"
    yield to_markdown(above_all_baselines(every))
    yield from panel_section(results, folder)
    parts = {
        "samples": samples_section,
        "judgement": judgement_section,
        "meaning": meaning_section,
        "llm": llm_section,
        "likelihood": likelihood_section,
        "copies": copies_section,
    }
    for name, make in parts.items():
        path = results / f"{name}.json"
        if path.is_file():
            yield from make(json.loads(path.read_bytes()))


def above_all_baselines(every: Sequence[Findings]) -> Table:
    """Differences to the best baseline of each k, by settings that no test set had a say in."""
    rows = []
    for found in every:
        for k in (k for k in found.ks(found.main) if k >= 4):
            answers = [found.answer(f"{name}, best baseline, k = {k}") for name in FIXED]
            cells = ["" if one is None else difference_cell(one["all"]) for one in answers]
            if any(cells):
                rows.append(TableRow(f"{found.settings['title']}, k = {k}", cells, found.experiment))
    notes = [
        "Difference to the best baseline at the same k (of those that the experiment has), with its 95 % "
        "interval and p by paired bootstrap, over all seeds if there are several."
    ]
    columns = [Column(BEYOND[name]) for name in FIXED]
    return Table(columns, rows, "task", notes=notes)


def judgement_section(data: Mapping[str, Any]) -> Iterator[str]:
    """Which similarity agrees with people."""
    yield "## Which similarity agrees with people?"
    yield (
        f"Kendall's tau-c between a measure and {data['judgements']:,} judgements by experts of "
        f"{data['pairs']:,} captions of {data['images']:,} Flickr8k images, with 95 % intervals over images "
        "resampled (`make reproduce NAME=judgement`)."
    )
    yield table_of_judgements(data)


def llm_section(data: Mapping[str, Any]) -> Iterator[str]:
    """How good the elected sample of an LLM is."""
    game, writing = data["game24"], data["writing"]
    yield "## Samples of an LLM"
    yield (
        f"Game of 24, {game['tasks']} puzzles with 100 samples of GPT-4 each: per cent right, with 95 % "
        f"intervals over puzzles. One sample is right in {_mean(game['sample'])} %, at least one of 100 in "
        f"{_mean(game['any'])} %."
    )
    numbers = list(next(iter(game["elected"].values())))
    rows = [TableRow(measure, [_mean(by_n[n]) for n in numbers]) for measure, by_n in game["elected"].items()]
    yield to_markdown(Table([Column(f"n = {n}") for n in numbers], rows, "elected by"))
    yield (
        f"Writing, {writing['tasks']} tasks with 10 samples each: the given score (1 to 10) of the elected "
        f"text. The mean sample has {_mean(writing['mean'])}, the best {_mean(writing['best'])}, the longest "
        f"{_mean(writing['longest'])}."
    )
    rows = [TableRow(name, [_mean(one)]) for name, one in writing["elected"].items()]
    yield to_markdown(Table([Column("score")], rows, "elected by"))


def _mean(one: Mapping[str, Any]) -> str:
    low, high = one["interval"]
    return f"{one['mean']:.2f} [{low:.2f}, {high:.2f}]"
