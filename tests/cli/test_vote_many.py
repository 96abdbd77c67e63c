"""`rangevote vote` for many ballots: processes, Parquet in and out; the bytes are those of a plain run."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from faults.trials import is_worker, worker_processes
from tests.cli.conftest import ballot, lines, spawn
from tests.waiting import PATIENCE, until

posix = pytest.mark.skipif(os.name != "posix", reason="signals as on Unix")


def many(path: Path, number: int = 1200) -> Path:
    """Several chunks; a bad line, blank lines and an id that is there twice among them."""
    rows = [lines(ballot(i, f"a b {i % 7} é", "a b c", f"c b {i}")) for i in range(number)]
    rows[300] = b"broken\n"
    rows[900] = lines(ballot(17, "x"))
    rows[5] = b"\n \n" + rows[5]
    path.write_bytes(b"".join(rows))
    return path


def test_processes_change_no_byte_and_no_message(run, tmp_path):
    data = many(tmp_path / "in.jsonl")
    alone = run("vote", data, "--scores", "--on-error", "skip")
    shared = run("vote", data, "--scores", "--on-error", "skip", "--workers", 2)
    assert (alone.code, shared.code) == (4, 4)
    assert shared.out == alone.out
    assert b"in.jsonl:303: not valid JSON" in alone.out
    assert b"in.jsonl:903: id: the id 17 was used before" in alone.out
    assert sorted(shared.err.splitlines()) == sorted(alone.err.splitlines())


def test_a_bad_ballot_stops_processes_where_it_stops_one(run, tmp_path):
    data = many(tmp_path / "in.jsonl")
    stopped = [run("vote", data, "-o", tmp_path / f"{n}.jsonl", "--workers", n) for n in (1, 2)]
    assert [done.code for done in stopped] == [3, 3]
    assert [done.err.splitlines()[0] for done in stopped] == [
        f"rangevote: {data}:303: not valid JSON: expecting value (byte 1)"
    ] * 2
    one, two = ((tmp_path / f"{n}.jsonl.partial").read_bytes() for n in (1, 2))
    assert one == two
    assert one.count(b"\n") == 300


def test_other_formats_and_a_file_of_voters_are_shared_out_too(run, tmp_path):
    flat = tmp_path / "nbest.moses"
    flat.write_text(
        "".join(f"{i} ||| a b {j % 3} ||| F0= -{j} ||| -{j}\n" for i in range(9) for j in range(4))
    )
    plain = run("vote", flat)
    assert len(plain.results()) == 9
    assert run("vote", flat, "--workers", 2).out == plain.out
    paired = run("vote", flat, "--voters", flat)
    assert run("vote", flat, "--voters", flat, "--workers", 2).out == paired.out


def fed(tmp_path: Path, first: bytes) -> tuple[subprocess.Popen[bytes], list[int]]:
    """A run on two workers that has got some ballots and waits for more, and the workers' process ids."""
    process = spawn("vote", "-", "-o", tmp_path / "out.jsonl", "--workers", 2, "-s", "edit")
    process.stdin.write(first)
    process.stdin.flush()
    if not Path(f"/proc/{process.pid}/task/{process.pid}/children").exists():
        process.kill()
        process.communicate()
        pytest.skip("the system does not list the children of a process")
    until(lambda: len(worker_processes(process.pid)) == 2)
    return process, worker_processes(process.pid)


