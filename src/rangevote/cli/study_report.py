"""`rangevote study report`: what a study found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rangevote.cli.output import write_output

if TYPE_CHECKING:
    from rangevote.study.analysis import Findings


@click.command()
@click.argument("file", metavar="STUDY")
@click.option(
    "--format",
    type=click.Choice(["text", "markdown", "latex", "json", "html"]),
    default="text",
    show_default=True,
    help="html: a page with plots, in one file.",
)
@click.option("-o", "--output", metavar="FILE", help="Where to write; standard output if not given.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def report(file: str, format: str, output: str | None, force: bool) -> None:
    """Tell the result of STUDY: sign tests, answers, agreement, annotators, sides, attention checks.

    It can be asked for at any time; before the study is complete it says so.
    """
    from rangevote.study.analysis import analyse
    from rangevote.study.snapshot import take

    found = analyse(take(Path(file)))
    write_output(_written(found, format), output, [file], force=force)


def _written(found: Findings, format: str) -> str:
    from rangevote.study.data import as_data
    from rangevote.study.page import page
    from rangevote.study.present import written

    if format == "json":
        return json.dumps(as_data(found), ensure_ascii=False, indent=1) + "\n"
    return page(found) if format == "html" else written(found, format)
