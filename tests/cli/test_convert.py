"""`rangevote convert`."""

from __future__ import annotations

import json
import math

import pytest

from rangevote.formats import FORMATS, WRITERS
from tests.cli.conftest import ballot, lines

MOSES = b"0 ||| a b ||| F0= -1.5 ||| -1.5\n0 ||| a c ||| F0= -1.75 ||| -1.75\n1 ||| d ||| F0= -2.0 ||| -2.0\n"


def test_moses_becomes_json_lines_and_comes_back(run, tmp_path):
    source, ballots = tmp_path / "out.moses", tmp_path / "nbest.jsonl"
    source.write_bytes(MOSES)
    assert run("convert", source, "--to", "jsonl", "-o", ballots).code == 0
    listed = [json.loads(line) for line in ballots.read_bytes().splitlines()]
    assert [[c["text"] for c in b["candidates"]] for b in listed] == [["a b", "a c"], ["d"]]
    assert listed[0]["candidates"][1]["logprob"] == -1.75
    assert run("convert", ballots, "--to", "moses").out == MOSES


def test_ballots_become_parquet_and_come_back(run, tmp_path):
    pytest.importorskip("pyarrow", reason="the extra 'parquet' is not installed")
    source, table = tmp_path / "out.moses", tmp_path / "nbest.parquet"
    source.write_bytes(MOSES)
    assert run("convert", source, "--to", "parquet", "-o", table).code == 0
    assert run("convert", table, "--to", "jsonl").out == run("convert", source, "--to", "jsonl").out


def test_the_name_of_the_output_says_its_format(run, tmp_path):
    pytest.importorskip("pyarrow", reason="the extra 'parquet' is not installed")
    table, other = tmp_path / "nbest.parquet", tmp_path / "nbest.xlsx"
    assert run("convert", "-", "-o", table, stdin=MOSES).code == 0
    assert run("convert", table, "--to", "moses").out == MOSES
    done = run("convert", "-", "-o", other, stdin=MOSES)
    assert (
        done.code,
        f"cannot write {other} as Excel, only as JSON lines or Parquet or CSV or TSV" in done.err,
    ) == (2, True)


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_ballots_become_a_sample_a_row_and_come_back(run, tmp_path, ending):
    table = tmp_path / f"nbest.{ending}"
    assert run("convert", "-", "-o", table, stdin=MOSES).code == 0
    assert len(table.read_bytes().splitlines()) == 4
    assert run("convert", table, "--to", "moses").out == MOSES


def test_fairseq_scores_become_natural_log_sums(run):
    log = b"S-0\tx\nH-0\t-0.5\ta b\nD-0\t-0.5\ta b\nP-0\t-0.25 -0.5 -0.75\n"
    converted = json.loads(run("convert", "-", stdin=log).out)
    assert converted["candidates"][0]["logprob"] == -1.5 * math.log(2)


def test_an_unknown_target_offers_what_there_is(run):
    done = run("convert", "-", "--to", "mosses", stdin=MOSES)
    assert done.code == 2
    assert "Did you mean 'moses'?" in done.err


def test_what_a_format_cannot_hold_is_refused_and_no_file_is_left(run, tmp_path):
    out = tmp_path / "out.moses"
    done = run("convert", "-", "--to", "moses", "-o", out, stdin=lines(ballot(1, "a ||| b")))
    assert done.code == 3
    assert "stdin:1: candidates[0].text" in done.err
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_left_alone(run, tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_text("precious")
    assert run("convert", "-", "-o", out, stdin=MOSES).code == 5
    assert out.read_text() == "precious"


def test_the_help_names_every_format(run):
    told = run("convert", "--help").out.decode()
    assert [name for name in [*FORMATS, *WRITERS] if name not in told] == []
