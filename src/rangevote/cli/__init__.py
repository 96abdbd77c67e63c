"""The command line: parse, call the library, print. One file for each command.

Exit codes: 0 done, 2 usage, 3 bad data, 4 partly done, 5 environment, 130 interrupted. Data goes to
standard output, everything else to standard error, and a user's mistake never shows a traceback.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import click

from rangevote import __version__
from rangevote.errors import RangevoteError, nearest

#: name -> one line of help; the module of the same name is loaded when its command is run.
COMMANDS = {
    "compare": "Compare systems, with significance, in tables and curves.",
    "convert": "Convert an n-best list to another format.",
    "demo": "Show elections among captions and a model's answers.",
    "doctor": "Report what is installed and what is missing.",
    "evaluate": "Measure outputs: BLEU, chrF, length, diversity.",
    "generate": "Generate outputs of a model, and elect one per input.",
    "panel": "Report what each member of a panel does.",
    "serve": "Serve elected answers by OpenAI's API.",
    "show": "Open the election page, or write it to a file.",
    "similarities": "List every similarity, its cost and what it needs.",
    "study": "Let people judge pairs of outputs, and report who wins.",
    "tune": "Choose the options of an election on ballots with references.",
    "vote": "Elect one output of every ballot in a file.",
}


class Commands(click.Group):
    """A group that knows its commands' names and help without loading them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"rangevote.cli.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            ctx.fail(f"no such command {args[0]!r}.{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with warnings.catch_warnings():  # how a command shows warnings ends with it
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


def _version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    """Print the version, and which kernels count the votes."""
    if wanted:
        from rangevote.kernel import COMPILED, WHY_PLAIN

        kernels = "compiled kernels" if COMPILED else f"plain kernels: {WHY_PLAIN}"
        click.echo(f"rangevote {__version__} ({kernels})")
        context.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExample:\n  rangevote vote nbest.jsonl -o winners.jsonl",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Elect the most representative of several outputs.

    Outputs vote for each other: score(c) = sum of P(v) sim(v, c) over the voters v.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code."""
    code = run(arguments)
    try:
        sys.stdout.flush()
    except OSError:
        code = _closed_pipe()
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; every failure becomes one message and an exit code."""
    try:
        result = cli.main(arguments, prog_name="rangevote", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except RangevoteError as error:
        return complain(str(error), error.exit_code) if str(error) else _closed_pipe()
    except click.UsageError as error:
        error.show()
        return 2
    except click.ClickException as error:
        return complain(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return complain("interrupted.", 130)
    except UnicodeEncodeError as error:  # file names may hold such bytes, but nothing that is written
        excerpt = error.object[max(0, error.start - 20) : error.end + 20]
        return complain(f"an argument holds bytes that are not UTF-8 text: {excerpt!r}.", 2)
    except MemoryError:
        return complain("out of memory.", 5)
    except OSError as error:
        return complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.", 5)


def complain(message: str, code: int) -> int:
    """Print the message on standard error; returns the code."""
    click.echo(f"rangevote: {message}", err=True)
    return code


def _closed_pipe() -> int:
    """The code for a closed pipe; what is still in Python's buffer is dropped."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141
