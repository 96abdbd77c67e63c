"""The suite of faults itself: that it brings them about, and that it sees a loss."""

from __future__ import annotations

import os
import random
from contextlib import ExitStack
from pathlib import Path

import pytest

from faults.cluster import cluster
from faults.ray_trials import RAY_TRIALS, ray_ways
from faults.runs import WAYS, Bench
from faults.suite import Count, suite, table
from faults.trials import TRIALS, finished
from rangevote.errors import SetupError
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
    assert all(f'"{fault}": ' in script for fault in TRIALS | RAY_TRIALS)


def test_the_table_counts_all():
    told = table({"killed": Count(12, 10, []), "disk full": Count(3, 2, ["disk full, one process: cut"])})
    assert "| **all** | 15 | 12 | **1** |" in told
    assert told.endswith("* disk full, one process: cut\n")


def test_without_ray_its_faults_are_left_out_and_the_table_says_why(bench):
    bench.cluster = "ray is not installed"
    counts = suite(bench, dict.fromkeys(RAY_TRIALS, 12))
    told = table(counts)
    for fault in RAY_TRIALS:
        assert f"| {fault} | - | - | left out: ray is not installed |" in told
    assert "| **all** | 0 | 0 | **0** |" in told


@pytest.mark.slow
def test_nothing_is_lost_on_ray(bench):
    with ExitStack() as stack:
        try:
            bench.cluster = stack.enter_context(cluster())
        except SetupError as error:
            if os.environ.get("RANGEVOTE_NEEDS_RAY"):
                raise
            pytest.skip(str(error))
        whole = [
            bench.whole(way) for way in ray_ways(bench.cluster)
        ]  # that they are those of one process, too
        assert all(whole)
        counts = suite(bench, dict.fromkeys(RAY_TRIALS, 1))
    assert [problem for count in counts.values() for problem in count.lost] == []
    assert [count.happened for count in counts.values()] == [1, 1]
