"""`rangevote vote`: what a user gets, and of bad input a message with file, line and field."""

from __future__ import annotations

import json
import os
import re
import sys

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


# Bad input

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
def test_an_option_without_a_meaning_is_a_usage_error(run, three, arguments, named):
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


# Preference pairs

TEXTS = ("i know", "the train leaves at ten", "the train leaves at noon", "trains leave at ten")
TRAIN = ballot("train", *TEXTS, source="when does it leave?")
EQUAL = ballot("equal", "one", "one", source="which?")


def test_a_pair_is_the_winner_over_the_lowest_score_and_says_by_how_much(run):
    done = run("vote", "--to", "preferences", "-s", "overlap_1", stdin=lines(TRAIN))
    result = rv.elect(list(TEXTS), [-1.0, -2.0, -3.0, -4.0], similarity="overlap_1")
    last = result.ranking[-1]
    assert done.results() == [
        {
            "id": "train",
            "prompt": "when does it leave?",
            "chosen": result.winner,
            "rejected": TEXTS[last],
            "margin": result.score - result.scores[last],
        }
    ]
    assert done.results()[0]["margin"] > 0


def test_a_ballot_on_which_nothing_is_preferred_has_no_pair_and_is_counted(run, tmp_path):
    shown = run("vote", "--to", "preferences", stdin=lines(EQUAL, TRAIN))
    out = tmp_path / "pairs.jsonl"
    (tmp_path / "in.jsonl").write_bytes(lines(EQUAL, TRAIN))
    done = run("vote", tmp_path / "in.jsonl", "--to", "preferences", "-o", out, "--workers", 2)
    assert done.code == shown.code == 0
    assert "1 of 2 ballots have no pair, because all their candidates have the same score" in done.err
    assert out.read_bytes() == shown.out
    assert [json.loads(line)["id"] for line in out.read_bytes().splitlines()] == ["train"]


def test_the_lowest_score_is_a_number(run):
    impossible = {"text": "never", "prob": 0}
    likely = [{"text": "a b", "logprob": -1.0}, {"text": "a c", "logprob": -1.5}]
    given = {"source": "?", "candidates": [impossible, *likely]}
    done = run("vote", "--to", "preferences", "--rule", "most_likely", stdin=lines(given))
    [pair] = done.results()
    assert (pair["chosen"], pair["rejected"], pair["margin"]) == ("a b", "a c", 0.5)


def test_a_bad_ballot_has_no_pair_and_a_run_goes_on_where_it_stopped(run, tmp_path):
    data, out = tmp_path / "in.jsonl", tmp_path / "pairs.jsonl"
    data.write_bytes(lines(EQUAL, ballot("no prompt", "a b", "a c"), TRAIN))
    done = run("vote", data, "--to", "preferences", "-o", out)
    assert done.code == 3
    assert "in.jsonl:2: source: is not given, but a preference pair needs it as its prompt" in done.err
    assert run("vote", data, "-o", out, "--resume", "--on-error", "skip").code == 5  # results are no pairs
    done = run("vote", data, "--to", "preferences", "-o", out, "--resume", "--on-error", "skip")
    assert done.code == 4
    assert [json.loads(line)["id"] for line in out.read_bytes().splitlines()] == ["train"]


@pytest.mark.parametrize("option", [["--scores"], ["--explain"], ["--winners", "2"]])
def test_what_a_pair_has_no_room_for_is_refused(run, option):
    done = run("vote", "--to", "preferences", *option, stdin=lines(TRAIN))
    assert done.code == 2
    assert f"without what {option[0]} adds" in done.err


def test_pairs_are_lines_of_json_with_text(run, tmp_path):
    done = run("vote", "--to", "preferences", "-o", tmp_path / "pairs.parquet", stdin=lines(TRAIN))
    assert (done.code, "only as JSON lines" in done.err) == (2, True)
    tokens = {"source": "?", "candidates": [{"tokens": [1, 2]}, {"tokens": [1, 3]}, {"tokens": [1, 2]}]}
    done = run("vote", "--to", "preferences", "--tokenize", "tokens", stdin=lines(tokens))
    assert (done.code, "has no text, which a preference pair needs" in done.err) == (3, True)
