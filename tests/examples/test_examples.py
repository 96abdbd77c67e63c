"""Every example runs, on tiny models under the real names or on the lists it brings, and is short."""

from __future__ import annotations

import ast
import importlib
import json
import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGE = EXAMPLES / "README.md"
#: Needs vLLM and a graphics card.
NOT_RUN = "with_vllm.py"


@pytest.fixture
def run(monkeypatch, capsys):
    """Run an example as a program; what it printed, line by line."""

    def run(name: str, *arguments: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return run


def test_translation(run, furnished):
    lines = run("translate.py", "Helsinki-NLP/opus-mt-en-de", "the dog runs", "a man sleeps")
    assert [line.split(":")[0].strip() for line in lines[:3]] == ["the dog runs", "most likely", "elected"]
    assert lines[3].endswith("100 voters")
    assert lines[4] == "a man sleeps"


def test_captions(run, furnished):
    [caption, why] = run("caption.py", "photo.png")
    assert re.fullmatch(r"photo\.png: \S.*", caption)
    assert re.fullmatch(r"  score [01]\.\d{3}, most of it for: \S.*", why)


def test_answers_by_consensus(run, furnished):
    lines = run("answers.py")
    assert "the most representative answer by its words:" in lines
    assert lines[-1].strip()


def test_adaptive_voters_elect_the_same_with_fewer(run):
    lines = run("adaptive.py")
    winners = [re.search(r"'([^']+)' by (\d+)", line).groups() for line in lines]  # type: ignore[union-attr]
    assert [winner for winner, _ in winners[::2]] == [winner for winner, _ in winners[1::2]]
    assert [int(voters) for _, voters in winners[::2]] == [2000, 2000]
    assert int(winners[1][1]) < 500  # of trains the model is sure


def test_a_similarity_of_ones_own(run):
    by_words, by_details, in_one_call, by_both, signature = run("own_similarity.py")
    assert "monday" in by_words
    assert "tuesday" in by_details
    assert by_details.split(":")[1].strip() == in_one_call.split(":")[1].strip()
    assert "tuesday" in by_both
    assert "sim:0.5*overlap_2+0.5*same_details" in signature


def test_reweighted_winners_differ_more_than_the_highest_scores(run):
    lines = run("reweighted.py")
    highest, shared = lines[1:4], lines[5:8]
    assert highest[0] == shared[0]
    assert sum("couple" in line for line in highest) == 2
    assert sum("couple" in line for line in shared) == 1


def test_the_notebook_runs_and_draws_the_election(monkeypatch):
    """A notebook shows figures of pyplot only."""
    plt = pytest.importorskip("matplotlib.pyplot", reason="the extra 'evaluate' is not installed")
    figures = []
    monkeypatch.setattr(plt, "show", lambda: figures.extend(map(plt.figure, plt.get_fignums())))
    notebook = json.loads((EXAMPLES / "election.ipynb").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    shown = [
        value_of("".join(cell["source"]), names) for cell in notebook["cells"] if cell["cell_type"] == "code"
    ]
    assert all(cell.get("outputs", []) == [] for cell in notebook["cells"])
    drawn = shown[0]
    text = re.sub(r"<[^>]+>", "", drawn._repr_html_())  # each word is shaded by its votes
    assert "a black and white photo of a man sitting on a bench" in text
    assert [len(axes.patches) for figure in figures for axes in figure.axes] == [20]  # two bars per caption
    plt.close("all")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")
def test_a_pipeline_of_ray_resumes_by_its_checkpoint(run, tmp_path):
    pytest.importorskip("ray", reason="the extra 'ray' is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = importlib.import_module("pyarrow").table({"id": [1, 2], "prompt": ["a man", "a dog"]})
    parquet.write_table(table, tmp_path / "prompts.parquet")
    arguments = [str(tmp_path / name) for name in ("prompts.parquet", "winners", "progress")]
    for _ in range(2):  # the second run finds everything done
        run("ray_pipeline.py", *arguments)
        assert sorted(parquet.read_table(tmp_path / "winners")["id"].to_pylist()) == [1, 2]


def value_of(source: str, names: dict[str, object]):
    """Run a cell; what Jupyter would show below it: the value of its last line, where it is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None


def test_what_is_not_run_uses_names_that_exist():
    tree = ast.parse((EXAMPLES / NOT_RUN).read_text(encoding="utf-8"))
    ours = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rangevote")
    ]
    assert ours
    for node in ours:
        for alias in node.names:
            assert hasattr(importlib.import_module(str(node.module)), alias.name)
    import rangevote

    used = {
        n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "rv"
    }
    assert used <= set(rangevote.__all__)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_is_short_tested_and_on_the_page(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    assert f"]({path.name})" in PAGE.read_text(encoding="utf-8")
    tests = "".join(p.read_text(encoding="utf-8") for p in Path(__file__).parents[1].rglob("test_*.py"))
    assert f'"{path.name}"' in tests
