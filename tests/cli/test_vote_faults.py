"""Bad input: exit code, message with file, line and field, and nothing half-written."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path

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


def test_a_missing_file_a_directory_and_a_forbidden_file_are_named(run, tmp_path):
    assert run("vote", tmp_path / "nope.jsonl").code == 5
    assert f"cannot read {tmp_path / 'nope.jsonl'}: no such file" in run("vote", tmp_path / "nope.jsonl").err
    assert run("vote", tmp_path).code == 5
    assert f"cannot read {tmp_path}: is a directory" in run("vote", tmp_path).err


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read every file")
def test_a_forbidden_file_is_named(run, three):
    three.chmod(0)
    assert run("vote", three).code == 5


BAD_LINES = {
    "invalid UTF-8": (b'{"candidates": ["a\xff"]}', "byte"),
    "truncated": (b'{"candidates": ["a"', ""),
    "an array": (b"[1, 2]", "candidates"),
    "deep nesting": (b'{"candidates": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", ""),
    "a huge integer": (b'{"id": 1' + b"0" * 5000 + b', "candidates": ["a"]}', ""),
    "a key twice": (b'{"id": 1, "id": 2, "candidates": ["a"]}', "'id'"),
    "half a surrogate pair": (b'{"candidates": ["a\\ud800"]}', "surrogate"),
    "no text": (b'{"candidates": [{"logprob": -1}]}', "candidates[0]"),
    "not a list": (b'{"candidates": "a b"}', "candidates"),
    "NaN": (b'{"candidates": [{"text": "a", "logprob": NaN}]}', "candidates[0].logprob"),
    "plus infinity": (b'{"candidates": [{"text": "a", "logprob": Infinity}]}', "candidates[0].logprob"),
    "1e400": (b'{"candidates": [{"text": "a", "logprob": 1e400}]}', "candidates[0].logprob"),
    "a positive log": (b'{"candidates": [{"text": "a", "logprob": 0.5}]}', "candidates[0].logprob"),
    "a text as number": (b'{"candidates": [{"text": "a", "logprob": "-1"}]}', "candidates[0].logprob"),
    "prob and logprob differ": (
        b'{"candidates": [{"text": "a", "prob": 0.5, "logprob": -5}]}',
        "candidates[0]",
    ),
    "a negative prob": (b'{"candidates": [{"text": "a", "prob": -0.5}]}', "candidates[0].prob"),
    "a prob above 1": (b'{"candidates": [{"text": "a", "prob": 1.5}]}', "candidates[0].prob"),
    "no candidates": (b'{"candidates": []}', "there are no candidates"),
    "all weights 0": (b'{"candidates": [{"text": "a", "prob": 0}, {"text": "b", "prob": 0}]}', "weight 0"),
    "a repeated id": (json.dumps(GOOD).encode(), "the id 'good' was used before"),
}


@pytest.mark.parametrize(("line", "named"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_named_and_no_file_is_left_under_the_final_name(run, tmp_path, line, named):
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    data.write_bytes(lines(GOOD) + line + b"\n" + lines(ballot("after", "x")))
    done = run("vote", data, "-o", out)
    assert done.code == 3
    assert "in.jsonl:2: " in done.err
    assert named in done.err
    assert not out.exists()
    assert len((tmp_path / "out.jsonl.partial").read_bytes().splitlines()) == 1  # earlier results are kept
    assert "go on with --resume" in done.err


@pytest.mark.parametrize(("line", "named"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_can_be_skipped_and_keeps_its_place(run, tmp_path, line, named):
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    data.write_bytes(lines(GOOD) + line + b"\n" + lines(ballot("after", "x")))
    done = run("vote", data, "-o", out, "--on-error", "skip")
    assert done.code == 4
    assert "1 of 3 ballots were skipped" in done.err
    results = [json.loads(written) for written in out.read_bytes().splitlines()]
    assert named in results[1]["error"]
    assert [r["id"] for r in (results[0], results[2])] == ["good", "after"]


def test_a_truncated_last_line_keeps_the_earlier_output_for_resume(run, tmp_path):
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    whole = lines(GOOD, ballot("next", "x y"))
    data.write_bytes(whole[:-9])
    assert run("vote", data, "-o", out).code == 3
    data.write_bytes(whole)
    assert run("vote", data, "-o", out, "--resume").code == 0
    assert out.read_bytes() == run("vote", data).out


ACCEPTED = {
    "a BOM": b"\xef\xbb\xbf" + lines(GOOD),
    "CRLF": lines(GOOD).replace(b"\n", b"\r\n"),
    "no last line end": lines(GOOD).rstrip(b"\n"),
    "blank lines at the end": lines(GOOD) + b"\n",
}


@pytest.mark.parametrize("data", ACCEPTED.values(), ids=ACCEPTED)
def test_harmless_differences_change_nothing(run, data):
    assert run("vote", stdin=data).out == run("vote", stdin=lines(GOOD)).out


@pytest.mark.parametrize("separator", ["\u2028", "\u0085", "\x0b", "\x1c"])
def test_line_separators_inside_a_string_do_not_cut_it(run, separator):
    text = json.dumps({"candidates": [f"a{separator}b", f"a{separator}b c"]}, ensure_ascii=False)
    assert run("vote", "--text", stdin=text.encode()).code in (0, 3)
    data = lines({"candidates": [f"a{separator}b", "x y"]})
    assert run("vote", stdin=data).results()[0]["winner"] == f"a{separator}b"


def test_nul_bytes_are_kept(run):
    assert run("vote", stdin=lines({"candidates": ["a\0b"]})).results()[0]["winner"] == "a\0b"


def test_utf_16_is_recognised(run):
    done = run("vote", stdin="\ufeff{}".encode("utf-16-le"))
    assert done.code == 3
    assert "looks like UTF-16" in done.err


def test_a_line_over_the_limit_is_refused(run):
    done = run("vote", "--max-line-bytes", 1000, stdin=lines(GOOD, ballot("long", "x " * 1000)))
    assert done.code == 3
    assert "stdin:2: " in done.err
    assert "--max-line-bytes" in done.err


def test_a_damaged_gzip_file_is_named(run, tmp_path):
    packed = tmp_path / "in.gz"
    packed.write_bytes(gzip.compress(lines(*(ballot(i, os.urandom(40).hex()) for i in range(500))))[:-20])
    done = run("vote", packed)
    assert done.code == 3
    assert "in.gz" in done.err


def test_unknown_fields_are_told_once(run):
    data = lines(*({**ballot(i, "a"), "colour": "red"} for i in range(5)))
    done = run("vote", stdin=data)
    assert done.code == 0
    assert done.err.count("colour") == 1


def test_minus_infinity_has_weight_0_and_stays_a_candidate(run):
    data = b'{"candidates": [{"text": "a b", "logprob": -Infinity}, {"text": "a b c", "logprob": -2}]}'
    result = run("vote", "--scores", stdin=data).results()[0]
    assert result["winner"] == "a b c"
    assert result["scores"] == [0.5, 1.0]


def test_probabilities_far_below_the_smallest_number_still_count(run):
    data = lines({"candidates": [{"text": "a", "logprob": -800}, {"text": "b", "logprob": -801}]})
    assert run("vote", stdin=data).results()[0]["score"] == pytest.approx(1 / (1 + 2.718281828459045**-1))


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


def test_all_empty_candidates_elect_the_most_likely_and_say_so(run):
    data = lines({"candidates": [{"text": "", "logprob": -2}, {"text": " ", "logprob": -1}]})
    result = run("vote", stdin=data).results()[0]
    assert (result["index"], result["no_support"]) == (1, True)


def test_state_vectors_of_different_length_are_refused(run):
    data = lines({"candidates": [{"text": "a", "state": [1, 2]}, {"text": "b", "state": [1]}]})
    done = run("vote", "-s", "states", stdin=data)
    assert done.code == 3
    assert "candidates[1].state" in done.err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--similarity", "overlap2"], "Did you mean 'overlap_2'?"),
        (["--winners", "0"], "winners must be a whole number from 1, got 0"),
        (["--winners", "-3"], "winners must be a whole number from 1, got -3"),
        (["--rule", "ranges"], "Did you mean 'range'?"),
        (["--weights", "counts"], "Did you mean 'count'?"),
        (["--tokenize", "word"], "Did you mean 'words'?"),
        (["--temperature", "0"], "temperature must be a number above 0"),
        (["--workers", "-1"], "--workers"),
        (["--format", "json"], "Did you mean 'jsonl'?"),
        (["--nosuch"], "No such option"),
        (["--resume"], "--resume needs -o FILE"),
        (["--normalisation", "lots"], "--normalisation is 'lots'"),
    ],
)
def test_an_option_that_cannot_be_meant_is_a_usage_error(run, three, arguments, named):
    done = run("vote", three, *arguments)
    assert (done.code, done.out) == (2, b"")
    assert named in done.err


def test_an_unknown_command_offers_the_nearest(run):
    done = run("vot")
    assert done.code == 2
    assert "Did you mean 'vote'?" in done.err


def test_more_winners_than_candidates_elect_all_and_warn(run, three):
    done = run("vote", three, "--winners", 3)
    assert done.code == 0
    assert "3 winners asked of 2 candidates" in done.err


def test_pairs_beyond_the_limit_are_refused_with_the_estimate(run, monkeypatch):
    monkeypatch.setenv("RANGEVOTE_MAX_PAIRS", "100")
    done = run("vote", "-s", "chrf", stdin=lines(ballot(1, *(f"t {i}" for i in range(11)))))
    assert done.code == 2
    assert "121 pairs" in done.err
    assert "RANGEVOTE_MAX_PAIRS" in done.err
    assert run("vote", "-s", "overlap_2", stdin=lines(ballot(1, *(f"t {i}" for i in range(11))))).code == 0


def test_an_output_that_exists_is_left_alone(run, three, tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_text("precious")
    done = run("vote", three, "-o", out)
    assert done.code == 5
    assert "exists already" in done.err
    assert out.read_text() == "precious"
    assert run("vote", three, "-o", out, "--force").code == 0
    assert out.read_bytes() == run("vote", three).out


def test_the_input_is_never_overwritten(run, three):
    before = three.read_bytes()
    done = run("vote", three, "-o", three, "--force")
    assert done.code == 2
    assert "input and output are the same file" in done.err
    assert three.read_bytes() == before


def test_standard_input_that_is_a_terminal_is_a_usage_error(run, monkeypatch):
    class Terminal:
        def isatty(self) -> bool:
            return True

    from rangevote.cli import run as command

    monkeypatch.setattr(sys, "stdin", Terminal())
    assert command(["vote"]) == 2


def test_an_output_in_a_folder_that_does_not_exist_is_named(run, three, tmp_path: Path):
    done = run("vote", three, "-o", tmp_path / "no" / "out.jsonl")
    assert done.code == 5
    assert "no such file or directory" in done.err


@pytest.mark.parametrize("more", [[], ["--to", "parquet"]], ids=" ".join)
def test_an_output_without_a_name_is_a_folder(run, three, more):
    done = run("vote", three, "-o", ".", *more)
    assert (done.code, done.err) == (5, "rangevote: cannot write .: is a directory.\n")
