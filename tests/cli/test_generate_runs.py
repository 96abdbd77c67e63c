"""Runs of `rangevote generate` that end early: results and ballots stay in step, nothing is done twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.speaker import speaker

__all__ = ["speaker"]

INPUTS = [f"question {i}" for i in range(12)]
OPTIONS = [
    "--candidates",
    "beam:4",
    "--voters",
    "sample:9",
    "--seed",
    "2",
    "--max-rows",
    "18",
]  # two at a time


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{text}\n" for text in INPUTS))
    return path


class Paths:
    """The files of a run."""

    def __init__(self, folder: Path) -> None:
        self.out, self.ballots = folder / "out.jsonl", folder / "nbest.jsonl"
        self.out_partial, self.ballots_partial = (
            path.with_name(f"{path.name}.partial") for path in (self.out, self.ballots)
        )

    @property
    def options(self) -> list[object]:
        return ["-o", self.out, "--ballots", self.ballots]


def whole(run, data: Path, folder: Path) -> tuple[bytes, bytes]:
    """What an uninterrupted run writes."""
    paths = Paths(folder / "whole")
    paths.out.parent.mkdir()
    assert run("generate", "-m", "speaker", "-i", data, *OPTIONS, *paths.options).code == 0
    return paths.out.read_bytes(), paths.ballots.read_bytes()


@pytest.fixture
def interrupted(run, data, speaker, tmp_path) -> Paths:
    """Ctrl-C while the seventh and eighth inputs are searched."""
    paths = Paths(tmp_path)
    speaker.stop_at = INPUTS[7]
    done = run("generate", "-m", "speaker", "-i", data, *OPTIONS, *paths.options)
    speaker.stop_at = None
    assert done.code == 130
    assert "interrupted. Results so far are kept in" in done.err
    assert "go on with --resume" in done.err
    return paths


def test_ctrl_c_keeps_what_is_done_and_resume_does_the_rest(run, data, speaker, interrupted, tmp_path):
    assert not interrupted.out.exists()
    assert len(interrupted.out_partial.read_bytes().splitlines()) == 6
    assert len(interrupted.ballots_partial.read_bytes().splitlines()) == 6
    speaker.read.clear()
    done = run("generate", "-m", "speaker", "-i", data, *OPTIONS, *interrupted.options, "--resume")
    assert (done.code, done.err) == (0, "")
    assert speaker.read == INPUTS[6:]
    assert (interrupted.out.read_bytes(), interrupted.ballots.read_bytes()) == whole(run, data, tmp_path)
    assert sorted(p.name for p in tmp_path.glob("*.partial*")) == []


@pytest.mark.parametrize("ahead", ["ballots", "results"])
def test_of_two_files_the_shorter_counts(run, data, speaker, interrupted, tmp_path, ahead):
    longer = interrupted.out_partial if ahead == "ballots" else interrupted.ballots_partial
    lines = longer.read_bytes().splitlines(keepends=True)
    longer.write_bytes(b"".join(lines[:4]) + lines[4][:10])  # a line is torn, another missing
    speaker.read.clear()
    assert run("generate", "-m", "speaker", "-i", data, *OPTIONS, *interrupted.options, "--resume").code == 0
    assert speaker.read == INPUTS[4:]
    assert (interrupted.out.read_bytes(), interrupted.ballots.read_bytes()) == whole(run, data, tmp_path)


def test_results_on_standard_output_resume_by_the_ballots(run, data, speaker, tmp_path):
    paths = Paths(tmp_path)
    speaker.stop_at = INPUTS[7]
    first = run("generate", "-m", "speaker", "-i", data, *OPTIONS, "--ballots", paths.ballots)
    speaker.stop_at = None
    assert first.code == 130
    rest = run("generate", "-m", "speaker", "-i", data, *OPTIONS, "--ballots", paths.ballots, "--resume")
    assert rest.code == 0
    assert (first.out + rest.out, paths.ballots.read_bytes()) == whole(run, data, tmp_path)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (["-m", "other"], "model was 'speaker', now 'other'"),
        (["--seed", "3"], "seed was '2', now '3'"),
        (["--candidates", "beam:5"], "candidates was 'beam:4', now 'beam:5'"),
        (["--voters", "sample:8"], "voters was 'sample:9', now 'sample:8'"),
        (["-s", "overlap_1"], "similarity was 'overlap_2', now 'overlap_1'"),
        (["--max-new-tokens", "3"], "max_new_tokens was 'None', now '3'"),
        (["--dtype", "float64"], "dtype was 'None', now 'float64'"),
    ],
)
def test_other_options_cannot_resume(run, data, interrupted, changed, told):
    done = run("generate", "-m", "speaker", "-i", data, *OPTIONS, *interrupted.options, *changed, "--resume")
    assert done.code == 5
    assert f"the fingerprint differs ({told})" in done.err
    assert len(interrupted.out_partial.read_bytes().splitlines()) == 6


def test_other_batches_and_another_way_with_errors_can_resume(run, data, interrupted, tmp_path):
    other = ["--max-rows", "1000", "--on-error", "skip", "-q"]
    done = run("generate", "-m", "speaker", "-i", data, *OPTIONS, *interrupted.options, *other, "--resume")
    assert done.code == 0
    assert (interrupted.out.read_bytes(), interrupted.ballots.read_bytes()) == whole(run, data, tmp_path)


def test_ballots_cannot_be_asked_for_half_way(run, data, interrupted, tmp_path):
    only = ["-o", interrupted.out, "--resume"]
    done = run("generate", "-m", "speaker", "-i", data, *OPTIONS, *only)
    assert done.code == 5
    assert "ballots was 'True', now 'False'" in done.err
    interrupted.ballots_partial.unlink()
    done = run("generate", "-m", "speaker", "-i", data, *OPTIONS, *interrupted.options, "--resume")
    assert done.code == 5
    assert "nbest.jsonl.partial, which goes with it, is missing" in done.err
    assert len(interrupted.out_partial.read_bytes().splitlines()) == 6


def test_an_unfinished_or_finished_output_is_not_overwritten(run, data, interrupted):
    again = ["generate", "-m", "speaker", "-i", data, *OPTIONS, *interrupted.options]
    assert "is there from an unfinished run. Use --resume" in run(*again).err
    assert run(*again, "--force").code == 0
    assert run(*again).code == 5
    assert "it is complete; nothing to resume" in run(*again, "--resume").err


def test_an_input_that_became_shorter_cannot_be_resumed(run, data, interrupted):
    data.write_text("question 0\n")
    done = run("generate", "-m", "speaker", "-i", data, *OPTIONS, *interrupted.options, "--resume")
    assert done.code == 5
    assert "the output has 6 lines, the input only 1" in done.err


def test_an_input_whose_ids_changed_cannot_be_resumed(run, speaker, tmp_path):
    rows = [f'{{"id": "{text}", "text": "{text}"}}\n' for text in INPUTS]
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    data.write_text("".join(rows))
    speaker.stop_at = INPUTS[7]
    assert run("generate", "-m", "speaker", "-i", data, *OPTIONS, "-o", out).code == 130
    data.write_text("".join(reversed(rows)))
    done = run("generate", "-m", "speaker", "-i", data, *OPTIONS, "-o", out, "--resume")
    assert done.code == 5
    assert "line 6 of the output has id 'question 5', the input 'question 6'" in done.err


def test_what_is_done_is_on_the_disk_batch_by_batch(run, data, speaker, tmp_path, monkeypatch):
    paths = Paths(tmp_path)
    sizes = []
    start = speaker.start

    def looking(inputs):
        sizes.append(len(paths.out_partial.read_bytes().splitlines()))
        return start(inputs)

    monkeypatch.setattr(speaker, "start", looking)
    assert run("generate", "-m", "speaker", "-i", data, *OPTIONS, *paths.options).code == 0
    assert sizes == [0, 2, 4, 6, 8, 10]  # a killed process loses one batch, not a buffer


def test_a_bar_counts_the_inputs_on_a_terminal(run, data, speaker, monkeypatch):
    import io
    import sys

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("rangevote.cli.progress.Bar.STEP", 0.0)
    assert run("generate", "-m", "speaker", "-i", data, *OPTIONS).code == 0
    assert "generating" in shown.getvalue()
    assert "inputs/s" in shown.getvalue()