@posix
def test_a_worker_that_is_killed_is_named_and_the_run_can_go_on(run, tmp_path):
    data, out = good(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"
    rows = data.read_bytes().splitlines(keepends=True)
    process, workers = fed(tmp_path, b"".join(rows[:600]))
    os.kill(workers[0], signal.SIGKILL)
    _, err = process.communicate(b"".join(rows[600:]), timeout=PATIENCE)
    assert process.returncode == 5
    assert b"a worker process was killed or ended early" in err
    assert (b"continue with --resume" in err) == (tmp_path / "out.jsonl.partial").exists()
    assert run("vote", data, "-o", out, "--resume", "-s", "edit").code == 0
    assert out.read_bytes() == run("vote", data, "-s", "edit").out


@posix
def test_workers_end_with_their_parent_however_it_ends(tmp_path):
    process, workers = fed(tmp_path, lines(*(ballot(i, "a b", "a c") for i in range(600))))
    process.kill()
    process.communicate()
    until(lambda: not any(map(is_worker, workers)))


def good(path: Path) -> Path:
    path.write_bytes(lines(*(ballot(i, f"a b {i % 7} é", "a b c", f"c b {i}") for i in range(700))))
    return path


def test_parquet_gives_the_results_of_the_same_ballots_as_lines(run, tmp_path):
    pytest.importorskip("pyarrow")
    data, table = good(tmp_path / "in.jsonl"), tmp_path / "in.parquet"
    assert run("convert", data, "-o", table).code == 0
    plain = run("vote", data, "--scores").out
    assert run("vote", table, "--scores").out == plain
    assert run("vote", table, "--scores", "--workers", 2).out == plain


def test_results_as_parquet_hold_what_the_lines_hold(run, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    data, out = many(tmp_path / "in.jsonl"), tmp_path / "out.parquet"
    assert run("vote", data, "-o", out, "--scores", "--explain", "--on-error", "skip").code == 4
    expected = run("vote", data, "--scores", "--on-error", "skip").results()
    rows = pq.read_table(out).to_pylist()
    assert len(rows) == len(expected) == 1200
    for row, line in zip(rows, expected, strict=True):
        for name in ("id", "winner", "index", "score", "margin", "signature", "scores", "error"):
            assert row[name] == line.get(name), name
        if "error" not in line:
            assert row["near_tie"] == line.get("near_tie", False)
            assert row["explanation"].startswith('{"ngrams":[{')
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl", "out.parquet"]


def test_an_unfinished_table_goes_on_to_the_same_bytes(run, tmp_path):
    pytest.importorskip("pyarrow")
    data, out, whole = many(tmp_path / "in.jsonl"), tmp_path / "out.parquet", tmp_path / "whole.parquet"
    assert run("vote", data, "-o", out).code == 3
    assert not out.exists()
    assert run("vote", data, "-o", out, "--resume", "--on-error", "skip").code == 4
    assert run("vote", data, "-o", whole, "--on-error", "skip", "--workers", 2).code == 4
    assert out.read_bytes() == whole.read_bytes()


def test_ids_of_two_kinds_become_texts_and_token_ids_have_a_column(run, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    data, out = tmp_path / "in.jsonl", tmp_path / "out"
    data.write_bytes(lines(ballot(1, "a"), ballot("x", "b"), {"candidates": [{"tokens": [5, 9]}]}))
    assert run("vote", data, "-o", out, "--to", "parquet", "-s", "exact").code == 0
    rows = pq.read_table(out).to_pylist()
    assert [row["id"] for row in rows] == ["1", "x", None]
    assert [row["winner"] for row in rows] == ["a", "b", None]
    assert rows[2]["winner_tokens"] == [5, 9]


def test_parquet_needs_a_file(run, three):
    done = run("vote", three, "--to", "parquet")
    assert (done.code, "Parquet is written to a file: give -o FILE." in done.err) == (2, True)


def test_ids_that_are_trusted_are_not_compared(run, tmp_path):
    data = tmp_path / "in.jsonl"
    data.write_bytes(lines(ballot(1, "a"), ballot(1, "b")))
    assert run("vote", data).code == 3
    for workers in (1, 2):
        results = run("vote", data, "--trust-ids", "--workers", workers).results()
        assert [result["winner"] for result in results] == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--ray-address", "auto"), "--ray-address belongs to --engine ray"),
        (("--engine", "ray", "--workers", 2, "-o", "out"), "--workers belongs to --engine local"),
        (("--engine", "ray", "--text", "-o", "out"), "--text belongs to --engine local"),
        (
            ("--engine", "ray", "-o", "out", "-s", "exact", "--shares", "agreement"),
            "--shares agreement belongs to --engine local",
        ),
        (("--engine", "ray"), "give BALLOTS and -o FOLDER"),
        (("--engine", "ray", "-o", "out", "--sign", "-"), "reads ballots as jsonl or parquet"),
    ],
)
def test_options_of_one_engine_are_refused_by_the_other(run, three, options, message):
    done = run("vote", three, *options)
    assert (done.code, message in done.err) == (2, True)
