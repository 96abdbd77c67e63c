"""`rangevote study`: people judge pairs of outputs, as in section 4.1.4 of the paper."""

from __future__ import annotations

import click

from rangevote.cli.study_export import export
from rangevote.cli.study_new import new
from rangevote.cli.study_report import report
from rangevote.cli.study_serve import serve


@click.group()
def study() -> None:
    """Let people judge two systems' outputs, side by side and blind.

    new makes a study of two files of outputs; serve shows it to the annotators, each under a secret link;
    report tells the result, with exact sign tests; export gives the judgements.
    """


for _command in (new, serve, report, export):
    study.add_command(_command)
