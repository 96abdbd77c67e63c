"""Every ballot is in the results once, whatever happened to the run before: killed, damaged, mixed up.

With a Ray that is pretended, so that every point at which a run can end is tried; see pretend.py.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'rangevote[ray]'")

from rangevote.cli import run as run_command
from tests.scale.going_on import (
    ROWS,
    UNIT,
    UNITS,
    check,
    data,
    ended,
    expected,
    results,
    small_units,
    stopped,
    vote,
)
from tests.scale.pretend import Killed, PretendRay, in_place_of_ray, killed_at

__all__ = ["data", "small_units"]


@pytest.mark.parametrize("name", ["out.jsonl", "out"])
@pytest.mark.parametrize("again", [(), ("--force",)], ids=["first", "over an older one"])
def test_a_run_that_is_killed_before_any_change_it_makes_can_be_gone_on_with(data, tmp_path, name, again):
    whole, change, complete = expected(data), 0, False
    older = tmp_path / "older" / name
    older.parent.mkdir()
    if again:  # a complete one, of other options
        vote(data, older, "-s", "overlap_1")
    while not complete:
        out = tmp_path / f"{change}" / name
        shutil.copytree(older.parent, out.parent)
        try:
            with killed_at(change):
                vote(data, out, *again)
            complete = True
        except Killed:
            if name == "out" or not out.exists() or again:
                _go_on(data, out)
            else:  # it has its name, and only what it was made of is still there
                assert results(out) == whole
                ended(data, out, "--resume", code=5)
        check(data, out, whole=whole)
        change += 1
    assert change > 4 * UNITS


def test_a_run_that_was_to_replace_an_older_file_does_so_when_it_is_gone_on_with(data, tmp_path):
    out = tmp_path / "out.jsonl"
    vote(data, out, "-s", "overlap_1")
    stopped(data, out, "--force")
    check_left(data, out, "-s", "overlap_1")
    vote(data, out, "--resume", ray=PretendRay(stop_before=1))
    check_left(data, out, "-s", "overlap_1")
    vote(data, out, "--resume")
    check(data, out)


def check_left(data: Path, out: Path, *options: str) -> None:
    """The older file is there until the new one is complete."""
    assert results(out) == expected(data, *options)
    ended(data, out, code=5)


def _go_on(data: Path, out: Path) -> None:
    """As a user would: --resume, and --force where that is what it says."""
    ray = PretendRay()
    with in_place_of_ray(ray):
        name = f"{out}/" if out.suffix == "" else str(out)
        command = ["vote", str(data), "-o", name, "-q", "--engine", "ray"]
        if run_command([*command, "--resume"]) != 0:
            assert run_command([*command, "--force"]) == 0


def test_a_run_that_is_killed_again_and_again_gets_to_its_end(data, tmp_path):
    out = tmp_path / "out.jsonl"
    kills = 0
    while not out.exists() and kills < 50:
        with killed_at(9), pytest.raises(Killed):  # time enough for one part
            vote(data, out, "--resume")
        kills += 1
    assert UNITS <= kills < 50
    ended(data, out, "--resume", code=5)  # it is complete; what is left of the parts goes
    check(data, out)


def garble(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGE: dict[str, Callable[[Path, Path], object]] = {
    "a part is gone": lambda part, notes: part.unlink(),
    "a part is cut off": lambda part, notes: part.write_bytes(part.read_bytes()[:-1]),
    "a part is cut at a line": lambda part, notes: part.write_bytes(
        part.read_bytes().split(b"\n")[0] + b"\n"
    ),
    "a part is empty": lambda part, notes: part.write_bytes(b""),
    "a part is garbled": lambda part, notes: garble(part),
    "a part is another": lambda part, notes: shutil.copy(part.with_name("part-00003.jsonl"), part),
    "notes are gone": lambda part, notes: notes.unlink(),
    "notes are garbled": lambda part, notes: notes.write_bytes(b"\xff" + notes.read_bytes()[1:]),
    "notes are cut off": lambda part, notes: notes.write_bytes(notes.read_bytes()[:20]),
    "notes are another's": lambda part, notes: shutil.copy(notes.with_name("part-00003.json"), notes),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_was_damaged_is_made_again_and_nothing_else(data, tmp_path, damage):
    out = tmp_path / "out"
    vote(data, out)
    assert len(list(out.glob("part-*"))) == UNITS
    run_notes = out / "_rangevote" / "run.json"
    run_notes.write_text(run_notes.read_text().replace('"complete":true', '"complete":false'))
    damage(out / "part-00001.jsonl", out / "_rangevote" / "part-00001.json")
    assert vote(data, out, "--resume").done == [1]
    check(data, out)


@pytest.mark.parametrize("wrong", [b"", b"{", b'{"fingerprint": "\xff"}'])
@pytest.mark.parametrize("name", ["out.jsonl", "out"])
def test_a_run_whose_word_was_damaged_is_started_again_with_force(data, tmp_path, name, wrong, capfd):
    out = tmp_path / name
    stopped(data, out)
    folder = out if name == "out" else out.with_name("out.jsonl.parts")
    (folder / "_rangevote" / "run.json").write_bytes(wrong)
    for options in ((), ("--resume",)):
        ended(data, out, *options, code=5)
        assert "run.json cannot be read. Use --force to start again." in capfd.readouterr().err
    vote(data, out, "--force")
    check(data, out)


@pytest.mark.parametrize(
    "name", ["a part is gone", "a part is cut off", "a part is garbled", "notes are gone"]
)
def test_parts_as_tables_are_made_again_too(data, tmp_path, name):
    pq = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "out"
    stopped(data, out, "--to", "parquet", after=UNITS - 1)
    DAMAGE[name](out / "part-00002.parquet", out / "_rangevote" / "part-00002.json")
    assert sorted(vote(data, out, "--to", "parquet", "--resume").done) == [0, 2]
    rows = [row for part in sorted(out.glob("part-*")) for row in pq.read_table(part).to_pylist()]
    whole = [json.loads(row) for row in expected(data).splitlines()]
    assert [(row["id"], row["winner"], row["score"]) for row in rows] == [
        (row["id"], row["winner"], row["score"]) for row in whole
    ]


@pytest.mark.parametrize("of", ["other options", "another input"])
def test_parts_of_other_options_and_of_another_input_are_not_taken(data, tmp_path, of):
    other, out = tmp_path / "other", tmp_path / "out"
    second = tmp_path / "elsewhere" / "in.jsonl"
    second.parent.mkdir()
    second.write_bytes(b"".join(ROWS).replace(b"a b", b"d e"))
    os.utime(second, ns=(data.stat().st_atime_ns, data.stat().st_mtime_ns))
    stopped(data, out, after=1)
    vote(*((data, other, "-s", "overlap_1") if of == "other options" else (second, other)))
    for number in (0, 1):
        shutil.copy(other / f"part-{number:05}.jsonl", out)
        shutil.copy(other / "_rangevote" / f"part-{number:05}.json", out / "_rangevote")
    assert results(other) != expected(data)
    vote(data, out, "--resume")
    check(data, out)


def test_other_options_do_not_go_on_with_what_there_is(data, tmp_path, capfd):
    out = tmp_path / "out"
    stopped(data, out)
    ended(data, Path(f"{out}/"), "--resume", "-s", "overlap_1", code=5)
    assert "similarity was 'overlap_2', now 'overlap_1'" in capfd.readouterr().err
    vote(data, out, "--force", "-s", "overlap_1")
    check(data, out, "-s", "overlap_1")


def test_a_task_that_outlives_its_run_writes_nothing_into_the_next_one(data, tmp_path):
    """A driver is killed, its task goes on; meanwhile a run with other options takes the folder."""
    from rangevote.scale.ray.run import Task

    out = tmp_path / "out"
    left: list[tuple[Task, bytes]] = []

    class Remembering(PretendRay):
        def _batches(self, task, items):
            left.append((task, items[0]["unit"]))
            return super()._batches(task, items)

    vote(data, out, ray=Remembering(stop_before=2))
    vote(data, out, "--force", "-s", "overlap_1")
    task, unit = left[0]
    report = task.report(pickle.loads(unit))
    assert "another run writes to" in str(report.error)
    check(data, out, "-s", "overlap_1")


def test_another_version_does_not_go_on_and_does_not_work_for_this_one(data, tmp_path, monkeypatch, capfd):
    out = tmp_path / "out"
    stopped(data, out)
    monkeypatch.setattr("rangevote.cli.vote_ray_target.__version__", "0.0.1")
    ended(data, Path(f"{out}/"), "--resume", code=5)
    assert "rangevote was " in capfd.readouterr().err
    monkeypatch.undo()
    ray = PretendRay(meanwhile=lambda: monkeypatch.setattr("rangevote.scale.ray.run.__version__", "0.0.1"))
    monkeypatch.setenv("RANGEVOTE_UNIT_BYTES", str(UNIT))
    with in_place_of_ray(ray):
        assert run_command(["vote", str(data), "-o", f"{tmp_path}/new/", "-q", "--engine", "ray"]) == 5
    assert "a worker of Ray has rangevote 0.0.1, the driver" in capfd.readouterr().err


def test_a_number_of_bytes_that_cannot_be_meant_is_named(data, tmp_path, monkeypatch, capfd):
    for wrong in ("0", "-1", "64MB", "²"):
        monkeypatch.setenv("RANGEVOTE_UNIT_BYTES", wrong)
        ended(data, tmp_path / "out.jsonl", code=2)
        assert f"RANGEVOTE_UNIT_BYTES is {wrong!r}; it must be a whole number" in capfd.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["in.jsonl"]
