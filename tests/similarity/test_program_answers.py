"""exact:command=CMD: what the user's program prints is voted on, within limits."""

from __future__ import annotations

import sys
import time

import pytest

import rangevote as rv
from rangevote.similarity.program_answers import Command

PYTHON = f"{sys.executable} -I -S"


def test_programs_that_print_the_same_are_one_answer():
    programs = [
        "print(sum(range(4)))",
        "print(7)",
        "raise SystemExit(1)",
        "print(6)",
        "print(2 * 3)",
        "print(7)",
    ]
    result = rv.elect(programs, similarity=f"exact:command={PYTHON}")
    assert (result.index, result.score) == (0, 0.5)
    assert result.groups[0].candidates == (0, 3, 4)


@pytest.mark.parametrize(
    "program",
    [
        "while True: pass",
        "while True: print('x' * 10**6)",
        "print(1); raise SystemExit(3)",
        "pass",
        "import os, time; os.fork() or time.sleep(60)\nwhile True: pass",
    ],
)
def test_what_fails_prints_nothing_or_has_no_end_abstains(monkeypatch, program):
    monkeypatch.setenv("RANGEVOTE_COMMAND_SECONDS", "0.5")
    began = time.monotonic()
    assert Command(PYTHON)(program) is None
    assert time.monotonic() - began < 20


def test_no_shell_sees_the_command_and_the_text_comes_on_standard_input(tmp_path):
    evil = tmp_path / "made"
    assert Command(f"cat - ';' touch {evil}")("a") is None  # cat has no file of that name
    assert not evil.exists()
    assert Command("cat")("$(ls) é\n") == "$(ls) é"


def test_a_text_is_handed_over_once(tmp_path):
    log = tmp_path / "log"
    log.touch()
    script = tmp_path / "script.py"
    script.write_text(f"import sys\nopen({str(log)!r}, 'a').write('x')\nprint(len(sys.stdin.read()))")
    result = rv.elect(["ab", "cd", "ab", "abc"], similarity=f"exact:command={PYTHON} {script}")
    assert (result.winner, result.margin, len(result.groups)) == ("ab", 0.5, 2)
    assert log.read_text() == "xxx"


def test_a_signature_tells_commands_apart_without_showing_them():
    names = [Command(f"cat --secret={n}").__name__ for n in (1, 2)]
    assert names[0] != names[1]
    assert all(name.startswith("command=cat#") and "secret" not in name for name in names)


def test_a_time_limit_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("RANGEVOTE_COMMAND_SECONDS", "soon")
    with pytest.raises(rv.UsageError, match="RANGEVOTE_COMMAND_SECONDS is 'soon'"):
        Command("cat")
