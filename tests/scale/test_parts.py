"""Units to parts, without Ray: a part is there as a whole or not at all, and made again when it must be."""

from __future__ import annotations

from pathlib import Path

import pytest

from rangevote.cli import run as run_command
from rangevote.election.settings import Settings
from rangevote.errors import DataError, SetupError
from rangevote.formats import ReadOptions
from rangevote.scale.job import Job
from rangevote.scale.lines import Shape
from tests.scale.samples import lines

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'rangevote[ray]'")

from rangevote.scale.ray.parts import Parts, RunNotes
from rangevote.scale.ray.places import inputs_of, place_of
from rangevote.scale.ray.run import Task, repeated_ids
from rangevote.scale.ray.units import Unit, count_lines, plan

JOB = Job(Settings(), Shape(False, True, False, False), ReadOptions())


def units(path: Path) -> list[Unit]:
    return plan(inputs_of(str(path)), JOB.reading, lambda ranges: [count_lines(*one) for one in ranges], 3000)


def folder(tmp_path: Path, *, tables: bool = False) -> Parts:
    parts = Parts(place_of(str(tmp_path / "out")), JOB.shape, tables=tables)
    parts.begin(RunNotes("f", {}))
    return parts


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_bytes(lines(200, faults=True))
    return path


def local(data: Path, tmp_path: Path) -> bytes:
    out = tmp_path / "local.jsonl"
    assert run_command(["vote", str(data), "-o", str(out), "--scores", "--on-error", "skip", "-q"]) == 4
    return out.read_bytes()


def test_parts_on_end_are_the_output_of_one_run_with_ids_that_are_there_twice(data, tmp_path, capfd):
    listed, parts = units(data), folder(tmp_path)
    assert len(listed) > 5
    for unit in reversed(listed):  # in any order
        assert Task(JOB, parts, skip=True).report(unit).error is None
    taken = repeated_ids(parts, len(listed))
    assert list(taken.values()) == [frozenset({"n0"})]
    for unit in listed:
        if unit.number in taken:
            Task(JOB, parts, skip=True, taken=taken).report(unit)
    written = b"".join(line for unit in listed for line in parts.lines(unit.number))
    assert written == local(data, tmp_path)
    assert b"".join(p.read_bytes() for p in sorted((tmp_path / "out").glob("*.jsonl"))) == written


def test_a_part_counts_only_if_it_is_whole_and_of_the_same_unit(data, tmp_path):
    listed, parts = units(data), folder(tmp_path)
    unit = listed[0]
    assert parts.done(unit) is None
    notes = Task(JOB, parts, skip=True).report(unit).notes
    assert notes is not None
    assert parts.done(unit) == notes
    part = tmp_path / "out" / "part-00000.jsonl"
    whole = part.read_bytes()
    part.write_bytes(whole[:-1])  # cut off
    assert parts.done(unit) is None
    part.write_bytes(whole)
    assert parts.done(unit) == notes
    read = data.read_bytes()
    data.write_bytes(read + b"\n")  # another file, the same unit
    assert parts.done(units(data)[0]) == notes
    data.write_bytes(read.replace(b"a", b"b", 1))
    assert parts.done(units(data)[0]) is None
    data.write_bytes(read)
    parts.begin(RunNotes("other options", {}))
    assert parts.done(units(data)[0]) is None
    parts.begin(RunNotes("f", {}))
    assert parts.done(units(data)[0]) == notes
    (tmp_path / "out/_rangevote/part-00000.json").write_bytes(b"{")  # notes that are torn
    assert parts.done(unit) is None


def test_a_bad_ballot_leaves_no_part_and_is_named(data, tmp_path):
    parts = folder(tmp_path)
    found = [Task(JOB, parts, skip=False).report(unit) for unit in units(data)]
    (failed,) = [report for report in found if report.error is not None]
    assert isinstance(failed.error, DataError)
    assert f"{data}:53: not valid JSON" in str(failed.error)
    assert not (tmp_path / "out" / f"part-{failed.number:05}.jsonl").exists()


def test_a_disk_that_is_full_is_told_not_raised(data, tmp_path, monkeypatch):
    from rangevote.scale.ray.places import Place

    def full(self: Place, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    parts = folder(tmp_path)
    monkeypatch.setattr(Place, "write", full)
    report = Task(JOB, parts, skip=True).report(units(data)[0])
    assert isinstance(report.error, SetupError)
    assert "part-00000.jsonl: no space left on device." in str(report.error)


def test_parts_of_an_earlier_plan_and_half_written_ones_are_dropped_and_nothing_else(data, tmp_path):
    parts = folder(tmp_path)
    for unit in units(data)[:4]:
        Task(JOB, parts, skip=True).report(unit)
    out = tmp_path / "out"
    (out / "part-00001.jsonl.tmp-7").write_bytes(b"half")
    (out / "mine.txt").write_text("keep")
    parts.finish(RunNotes("f", {}, complete=True, parts=2))
    assert sorted(p.name for p in out.iterdir()) == [
        "_rangevote",
        "mine.txt",
        "part-00000.jsonl",
        "part-00001.jsonl",
    ]
    run = parts.run()
    assert run is not None
    assert run.complete
    parts.clear()
    assert [p.name for p in out.iterdir()] == ["mine.txt"]
    assert parts.run() is None


def test_parts_as_tables_hold_the_same_ids(data, tmp_path):
    listed = units(data)
    tables = folder(tmp_path, tables=True)
    for unit in listed:
        assert Task(JOB, tables, skip=True).report(unit).error is None
    assert repeated_ids(tables, len(listed)).popitem()[1] == frozenset({"n0"})
    assert sum(len(list(tables.ids(unit.number))) for unit in listed) == 200


def test_notes_of_a_run_that_cannot_be_read_are_named(tmp_path):
    parts = folder(tmp_path)
    (tmp_path / "out/_rangevote/run.json").write_bytes(b"{")
    with pytest.raises(SetupError, match=r"run.json cannot be read. Use --force to start again."):
        parts.run()
