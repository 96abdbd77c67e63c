"""rangevote completion in the shells themselves: a line is typed, Tab is pressed, the line is looked at."""

from __future__ import annotations

import fcntl
import os
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

#: Seconds for one answer, on a machine that has other things to do.
PATIENCE = 120
SETUP = {
    "bash": 'eval "$(rangevote completion bash)"',
    "zsh": 'autoload -Uz compinit; compinit -u -D; eval "$(rangevote completion zsh)"',
}
START = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}
#: Makes the terminal that it got the one it is controlled by, as a login does, and becomes the shell.
OWN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""

#: What is typed, and what the line is after Tab.
LINES = [
    ("rangevote vo", "rangevote vote "),
    ("rangevote study rep", "rangevote study report "),
    ("rangevote vote --pre", "rangevote vote --preset "),
    ("rangevote vote -s smo", "rangevote vote -s smoothed_bleu_4 "),
    ("rangevote vote -s exact:bo", "rangevote vote -s exact:boxed "),
    ("rangevote vote --similarity=chr", "rangevote vote --similarity=chrf "),
    ("rangevote vote --similarity=exact:bo", "rangevote vote --similarity=exact:boxed "),
    ("rangevote vote nbe", "rangevote vote nbest.jsonl "),
    ("rangevote vote --output=nbe", "rangevote vote --output=nbest.jsonl "),
    ("rangevote study new --image-root=pict", "rangevote study new --image-root=pictures/"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to work in: the command under test, a file of ballots, a folder of pictures."""
    place = tmp_path_factory.mktemp("shell")
    command = place / "bin" / "rangevote"  # whatever else is on the path
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rangevote "$@"\n')
    command.chmod(0o755)
    (place / "nbest.jsonl").touch()
    (place / "pictures").mkdir()
    return place


def surroundings(folder: Path) -> dict[str, str]:
    """The variables of a shell that knows the command and has no settings of its own."""
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    own = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "TERM": "dumb"}
    return {**os.environ, **own, "PATH": path}


class Terminal:
    """An interactive shell on a terminal of its own."""

    def __init__(self, shell: str, folder: Path) -> None:
        if shutil.which(shell) is None:
            pytest.skip(f"{shell} is not installed")
        self.screen, keyboard = os.openpty()
        command = [sys.executable, "-c", OWN_TERMINAL, *START[shell]]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=surroundings(folder),
            stdin=keyboard,
            stdout=keyboard,
            stderr=keyboard,
            start_new_session=True,
        )
        os.close(keyboard)
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        os.write(self.screen, f"PS1='> '; {SETUP[shell]}; echo rea''dy\n".encode())
        self.wait_for(r"ready\r?\n")

    def completed(self, typed: str, expected: str) -> str:
        """Type on an empty line, press Tab; what is on it in the end."""
        os.write(self.screen, b"\x15" + typed.encode() + b"\t")
        told = self.wait_for(re.escape(expected))
        return told[told.rindex("rangevote") :]

    def wait_for(self, pattern: str) -> str:
        told, end = "", time.monotonic() + PATIENCE
        while not re.search(pattern, told):
            left = end - time.monotonic()
            assert left > 0, f"{pattern!r} did not come; there is {told!r}"
            if select.select([self.screen], [], [], left)[0]:
                told += os.read(self.screen, 65536).decode(errors="replace")
        return told

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.screen)


@pytest.fixture(scope="module", params=sorted(SETUP))
def terminal(request: pytest.FixtureRequest, folder: Path) -> Iterator[Terminal]:
    opened = Terminal(request.param, folder)
    yield opened
    opened.close()


@pytest.mark.parametrize(("typed", "line"), LINES, ids=[typed for typed, _ in LINES])
def test_bash_and_zsh_complete_what_is_typed(terminal, typed, line):
    assert terminal.completed(typed, line).rstrip() == line.rstrip()


@pytest.fixture(scope="module")
def fish(folder: Path) -> Path:
    """The folder with the script where fish looks for it."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    script = folder / "config" / "fish" / "completions" / "rangevote.fish"
    script.parent.mkdir(parents=True)
    with script.open("wb") as file:
        subprocess.run([folder / "bin" / "rangevote", "completion", "fish"], stdout=file, check=True)
    return folder


@pytest.mark.parametrize(("typed", "line"), LINES, ids=[typed for typed, _ in LINES])
def test_fish_offers_what_completes_the_line(fish, typed, line):
    offered = in_fish(fish, typed)
    assert [one.partition("\t")[0] for one in offered] == [line.split()[-1]]


def test_fish_shows_a_description_to_its_end(fish):
    assert in_fish(fish, "rangevote vote --pre") == [
        "--preset\tSimilarity and temperature that go together, as 'blend'."
    ]


def in_fish(folder: Path, typed: str) -> list[str]:
    done = subprocess.run(
        ["fish", "-c", f"complete -C '{typed}'"],
        cwd=folder,
        env=surroundings(folder),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()
