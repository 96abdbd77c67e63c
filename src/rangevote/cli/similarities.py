"""`rangevote similarities`: every measure, with what it costs and needs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from rangevote.cli.options import HelpCommand, option

if TYPE_CHECKING:
    from rich.table import Table

#: Columns of a table that is written to a file or a pipe.
WIDTH = 100

#: Printed under the table.
NOTES = """\
Linear similarities cost the number of tokens, pairwise ones voters times candidates.
Orders: overlap_1, overlap_2, ...; overlap_1-4 is their mean; overlap_1-4@0.25 has an exponent of length.
Mixtures: 0.5*overlap_2+0.5*chrf. Your own: -s module:function, or in Python any function
(voter, candidate) -> grade from -1 to 1. --json also has ranges, directions and how to install."""


@click.command(cls=HelpCommand, example="rangevote similarities --json")
@option("--json", "Print one JSON object instead of the table.", name="as_json")
def similarities(as_json: bool) -> None:
    """List every similarity: what it is, cost, range and direction of its grades, and what it needs."""
    from rangevote.entry_points import plugins
    from rangevote.similarity import PRESETS
    from rangevote.similarity.exact import EXAMPLES

    measures = described()
    presets = [{"name": name, **preset._asdict()} for name, preset in sorted(PRESETS.items())]
    added = {name: point.dist.name if point.dist else "" for name, point in plugins("similarities").items()}
    if as_json:
        click.echo(json.dumps({"measures": measures, "presets": presets, "plugins": added}, indent=2))
        return
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False, markup=False)
    console.print(table(measures))
    console.print(f"\n{' '.join(NOTES.split())}")
    console.print(f"Keys, after 'exact:': {'; '.join(EXAMPLES)}.")
    console.print("exact alone compares the texts; exact:command=... runs your own program on every text.")
    for name, package in sorted(added.items()):
        console.print(f"{name}: added by the package {package}.")
    for preset in presets:
        likelihood = f" and likelihood {preset['likelihood']:g}" if preset["likelihood"] else ""
        console.print(
            "Preset {name}: {similarity} with temperature {temperature:g}{0}.".format(likelihood, **preset)
        )


def described() -> list[dict[str, Any]]:
    """The facts about every measure, as in the JSON."""
    from rangevote.similarity import get_similarity, listings

    return [
        {
            "name": stem,
            "example": listing.example,
            "meaning": listing.meaning,
            "cost": "linear" if measure.linear else "pairwise",
            "lowest": measure.lowest,
            "highest": 1.0,
            "better": "higher",
            "symmetric": listing.symmetric,
            "extra": listing.extra or None,
            "package": listing.package or None,
            "install": listing.install or None,
        }
        for stem, listing in listings().items()
        for measure in [get_similarity(listing.example)]
    ]


def table(measures: list[dict[str, Any]]) -> Table:
    """A table that fits a terminal of 80 columns; --json has more."""
    from rich.table import Table
    from rich.text import Text

    from rangevote.similarity import WITH_MODELS

    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("similarity", no_wrap=True)
    for name in ("what it is", "cost", "needs"):
        grid.add_column(name)
    for measure in measures:
        stem, colon, _ = measure["example"].partition(":")
        named = f"{stem}:MODEL" if colon and measure["name"] in WITH_MODELS else measure["example"]
        packages = measure["package"] or (f"[{measure['extra']}]" if measure["extra"] else "")
        grid.add_row(named, measure["meaning"], measure["cost"], Text(packages))
    return grid
