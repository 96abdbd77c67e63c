"""Every code block of the documentation runs, and prints what it says it prints.

Blocks of one page run in order, in a folder that has examples/: `python` in one namespace, `console` line by
line; a block with a title is a file of that name. `sh` is for what a test cannot run (downloads, servers):
its options must exist, and what `make` is told to make. `py` blocks have tests of their own, beside those of
what they show.
"""

from __future__ import annotations

import re
import shlex
import sys

import pytest

from rangevote.cli import COMMANDS, Commands, run
from tests.docs.blocks import PAGES, ROOT, Block, blocks, commands, lines_of, name_of
from tests.docs.conftest import STAND_INS

#: Pages with blocks of the language `py`: tests/service, tests/similarity and tests/integrations run those.
TESTED_ELSEWHERE = {"serve.md", "similarities.md", "tools.md"}
PROMISE = re.compile(r"^\s*print\(.*\)\s+# (.*)$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_blocks_of_a_page_run_and_print_what_they_say(page, request, capfd):
    text = page.read_text(encoding="utf-8")
    drawn = any(name in text for name in STAND_INS)
    place = request.getfixturevalue("furnished" if drawn else "place")
    names: dict[str, object] = {"__name__": "__page__"}
    for block in blocks(page):
        if block.language == "python" and not block.title:
            exec(compile(block.text, str(page), "exec"), names)
            check_prints(block, capfd.readouterr().out, drawn)
        elif block.language == "console":
            run_commands(block, capfd)
        elif block.title and (block.language != "python" or block.title.endswith(".py")):
            (place / block.title).write_text(block.text, encoding="utf-8")


def check_prints(block: Block, printed: str, drawn: bool) -> None:
    """What is printed is what the comments say; nobody can say it of a model whose weights were `drawn`."""
    promised = PROMISE.findall(block.text)
    if drawn and not promised:
        assert bool(printed) == ("print(" in block.text)
    else:
        assert printed.splitlines() == promised


def run_commands(block: Block, capfd: pytest.CaptureFixture[str]) -> None:
    """Run every command of the block; what stands below it is what it prints."""
    for command in commands(block):
        program, *arguments = shlex.split(command.line, comments=True)
        if program == "make":  # it is told below whether the Makefile knows it
            continue
        assert program == "rangevote", command.line
        code = run(arguments)
        sys.stdout.flush()
        out, err = capfd.readouterr()
        assert code == 0, (command.line, err)
        assert not command.prints or out.splitlines() == command.prints, command.line


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_that_a_page_shows_exists_with_its_options(page):
    for line in lines_of(page):
        for words in (part.split() for part in line.split(" | ")):
            if words[0] == "rangevote":
                check_options(words[1:], line)
            elif words[0] == "make":
                assert re.search(
                    rf"^[a-z -]*\b{words[1]}\b[a-z -]*:", (ROOT / "Makefile").read_text(), re.M
                ), line


def check_options(words: list[str], line: str) -> None:
    assert words[0] in COMMANDS, line
    command = Commands(name="rangevote").get_command(None, words[0])
    if hasattr(command, "commands"):  # rangevote study new
        command = command.commands[words[1]]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    given = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert given <= known, (line, given - known)


def test_every_block_has_a_language_that_is_run_read_or_shown():
    """Python is never left unrun by the name it is given, but for the service's client and mbrs."""
    for page in PAGES:
        for block in blocks(page):
            known = {"python", "py", "console", "sh", "json", "toml", "yaml", "text"}
            assert block.language in known, (page, block)
            assert block.language != "py" or page.name in TESTED_ELSEWHERE, page
            written = block.title == "mbrs" or block.title.endswith(".py")
            assert written or block.language != "python" or not block.title, page
