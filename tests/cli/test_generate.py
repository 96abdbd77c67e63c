"""rangevote generate: inputs and a model in, the elected outputs out, with the lines of rangevote vote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rangevote as rv
from rangevote.formats import read
from rangevote.formats.results import FIELDS
from tests.cli.speaker import Speaker, speaker

__all__ = ["speaker"]

PROMPTS = ["who sat?", "where?", "on what?", "tell me", "and then?"]
ELECTION = ["-s", "overlap_1", "--scores"]


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.txt"
    path.write_text("".join(f"{prompt}\n" for prompt in PROMPTS), encoding="utf-8")
    return path


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


def test_a_profile_elects_as_its_options_do(run, prompts, speaker, tmp_path):
    profile = tmp_path / "profile.toml"
    profile.write_text('[election]\nsimilarity = "overlap_1@0.5"\ntemperature = 3.0\n')
    arguments = ("generate", "-m", "speaker", "-i", prompts, "--candidates", "beam:6")
    by_profile = run(*arguments, "--profile", profile)
    assert by_profile.code == 0
    assert by_profile.out == run(*arguments, "-s", "overlap_1@0.5", "--temperature", "3").out
    assert "sim:overlap_1@0.5|" in by_profile.results()[0]["signature"]


def test_inputs_come_from_a_pipe_as_well(run, prompts, speaker):
    piped = run("generate", "-m", "speaker", stdin=prompts.read_bytes())
    assert piped.out == run("generate", "-m", "speaker", "-i", prompts).out


def test_text_writes_the_winners_alone(run, prompts, speaker):
    done = run("generate", "-m", "speaker", "-i", prompts, "--text")
    assert done.out.decode().splitlines() == [result.winner for result in expected(speaker)]


@pytest.mark.parametrize(
    "search",
    [
        [],
        ["--voters", "sample:20"],
        ["--voters", "sample:200", "--adaptive", "0.9"],
        ["--candidates", "stochastic_beam:6"],
        ["--candidates", "sample:9", "--voters", "beam:5", "--seed", "4"],
        ["-s", "states"],
        ["--merge", "--winners", "2", "--rule", "reweighted"],
    ],
)
def test_voting_on_the_kept_ballots_gives_the_same_bytes(run, prompts, speaker, tmp_path, search):
    kept, election = tmp_path / "nbest.jsonl", ["--scores", "--explain", "-s", "overlap_1"]
    done = run("generate", "-m", "speaker", "-i", prompts, "--ballots", kept, *election, *search)
    assert (done.code, done.err) == (0, "")
    again = run("vote", kept, *election, *_without_searches(search))
    assert again.out == done.out


def _without_searches(options: list[str]) -> list[str]:
    kept = list(options)
    for name in ("--candidates", "--voters", "--adaptive", "--seed"):
        if name in kept:
            del kept[kept.index(name) : kept.index(name) + 2]
    return kept


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
            assert list(entry.get().candidates) == [_listed(h) for h in result.candidates]
            assert list(entry.get().voters or ()) == [_listed(h) for h in result.voters]


def _listed(hypothesis: rv.Hypothesis) -> rv.Hypothesis:
    """As it comes back from a file."""
    import msgspec

    return msgspec.structs.replace(hypothesis, tokens=list(hypothesis.tokens or ()))


def test_the_copy_filter_is_set_on_both_searches(run, prompts, speaker, monkeypatch, tmp_path):
    monkeypatch.setattr(speaker, "source", lambda input: [1, 2])  # the, cat
    kept = tmp_path / "nbest.jsonl"
    search = ["--copy-filter", "0.5", "--candidates", "beam:5", "--voters", "sample:9"]
    assert run("generate", "-m", "speaker", "-i", prompts, "--ballots", kept, *search).code == 0
    with read(kept) as entries:
        for entry in entries:
            for hypothesis in [*entry.get().candidates, *(entry.get().voters or ())]:
                assert not {1, 2} & set(hypothesis.tokens or ())


@pytest.mark.parametrize(("given", "confidence"), [(["--adaptive"], 0.99), (["--adaptive", "0.8"], 0.8)])
def test_adaptive_takes_a_confidence_or_none(run, prompts, speaker, given, confidence):
    done = run("generate", "-m", "speaker", "-i", prompts, "--voters", "sample:300", *ELECTION, *given)
    results = expected(speaker, voters="sample:300", adaptive=confidence, similarity="overlap_1")
    assert [line["signature"] for line in done.results()] == [result.signature for result in results]
    assert {len(result.voters) for result in results} != {300}


def test_the_model_is_asked_for_as_told(run, prompts, speaker):
    run("generate", "-m", "some/model", "-i", prompts, "--device", "cpu", "--dtype", "float32", "--no-chat")
    run("generate", "-m", "other", "-i", prompts)
    assert speaker.asked == [("some/model", "cpu", "float32", False), ("other", None, None, True)]


def test_conversations_and_token_ids_reach_the_model_as_they_are(run, speaker, tmp_path):
    data = tmp_path / "in.jsonl"
    chat = [{"role": "user", "content": "who?"}]
    data.write_text("".join(json.dumps(row) + "\n" for row in ({"messages": chat}, {"input": [1, 2]})))
    done = run("generate", "-m", "speaker", "-i", data)
    assert (done.code, done.err) == (0, "")
    assert speaker.read == [chat, [1, 2]]


def test_images_are_given_as_a_folder_or_a_list(run, speaker, tmp_path):
    pytest.importorskip("transformers")
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


def test_help_shows_what_a_search_looks_like(run):
    shown = run("generate", "--help").out.decode()
    for words in ("beam:10", "nucleus:100,p=0.9", "--ballots FILE", "--adaptive [CONFIDENCE]"):
        assert words in shown
