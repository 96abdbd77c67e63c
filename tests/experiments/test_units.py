"""Words against white space: what is compared, and the table of the docs."""

from __future__ import annotations

import json

import pytest
from experiments.settings import HERE, ROOT
from experiments.units import BEGIN, END, LISTS, compare, table

import rangevote as rv
from experiments.steps import write_table


def test_the_table_of_the_docs_was_made_from_the_results(tmp_path):
    page = tmp_path / "page.md"
    docs = ROOT / "docs" / "reference" / "similarities.md"
    page.write_bytes(docs.read_bytes())
    data = json.loads((HERE / "results" / "units.json").read_bytes())
    assert list(data) == list(LISTS)
    write_table(table(data), page, BEGIN, END)
    assert page.read_bytes() == docs.read_bytes()


def test_units_are_compared_on_the_same_candidates():
    pytest.importorskip("sacrebleu")
    texts = ["Nine.", "It is TEN!", "ten"]
    ballot = rv.Ballot([rv.Hypothesis(text, sampled=True) for text in texts], references=("It is TEN!",))
    found = compare([ballot], {"similarity": "overlap_1"})
    assert (found["ballots"], found["same"]) == (1, 0.0)
    assert found["chrf"]["space"] + found["chrf"]["words"] == pytest.approx(100)
