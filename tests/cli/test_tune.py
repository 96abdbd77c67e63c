"""`rangevote tune`: ballots with references in, a profile out; `--profile` uses it."""

from __future__ import annotations

import pytest

import rangevote as rv
from rangevote.formats.jsonl import write_ballot
from tests.cli.conftest import ballot, lines
from tests.evaluation.test_risk_coverage import answered
from tests.tuning.made_up import ballots

FEW = ("-s", "overlap_1,overlap_2", "--exponents", "0,0.5", "--temperatures", "1", "--likelihoods", "0,0.4")
FEW += ("--resamples", "50")


@pytest.fixture
def dev(tmp_path):
    path = tmp_path / "dev.jsonl"
    path.write_bytes(b"".join(write_ballot(one) for one in ballots(12)))
    return path


def test_the_profile_is_that_of_the_library(run, dev, tmp_path):
    profile = tmp_path / "profile.toml"
    done = run("tune", dev, "--metric", "bleu_2", *FEW, "-o", profile, "-q")
    assert (done.code, done.err) == (0, "")
    grid = {"similarities": ["overlap_1", "overlap_2"], "exponents": [0, 0.5], "temperatures": [1]}
    with pytest.warns(rv.RangevoteWarning):
        found = rv.tune(ballots(12), metric="bleu_2", resamples=50, likelihoods=[0, 0.4], **grid)
    assert profile.read_text() == found.profile()
    assert rv.read_profile(profile) == found.options


def test_the_weight_of_a_score_goes_into_the_profile_and_the_report_says_that_it_helps(run, tmp_path):
    listed = [
        {"text": text, "scores": {"reward": reward}}
        for text, reward in (("the cat", 0), ("the dog", 0), ("a cow", 1))
    ]
    records = ({"id": i, "candidates": listed, "references": ["a cow"]} for i in range(30))
    (tmp_path / "dev.jsonl").write_bytes(lines(*records))
    arguments = ["-s", "overlap_1", "--exponents", "0", "--temperatures", "1", "--likelihoods", "0"]
    arguments += ["--metric", "bleu_1", "--scores", "reward", "--resamples", "100"]
    done = run("tune", tmp_path / "dev.jsonl", *arguments, "-o", tmp_path / "profile.toml")
    assert done.code == 0
    [line] = [line for line in done.out.decode().splitlines() if line.startswith("scores reward: ")]
    assert "helps beyond chance" in line
    assert rv.read_profile(tmp_path / "profile.toml")["scores"]["reward"] > 0


def test_the_surface_goes_to_standard_output_with_intervals(run, dev):
    done = run("tune", dev, "--metric", "bleu_2", *FEW)
    assert done.code == 0
    text = done.out.decode()
    settings = ("overlap_1@0.5", "overlap_2", "overlap_2, L = 0.4", "T = 1", "most_likely")
    for name in (*settings, "chosen:", "default: overlap_1-4@0.25, T = 2"):
        assert name in text
    assert "BLEU-2 of 8 settings on 12 ballots" in text
    assert text.count("]<") == 1
    assert "no setting scores as high as the default" in done.err


def test_references_may_come_from_files(run, dev, tmp_path):
    listed = ballots(12)
    bare, first, second = (tmp_path / name for name in ("bare.jsonl", "r1.txt", "r2.txt"))
    bare.write_bytes(lines(*[ballot(b.id, *[c.text for c in b.candidates]) for b in listed]))
    for place, path in enumerate((first, second)):
        path.write_text("".join(f"{b.references[place]}\n" for b in listed))
    whole = tmp_path / "whole.jsonl"
    whole.write_bytes(
        lines(*[ballot(b.id, *[c.text for c in b.candidates], references=b.references) for b in listed])
    )
    asked = ("--metric", "bleu_2", *FEW, "--to", "json", "-q")
    by_text, by_id, along = (
        run("tune", *files, *asked)
        for files in ([bare, "-r", first, "-r", second], [bare, "-r", dev], [whole])
    )
    assert by_text.code == by_id.code == along.code == 0
    assert by_text.out == by_id.out == along.out


