"""`rangevote similarities`: every measure, with what it costs and needs."""

from __future__ import annotations

import json
from typing import Any

import click

#: What stands under the table.
NOTES = """\
More is better. "from the voter": the voter is the standard that the candidate is held to; "both ways": they
may change places. Linear measures cost the number of tokens, pairwise ones voters times candidates.
Orders: overlap_1, overlap_2, ...; overlap_1-4 is their mean; overlap_1-4@0.25 has an exponent of length.
Mixtures: 0.5*overlap_2+0.5*chrf. In Python also any function (voter, candidate) -> grade from -1 to 1."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the table.")
def similarities(as_json: bool) -> None:
    """List every similarity: what it is, cost, range and direction of its grades, and what it needs."""
    from rangevote.similarity import PRESETS
    from rangevote.similarity.exact import KEYS

    measures = described()
    presets = [{"name": name, **preset._asdict()} for name, preset in sorted(PRESETS.items())]
    if as_json:
        click.echo(json.dumps({"measures": measures, "presets": presets}, indent=2))
        return
    header = ("measure", "what it is", "cost", "grades", "direction", "needs")
    click.echo(aligned([header, *map(row, measures)]))
    click.echo(f"\n{NOTES}")
    click.echo(f"Keys of exact: {', '.join(f'exact:{key}' for key in sorted(KEYS))}; exact alone: the text.")
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


def row(measure: dict[str, Any]) -> tuple[str, ...]:
    """One line of the table."""
    direction = "both ways" if measure["symmetric"] else "from the voter"
    grades = f"{measure['lowest']:g} to {measure['highest']:g}"
    told = [measure[column] for column in ("example", "meaning", "cost")]
    return (*told, grades, direction, measure["install"] or "")


def aligned(rows: list[tuple[str, ...]]) -> str:
    """Rows as lines, with columns as wide as they need to be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in rows)
    return "\n".join(line.rstrip() for line in lines)
