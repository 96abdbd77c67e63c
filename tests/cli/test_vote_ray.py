"""`rangevote vote --engine ray`: what is refused before any Ray is started."""

from __future__ import annotations

import json
import sys

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'rangevote[ray]'")
RAY = ("--engine", "ray")


@pytest.fixture
def with_ray(monkeypatch):
    """As where Ray is installed; all of this is refused before it is looked at."""
    monkeypatch.setattr("rangevote.scale.ray.session.check_installed", lambda: None)


@pytest.mark.usefixtures("with_ray")
def test_standard_input_and_output_are_not_for_many_machines(run, three):
    for command in (("vote", three, *RAY), ("vote", "-", "-o", "x", *RAY)):
        done = run(*command)
        assert done.code == 2
        assert "reads files and writes to a file or a folder: give BALLOTS and -o." in done.err


@pytest.mark.usefixtures("with_ray")
def test_options_of_the_local_engine_are_refused(run, three, tmp_path):
    for options, told in [
        (("--workers", 2), "--workers and --shard belong to --engine local"),
        (("--shard", "1/2"), "--workers and --shard belong to --engine local"),
        (("--voters", three), "--voters belongs to --engine local"),
        (("--text",), "--text belongs to --engine local"),
    ]:
        done = run("vote", three, "-o", tmp_path / "out", *RAY, *options)
        assert done.code == 2
        assert told in done.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["nbest.jsonl"]


@pytest.mark.usefixtures("with_ray")
def test_an_output_that_is_there_is_left_as_it_is(run, three, tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_text("old")
    done = run("vote", three, "-o", out, *RAY)
    assert done.code == 5
    assert f"{out} exists already and it is left as it is. Use --force to replace it." in done.err
    assert run("vote", three, "-o", three, *RAY).code == 2
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "mine").write_text("keep")
    done = run("vote", three, "-o", folder, *RAY)
    assert done.code == 5
    assert "has files that are not ours; write to a new folder" in done.err
    assert [p.name for p in folder.iterdir()] == ["mine"]


@pytest.mark.usefixtures("with_ray")
def test_an_unfinished_run_asks_for_resume_or_force_and_the_same_options(run, three, tmp_path):
    notes = tmp_path / "out.jsonl.parts" / "_rangevote"
    notes.mkdir(parents=True)
    (notes / "run.json").write_text(json.dumps({"fingerprint": "x", "options": {"similarity": "chrf"}}))
    done = run("vote", three, "-o", tmp_path / "out.jsonl", *RAY)
    assert done.code == 5
    assert "is there from an unfinished run. Use --resume to go on with it, or --force" in done.err
    done = run("vote", three, "-o", tmp_path / "out.jsonl", *RAY, "--resume")
    assert done.code == 5
    assert "the fingerprint differs (" in done.err
    assert "similarity was 'chrf', now 'overlap_2'" in done.err


@pytest.mark.usefixtures("with_ray")
def test_a_second_run_on_the_same_output_is_refused(run, three, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    notes = tmp_path / "out" / "_rangevote"
    notes.mkdir(parents=True)
    with (notes / "lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = run("vote", three, "-o", tmp_path / "out", *RAY)
    assert done.code == 5
    assert f"another run is writing {tmp_path / 'out'}" in done.err


def test_without_ray_it_is_said_what_to_install(run, three, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    done = run("vote", three, "-o", tmp_path / "out.jsonl", *RAY)
    assert done.code == 5
    assert 'pip install "rangevote[ray]"' in done.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["nbest.jsonl"]
