"""`rangevote similarities`: every measure, with what it costs and needs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.table import Table

#: Columns of a table that is written to a file or a pipe.
WIDTH = 160

#: Printed under the table.
NOTES = """\
More is better. "from the voter": the voter is the standard that the candidate is held to; "both ways": they
may be exchanged. Linear measures cost the number of tokens, pairwise ones voters times candidates.
Orders: overlap_1, overlap_2, ...; overlap_1-4 is their mean; overlap_1-4@0.25 has an exponent of length.
Mixtures: 0.5*overlap_2+0.5*chrf. In Python also any function (voter, candidate) -> grade from -1 to 1."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the table.")
def similarities(as_json: bool) -> None:
    """List every similarity: what it is, cost, range and direction of its grades, and what it needs."""
    from rangevote.similarity import PRESETS
    from rangevote.similarity.answers import EXAMPLES

    measures = described()
    presets = [{"name": name, **preset._asdict()} for name, preset in sorted(PRESETS.items())]
    if as_json:
        click.echo(json.dumps({"measures": measures, "presets": presets}, indent=2))
        return
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False).print(table(measures))
    click.echo(f"\n{NOTES}")
    click.echo(f"Keys, after 'exact:': {'; '.join(EXAMPLES)}.")
    click.echo("exact alone compares the texts; exact:command=... runs a program of yours on every text.")
    for preset in presets:
        click.echo("Preset {name}: {similarity} with temperature {temperature:g}.".format(**preset))


def described() -> list[dict[str, Any]]:
    """The measures as they are written in JSON."""
    from rangevote.similarity import get_similarity, listings

    return [
        {
            "name": stem,
            "example": listing.example,
            "meaning": listing.meaning,
            "cost": "linear" if listing.cost == "linear" else "pairwise",
            "lowest": getattr(get_similarity(listing.example), "lowest", -1.0),
            "highest": 1.0,
            "better": "higher",
            "symmetric": listing.symmetric,
            "extra": listing.extra or None,
            "package": listing.package or None,
            "install": listing.install or None,
        }
        for stem, listing in listings().items()
    ]


def table(measures: list[dict[str, Any]]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("measure", "what it is", "cost", "grades", "direction", "needs"):
        drawn.add_column(name, overflow="fold")
    for measure in measures:
        direction = "both ways" if measure["symmetric"] else "from the voter"
        grades = f"{measure['lowest']:g} to {measure['highest']:g}"
        cells = [measure[name] for name in ("example", "meaning", "cost")]
        drawn.add_row(*cells, grades, direction, escape(measure["install"] or ""))
    return drawn
