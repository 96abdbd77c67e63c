"""CONTRIBUTING.md says where a measure, a rule and a layout are added: adding one there is enough.

An option is added in `Settings`; `tests/election/test_settings.py` checks what is made from it.
"""

from __future__ import annotations

import json

import click.testing
import numpy as np
import pytest

import rangevote as rv
from rangevote.cli import COMMANDS, Commands
from rangevote.election.rules import RULES, RuleOutcome
from rangevote.formats import FORMATS
from rangevote.formats.layouts import LAYOUTS, Layout
from rangevote.similarity import SIMILARITIES, Listing
from rangevote.similarity.pairwise import edit


def command(name, *arguments):
    result = Commands(name="rangevote").get_command(None, name)
    return click.testing.CliRunner().invoke(result, [str(one) for one in arguments])


def test_a_measure_is_one_class_and_one_line_in_similarities(monkeypatch, tmp_path):
    pytest.importorskip("rapidfuzz")
    monkeypatch.setitem(SIMILARITIES, "letters", Listing("pairwise:edit", "letters", "as edit"))
    texts = ["a dog", "a dog runs", "cats"]
    assert rv.elect(texts, similarity="letters").scores.tolist() == pytest.approx(
        rv.elect(texts, similarity=edit("", "words")).scores.tolist()
    )
    assert "letters" in command("similarities").output
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": 1, "candidates": texts}))
    assert "a dog" in command("vote", tmp_path / "in.jsonl", "-s", "letters").output


def test_a_rule_is_one_function_and_one_line_in_rules(monkeypatch, tmp_path):
    def last(contest, winners):
        scores = np.arange(len(contest.candidates), dtype=float)
        return RuleOutcome(scores, tuple(range(len(scores)))[::-1][:winners])

    monkeypatch.setitem(RULES, "last", last)
    assert rv.elect(["a", "a", "b"], rule="last").winner == "b"
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": 1, "candidates": ["a", "a", "b"]}))
    assert json.loads(command("vote", tmp_path / "in.jsonl", "--rule", "last").stdout)["winner"] == "b"


def test_a_layout_is_one_row_in_layouts_and_its_name_in_formats(monkeypatch, tmp_path):
    monkeypatch.setitem(LAYOUTS, "mine", Layout(lists=("answers.all",), ids=("number",)))
    monkeypatch.setitem(FORMATS, "mine", "layouts:decoder")
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"number": 7, "answers": {"all": ["a b", "a c", "a b"]}}))
    result = json.loads(command("vote", path, "--format", "mine").stdout)
    assert (result["id"], result["winner"]) == (7, "a b")


def test_every_command_is_a_file_and_one_line_in_commands():
    for name, help in COMMANDS.items():
        assert Commands(name="rangevote").get_command(None, name).name == name
        assert help.endswith(".")
