"""The pages' modules under TypeScript's strict checker, and the types that they name against real answers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rangevote.evaluation import panel_report
from rangevote.web import api

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
    text = (FOLDERS[0] / "answers.d.ts").read_text()
    checked = 0
    for name in re.findall(r"interface (\w+)", text):
        struct = getattr(api, name, None) or getattr(panel_report, name, None)
        if struct is not None:
            checked += 1
            assert declared(name) | OPTIONAL.get(name, set()) == set(struct.__struct_fields__), name
    assert checked == 17


#: Fields that an answer may lack.
OPTIONAL = {"Voter": {"text", "more", "units"}, "Won": {"why"}}
