"""The group: help, version, completion, start-up."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import warnings

import click
import pytest
from click.shell_completion import ShellComplete

import rangevote
from rangevote.cli import COMMANDS, cli
from rangevote.election.settings import SCHEMA
from rangevote.kernel import COMPILED


def rangevote_with(*arguments: str, **variables: str) -> str:
    command = [sys.executable, "-m", "rangevote", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables}).stdout


def test_help_lists_every_command_with_its_line(run):
    done = run("-h")
    assert done.code == 0
    for name, line in COMMANDS.items():
        assert f"  {name}" in done.out.decode()
        assert line in done.out.decode()


def test_the_version_says_which_kernels_count(run):
    kernels = "compiled kernels" if COMPILED else "plain kernels"
    assert run("--version").out.decode().startswith(f"rangevote {rangevote.__version__} ({kernels}")
    assert "(plain kernels: RANGEVOTE_PURE is set)" in rangevote_with("--version", RANGEVOTE_PURE="1")


def test_click_completes_commands_and_options():
    typed = {"_RANGEVOTE_COMPLETE": "bash_complete", "COMP_WORDS": "rangevote ", "COMP_CWORD": "1"}
    assert rangevote_with(**typed).split() == [f"plain,{name}" for name in sorted(COMMANDS)]
    completion = ShellComplete(cli, {}, "rangevote", "_RANGEVOTE_COMPLETE")
    for words, found in (
        ("--temp", ["--temperature"]),
        ("--similarity ov", ["overlap_1", "overlap_1-4", "overlap_1-4@0.25", "overlap_2"]),
        ("-s ch", ["chrf", "chrf++"]),
        ("--preset b", ["blend"]),
        ("--rule r", ["range", "reweighted"]),
        ("--weights im", ["importance"]),
        ("--tokenize w", ["words"]),
    ):
        *before, last = ["vote", *words.split()]
        assert [item.value for item in completion.get_completions(before, last)] == found


@pytest.mark.parametrize(
    ("command", "option", "name"),
    [
        ("vote", "--sim", "--similarity"),
        ("tune", "--sim", "--similarities"),
        ("vote", "--similarty", "--similarity"),
    ],
)
def test_an_unknown_option_names_the_one_that_was_meant(run, command, option, name):
    done = run(command, option, "x")
    assert done.code == 2
    assert f"Did you mean '{name}'?" in done.err


def test_warnings_are_shown_as_before_when_a_command_is_done(run, three):
    show, filters = warnings.showwarning, list(warnings.filters)
    assert run("vote", three).code == 0
    assert run("serve", "--host", "0.0.0.0").code != 0
    assert warnings.showwarning is show
    assert warnings.filters == filters


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from rangevote.cli import run; run(['--help']); assert 'numpy' not in sys.modules; "
        "run(['vote', '--help']); "
        "print(sorted({'rich', 'sacrebleu', 'torch', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def every_command():
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", each) for inner, each in command.commands.items())
        yield name, command


@pytest.mark.parametrize(
    ("name", "command"), list(every_command()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_help_has_sections_and_ends_with_an_example_that_can_be_typed(run, name, command):
    shown = run(*name.split(), "--help").out.decode()
    assert shown.startswith(f"Usage: rangevote {name}")
    *_, heading, example = shown.rstrip().splitlines()
    assert heading == "  Example:"
    program, *arguments = shlex.split(example)
    assert (program, arguments[: len(name.split())]) == ("rangevote", name.split())
    if isinstance(command, click.Group):
        return
    command.make_parser(click.Context(command)).parse_args(arguments[len(name.split()) :])
    options = [option for option in command.params if isinstance(option, click.Option)]
    titles = [line.rstrip(":") for line in shown.splitlines() if re.fullmatch(r"[A-Z]\w+:", line)]
    assert "Options" not in titles
    assert len(options) < 6 or len(titles) >= 2
    assert all(max(option.opts, key=len) in shown for option in options)


def test_the_same_word_means_the_same_in_every_command():
    meanings: dict[str, set[str]] = {}
    for _, command in every_command():
        for option in command.params:
            for word in option.opts:
                meanings.setdefault(word, set()).add(max(option.opts, key=len))
    assert {
        word: long for word, long in meanings.items() if len(word) == 2 and len(long) > 1 and word != "-s"
    } == {}
    assert meanings["-m"] == {"--model"}
    assert meanings["-s"] == {"--similarity", "--similarities"}
    texts = [
        str(option.help)
        for _, command in every_command()
        for option in command.params
        if "--format" in option.opts
    ]
    assert all(text.startswith("Format of the input") for text in texts)


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("vote", [option.flags.split()[0] for option in SCHEMA.values()]),
        ("tune", ["--similarities", "--tokenize", "--weights", "--scores", "--score-weights", "--shares"]),
    ],
)
def test_every_option_of_an_election_stands_in_its_section(run, command, flags):
    shown = run(command, "--help").out.decode().split("\nElection:\n")[1].split("\n\n")[0]
    assert [flag for flag in flags if flag not in shown] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_takes_a_value_is_refused_without_one(run, name):
    command = cli.get_command(None, name)
    for one in (command, *getattr(command, "commands", {}).values()):
        path = [name] if one is command else [name, one.name]
        for option in one.params:
            if isinstance(option, click.Option) and not (option.is_flag or option.flag_value):
                done = run(*path, option.opts[-1])
                assert (done.code, "requires an argument" in done.err) == (2, True), option.opts
