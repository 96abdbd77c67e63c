"""Pictures: baselines dashed, voting solid, references a line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rangevote.errors import MissingExtra, SetupError, UsageError
from rangevote.evaluation.evaluate import compare
from rangevote.evaluation.plot import Curve, Panel, panels_of, plot_curves

pytest.importorskip("matplotlib")

# lengths of table 5 of the paper
K = [1, 10, 100]
PANEL = Panel(
    "length (words)",
    [
        Curve("Beam search", K, [19.74, 19.15, 17.99], baseline=True),
        Curve("overlap_2", K, [19.66, 19.67, 19.39], intervals=[(19.5, 19.8), (19.6, 19.8), (19.1, 19.5)]),
    ],
    reference=21.66,
)


def lines_of(svg):
    """The styles of the curves of an SVG file; axes and ticks are not clipped."""
    return re.findall(
        r'<path d="[^"]*" clip-path="[^"]*" style="(fill: none;[^"]*stroke-width: 1\.4[^"]*)"', svg
    )


def test_baselines_are_dashed_and_voting_and_references_are_solid(tmp_path):
    plot_curves([PANEL], tmp_path / "f.svg")
    plot_curves([PANEL], tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == (tmp_path / "f.svg").read_bytes()
    reference, baseline, voting = lines_of((tmp_path / "f.svg").read_text())
    assert "stroke-dasharray" in baseline
    assert "stroke-dasharray" not in voting
    assert "stroke: #000000" in reference
    assert "stroke-dasharray" not in reference


@pytest.mark.parametrize(("name", "magic"), [("f.PNG", b"\x89PNG\r\n"), ("f.pdf", b"%PDF-")])
def test_the_ending_tells_the_kind(tmp_path, name, magic):
    plot_curves([PANEL], tmp_path / name, x_label="number of voters")
    assert (tmp_path / name).read_bytes().startswith(magic)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_other_kinds_of_files_are_refused_and_folders_that_are_not_there_named(tmp_path):
    with pytest.raises(UsageError, match=r"its name must end in \.svg, \.png, \.pdf"):
        plot_curves([PANEL], "f.gif")
    with pytest.raises(SetupError, match=r"cannot write .*f\.svg: no such file or directory"):
        plot_curves([PANEL], tmp_path / "none" / "f.svg")


def test_a_missing_matplotlib_names_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r'drawing needs the package .*"rangevote\[evaluate\]"'):
        plot_curves([PANEL], Path("f.svg"))


def test_a_comparison_becomes_a_panel_a_metric_and_a_curve_a_method():
    systems = {"b10": ["a b", "c"], "b2": ["a b c", "d"], "v2": ["a", "b"]}
    found = compare(systems, ["a b c", "d"], metrics=["length", "distinct_outputs"], resamples=0)
    points = {"b10": ("beam", 10), "b2": ("beam", 2), "v2": ("vote", 2)}
    length, outputs = panels_of(found, points, ["beam"])
    assert length == Panel("length", [Curve("beam", (2, 10), (2, 1.5), True), Curve("vote", (2,), (1,))], 2)
    assert outputs.label == "distinct outputs"
