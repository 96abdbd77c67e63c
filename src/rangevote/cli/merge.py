"""`rangevote merge`: the outputs of all shards in, one output out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rangevote.cli.notes import Notes
from rangevote.cli.output import Sink, apart, sink
from rangevote.errors import SetupError, UsageError

if TYPE_CHECKING:
    from rangevote.formats.reader import SeenIds
    from rangevote.scale.merge import Piece


@click.command()
@click.argument("shards", nargs=-1, required=True, metavar="SHARD...")
@click.option("-o", "--output", metavar="FILE", help="Where to write; standard output if not given.")
@click.option("--force", is_flag=True, help="Replace the output file.")
@click.option("--trust-ids", is_flag=True, help="Do not check that no two results have the same id.")
@click.option("-q", "--quiet", is_flag=True, help="No notes.")
def merge(shards: tuple[str, ...], output: str | None, force: bool, trust_ids: bool, quiet: bool) -> int:
    """Put the outputs of rangevote vote --shard together, in the order of the ballots.

    It is checked that every shard is there once and whole, that all are of one input and were made with the
    same options, and that no ballot is missing or there twice.
    """
    from rangevote.formats.reader import SeenIds
    from rangevote.scale.merge import gather, is_table

    notes = Notes(quiet=quiet)
    paths = [Path(shard) for shard in shards]
    for path in paths:
        if path.is_dir():
            raise SetupError(f"cannot read {path}: is a directory.")
    pieces = gather(paths)
    seen = None if trust_ids else SeenIds()
    table = is_table(pieces[0].path)
    if table and (output is None or output == "-"):
        raise UsageError("Parquet is written to a file: give -o FILE.")
    if output is not None:
        for shard in shards:
            apart(Path(output), shard)
    with sink(output, shards[0], {"merge": sorted(shards)}, force=force) as place:
        try:
            _write_table(pieces, place, seen) if table else _write_lines(pieces, place, seen)
            place.finish()
        except BaseException:
            place.discard()
            raise
    total, skipped = pieces[0].notes.total, sum(piece.notes.skipped for piece in pieces)
    notes.tell(f"{len(pieces)} shards, {total} results, none missing, none twice.")
    if skipped:
        click.echo(f"rangevote: {skipped} of {total} ballots were skipped.", err=True)
    return 4 if skipped else 0


def _write_lines(pieces: list[Piece], place: Sink, seen: SeenIds | None) -> None:
    from rangevote.scale.merge import merged_lines

    for line in merged_lines(pieces, seen):
        place.write(line)


def _write_table(pieces: list[Piece], place: Sink, seen: SeenIds | None) -> None:
    from rangevote.scale.merge import write_merged_table
    from rangevote.scale.pipe import Writable

    write_merged_table(pieces, Writable(place.write), seen)
