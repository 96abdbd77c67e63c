"""The fuzzing itself: that it tries everything, sees what is wrong, and tells it truly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.mutate import LONGEST, Mutations, smallest
from fuzz.one import Findings
from fuzz.run import Outcome, Row, read_outcome, read_record, record
from fuzz.targets import TARGETS, attempt, location_of
from rangevote.errors import DataError
from rangevote.formats import FORMATS

ROOT = Path(__file__).parents[2]
SAID = """INFO: Seed: 1
#2	INITED cov: 10 ft: 12 corp: 1/1b exec/s: 0 rss: 59Mb
#1711	DONE   cov: 407 ft: 944 corp: 50/2930b lim: 134 exec/s: 131 rss: 62Mb
Done 1711 runs in 13 second(s)
stat::number_of_executed_units: 1711
stat::average_exec_per_sec:     131
stat::peak_rss_mb:              64
"""


def broken(data: bytes) -> None:
    if b"x" in data:
        raise KeyError("x")
    raise DataError("is refused")


def test_every_format_has_a_target():
    own = {"json": "documents", "jsonl": "ballots"}
    assert {own.get(name, name) for name in FORMATS} <= set(TARGETS)


def test_what_the_interface_allows_is_no_finding_and_the_rest_is():
    assert attempt(broken, b"a") is None
    error = attempt(broken, b"axb")
    assert isinstance(error, KeyError)
    assert location_of(error).startswith("KeyError in test_fuzzing.py:broken:")


def test_a_warning_that_is_not_ours_is_a_finding_and_ours_is_none():
    def overflows(data):
        import numpy as np

        np.exp(np.array([1e4]))

    def tells(data):
        from rangevote.errors import warn

        warn("something")

    assert isinstance(attempt(overflows, b""), RuntimeWarning)
    assert attempt(tells, b"") is None


def test_a_finding_is_shortened_and_written_once(tmp_path, capsys):
    found = Findings(broken, tmp_path)
    for data in (b"abc", b"a long text with an x in it", b"another x"):
        found.attempt(data)
    assert len(found) == 1
    shown, told = sorted(tmp_path.glob("error-*"))
    assert shown.read_bytes() == b"x"
    assert told.read_text().startswith("KeyError in test_fuzzing.py:broken:")
    assert "KeyError in test_fuzzing.py" in capsys.readouterr().err


def test_the_smallest_input_is_found_by_leaving_parts_out():
    assert smallest(b"aaaa(bbbb)cccc", lambda data: b"(" in data and b")" in data) == b"()"


def test_the_same_seed_gives_the_same_inputs_and_another_one_others():
    def some(seed):
        made = Mutations([b'{"a": 1}', b"b c"], [b"token"], seed)
        return [made.next() for _ in range(50)]

    assert some(1) == some(1) != some(2)
    assert max(map(len, some(3))) <= LONGEST
    assert any(b"token" in data for data in some(1))


def test_the_outcome_is_what_libfuzzer_said(tmp_path):
    (tmp_path / "log.txt").write_text(SAID)
    assert read_outcome(tmp_path, 0) == Outcome(1711, 131, 407, 944, 64)


@pytest.mark.parametrize(
    ("name", "told"), [("timeout-1f", "takes too long"), ("oom-2e", "too much memory"), ("crash-3d", "ends")]
)
def test_a_hang_a_blow_up_and_a_crash_are_findings(tmp_path, name, told):
    (tmp_path / "log.txt").write_text(SAID)
    (tmp_path / name).write_bytes(b"x")
    (found,) = read_outcome(tmp_path, 1).findings
    assert told in found
    assert name in found


def test_a_process_that_ends_without_a_word_is_a_finding(tmp_path):
    (tmp_path / "log.txt").write_text("Traceback")
    assert read_outcome(tmp_path, 1).findings == ("the process ended with 1: log.txt",)


def test_too_much_memory_is_a_finding_even_if_nothing_stopped(tmp_path):
    (tmp_path / "log.txt").write_text(SAID.replace("64", "1064"))
    assert read_outcome(tmp_path, 0).findings == ("1064 MB of memory",)


def test_the_record_is_read_as_it_is_written_and_counts_all():
    found = Outcome(5_000, 1, 2, 3, 70, ("KeyError: error-1",))
    rows = {
        "moses": Row.of(Outcome(10, 1, 2, 3, 50), "abc", 10),
        "page questions": Row.of(found, "def", 0.5),
    }
    assert read_record(record(rows)) == rows
    assert "| **all** | | | 10.5 | 5,010 | | | | 70 | **1** |" in record(rows)


@pytest.mark.parametrize(
    ("minutes", "findings", "done"), [(10, (), True), (12, (), True), (9, (), False), (10, ("hang",), False)]
)
def test_a_target_is_done_once_it_had_its_minutes_without_a_finding(minutes, findings, done):
    row = Row.of(Outcome(findings=findings), "abc", minutes)
    assert row.done("abc", 10) is done
    assert not row.done("def", 10)  # the code has changed


@pytest.mark.parametrize("chance", [["--at-random"], []], ids=["at random", "by atheris"])
def test_a_target_is_fuzzed_for_its_time(tmp_path, chance):
    if not chance:
        pytest.importorskip("atheris", reason="atheris is not installed: make fuzz installs it")
    command = [sys.executable, ROOT / "fuzz" / "one.py", "json", "--seconds", "1", "--findings", tmp_path]
    with (tmp_path / "log.txt").open("wb") as log:
        code = subprocess.run([*map(str, command), *chance], stderr=log, cwd=tmp_path).returncode
    outcome = read_outcome(tmp_path, code)
    assert code == 0
    assert outcome.runs > 0
    assert outcome.findings == ()
    assert (outcome.coverage > 0) is not bool(chance)