def test_options_of_the_command_line_come_before_the_profile(run, dev, tmp_path):
    profile = tmp_path / "profile.toml"
    chosen = 'similarity = "overlap_1@0.5"\ntemperature = 2.0\nlikelihood = 0.4'
    profile.write_text(f'[election]\n{chosen}\ntokenize = "chars"\n')
    warmer = run("vote", dev, "--profile", profile, "--temperature", "3").results()[0]
    assert "sim:overlap_1@0.5|on:chars|w:probability|T:3|L:0.4|" in warmer["signature"]
    # a measure brings its own temperature: the profile's was chosen for another
    other = run("vote", dev, "--profile", profile, "-s", "overlap_2").results()[0]
    assert "sim:overlap_2|on:chars|w:probability|T:1|cand" in other["signature"]
    preset = run("vote", dev, "--profile", profile, "--preset", "blend").results()[0]
    assert "sim:overlap_1-4@0.25|on:chars|w:probability|T:2|" in preset["signature"]


def test_a_run_is_not_resumed_under_a_changed_profile(run, dev, tmp_path):
    profile, out = tmp_path / "profile.toml", tmp_path / "out.jsonl"
    profile.write_text('[election]\nsimilarity = "overlap_1"\n')
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(dev.read_bytes() + b"{\n")
    assert run("vote", broken, "--profile", profile, "-o", out).code == 3
    profile.write_text('[election]\nsimilarity = "overlap_2"\n')
    done = run("vote", dev, "--profile", profile, "-o", out, "--resume")
    assert done.code == 5
    assert "profile" in done.err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (
            [],
            3,
            "nbest.jsonl:1: references: is missing; add it to the ballots, or give a file of references",
        ),
        (["-r", "short.txt"], 3, "short.txt has no references for this ballot"),
        (["-r", "long.txt"], 3, "9 lines for 3 ballots"),
        (["--exponents", "0,x"], 2, "is not a list of numbers"),
        (["-s", ","], 2, "has no values"),
        (["--plot", "curve.txt"], 2, "curve.txt"),
        (["--max-risk", "5"], 2, "risk"),
    ],
)
def test_references_out_of_step_and_wrong_options_are_refused(
    run, three, monkeypatch, options, code, message
):
    monkeypatch.chdir(three.parent)
    three.with_name("short.txt").write_text("a\n")
    three.with_name("long.txt").write_text("a\n" * 9)
    done = run("tune", three, "--metric", "bleu_1", *options)
    assert (done.code, message in done.err) == (code, True), done.err


def test_a_bad_ballot_leaves_no_profile(run, dev, tmp_path):
    profile = tmp_path / "profile.toml"
    dev.write_bytes(dev.read_bytes() + b"{\n")
    done = run("tune", dev, "--metric", "bleu_2", *FEW, "-o", profile)
    assert done.code == 3
    assert f"{dev}:13" in done.err
    assert not profile.exists()


def test_a_threshold_and_weights_are_chosen_and_the_curve_is_drawn(run, tmp_path):
    pytest.importorskip("matplotlib")
    path, profile, picture = (tmp_path / name for name in ("dev.jsonl", "profile.toml", "curve.svg"))
    path.write_bytes(b"".join(map(write_ballot, answered(200))))
    asked = ["-s", "exact:last_number", "--metric", "accuracy:last_number", "--likelihoods", "0"]
    asked += ["--max-risk", "0.2", "--weights", "count,confidence"]
    asked += ["--resamples", "50", "--temperatures", "1"]
    done = run("tune", path, *asked, "--plot", picture, "-o", profile, "-q")
    text = done.out.decode()
    assert done.code == 0
    assert "weights confidence:" in text
    assert "on new ballots it is at most 0.2, with 95 % confidence" in text
    assert picture.read_bytes().startswith(b"<?xml")
    options = rv.read_profile(profile)
    results = run("vote", path, "--profile", profile, "-q").results()
    nobody = [result for result in results if result["winner"] is None]
    assert all(result["score"] < options["min_share"] for result in nobody)
    assert 0 < len(nobody) < 200
