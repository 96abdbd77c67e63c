"""The tables that experiments write into the docs are made from their records."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")

from experiments.settings import HERE, ROOT

from experiments import judgement, units
from experiments.steps import write_table

PAGE = ROOT / "docs" / "reference" / "similarities.md"


@pytest.mark.parametrize("experiment", [judgement, units], ids=lambda experiment: experiment.__name__)
def test_the_table_of_the_docs_was_made_from_the_results(experiment, tmp_path):
    page = tmp_path / "page.md"
    page.write_bytes(PAGE.read_bytes())
    record = HERE / "results" / f"{experiment.__name__.rpartition('.')[2]}.json"
    write_table(experiment.table(json.loads(record.read_bytes())), page, experiment.BEGIN, experiment.END)
    assert page.read_bytes() == PAGE.read_bytes()
