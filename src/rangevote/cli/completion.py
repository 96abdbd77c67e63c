"""`rangevote completion`: the script that lets a shell complete commands, options, names and files.

The shells' scripts and their protocol are click's. What is ours: which values an option takes, told here by
the option's name for all commands at once; colons in bash, which would split `exact:last_number` in two; and
values behind an equals sign in zsh and fish (`--similarity=chr`), where click's answer takes the place of the
option's name, or is none.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
)

#: The variable by which a shell's script asks for completions; `rangevote.cli.run` looks for it.
VARIABLE = "_RANGEVOTE_COMPLETE"

#: Option -> the table that holds its values; loaded when it is asked for.
TABLES = {
    "metric": "rangevote.evaluation.metrics:METRICS",
    "normalize": "rangevote.election.settings:NORMAL_FORMS",
    "preset": "rangevote.similarity:PRESETS",
    "rule": "rangevote.election.rules:RULES",
    "to": "rangevote.formats:FORMATS",
    "format": "rangevote.formats:FORMATS",
    "tokenize": "rangevote.similarity.tokens:TOKENISERS",
    "weights": "rangevote.election.weights:WEIGHTS",
}


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, similarities and files.

    \b
    bash:  eval "$(rangevote completion bash)"        in ~/.bashrc
    zsh:   eval "$(rangevote completion zsh)"         in ~/.zshrc, after compinit
    fish:  rangevote completion fish > ~/.config/fish/completions/rangevote.fish
    """
    from rangevote.cli import cli

    _register()
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(cli, {}, "rangevote", VARIABLE)
    click.echo(script.source_template % script.source_vars())  # source() would start bash for its version


def prepare(group: click.Group) -> None:
    """Teach the options of all commands their values, and the shells what is ours."""
    _register()
    for parameter in _parameters(group):
        values = _values(parameter)
        if values is not None:
            parameter.type = values


class Named(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has none
    """A value that is one of some names; others are not refused."""

    name = "name"

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self.names = names

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[str]]:
        """The names that begin so."""
        return [CompletionItem(name) for name in self.names() if name.startswith(incomplete)]


class Bash(BashComplete):
    """click's bash, where a word may hold colons.

    Bash takes a colon and an equals sign for the end of a word: it hands `exact:la` over as three words, and
    puts the answer in place of the last one.
    """

    _before = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is completed, and that one; joined where bash split them."""
        before, last = super().get_completion_args()
        words: list[str] = []
        for word in [*before, last]:
            after = bool(words) and words[-1].endswith((":", "=")) and word[:1] not in ("", "-")
            if words and (after or word.startswith((":", "="))):
                words[-1] += word
            else:
                words.append(word)
        *args, joined = words
        if joined != last:
            value = joined.partition("=")[2] if joined.startswith("--") and "=" in joined else joined
            self._before = value[: value.rfind(":") + 1]
        return args, joined

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Without the part that stands before the last colon already."""
        return f"{item.type},{item.value.removeprefix(self._before)}"


class OneWord(ShellComplete):
    """Shells to which an option and its value behind an equals sign are one word: the answer is all of it."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """click's, with the option in front; files are left to the shell."""
        items = super().get_completions(args, incomplete)
        option, equals, _ = incomplete.partition("=")
        if option.startswith("--") and equals:
            for item in items:
                item.value = item.value if item.type in ("dir", "file") else f"{option}={item.value}"
        return items


class Zsh(OneWord, ZshComplete):
    """click's zsh; in front of files, the option is no part of their path."""

    source_template = ZshComplete.source_template.replace(
        "_path_files", "{ [[ ${words[CURRENT]} != --*=* ]] || compset -P '*='; }; _path_files"
    )


class Fish(OneWord, FishComplete):
    """click's fish, with paths behind an option, and with descriptions that hold commas."""

    source_template = re.sub(
        r"(__fish_complete_\w+ \$metadata\[2\]);",
        "set -l option (string match --regex -- '^--[^=]*=' (commandline -t));\n"
        "            for path in (\\1);\n"
        '                echo "$option$path";\n'
        "            end;",
        FishComplete.source_template.replace('split ","', 'split --max 1 ","'),
    )


def _register() -> None:
    """Let click use our shells."""
    for kind in (Bash, Zsh, Fish):
        add_completion_class(kind)


def _parameters(command: click.Command) -> Iterator[click.Parameter]:
    """The options and arguments of a command and of all below it."""
    yield from command.params
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from _parameters(below)


def _values(parameter: click.Parameter) -> click.ParamType[Any] | None:
    """What completes this parameter, where click does not know it by itself."""
    if parameter.type is not click.STRING:
        return None
    metavar = parameter.metavar or ""
    if metavar == "DIR":
        return click.Path(file_okay=False)
    if "FILE" in metavar or isinstance(parameter, click.Argument):
        return click.Path()
    if metavar.endswith("SEARCH"):
        return Named(_searches)
    if parameter.name in ("similarity", "similarities"):
        return Named(measures)
    path = TABLES.get(parameter.name or "")
    return None if path is None else Named(lambda: _table(path))


def measures() -> list[str]:
    """Names of similarities: examples, their usual orders, keys of exact, presets."""
    from rangevote.similarity import PRESETS, listings
    from rangevote.similarity.exact import KEYS

    names = {listing.example for listing in listings().values()} | {"exact", "embedding:", "comet:"}
    names |= {f"{stem}_{order}" for stem in ("overlap", "precision") for order in ("1", "2", "3", "1-4")}
    return sorted(names | {f"exact:{key}" for key in KEYS} | set(PRESETS))


def _searches() -> list[str]:
    return sorted(f"{name}:" for name in _table("rangevote.decoding:SEARCHES"))


def _table(path: str) -> list[str]:
    module, _, name = path.partition(":")
    return sorted(getattr(importlib.import_module(module), name))
