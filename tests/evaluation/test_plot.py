"""Pictures: baselines dashed, voting solid, references a line; and where systems stand on curves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rangevote.errors import MissingExtra, SetupError, UsageError
from rangevote.evaluation.evaluate import compare
from rangevote.evaluation.plot import Curve, CurvePoint, Panel, panels_of, plot_curves, point_of

pytest.importorskip("matplotlib")

# lengths of table 5 of the paper
K = [1, 10, 100]
PANEL = Panel(
    "length (words)",
    [
        Curve("Beam search", K, [19.74, 19.15, 17.99], baseline=True),
        Curve("overlap_2", K, [19.66, 19.67, 19.39], spread=[0.1, 0.1, 0.2]),
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


@pytest.mark.parametrize(
    ("panels", "message"),
    [
        ([], r"there is nothing to draw"),
        ([Panel("x", [Curve("a", [1, 2], [1])])], r"the curve 'a' must have a y for every x"),
        ([Panel("x", [Curve("a", [1], [1], spread=[1, 2])])], r"the curve 'a' must have a y for every x"),
        ([Panel("x", [Curve("a", [0], [1])])], r"the curve 'a' has an x of 0; it must be above 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path, panels, message):
    with pytest.raises(UsageError, match=message):
        plot_curves(panels, tmp_path / "f.svg")


def test_other_kinds_of_files_are_refused_and_folders_that_are_not_there_named(tmp_path):
    with pytest.raises(UsageError, match=r"its name must end in \.svg, \.png, \.pdf"):
        plot_curves([PANEL], "f.gif")
    with pytest.raises(SetupError, match=r"cannot write .*f\.svg: no such file or directory"):
        plot_curves([PANEL], tmp_path / "none" / "f.svg")


def test_a_missing_matplotlib_names_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r'drawing needs the package .*"rangevote\[evaluate\]"'):
        plot_curves([PANEL], Path("f.svg"))


SIGNED = "rv:0.3|sim:overlap_2|on:space|w:probability|T:1|cand:{}|vot:{}|tie:score,logprob,first"


def test_a_signature_tells_method_and_k_or_voters():
    elections = [SIGNED.format(9, 500), SIGNED.format(10, 1000)]  # a beam may fall short of its k
    assert point_of(elections) == CurvePoint("overlap_2", 10)
    assert point_of(elections, "voters") == CurvePoint("overlap_2", 1000)
    assert point_of(["sim:overlap_2|w:probability|T:2|cand:4|vot:4"]) == CurvePoint("overlap_2, T = 2", 4)
    likely = "sim:overlap_2|w:probability|T:1|rule:most_likely|cand:4|vot:4"
    assert point_of([likely]) == CurvePoint("most_likely", 4, baseline=True)
    assert point_of(["sim:chrf|rule:reweighted|cand:4|vot:4"]) == CurvePoint("chrf, reweighted", 4)


@pytest.mark.parametrize("signatures", [[], ["something"], [SIGNED.format(4, 4), "sim:chrf|cand:4|vot:4"]])
def test_signatures_that_tell_no_place_or_two_give_none(signatures):
    assert point_of(signatures) is None


def test_a_comparison_becomes_a_panel_a_metric_and_a_curve_a_method():
    systems = {"b10": ["a b", "c"], "b2": ["a b c", "d"], "v2": ["a", "b"]}
    found = compare(systems, ["a b c", "d"], metrics=["length", "distinct_outputs"], resamples=0)
    places = {
        "b10": CurvePoint("beam", 10, True),
        "b2": CurvePoint("beam", 2, True),
        "v2": CurvePoint("vote", 2),
    }
    length, outputs = panels_of(found, places)
    assert length == Panel("length", [Curve("beam", [2, 10], [2, 1.5], True), Curve("vote", [2], [1])], 2)
    assert outputs.label == "distinct outputs"
