"""RESULTS.md and its figures, from the recorded results alone (and the notes of `notes-<experiment>.md`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments import tables
from experiments.figures import draw
from experiments.findings import Findings
from experiments.page_settings import settings_lines
from experiments.paper import TABLES
from experiments.paper_claims import verdicts
from rangevote.evaluation.tables import Cell, Column, Table, TableRow, escape_markdown, to_markdown
from rangevote.models.arpa import replacing

PAGE, FIGURES = "RESULTS.md", "figures"
_HEAD = """# Results of the paper's experiments

Made from `results/*.json` by `python experiments/run.py --render`; a test compares the two, so change the
numbers by running the experiments. Where there are several seeds a number is their mean, and what stands
behind ± is the standard deviation over seeds. In bold: the best of a column (of lengths: the nearest to the
references). Baselines choose the most likely output, by some account; voting elects it.
"""
_NOTHING = """
No run has been recorded yet. `make reproduce-captions` and `make reproduce-translation` make them.
"""


def write_page(results: Path, folder: Path) -> None:
    """The page and its figures, in `folder`."""
    for path in sorted(results.glob("*.json")):
        draw(Findings.read(path), folder / FIGURES)
    text = rendered(results, folder).encode()
    with replacing(folder / PAGE) as file:
        file.write(text)


def rendered(results: Path, folder: Path) -> str:
    """The text of the page; notes are looked for in `folder`."""
    parts = [_HEAD]
    for path in sorted(results.glob("*.json")):
        found = Findings.read(path)
        parts += ["\n", *(f"{block.rstrip()}\n\n" for block in _blocks(found, folder))]
    if len(parts) == 1:
        parts.append(_NOTHING)
    return "".join(parts).rstrip() + "\n"


def _blocks(found: Findings, folder: Path) -> Iterator[str]:
    """An experiment, block by block."""
    yield f"## {found.settings['title']} ({found.data['scale']})"
    yield "### What the paper says, and what was found"
    yield to_markdown(_claims(found))
    notes = folder / f"notes-{found.experiment}-{found.data['scale']}.md"
    if notes.is_file():
        yield notes.read_text(encoding="utf-8")
    yield from _tables(found)
    yield from _figures(found)
    yield "### Significance"
    yield from _comparisons(found)
    yield from _other_systems(found)
    yield "### Settings and durations"
    yield settings_lines(found)


def _claims(found: Findings) -> Table:
    rows = [
        TableRow(claim.text, [Cell(claim.where), Cell("yes" if verdict.holds else "no"), Cell(verdict.told)])
        for claim, verdict in verdicts(found)
    ]
    return Table([Column("section"), Column("found here"), Column("numbers")], rows, "claim")


def _tables(found: Findings) -> Iterator[str]:
    """The paper's tables in its order, then what it tells in the text."""
    yield "### Tables"
    known = found.settings["report"]["metrics"]
    published = [metric for metric in TABLES[found.experiment] if metric in known]
    for metric in published:
        yield to_markdown(tables.beside_paper(found, metric))
    if "chrf" in known:
        yield to_markdown(tables.beside_paper(found, "chrf"))
    if tables.sampling(found).rows:
        yield to_markdown(tables.sampling(found))
    yield from _shares(found, found.main)
    if tables.selections(found).rows:
        yield to_markdown(tables.selections(found))
    for table in (tables.other_units(found), tables.tuned(found), tables.voters(found)):
        if table is not None:
            yield to_markdown(table)


def _shares(found: Findings, system: str) -> Iterator[str]:
    """What is nowhere found is told in a line, not in a table of zeros."""
    for table in tables.shares(found, system):
        if any(cell.value for row in table.rows for cell in row.cells):
            yield to_markdown(table)
        else:
            yield f"**{escape_markdown(table.title)}**: none, whatever the method and k."


def _figures(found: Findings) -> Iterator[str]:
    name = f"{found.experiment}-{found.data['scale']}"
    told = {
        f"{name}-beam-size": "Against the beam size; baselines dashed, voting solid, references black",
        f"{name}-voters": "Against the number of voters for fixed candidates (figure 3)",
    }
    drawn = [f"{name}-beam-size"]
    if tables.voters(found) is not None:
        drawn.append(f"{name}-voters")
    yield "### Figures"
    for picture in drawn:
        yield f"![{escape_markdown(told[picture])}]({FIGURES}/{picture}.svg)"


def _comparisons(found: Findings) -> Iterator[str]:
    """The paper's questions, then every k."""
    listed = found.data["systems"][found.main]["comparisons"]
    report = found.settings["report"]
    yield (
        f"Paired bootstrap ({report['resamples']:,} resamples, two-tailed) of "
        f"{escape_markdown(report['metric'])}, over all seeds with the same sentences drawn for each. Which "
        "measure and k are the best is seen on the test set, as in the paper, so p-values of a best are a "
        "little too small. "
        "\\* p < 0.05, \\*\\* p < 0.01, \\*\\*\\* p < 0.001."
    )
    best = [one for one in listed if "k =" not in one["asked"]]
    yield to_markdown(tables.comparisons(found, best, "Each at its best k"))
    every = [one for one in listed if "k =" in one["asked"] and one["ours"][1] > 1]
    yield to_markdown(tables.comparisons(found, every, "Against the best baseline of each k"))


def _other_systems(found: Findings) -> Iterator[str]:
    """Systems beside the main one: other label smoothing, copies in training."""
    others = [system for system in found.systems if system != found.main]
    if others:
        yield "### Other systems"
    for system in others:
        yield to_markdown(tables.beside_paper(found, found.metric, system))
        on_others = tables.other_lists(found, system)
        if on_others is not None:
            yield to_markdown(on_others)
        yield from _shares(found, system)
