"""`rangevote convert`: one n-best format in, another out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from rangevote.cli.options import HelpCommand, format_by_name, option, reading_options
from rangevote.cli.output import open_output
from rangevote.cli.progress import Bar, Notes, check_input
from rangevote.errors import DataError

if TYPE_CHECKING:
    from rangevote.formats import ReadOptions
    from rangevote.hypothesis import Ballot


@click.command(cls=HelpCommand, example="rangevote convert nbest.moses --to parquet -o nbest.parquet")
@click.argument("source", metavar="FILE")
@option(
    "--to NAME",
    "Format to write: jsonl, csv, tsv, parquet or moses. Default: by the name of the output (.parquet, .csv, "
    ".tsv), otherwise jsonl.",
)
@option("-o --output FILE", "Output file. Default: standard output.")
@option("--force", "Overwrite an existing output file.")
@option("-q --quiet", "No notes, warnings or progress bar.")
@reading_options
def convert(
    source: str, to: str | None, output: str | None, force: bool, quiet: bool, reading: ReadOptions
) -> None:
    """Convert the n-best list FILE ('-': standard input) to another format.

    Scores become sums of natural logs. If the file does not say what its scores mean, the error names the
    options that settle it.
    """
    from rangevote.formats import read, writer

    check_input(source)
    notes = Notes(quiet=quiet)
    write = writer(to or format_by_name(output, "jsonl", "parquet", "csv", "tsv", option="--to"))
    with (
        open_output(output, source, {}, force=force) as sink,
        read(source, reading) as entries,
        Bar(entries, "converting", quiet=quiet) as bar,
    ):
        where = source

        def ballots() -> Iterator[Ballot]:
            nonlocal where
            for entry in bar.track(entries):
                where = entry.where
                yield entry.get()

        try:
            for content in write(ballots()):
                sink.write(content)
            sink.finish()
        except DataError as error:
            sink.discard()
            raise error.placed(where) from None
        except BaseException:
            sink.discard()
            raise
    if not bar.items:
        notes.tell("there are no ballots in the input.")
