"""The suite of faults itself: that it brings them about, and that it sees a loss."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from faults.runs import WAYS, Bench
from faults.suite import Count, suite, table
from faults.trials import TRIALS, finished
from tests.cli.conftest import ballot, lines

ROOT = Path(__file__).parents[2]
ONE = WAYS[:1]


@pytest.fixture
def bench(tmp_path):
    data = tmp_path / "ballots.jsonl"
    data.write_bytes(lines(*(ballot(f"n{i}", f"a b {i % 7}", "a b c", f"c b {i}") for i in range(2000))))
    return Bench(tmp_path, data, random.Random(1))


@pytest.mark.parametrize("fault", sorted(set(TRIALS) - {"two at once"}))
def test_nothing_is_lost(bench, fault):
    found = suite(bench, {fault: 1}, WAYS[2:3] if fault == "worker killed" else ONE)[fault]
    if not found.happened:
        pytest.skip("the run was too quick, or the system did not let the fault happen")
    assert found.lost == []


def test_a_loss_is_seen_and_told(bench):
    way = ONE[0]
    out = bench.fresh(way)
    out.write_bytes(b"".join(bench.whole(way).splitlines(keepends=True)[:-1]))
    assert finished(bench, way, out) == ["the output differs from an undisturbed run's"]
    (out.parent / "out.jsonl.partial").touch()
    assert "out.jsonl.partial was left behind" in finished(bench, way, out)


def test_every_fault_is_tried_by_the_whole_run():
    script = (ROOT / "faults" / "run.py").read_text(encoding="utf-8")
    assert all(f'"{fault}": ' in script for fault in TRIALS)


def test_the_table_counts_all():
    told = table({"killed": Count(12, 10, []), "disk full": Count(3, 2, ["disk full, one process: cut"])})
    assert "| **all** | 15 | 12 | **1** |" in told
    assert told.endswith("* disk full, one process: cut\n")
