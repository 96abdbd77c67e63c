"""`rangevote study export`: the judgements, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rangevote.cli.output import write_output
from rangevote.errors import UsageError


@click.command()
@click.argument("file", metavar="STUDY")
@click.option(
    "--format",
    type=click.Choice(["jsonl", "csv", "raw-csv", "record", "comparator"]),
    default="jsonl",
    show_default=True,
    help="csv is for spreadsheets; record describes the study; comparator is LLM Comparator's JSON.",
)
@click.option("--history", is_flag=True, help="Also judgements that were replaced or undone.")
@click.option("--bom", is_flag=True, help="Begin the CSV with a byte order mark, for Excel.")
@click.option("-o", "--output", metavar="FILE", help="Where to write; standard output if not given.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def export(file: str, format: str, history: bool, bom: bool, output: str | None, force: bool) -> None:
    """Write the judgements of STUDY, with the sides as they were shown and the outputs.

    In csv, texts that a spreadsheet would run as a formula get an apostrophe before them; raw-csv leaves them
    as they are.
    """
    from rangevote.study.export import WRITERS
    from rangevote.study.snapshot import take

    options: dict[str, Any] = {}
    if history:
        if format in ("record", "comparator"):
            raise UsageError(f"--history goes with jsonl, csv and raw-csv, not with {format}.")
        options["history"] = True
    if bom:
        if format not in ("csv", "raw-csv"):
            raise UsageError(f"--bom goes with csv and raw-csv, not with {format}.")
        options["mark"] = True
    write_output(WRITERS[format](take(Path(file)), **options), output, [file], force=force)
