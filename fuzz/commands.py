"""The command line: each line of the bytes is one argument, as a shell would hand it over.

`arguments` only parses, for every command. `harmless` runs the commands that neither serve, nor load models,
nor start processes, in a folder of their own; slashes are taken out, so that no path leads elsewhere.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import click

from fuzz.targets import scratch
from rangevote.cli import COMMANDS, cli, run
from rangevote.errors import RangevoteError

#: What a command may end with.
CODES = frozenset({0, 2, 3, 4, 5})
RUN = frozenset({"vote", "convert", "evaluate", "compare", "tune", "similarities", "study"})
#: What would start processes, listen, download, or take as long as an option says.
NOT_RUN = re.compile(
    r"^--(workers|engine|ray-address|threads|resamples|plot)|^serve$|\d{4}|embedding|bertscore|comet|bleurt"
    r"|flores|spm|mecab|^ja|^ko",
    re.IGNORECASE,
)
BALLOT = b'{"id": 1, "candidates": [{"text": "a b", "logprob": -1}, {"text": "a c", "logprob": -2}, "b"]}\n'
FILES = {
    "ballots.jsonl": BALLOT + BALLOT.replace(b'"id": 1', b'"id": 2, "references": ["a b"]'),
    "more.jsonl": BALLOT,
    "nbest.txt": b"0 ||| a b ||| F0= -1 ||| -0.5\n0 ||| a c ||| F0= -2 ||| -1\n",
    "outputs.txt": b"a b\na c\n",
    "others.txt": b"a b\nc\n",
    "references.txt": b"a b\na b c\n",
    "profile.toml": b'[election]\nsimilarity = "overlap_1-4@0.25"\ntemperature = 2.0\n',
}


def _arguments(data: bytes) -> list[str]:
    """At most 20; what is not UTF-8 comes as Python has it in sys.argv, and NUL never comes."""
    lines = data.replace(b"\0", b"").split(b"\n")[:20]
    return [line.decode("utf-8", "surrogateescape") for line in lines if line]


@lru_cache(maxsize=1)
def _here() -> Path:
    folder = scratch() / "here"
    folder.mkdir()
    return folder


@contextlib.contextmanager
def _inside(kept: dict[str, bytes], stdin: bytes = b"") -> Iterator[None]:
    """In the folder, which has just these files before, with streams of our own."""
    _clean(_here(), kept)
    before, streams = os.getcwd(), (sys.stdin, sys.stdout, sys.stderr)
    os.chdir(_here())
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    sys.stderr = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        os.chdir(before)


def _clean(folder: Path, kept: dict[str, bytes]) -> None:
    """Leave just these files in a folder."""
    for path in folder.iterdir():
        if path.name not in kept:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, data in kept.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)


def tokens() -> list[str]:
    """Names of commands and of all their options: what random bytes would never spell."""
    names = {*COMMANDS, *FILES, "new", "report", "export", "a=outputs.txt", "b=others.txt", "study.db", "-"}
    for command in _every(cli):
        for parameter in command.params:
            names |= set(parameter.opts)
            if isinstance(parameter.type, click.Choice):
                names |= set(map(str, parameter.type.choices))
    return sorted(names | {"overlap_2", "precision_1-4@0.5", "bleu_4", "exact:last_number", "blend", "count"})


def _every(group: click.Group) -> Iterator[click.Command]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield command
        if isinstance(command, click.Group):
            yield from _every(command)


def arguments(data: bytes) -> None:
    """Parsing alone, callbacks of options included: a context, help, or a usage error."""
    given = [one.replace("/", "_") for one in _arguments(data)]
    with _inside(FILES), contextlib.suppress(click.UsageError, click.exceptions.Exit, RangevoteError):
        _parsed(cli, given)


def _parsed(group: click.Group, given: list[str]) -> None:
    with group.make_context("rangevote", list(given)) as context:
        rest = [*context._protected_args, *context.args]
        if not rest:  # reported when the group is run
            return
        name, command, left = group.resolve_command(context, rest)
        assert command is not None
        if isinstance(command, click.Group):
            _parsed(command, left)
        else:
            command.make_context(name, left, parent=context).close()


def harmless(data: bytes) -> None:
    """Commands that are run to their end: an exit code of ours, and no traceback."""
    given = [one.replace("/", "_") for one in _arguments(data)]
    if not given or given[0] not in RUN or any(NOT_RUN.search(one) for one in given):
        return
    with _inside(FILES, FILES["ballots.jsonl"]):
        code = run(given)
    assert code in CODES, f"exit code {code}"


def resumed(data: bytes) -> None:
    """`vote --resume` with anything in the place of an unfinished output and of the notes beside it."""
    notes, _, partial = data.partition(b"\0")
    for name, options in (("out.jsonl", []), ("out.txt", ["--text"])):
        kept = {**FILES, f"{name}.partial": partial}
        if notes:
            kept[f"{name}.partial.json"] = notes.replace(b'"OPTIONS"', _options(bool(options)))
        with _inside(kept):
            code = run(["vote", "ballots.jsonl", "-o", name, "--resume", "-q", *options])
        assert code in CODES, f"exit code {code}"


@lru_cache(maxsize=2)
def _options(text: bool) -> bytes:
    """What the notes must hold for a run to be gone on with: as one left them that met a bad ballot."""
    with _inside({"bad.jsonl": BALLOT + b"{"}):
        run(["vote", "bad.jsonl", "-o", "x", "-q", *(["--text"] if text else [])])
        notes = json.loads((_here() / "x.partial.json").read_bytes())
    return json.dumps(notes["options"]).encode()
