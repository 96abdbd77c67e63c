"""RESULTS.md is what the recorded results render to, and the same results always give the same page."""

from __future__ import annotations

import json

import pytest
from experiments.page import FIGURES, PAGE, TABLE_PAGE, rendered, write_page
from experiments.settings import HERE

from tests.experiments.made_up import results


@pytest.fixture
def recorded(tmp_path):
    """A folder of results, the paper's own numbers."""
    folder = tmp_path / "results"
    folder.mkdir()
    for experiment in ("captions", "translation"):
        (folder / f"{experiment}-local.json").write_text(json.dumps(results(experiment)))
    return folder


def test_the_pages_of_the_repository_were_made_from_its_results():
    for name, text in rendered(HERE / "results", HERE).items():
        assert (HERE / name).read_text(encoding="utf-8") == text


def test_the_page_of_findings_is_one_that_can_be_read():
    assert len((HERE / PAGE).read_text(encoding="utf-8").splitlines()) < 900


def test_the_figures_of_the_page_are_there_and_not_too_large():
    linked = [
        line.partition("](")[2][:-1] for line in (HERE / PAGE).read_text().splitlines() if "](fig" in line
    ]
    for name in linked:
        for path in (HERE / name, (HERE / name).with_suffix(".png")):
            assert path.stat().st_size < 300_000


def test_every_figure_that_the_page_shows_was_drawn(recorded, tmp_path):
    write_page(recorded, tmp_path)
    text = (tmp_path / PAGE).read_text()
    shown = [line.partition("](")[2][:-1] for line in text.splitlines() if f"]({FIGURES}/" in line]
    assert len(shown) == 3
    assert all((tmp_path / name).is_file() for name in shown)


def test_the_papers_numbers_stand_beside_ours(recorded, tmp_path):
    told = rendered(recorded, tmp_path)[TABLE_PAGE]
    [line] = [line for line in told.splitlines() if line.startswith("| Diverse beam search | **24.04**")]
    cells = [cell.strip() for cell in line.strip("|").split("|")[1:]]
    assert cells[:6] == [f"{cell}±0.00" for cell in cells[6:]]  # our made-up numbers are the paper's


def test_of_one_k_nothing_is_told_about_growing_beams(recorded, tmp_path):
    told = results("captions")
    for numbers in told["systems"]["show_and_tell"]["seeds"].values():
        numbers["methods"] = {
            name: {"10": by_k["10"]} for name, by_k in numbers["methods"].items() if "10" in by_k
        }
    (recorded / "captions-local.json").write_text(json.dumps(told))
    (recorded / "translation-local.json").unlink()
    write_page(recorded, tmp_path)
    text = (tmp_path / PAGE).read_text()
    assert "BLEU-4" in (tmp_path / TABLE_PAGE).read_text()
    assert "What the paper says" not in text
    assert f"]({FIGURES}/" not in text
    assert not list((tmp_path / FIGURES).iterdir())


def test_notes_are_part_of_the_page(recorded, tmp_path):
    (tmp_path / "notes-captions-local.md").write_text("Why it is so.\n")
    assert "\nWhy it is so.\n" in rendered(recorded, tmp_path)[PAGE]


def test_without_results_the_page_says_so(tmp_path):
    assert "No run has been recorded yet" in rendered(tmp_path, tmp_path)[PAGE]
