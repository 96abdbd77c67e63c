"""`rangevote panel`: what the members of a panel do."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from rangevote.cli.evaluate import QUIET, TableOutput, table_options
from rangevote.cli.members import panel_files
from rangevote.cli.options import HelpCommand, election_options, epilog, option, reading_options
from rangevote.cli.output import write_output
from rangevote.cli.progress import Bar, Notes, check_inputs
from rangevote.errors import UsageError, need

if TYPE_CHECKING:
    from rangevote.election.settings import Settings
    from rangevote.formats import ReadOptions


#: Endings of names of what has the picture in it.
PICTURES = ("html", "png", "svg", "pdf")


@click.group(epilog=epilog("rangevote panel report panel.jsonl -s exact:last_number -o report.html"))
def panel() -> None:
    """Look at a panel: several models, prompts or systems that vote."""


@panel.command(
    cls=HelpCommand,
    example="rangevote panel report panel.jsonl -s exact:last_number --gold answer -o report.html",
)
@click.argument("ballots", nargs=-1, metavar="FILE...")
@option("--gold FIELD", "Field of the right answer, such as answer, meta.gold or references.")
@election_options
@table_options
@QUIET
@reading_options
def report(
    ballots: tuple[str, ...],
    gold: str | None,
    settings: Settings,
    writing: TableOutput,
    quiet: bool,
    reading: ReadOptions,
) -> None:
    """Report what each member of a panel does.

    FILE has the outputs of all members: each candidate has a member. Several files have one member each, as
    in `rangevote vote`. The report has, for each member, its outputs, wins, agreement with the others, twins,
    and what changes without it. Where answers are compared (such as -s exact:last_number), agreement
    estimates each member's accuracy without labels; with --gold the report has the true accuracy too.

    The name of the output decides what is written: .html (tables and picture in one file), .png, .svg or
    .pdf (the picture), .json, or tables as text.
    """
    from rangevote.evaluation.panel_report import html_page, panel_report, picture, tables

    ending = Path(writing.output or "").suffix.lower().removeprefix(".")
    if ending in PICTURES:
        need("matplotlib", "evaluate", "drawing")  # before the work, not after
    if not ballots:
        raise UsageError("name the file of the panel, or one file for each member.")
    notes = Notes(quiet=quiet)
    files, settings = panel_files(ballots, (), settings)
    check_inputs(files.paths)
    carry = () if gold is None or gold == "references" else (gold,)
    with ExitStack() as stack:
        first, joined = files.read(stack, replace(reading, carry=carry))
        entries = list(Bar(first, "reading", quiet=quiet).track(joined))
    with Bar(None, "leaving members out", quiet=quiet, total=len(entries)) as bar:
        summary = panel_report(entries, settings, gold, bar.advance)
    if ending in PICTURES and writing.format != "json":
        content = html_page(summary) if ending == "html" else picture(summary, ending)
        write_output(content, writing.output, files.paths, force=writing.force)
    else:
        writing = replace(writing, format="json" if ending == "json" else writing.format)
        writing.write(msgspec.to_builtins(summary), tables(summary), files.paths)
    if writing.output and ending not in PICTURES:
        notes.tell(f"{len(summary.members)} members over {summary.ballots:,} ballots: {writing.output}.")
