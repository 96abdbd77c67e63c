"""What can go wrong with `rangevote generate`: said in one line, with the place, and nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.speaker import speaker

__all__ = ["speaker"]


def prompts(path: Path, *texts: str) -> Path:
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """The third of five prompts is empty."""
    return prompts(tmp_path / "in.txt", "a", "b", "", "d", "e")


def test_a_bad_input_stops_the_run_after_what_stands_before_it(run, speaker, bad, tmp_path):
    out = tmp_path / "out.jsonl"
    done = run("generate", "-m", "speaker", "-i", bad, "-o", out)
    assert done.code == 3
    assert f"{bad}:3: the prompt is empty." in done.err
    assert "Results so far are kept in" in done.err
    assert len((tmp_path / "out.jsonl.partial").read_bytes().splitlines()) == 2
    prompts(bad, "a", "b", "c", "d", "e")
    assert run("generate", "-m", "speaker", "-i", bad, "-o", out, "--resume").code == 0
    assert out.read_bytes() == run("generate", "-m", "speaker", "-i", bad).out


def test_skipping_loses_only_the_bad_input(run, speaker, bad, tmp_path):
    kept = tmp_path / "nbest.jsonl"
    done = run("generate", "-m", "speaker", "-i", bad, "--on-error", "skip", "--ballots", kept)
    assert done.code == 4
    assert f"warning: skipped: {bad}:3: the prompt is empty." in done.err
    assert "1 of 5 inputs were skipped." in done.err
    good = run("generate", "-m", "speaker", "-i", prompts(tmp_path / "good.txt", "a", "b", "c", "d", "e"))
    lines, others = done.results(), good.results()
    assert lines[2] == {"id": 3, "error": f"{bad}:3: the prompt is empty."}
    assert [lines[i] for i in (0, 1, 3, 4)] == [others[i] for i in (0, 1, 3, 4)]
    again = run("vote", kept, "--on-error", "skip")
    assert [line["id"] for line in again.results()] == [1, 2, 3, 4, 5]
    assert [again.results()[i] for i in (0, 1, 3, 4)] == [lines[i] for i in (0, 1, 3, 4)]
    assert "there are no candidates" in again.results()[2]["error"]


def test_with_text_a_skipped_input_is_an_empty_line(run, speaker, bad):
    done = run("generate", "-m", "speaker", "-i", bad, "--on-error", "skip", "--text")
    assert done.code == 4
    assert [bool(line) for line in done.out.splitlines()] == [True, True, False, True, True]


def test_a_line_that_cannot_be_read_is_skipped_in_its_place(run, speaker, tmp_path):
    data = tmp_path / "in.jsonl"
    data.write_bytes(b'{"text": "a"}\nbroken\n{"id": 3}\n{"text": "d"}\n')
    done = run("generate", "-m", "speaker", "-i", data, "--on-error", "skip")
    assert done.code == 4
    assert ["error" in line for line in done.results()] == [False, True, True, False]
    assert f"{data}:2: not valid JSON" in done.results()[1]["error"]
    assert f"{data}:3: has none of the fields text, prompt, source, messages, input" in done.err
    stopped = run("generate", "-m", "speaker", "-i", data)
    assert stopped.code == 3
    assert len(stopped.results()) == 1


def test_an_input_whose_search_finds_nothing_is_named_by_its_line(run, speaker, tmp_path, monkeypatch):
    monkeypatch.setattr(speaker, "source", lambda input: range(1, 7) if input == "copy me" else [])
    monkeypatch.setattr(speaker, "end", 0)
    data = prompts(tmp_path / "in.txt", "a", "copy me")
    done = run("generate", "-m", "speaker", "-i", data, "--candidates", "beam:3,min_new_tokens=2", *FILTER)
    assert done.code == 3
    assert f"{data}:2: the search 'beam:3,min_new_tokens=2,copy_filter=0.1' found no candidates" in done.err


FILTER = ["--copy-filter", "0.1"]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--candidates", "bean:10"], 2, "unknown search 'bean'. Did you mean 'beam'?"),
        (["--candidates", "beam:0"], 2, "k must be a whole number from 1, got 0"),
        (["--candidates", "beam"], 2, "say how many hypotheses, as in 'beam:10'"),
        (["--voters", "sample:5,heat=2"], 2, "unknown option of search sample 'heat'"),
        (["--adaptive"], 2, "must be samples, but the candidates vote"),
        (["--adaptive", "7", "--voters", "sample:9"], 2, "between 0 and 1"),
        (["--max-rows", "0"], 2, "max_rows must be a whole number from 1"),
        (["--max-new-tokens", "0"], 2, "max_new_tokens must be a whole number from 1"),
        (["--copy-filter", "2"], 2, "copy_filter must be a share"),
        (["-s", "overlop_2"], 2, "unknown similarity 'overlop_2'"),
        (["--resume"], 2, "--resume needs -o FILE"),
        (["--ballots", "-"], 2, "--ballots needs a file"),
        (["--field", "prompt"], 2, "is read as lines of text; if it has JSON, use --input-format jsonl"),
        (["-o", "same.jsonl", "--ballots", "same.jsonl"], 2, "the same file"),
        (["-o", "no/such/folder/out.jsonl"], 5, "no such file or directory"),
    ],
)
def test_mistakes_are_said_before_anything_is_generated(
    run, speaker, tmp_path, monkeypatch, options, code, message
):
    monkeypatch.chdir(tmp_path)
    data = prompts(tmp_path / "in.txt", "a")
    done = run("generate", "-m", "speaker", "-i", data, *options)
    assert done.code == code
    assert message in done.err
    assert speaker.read == []
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_a_folder_needs_a_model_that_reads_images_and_images(run, speaker, tmp_path):
    done = run("generate", "-m", "speaker", "-i", tmp_path)
    assert done.code == 2
    assert "is a folder, but the model reads text" in done.err
    pytest.importorskip("transformers")
    speaker.see()
    done = run("generate", "-m", "speaker", "-i", tmp_path)
    assert done.code == 5
    assert "no images in the folder" in done.err


def test_an_image_that_is_not_there_is_skipped(run, speaker, tmp_path):
    pytest.importorskip("transformers")
    speaker.see()
    (tmp_path / "a.png").write_bytes(b"x")
    data = prompts(tmp_path / "in.txt", "a.png", "b.png")
    done = run("generate", "-m", "speaker", "-i", data, "--on-error", "skip")
    assert done.code == 4
    assert "in.txt:2: there is no image file 'b.png'" in done.err


def test_a_missing_input_file_leaves_no_output_behind(run, speaker, tmp_path):
    done = run("generate", "-m", "speaker", "-i", tmp_path / "no.txt", "-o", tmp_path / "out.jsonl")
    assert done.code == 5
    assert "cannot read" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_without_input_is_not_waited_on(run, speaker, monkeypatch):
    monkeypatch.setattr(
        "rangevote.cli.progress.sys.stdin", type("Terminal", (), {"isatty": lambda self: True})()
    )
    import rangevote.cli

    assert rangevote.cli.run(["generate", "-m", "speaker"]) == 2


def test_ids_must_differ(run, speaker, tmp_path):
    data = prompts(tmp_path / "in.jsonl", '{"id": 1, "text": "a"}', '{"id": 1, "text": "b"}')
    done = run("generate", "-m", "speaker", "-i", data)
    assert done.code == 3
    assert "the id 1 was used before" in done.err
