"""Bad input: exit code, message with file, line and field, and nothing half-written."""

from __future__ import annotations

import json
import sys

import pytest

from tests.cli.conftest import ballot, lines

GOOD = ballot("good", "a b", "a c")


def test_an_empty_file_gives_an_empty_output_and_a_note(run, tmp_path):
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    done = run("vote", empty)
    assert (done.code, done.out) == (0, b"")
    assert "there are no ballots in the input" in done.err
    assert run("vote", empty, "--require-nonempty").code == 3


BAD_LINES = {  # tests/formats has every kind
    "invalid UTF-8": (b'{"candidates": ["a\xff"]}', "byte"),
    "NaN": (b'{"candidates": [{"text": "a", "logprob": NaN}]}', "candidates[0].logprob"),
    "no candidates": (b'{"candidates": []}', "there are no candidates"),
    "a repeated id": (json.dumps(GOOD).encode(), "the id 'good' was used before"),
}


@pytest.mark.parametrize(("line", "named"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_named_and_stops_the_run_or_is_skipped_in_its_place(run, tmp_path, line, named):
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    data.write_bytes(lines(GOOD) + line + b"\n" + lines(ballot("after", "x")))
    done = run("vote", data, "-o", out)
    assert done.code == 3
    assert "in.jsonl:2: " in done.err
    assert named in done.err
    assert not out.exists()
    assert len((tmp_path / "out.jsonl.partial").read_bytes().splitlines()) == 1  # earlier results are kept
    assert "continue with --resume" in done.err
    done = run("vote", data, "--on-error", "skip")
    assert (done.code, "1 of 3 ballots were skipped" in done.err) == (4, True)
    assert named in done.results()[1]["error"]
    assert [done.results()[i]["id"] for i in (0, 2)] == ["good", "after"]


def test_probabilities_that_sum_to_more_than_1_warn_or_with_strict_stop(run):
    data = lines({"candidates": [{"text": "a", "logprob": -0.1}, {"text": "b", "logprob": -0.2}]})
    done = run("vote", stdin=data)
    assert done.code == 0
    assert "warning: " in done.err
    assert run("vote", "--strict", stdin=data).code == 3


def test_no_candidates_give_null_where_allowed(run):
    done = run("vote", "--allow-empty", stdin=lines({"id": 7, "candidates": []}, GOOD))
    assert done.code == 0
    assert done.results()[0]["id"] == 7
    assert done.results()[0]["winner"] is None


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--similarity", "overlp_2"], "`rangevote similarities` explains them"),
        (["--workers", "-1"], "--workers"),
        (["--resume"], "--resume needs -o FILE"),
        (["--length-normalised", "lots"], "--length-normalised is 'lots'"),
    ],
)
def test_an_option_that_cannot_be_meant_is_a_usage_error(run, three, arguments, named):
    done = run("vote", three, *arguments)
    assert (done.code, done.out) == (2, b"")
    assert named in done.err


def test_standard_input_that_is_a_terminal_is_a_usage_error(run, monkeypatch):
    class Terminal:
        def isatty(self) -> bool:
            return True

    from rangevote.cli import run as command

    monkeypatch.setattr(sys, "stdin", Terminal())
    assert command(["vote"]) == 2


def test_an_election_that_runs_out_of_memory_is_named(run, three, monkeypatch):
    def greedy(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("rangevote.election.elect.elect_columns", greedy)
    done = run("vote", three, "--similarity", "exact", "--on-error", "skip")
    assert done.code == 5
    assert "nbest.jsonl:1: out of memory." in done.err
