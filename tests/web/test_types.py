"""The pages' modules under TypeScript's strict checker, and the types that they name against real answers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.web.samples import FIGURE, ballot, page_of

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / "src" / "rangevote" / name / "static" for name in ("web", "study")]
HOW = "no type checker for JavaScript: apt-get install node-typescript"


def test_every_module_is_typed_without_a_fault():
    checker = shutil.which("tsc")
    if os.environ.get("RANGEVOTE_NEEDS_TSC"):  # in CI one that is missing is a failure
        assert checker is not None, HOW
    elif checker is None:
        pytest.skip(HOW)
    command = [checker, "--project", ROOT / "tsconfig.json", "--listFiles"]
    found = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    lines = found.stdout.splitlines()
    assert [line for line in lines if "error TS" in line] == []
    assert found.returncode == 0
    modules = {str(file) for folder in FOLDERS for file in folder.glob("*.js")}
    assert len(modules) > 20
    assert modules <= set(lines)


def test_nothing_that_is_passed_on_is_of_any_type():
    """Where all is `any`, a checker checks nothing."""
    for folder in FOLDERS:
        for file in folder.glob("*.js"):
            assert re.findall(r"@(?:param|property|typedef) \{\(?any.*", file.read_text()) == [], file.name


def declared(name: str) -> set[str]:
    """The fields that answers.d.ts gives an interface, those it inherits too; without those that may lack."""
    text = (FOLDERS[0] / "answers.d.ts").read_text()
    head, body = re.search(rf"interface {name}([^{{]*)\{{\n(.*?)\n\}}", text, re.DOTALL).groups()
    above = set().union(*(declared(base) for base in re.findall(r"extends (\w+)", head) if base != "Partial"))
    return set(re.findall(r"^  (\w+):", body, re.MULTILINE)) | above


def test_the_types_have_the_fields_of_the_answers():
    page = page_of([FIGURE, ballot(["a b"], voters=ballot(["a b", "c"]).candidates)])
    election = page.election(0, 0)
    found = {
        "About": page.about(),
        "BallotPage": page.page(0),
        "Election": election,
        "Measure": election["measure"],
        "Candidate": election["candidates"]["rows"][0],
        "Voter": election["voters"]["rows"][0],
        "Grades": page.grades(0, 0),
        "Parts": page.parts(0, 0, 0),
        "Earned": page.parts(0, 0, 0)["earned"],
        "Listed": page.page(0)["ballots"][0],
        "Group": election["groups"][0],
        "Winners": page.winners(0, 0),
        "Won": page.winners(0, 0)["measures"][0],
        "Stability": election["stability"],
    }
    for name, answer in found.items():
        assert set(answer) == declared(name), name
    other = page.election(1, 0)["voters"]["rows"][0]
    assert set(other) == declared("Voter") | declared("Text")
