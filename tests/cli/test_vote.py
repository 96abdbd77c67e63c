"""`rangevote vote`: what a user gets."""

from __future__ import annotations

import json
import os
import re

import pytest

import rangevote as rv
from tests.cli.conftest import ballot, lines, spawn


def test_each_ballot_gives_one_result_line_in_order(run, three):
    done = run("vote", three)
    assert done.code == 0
    assert [result["id"] for result in done.results()] == ["a", "b", "c"]
    for result, given in zip(done.results(), rv.read(three), strict=True):
        one = rv.elect(given.candidates)
        assert list(result)[:6] == ["id", "winner", "index", "score", "margin", "signature"]
        assert (result["winner"], result["index"]) == (one.winner, one.index)
        assert (result["score"], result["margin"]) == (one.score, one.margin)
        assert result["signature"] == one.signature


def test_text_prints_the_winner_alone_one_a_line(run):
    done = run("vote", "--text", stdin=lines(ballot(1, "a\nb c", "zz"), ballot(2, "x")))
    assert done.out == b"a b c\nx\n"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--text", "--winners", 3], "--text writes one winner per line"),
        (["--text", "--scores"], "without --scores"),
        (["--text", "--explain"], "without --explain"),
        (
            ["--text", "--to", "jsonl"],
            "--text writes lines of text, not JSON lines; leave one of the two out.",
        ),
        (["-o", "x.gz"], "leave out .gz, or leave out -o and end the command with | gzip > x.gz"),
        (["-o", "x.jsonl.zst"], "end the command with | zstd > x.jsonl.zst"),
        (
            ["-o", "x.xlsx"],
            "as Excel, only as JSON lines or Parquet or CSV or TSV: give it another name, or choose",
        ),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_what_cannot_be_written_as_asked_is_refused(run, three, monkeypatch, asked, message):
    monkeypatch.chdir(three.parent)
    done = run("vote", three, *asked)
    assert (done.code, message in done.err) == (2, True), done.err
    assert list(three.parent.iterdir()) == [three]


def test_a_format_that_is_named_goes_before_the_name_of_the_file(run, three, tmp_path):
    out = tmp_path / "out.csv"
    assert run("vote", three, "-o", out, "--to", "jsonl").code == 0
    assert out.read_bytes() == run("vote", three).out


def test_the_temperature_of_votes_has_its_name_everywhere_and_samples_have_none(run, three):
    warmer = run("vote", three, "--temperature", "3", "--scores")
    assert run("vote", three, "--vote-temperature", "3", "--scores").out == warmer.out
    assert warmer.err == ""
    for workers in ("1", "2"):
        counted = run("vote", three, "--vote-temperature", "3", "--weights", "count", "--workers", workers)
        assert counted.out == run("vote", three, "--weights", "count").out
        assert counted.err == (
            "rangevote: warning: the temperature of the votes, 3, has no effect: it is for "
            "weights='probability', and these are 'count'.\n"
        )


def test_a_second_file_brings_the_voters(run, three, tmp_path):
    voters = tmp_path / "samples.jsonl"
    voters.write_bytes(lines(ballot("a", "i know", "i know"), ballot("b", "x z"), ballot("c", "two")))
    results = run("vote", three, "--voters", voters, "--weights", "count").results()
    assert [r["winner"] for r in results] == ["i know", "x z", "one"]
    assert results[0]["signature"].endswith("w:count|cand:4|vot:2|tie:score,logprob,first")
    assert results[2]["no_support"] is True


