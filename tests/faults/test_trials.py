"""The suite of faults itself: that it brings them about, and that it sees a loss."""

from __future__ import annotations

import random

import pytest

from faults.trials import TRIALS, WAYS, Bench, Count, finished, repeat, table
from tests.cli.conftest import ballot, lines


@pytest.fixture
def bench(tmp_path):
    data = tmp_path / "ballots.jsonl"
    data.write_bytes(lines(*(ballot(f"n{i}", f"a b {i % 7}", "a b c", f"c b {i}") for i in range(2000))))
    return Bench(tmp_path, data, random.Random(1))


@pytest.mark.parametrize("fault", sorted(set(TRIALS) - {"two at once"}))
def test_nothing_is_lost(bench, fault):
    count = repeat(bench, fault, 1, WAYS if fault == "worker killed" else WAYS[:1])
    if not count.happened:
        pytest.skip("the run was too quick, or the system did not let the fault happen")
    assert count.lost == []


def test_a_loss_is_seen_and_reported(bench):
    way = WAYS[0]
    out = bench.new_output(way)
    out.write_bytes(b"".join(bench.whole(way).splitlines(keepends=True)[:-1]))
    (out.parent / "out.jsonl.draft").touch()
    lost = finished(bench, way, out)
    assert lost == ["the output differs from an undisturbed run's", "out.jsonl.draft was left behind"]
    text = table({"killed": Count(12, 10, []), "disk full": Count(3, 2, ["disk full, one process: cut"])})
    assert "| **all** | 15 | 12 | **1** |" in text
    assert text.endswith("* disk full, one process: cut\n")
