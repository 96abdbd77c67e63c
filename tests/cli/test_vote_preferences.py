"""rangevote vote --to preferences: pairs for training, the winner over the last."""

from __future__ import annotations

import json

import pytest

import rangevote as rv
from tests.cli.conftest import ballot, lines

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
