"""An input that is another one when a run is gone on with: no ballot missing, none twice, none stale."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'rangevote[ray]'")

from rangevote.cli import run as run_command
from tests.scale.going_on import ROWS, UNIT, UNITS, check, data, small_units, stopped, vote
from tests.scale.pretend import Killed, PretendRay, in_place_of_ray, killed_at
from tests.scale.samples import as_parquet, ballot, line, lines

__all__ = ["data", "small_units"]


def test_of_an_input_that_changed_only_the_units_that_did_are_done_again(data, tmp_path):
    out = tmp_path / "out"
    vote(data, out, ray=PretendRay(stop_before=UNITS - 1))
    kept = {p.name for p in out.glob("part-*")}
    rows = [row.replace(b"a b", b"x y") if i == 24 else row for i, row in enumerate(ROWS)]
    assert rows != ROWS
    data.write_bytes(b"".join(rows))
    done = vote(data, out, "--resume").done
    check(data, out)
    assert 0 < len([n for n in done if f"part-{n:05}.jsonl" in kept]) <= 1


def test_lines_that_were_added_at_the_end_are_done_and_the_others_kept(data, tmp_path):
    out = tmp_path / "out"
    vote(data, out, ray=PretendRay(stop_before=UNITS - 1))
    kept = {p.name for p in out.glob("part-*")}
    data.write_bytes(data.read_bytes() + line(ballot("new", "a b", "a c")))
    done = vote(data, out, "--resume").done
    check(data, out)
    assert len([n for n in done if f"part-{n:05}.jsonl" in kept]) <= 1  # the last one has become longer


def test_lines_that_were_put_in_at_the_front_move_all_and_none_is_stale(data, tmp_path):
    out = tmp_path / "out.jsonl"
    stopped(data, out)
    data.write_bytes(line(ballot("new", "a b", "a c")) + data.read_bytes())
    vote(data, out, "--resume")
    check(data, out)


def test_a_line_more_before_a_unit_moves_the_numbers_in_its_messages(tmp_path):
    """The bytes of the unit are the same, and its bad ballot is on another line."""
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    padded = b'{"candidates": ["' + b"a" * (2 * UNIT) + b'"]}'
    before = padded + b"\n" + line(ballot("x", "a")) + b"broken\n"
    data.write_bytes(before)
    ray = PretendRay(stop_before=1)
    with in_place_of_ray(ray):
        command = ["vote", str(data), "-o", str(out), "-q", "--engine", "ray", "--on-error", "skip"]
        assert run_command(command) == 130
    assert ray.done == [1]  # the last unit, with the bad line
    after = b"\n" + padded.replace(b"aa", b"a", 1)
    assert len(after) == len(padded)
    data.write_bytes(before.replace(padded, after))
    with in_place_of_ray(PretendRay()):
        assert run_command([*command, "--resume"]) == 4
    assert f"{data}:4: not valid JSON" in out.read_text()


@pytest.mark.parametrize("name", ["a.jsonl", "z.jsonl"])
def test_a_file_that_was_added_to_the_folder_is_done_too(tmp_path, name):
    data, out = tmp_path / "in", tmp_path / "out.jsonl"
    data.mkdir()
    for i in range(4):
        (data / f"m{i}.jsonl").write_bytes(b"".join(ROWS[5 * i : 5 * i + 5]))
    stopped(data, out, after=2)
    (data / name).write_bytes(b"".join(ROWS[20:25]))
    ray = vote(data, out, "--resume")
    check(data, out)
    assert len(ray.done) == (3 if name == "z.jsonl" else 5)  # numbers have moved: done again, not lost


def test_a_file_that_was_taken_away_leaves_nothing_behind(tmp_path):
    data, out = tmp_path / "in", tmp_path / "out"
    data.mkdir()
    for i in range(4):
        (data / f"m{i}.jsonl").write_bytes(b"".join(ROWS[5 * i : 5 * i + 5]))
    stopped(data, out, after=3)
    (data / "m1.jsonl").unlink()
    vote(data, out, "--resume")
    check(data, out)


def test_a_file_that_is_the_same_but_for_its_time_is_not_read_again(data, tmp_path):
    out = tmp_path / "out"
    vote(data, out, ray=PretendRay(stop_before=4))
    os.utime(data, ns=(1, 1))
    done = vote(data, out, "--resume").done
    check(data, out)
    assert len(done) == UNITS - 4


def test_parquet_that_was_written_again_is_voted_on_again(tmp_path):
    source, data, out = tmp_path / "a.jsonl", tmp_path / "in.parquet", tmp_path / "out.jsonl"
    source.write_bytes(lines(2500))
    as_parquet(source, data)
    stopped(data, out, after=2)
    source.write_bytes(lines(2500).replace(b"a b", b"d e"))
    as_parquet(source, data)
    assert len(vote(data, out, "--resume").done) == 3
    check(data, out)


def test_an_input_that_changes_under_a_run_is_told(data, tmp_path, capfd):
    out = tmp_path / "out.jsonl"
    ray = PretendRay(meanwhile=lambda: data.write_bytes(b"".join(ROWS[:-3])))
    with in_place_of_ray(ray):
        assert run_command(["vote", str(data), "-o", str(out), "-q", "--engine", "ray"]) == 5
    assert f"{data} changed while it was read." in capfd.readouterr().err
    assert not out.exists()
    vote(data, out, "--resume") if out.with_name("out.jsonl.parts").exists() else vote(data, out)
    check(data, out)


def repeating(path: Path) -> Path:
    """An id that is in the first unit and in the last, and one that is twice in the same unit."""
    rows = list(ROWS)
    rows[-1] = line(ballot(json.loads(rows[0])["id"], "x y"))
    rows[9] = line(ballot(json.loads(rows[8])["id"], "x y"))
    path.write_bytes(b"".join(rows))
    return path


def skipping(data: Path, out: Path, *options: str) -> bytes:
    """A run that skips what is bad."""
    command = ["vote", str(data), "-o", str(out), "-q", "--on-error", "skip", *options]
    with in_place_of_ray(PretendRay()):
        assert run_command(command) == 4
    return out.read_bytes()


def test_an_id_that_is_there_twice_is_refused_as_in_one_process_also_by_a_run_that_goes_on(tmp_path):
    data = repeating(tmp_path / "in.jsonl")
    local = skipping(data, tmp_path / "local.jsonl")
    assert local.count(b"was used before") == 2
    assert skipping(data, tmp_path / "whole.jsonl", "--engine", "ray") == local
    out = tmp_path / "out.jsonl"
    stopped(data, out, "--trust-ids", after=UNITS - 1)
    assert skipping(data, out, "--engine", "ray", "--resume") == local


def test_a_ballot_that_was_refused_for_its_id_is_elected_once_nobody_else_has_it(tmp_path):
    data, out = repeating(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"
    with killed_at(10**9), pytest.MonkeyPatch.context() as patch, in_place_of_ray(PretendRay()):
        patch.setattr("rangevote.cli.vote_ray_target.Target.finish", lambda *_: _raise(Killed))
        with pytest.raises(Killed):  # after all parts were made, those with ids of others again
            run_command(["vote", str(data), "-o", str(out), "-q", "--engine", "ray", "--on-error", "skip"])
    rows = data.read_bytes().splitlines(keepends=True)
    first = json.loads(rows[0])
    data.write_bytes(line({**first, "id": first["id"].replace("n", "q")}) + b"".join(rows[1:]))
    assert data.stat().st_size == sum(map(len, rows))  # units are where they were
    assert skipping(data, out, "--engine", "ray", "--resume") == skipping(data, tmp_path / "local.jsonl")
    assert b"x y" in out.read_bytes().splitlines()[-1]


def _raise(kind: type[BaseException]) -> None:
    raise kind