def test_several_winners_by_reweighted_range_voting(run, three):
    result = run("vote", three, "--rule", "reweighted", "--winners", 2).results()[0]
    assert len(result["winners"]) == 2
    assert result["winners"][0] == {"index": result["index"], "winner": result["winner"]}
    assert "|rule:reweighted|win:2|" in result["signature"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_doubtful_choice_of_weights_is_noted_once_a_file_unless_it_is_made(run, tmp_path, workers):
    samples = [{"text": text, "logprob": -1.0} for text in ("a b", "a b", "a c")]
    path = tmp_path / "nbest.jsonl"
    path.write_text(2 * (json.dumps({"candidates": samples}) + "\n"))
    done = run("vote", path, "--workers", workers)
    assert (done.code, done.err.count("weights='count'"), done.err.count("repeat others")) == (0, 1, 1)
    path.write_text(2 * (json.dumps({"candidates": [*samples, "a d"]}) + "\n"))
    done = run("vote", path, "--workers", workers)
    assert (done.code, done.err.count("weights='count'"), done.err.count("is not known")) == (0, 1, 1)
    for silent in (["-q"], ["--weights", "count"]):
        assert run("vote", path, "--workers", workers, *silent).err == ""


def test_answers_are_counted_and_below_a_share_nobody_is_elected(run, tmp_path):
    given = lines(ballot(1, "it is 4", "4", "5"), ballot(2, "it is 4", "5", "six"))
    asked = ("vote", "-s", "exact:last_number", "--weights", "count", "--min-share", "0.5")
    agreed, divided = run(*asked, stdin=given).results()
    assert (agreed["winner"], agreed["answer"]) == ("it is 4", "4")
    assert agreed["votes"]["4"] == {"count": 2, "share": pytest.approx(2 / 3)}
    assert (divided["winner"], divided["index"], divided["abstained"]) == (None, None, 1)
    assert divided["no_winner"] == "the best candidate's share 0.3333 is below min_share=0.5"
    assert run(*asked, "--text", stdin=given).out == b"it is 4\n\n"
    table = tmp_path / "t.parquet"
    assert run(*asked, "-o", table, stdin=given).code == 0
    rows = pytest.importorskip("pyarrow.parquet").read_table(table).to_pylist()
    assert [row["answer"] for row in rows] == ["4", None]
    assert json.loads(rows[0]["votes"])["5"]["count"] == 1
    assert (rows[1]["near_tie"], rows[1]["no_winner"]) == (True, divided["no_winner"])
    wrong = run("vote", "--min-share", "50", stdin=given)
    assert (wrong.code, "min_share must be a share of the vote from 0 to 1" in wrong.err) == (2, True)


@pytest.mark.skipif(os.name != "posix", reason="a terminal as on Unix")
def test_on_a_terminal_there_is_a_table_and_a_closing_line(three, tmp_path):
    import pty

    screen, terminal = pty.openpty()
    for output in ([], ["-o", tmp_path / "out.jsonl"]):
        process = spawn("vote", three, "--weights", "count", *output, stdout=terminal, stderr=terminal)
        process.communicate(timeout=60)
        assert process.returncode == 0
        text = b""
        while not text.endswith(b".\r\n"):  # the terminal may hand it over in parts
            text += os.read(screen, 1 << 16)
        shown = text.decode().splitlines()
        where = "standard output" if not output else str(output[1])
        closing = rf"rangevote: 3 ballots, the most likely candidate lost in 1, \d+\.\d s, {where}\."
        assert re.fullmatch(closing, "".join(shown[0 if output else 4 :]))
        if not output:
            assert shown[0].split() == ["id", "margin", "winner"]
            assert [line.split()[0] for line in shown[1:4]] == ["a", "b", "c"]
            assert "the train leaves at ten" in shown[1]
    os.close(screen)
    os.close(terminal)
    assert len((tmp_path / "out.jsonl").read_bytes().splitlines()) == 3


@pytest.mark.parametrize(("equal", "warned"), [(2, True), (1, False)])
def test_equal_candidates_in_most_ballots_are_warned_about(run, tmp_path, equal, warned):
    path = tmp_path / "samples.jsonl"
    ballots = [ballot(n, *(["7"] * 5 if n < equal else ["7", "8"])) for n in range(3)]
    path.write_bytes(lines(*ballots))
    done = run("vote", path)
    assert (done.code, f"in {equal} of 3 ballots all candidates are equal" in done.err) == (0, warned)
