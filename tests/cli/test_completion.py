"""rangevote completion: what the shells ask, and what they are answered."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rangevote.cli import COMMANDS
from rangevote.cli.completion import measures
from rangevote.similarity import PRESETS, listings

SHELLS = ("bash", "zsh", "fish")


#: Completes many lines in one process of its own: completing changes the commands' options for good.
ANSWER = """
import json, os, sys
from click.shell_completion import get_completion_class
from rangevote.cli import cli
from rangevote.cli.completion import VARIABLE, prepare
prepare(cli)
for line in sys.stdin:
    shell, words = json.loads(line)
    os.environ["COMP_WORDS"] = "\\n".join(["rangevote", *words])
    os.environ["COMP_CWORD"] = words[-1] if shell == "fish" else str(len(words))
    print(json.dumps(get_completion_class(shell)(cli, {}, "rangevote", VARIABLE).complete()), flush=True)
"""

Ask = Callable[..., list[str]]


@pytest.fixture(scope="module")
def asked() -> Iterator[Ask]:
    """What a shell is answered for a line whose last word is being completed: lines of click's protocol."""
    process = subprocess.Popen(
        [sys.executable, "-c", ANSWER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def ask(shell: str, *words: str) -> list[str]:
        process.stdin.write(json.dumps([shell, words]) + "\n")
        process.stdin.flush()
        answer: str = json.loads(process.stdout.readline())
        return answer.splitlines()

    yield ask
    process.stdin.close()
    process.stdout.close()
    assert process.wait(60) == 0


@pytest.fixture
def plain(asked: Ask) -> Ask:
    """The values that bash is offered."""

    def ask(*words: str) -> list[str]:
        answers = asked("bash", *words)
        assert all(line.startswith("plain,") for line in answers)
        return [line.removeprefix("plain,") for line in answers]

    return ask


def test_the_command_answers_when_a_shell_asks_it():
    environment = {"_RANGEVOTE_COMPLETE": "bash_complete", "COMP_WORDS": "rangevote\nvote\n-s\nexact\n:\nla"}
    done = subprocess.run(
        [sys.executable, "-m", "rangevote"],
        capture_output=True,
        text=True,
        env={**os.environ, **environment, "COMP_CWORD": "5"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["plain,last_letter", "plain,last_number"]


def test_every_command_is_completed(plain):
    assert plain("") == sorted(COMMANDS)
    assert plain("vo") == ["vote"]
    assert plain("study", "re") == ["report"]


def test_options_are_completed(plain):
    assert plain("vote", "--pre") == ["--preset"]


def test_measures_are_completed(plain):
    assert plain("vote", "--similarity", "") == measures()
    assert plain("vote", "-s", "smo") == ["smoothed_bleu_4"]
    assert {"bertscore", "blend", "exact:last_number", "overlap_1-4"} <= set(measures())
    assert {listing.example for listing in listings().values()} | set(PRESETS) <= set(measures())


def test_every_measure_that_is_offered_can_be_used():
    import rangevote as rv

    for name in measures():
        if not name.endswith(":"):  # a model's name is to follow
            assert rv.get_similarity(name)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("vote", "--preset", ""), ["blend"]),
        (("vote", "--rule", "r"), ["range", "reweighted"]),
        (("vote", "--weights", "c"), ["count"]),
        (("show", "--tokenize", "i"), ["intl"]),
        (("vote", "--normalize", "NFK"), ["NFKC", "NFKD"]),
        (("convert", "x", "--to", "mo"), ["moses"]),
        (("vote", "--format", "so"), ["sockeye"]),
        (("evaluate", "--metric", "ch"), ["chrf"]),
        (("vote", "--on-error", "s"), ["stop", "skip"]),
        (("generate", "--candidates", "b"), ["beam:"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_names_are_completed(plain, words, offered):
    assert plain(*words) == offered


@pytest.mark.parametrize(
    "words",
    [("vote", ""), ("vote", "-o", ""), ("vote", "--profile", ""), ("compare", ""), ("study", "report", "")],
    ids=" ".join,
)
def test_files_are_left_to_the_shell(asked, words):
    assert [line.split(",")[0] for line in asked("bash", *words)] == ["file"]
    assert asked("zsh", *words)[0] == "file"
    assert asked("fish", *words)[0].startswith("file")


def test_folders_are_left_to_the_shell(asked):
    assert asked("bash", "study", "new", "--image-root", "")[0].startswith("dir,")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("vote", "-s", "exact", ":", "la"), ["last_letter", "last_number"]),
        (("vote", "-s", "exact", ":"), ["boxed", "last_letter", "last_number", "plain"]),
        (("vote", "--similarity", "=", "chr"), ["chrf"]),
        (("vote", "--similarity", "=", "exact", ":", "b"), ["boxed"]),
        (("vote", "-s", "exact", ":", "plain", "--rule", "ra"), ["range"]),
        (("vote", "-s", "exact:la"), ["exact:last_letter", "exact:last_number"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bash_splits_at_colons_and_is_answered_for_the_last_part(plain, words, offered):
    assert plain(*words) == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_behind_an_equals_sign_the_whole_word_is_answered(asked, shell):
    answer = asked(shell, "vote", "--similarity=chr")
    assert answer[:2] == ["plain", "--similarity=chrf"] or answer == ["plain,--similarity=chrf"]
    assert asked(shell, "vote", "--output=x")[:1] in (["file"], ["file,x"])


def test_zsh_and_fish_are_answered_in_their_own_form(asked):
    assert asked("zsh", "vote", "-s", "smo")[:3] == ["plain", "smoothed_bleu_4", "_"]
    assert asked("fish", "vote", "-s", "smo")[0].split("\t")[0].split("\n")[0].startswith("plain")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_printed_and_asks_in_the_way_that_is_answered(run, shell):
    done = run("completion", shell)
    assert (done.code, done.err) == (0, "")
    script = done.out.decode()
    assert f"_RANGEVOTE_COMPLETE={shell}_complete" in script
    assert "%(" not in script


def test_another_shell_is_refused(run):
    done = run("completion", "tcsh")
    assert done.code == 2
    assert "'bash', 'zsh', 'fish'" in done.err


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_itself_takes_the_script(run, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = run("completion", shell).out
    done = subprocess.run([shell, "-n"], input=script, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_documentation_tells_how_to_switch_it_on(run):
    told = run("completion", "--help").out.decode()
    for shell in SHELLS:
        assert f"rangevote completion {shell}" in told
    page = (Path(__file__).parents[2] / "docs" / "install.md").read_text()
    for shell in SHELLS:
        assert f"rangevote completion {shell}" in page
