"""The group: help, version, demo, start-up."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import rangevote
from rangevote.cli import COMMANDS
from rangevote.kernel import COMPILED


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_help_lists_every_command_with_its_line(run, arguments):
    done = run(*arguments)
    assert done.code == 0
    for name, (_, line) in COMMANDS.items():
        assert f"  {name}" in done.out.decode()
        assert line in done.out.decode()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_that_begins_with_its_usage(run, name):
    done = run(name, "--help")
    assert done.code == 0
    assert done.out.decode().startswith(f"Usage: rangevote {name}")


def test_the_version_is_the_packages(run):
    assert run("--version").out.decode().startswith(f"rangevote {rangevote.__version__} (")


def test_the_version_tells_which_kernels_count():
    for pure, told in (("0", "(compiled kernels)"), ("1", "(plain kernels: RANGEVOTE_PURE is set)")):
        if pure == "0" and not COMPILED:
            continue
        command = [sys.executable, "-m", "rangevote", "--version"]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "RANGEVOTE_PURE": pure}
        )
        assert told in done.stdout


def test_demo_marks_the_winner_of_figure_1(run):
    shown = run("demo").out.decode()
    winner = next(line for line in shown.splitlines() if "elected" in line)
    assert "a black and white photo of a man sitting on a bench" in winner
    assert "0.00079" in winner
    likely = next(line for line in shown.splitlines() if "most likely" in line)
    assert "a couple of people that are sitting on a bench" in likely


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from rangevote.cli import run; run(['--help']); run(['vote', '--help']); "
        "print(sorted({'numpy', 'rich', 'sacrebleu', 'torch', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
