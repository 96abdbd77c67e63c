"""`rangevote panel report`: tables, pictures and pages of a panel, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import lines

ANSWERS = ["-s", "exact:last_number"]


def answered(id: int, answers: dict[str, str], **fields: Any) -> dict[str, Any]:
    """A ballot in which each member has one answer."""
    candidates = [{"text": text, "member": member} for member, text in answers.items()]
    return {"id": id, "candidates": candidates, **fields}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "panel.jsonl"
    ballots = (
        answered(1, {"a": "it is 3", "b": "3", "c": "4"}, meta={"gold": 3}),
        answered(2, {"a": "1", "b": "2", "c": "2"}, meta={"gold": "2"}),
        answered(3, {"a": "7", "b": "7", "c": "7"}, meta={"gold": 8}),
    )
    path.write_bytes(lines(*ballots))
    return path


def test_tables_of_members_accuracy_and_agreement_on_standard_output(run, file):
    done = run("panel", "report", file, *ANSWERS, "--gold", "meta.gold")
    assert done.code == 0, done.err
    text = done.out.decode()
    assert text.count("\nmember ") == 3
    assert "The panel is right in 66.7 %" in text
    assert "; the best member alone, b, in 66.7 %." in text
    plain = run("panel", "report", file, *ANSWERS).out.decode()
    assert "accuracy %" not in plain
    assert "agreement %" in plain
    assert "| member |" in run("panel", "report", file, "--to", "markdown").out.decode()


def test_json_has_every_number(run, file):
    done = run("panel", "report", file, *ANSWERS, "--gold", "meta.gold", "--json")
    report = json.loads(done.out)
    assert (report["ballots"], report["elected"], report["measure"]) == (3, 3, "exact:last_number")
    members = {member["name"]: member for member in report["members"]}
    assert {name: m["wins"] for name, m in members.items()} == {"a": 2, "b": 3, "c": 2}
    assert members["b"]["accuracy"] == pytest.approx(2 / 3)
    assert len(report["matrix"]) == 3


def test_the_name_of_the_output_decides_what_is_written(run, file, tmp_path):
    for name, start in (
        ("report.html", b"<!doctype html>"),
        ("matrix.png", b"\x89PNG"),
        ("matrix.svg", b"<?xml"),
        ("report.json", b"{"),
        ("report.txt", b"Members of the panel"),
    ):
        done = run("panel", "report", file, *ANSWERS, "-o", tmp_path / name)
        assert (done.code, done.out) == (0, b""), done.err
        assert (tmp_path / name).read_bytes().startswith(start)
    assert run("panel", "report", file, "-o", tmp_path / "report.html").code == 5  # there already
    assert run("panel", "report", file, "-o", tmp_path / "report.html", "--force").code == 0


def test_several_files_are_members_too(run, tmp_path):
    for name, texts in {"x": ["1", "2"], "y": ["1", "3"], "z": ["1", "3"]}.items():
        records = ({"id": i, "candidates": [text]} for i, text in enumerate(texts))
        (tmp_path / f"{name}.jsonl").write_bytes(lines(*records))
    files = [tmp_path / f"{name}.jsonl" for name in "xyz"]
    report = json.loads(run("panel", "report", *files, *ANSWERS, "--json").out)
    members = {member["name"]: member for member in report["members"]}
    assert {name: m["wins"] for name, m in members.items()} == {"x": 1, "y": 2, "z": 2}
    assert members["x"]["share"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("content", "options", "code", "message"),
    [
        (answered(1, {"a": "1"}), [], 3, "'a' is the only member"),
        (answered(1, {"a": "1", "b": "1"}, gold={}), ["--gold", "gold"], 3, "other.jsonl:1: gold: is"),
        (answered(1, {"a": "1", "b": "1"}), ["-o", "other.jsonl"], 2, "is one of the inputs"),
    ],
)
def test_what_cannot_be_reported_is_refused_with_its_place(
    run, tmp_path, monkeypatch, content, options, code, message
):
    monkeypatch.chdir(tmp_path)
    Path("other.jsonl").write_bytes(lines(content))
    done = run("panel", "report", "other.jsonl", *ANSWERS, *options)
    assert (done.code, message in done.err) == (code, True), done.err


def test_a_panel_has_a_file(run):
    assert run("panel", "report").code == 2
