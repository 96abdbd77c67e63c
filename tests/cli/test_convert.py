"""`rangevote convert`."""

from __future__ import annotations

import pytest

from rangevote.formats import FORMATS, WRITERS
from tests.cli.conftest import ballot, lines

MOSES = b"0 ||| a b ||| F0= -1.5 ||| -1.5\n0 ||| a c ||| F0= -1.75 ||| -1.75\n1 ||| d ||| F0= -2.0 ||| -2.0\n"


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "csv", "tsv"])
def test_ballots_come_back_from_the_format_that_the_name_says(run, tmp_path, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow", reason="the extra 'parquet' is not installed")
    table = tmp_path / f"nbest.{ending}"
    assert run("convert", "-", "-o", table, stdin=MOSES).code == 0
    assert run("convert", table, "--to", "moses").out == MOSES


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "mosses"], "Did you mean 'moses'?"),
        (
            ["-o", "nbest.xlsx"],
            "cannot write nbest.xlsx as Excel, only as JSON lines or Parquet or CSV or TSV",
        ),
    ],
)
def test_a_format_that_is_not_written_is_refused(run, options, message):
    done = run("convert", "-", *options, stdin=MOSES)
    assert (done.code, message in done.err) == (2, True)


def test_what_a_format_cannot_hold_is_refused_and_no_file_is_left(run, tmp_path):
    out = tmp_path / "out.moses"
    done = run("convert", "-", "--to", "moses", "-o", out, stdin=lines(ballot(1, "a ||| b")))
    assert done.code == 3
    assert "stdin:1: candidates[0].text" in done.err
    assert list(tmp_path.iterdir()) == []


def test_the_help_names_every_format(run):
    page = run("convert", "--help").out.decode()
    assert [name for name in [*FORMATS, *WRITERS] if name not in page] == []
