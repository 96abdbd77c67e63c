"""rangevote generate --engine: a server samples, the election is held here."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

import rangevote as rv
from rangevote.engines.openai import client as client_module
from tests.cli.conftest import spawn
from tests.cli.test_generate import lines
from tests.engines.openai.upstream import (
    SENTENCES,
    Asked,
    Reply,
    Upstream,
    completion,
    refusal,
    text_of,
    well,
)
from tests.waiting import until

PROMPTS = [f"question {i}" for i in range(9)]
KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(client_module, "LONGEST_PAUSE", 0.01)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    return lines(tmp_path / "prompts.txt", *PROMPTS)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Where a run keeps its ballots."""
    return tmp_path / "nbest.jsonl"


@pytest.fixture
def ask(run, prompts):
    """`rangevote generate` of the prompts by a server."""

    def call(upstream: Upstream, *options: object, source: str = "openai", input: object = prompts) -> Any:
        server = ("--engine", source, "--base-url", upstream.url, "--model", "tiny")
        return run("generate", *server, "-i", input, *options)

    return call


def prompt_of(asked: Asked) -> str:
    return str(asked.body["messages"][-1]["content"])


def failing(prompt: str, reply: Reply):
    """A server that fails at one prompt."""

    def answer(asked: Asked) -> Reply:
        return reply if prompt_of(asked) == prompt else well(asked)

    return answer


def test_every_line_is_asked_and_elected_in_order(ask, kept):
    with Upstream(delay=0.01) as upstream:
        done = ask(upstream, "--candidates", "sample:6", "--scores", "--ballots", kept)
    assert (done.code, done.err) == (0, "")
    assert [line["id"] for line in done.results()] == list(range(1, 10))
    for line, ballot, prompt in zip(done.results(), rv.read(kept), PROMPTS, strict=True):
        assert ballot.source == prompt
        [asked] = [asked for asked in upstream.asked if prompt_of(asked) == prompt]
        assert [one.text for one in ballot.candidates] == [text_of(asked.body["seed"] + i) for i in range(6)]
        result = rv.elect(ballot.candidates)
        assert (line["winner"], line["scores"]) == (result.winner, result.scores.tolist())
        assert "w:count" in line["signature"]
    assert upstream.most_open > 1


def test_the_answer_votes_and_the_winners_reasoning_is_written(ask, kept):
    with Upstream("reasons_inline") as upstream:
        done = ask(upstream, "--candidates", "sample:6", "--ballots", kept)
        assert ask(upstream, "--candidates", "sample:6", "--text").out == b"42\n" * 9
    for line, ballot in zip(done.results(), rv.read(kept), strict=True):
        assert sorted(one.text for one in ballot.candidates) == ["41"] * 2 + ["42"] * 4
        assert line["winner"] == "42"
        assert line["reasoning"].startswith("I said ")


def test_candidates_and_voters_are_different_draws(ask):
    with Upstream() as upstream:
        searches = ("--candidates", "sample:5", "--voters", "sample:5,temperature=2")
        assert ask(upstream, *searches, "--temperature", "0.5").code == 0
    assert {asked.body["temperature"] for asked in upstream.asked} == {0.5, 2.0}
    seeds = [asked.body["seed"] for asked in upstream.asked if prompt_of(asked) == PROMPTS[0]]
    assert len(seeds) == 2
    assert abs(seeds[0] - seeds[1]) > 5


def test_voters_are_drawn_only_until_the_election_is_decided(ask):
    def agreed(asked: Asked) -> Reply:
        """All voters say one thing; candidates are two, drawn at the temperature of 0.5."""
        texts = ["x", SENTENCES[0]] if asked.body["temperature"] == 0.5 else [SENTENCES[0]] * asked.n
        return completion(asked, [{"index": i, "message": {"content": text}} for i, text in enumerate(texts)])

    options = ("--candidates=sample:2,temperature=0.5", "--voters=sample:400", "--adaptive=0.999999999")
    with Upstream(answer=agreed) as upstream:
        done = ask(upstream, *options, "--text")
    assert done.code == 0
    assert done.out.decode().splitlines() == [SENTENCES[0]] * len(PROMPTS)
    rounds = [asked.n for asked in upstream.asked if prompt_of(asked) == PROMPTS[0]]
    assert rounds[:2] == [2, 4]
    assert sum(rounds) < 200
    seeds = [asked.body["seed"] for asked in upstream.asked if prompt_of(asked) == PROMPTS[0]]
    assert seeds[2] == seeds[1] + 4


def test_another_model_of_the_server_votes(ask):
    with Upstream() as upstream:
        voting = ("--candidates=sample:2,temperature=0.5", "--voters=sample:3", "--voter-model", "large")
        done = ask(upstream, *voting, "--text")
        assert done.code == 0
        asked = {(asked.body["model"], asked.body["temperature"]) for asked in upstream.asked}
        assert {model for model, temperature in asked if temperature != 0.5} == {"large"}
        assert "large" not in {model for model, temperature in asked if temperature == 0.5}
        both = ask(upstream, *voting, "--voter-model", "huge")
    assert "|panel:huge=0.5,large=0.5|" in both.results()[0]["signature"]
    assert "member" not in both.results()[0]  # tiny's stand, and those who vote do not


def says(**texts: str):
    """A server whose models always say the same, each its own."""

    def answer(asked: Asked) -> Reply:
        choices = [{"index": i, "message": {"content": texts[asked.body["model"]]}} for i in range(asked.n)]
        return completion(asked, choices)

    return answer


def test_several_models_of_the_server_all_stand_with_seeds_of_their_own(ask, kept):
    with Upstream() as upstream:
        options = ("--model", "large", "--shares", "tiny=1,large=3", "--ballots", kept)
        done = ask(upstream, *options, "--candidates", "sample:6")
    assert done.code == 0
    wins = {
        name: sum(name in line.get("members", [line["member"]]) for line in done.results())
        for name in ("tiny", "large")
    }
    assert [line.split() for line in done.err.splitlines()[3:]] == [
        ["large", "0.750", str(wins["large"])],
        ["tiny", "0.250", str(wins["tiny"])],
    ]
    for line, ballot, prompt in zip(done.results(), rv.read(kept), PROMPTS, strict=True):
        assert [one.member for one in ballot.candidates] == ["tiny", "large"] * 6
        assert line["member"] == ballot.candidates[line["index"]].member
        assert "|panel:large=0.75,tiny=0.25|" in line["signature"]
        asked = {one.body["model"]: one for one in upstream.asked if prompt_of(one) == prompt}
        assert {name: one.n for name, one in asked.items()} == {"tiny": 6, "large": 6}
        assert asked["tiny"].body["seed"] != asked["large"].body["seed"]


def test_the_next_model_is_asked_only_where_those_before_do_not_agree(ask):
    stages = ("--model", "large", "--candidates", "4", "--similarity", "exact", "--escalate", "share<1")
    with Upstream(answer=says(tiny="ten", large="noon")) as upstream:
        done = ask(upstream, *stages)
    assert {asked.body["model"] for asked in upstream.asked} == {"tiny"}
    assert [(line["winner"], line["asked"]) for line in done.results()] == [("ten", ["tiny"])] * 9
    assert "tiny for 9, large for 0." in done.err
    with Upstream() as upstream:  # samples that differ
        done = ask(upstream, *stages)
    assert [line["asked"] for line in done.results()] == [["tiny", "large"]] * 9


def test_a_model_that_fails_is_named_and_the_next_one_asked(ask):
    def answer(asked: Asked) -> Reply:
        if asked.body["model"] == "tiny":
            return refusal(400, "not today")
        return says(large="noon")(asked)

    with Upstream(answer=answer) as upstream:
        done = ask(upstream, "--model", "large", "--similarity", "exact", "--escalate", "share<1")
        assert done.code == 0
        for line in done.results():
            assert (line["winner"], line["left_out"], line["member"]) == ("noon", ["tiny"], "large")
        assert "'tiny' failed" in done.err


def test_beams_of_a_vllm_server_are_weighed_by_their_probability(ask, kept):
    with Upstream() as upstream:
        done = ask(upstream, "--candidates", "beam:3", "--ballots", kept, source="vllm")
    assert done.code == 0
    assert {(asked.n, asked.body["use_beam_search"]) for asked in upstream.asked} == {(3, True)}
    assert not any("seed" in asked.body for asked in upstream.asked)
    assert all("w:probability" in line["signature"] for line in done.results())
    assert not any(one.sampled for ballot in rv.read(kept) for one in ballot.candidates)


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("nan_logprob", "beams without their log-probabilities"),
        ("greedy", "the same beam more than once"),
    ],
)
def test_a_server_that_gives_no_beams_is_found_out(ask, mode, message):
    with Upstream(mode) as upstream:
        done = ask(upstream, "--candidates", "beam:3", source="vllm")
    assert (done.code, done.out) == (3, b"")
    assert f"prompts.txt:1: the server answered 'beam:3' with {message}" in done.err
    assert "started with --max-logprobs 6 or more" in done.err


# keys and servers that fail


def test_the_key_comes_from_the_environment_or_a_file(ask, monkeypatch, tmp_path):
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    file.chmod(0o600)
    with Upstream() as upstream:
        assert ask(upstream).code == 0
        assert "authorization" not in upstream.asked[-1].headers
        monkeypatch.setenv("OTHER", KEY)
        for option in (["--key-file", file], ["--key-env", "OTHER"]):
            assert ask(upstream, *option).code == 0
            assert upstream.asked[-1].headers["authorization"] == f"Bearer {KEY}"
        monkeypatch.setenv("OPENAI_API_KEY", "sk-default")
        assert ask(upstream).code == 0
        assert upstream.asked[-1].headers["authorization"] == "Bearer sk-default"


def test_a_key_file_that_others_may_read_and_a_variable_that_is_not_set_are_refused(ask, tmp_path):
    file = tmp_path / "key"
    file.write_text(KEY)
    file.chmod(0o644)
    with Upstream() as upstream:
        done = ask(upstream, "--key-file", file)
        assert (done.code, "can be read by others" in done.err) == (5, True)
        done = ask(upstream, "--key-env", "NOWHERE")
        assert (done.code, "NOWHERE is not set" in done.err) == (5, True)
        done = ask(upstream, "--key-env", "A", "--key-file", file)
        assert (done.code, "a server has one key" in done.err) == (2, True)
    assert upstream.asked == []


def test_no_key_is_written_anywhere(ask, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Upstream(["well"] * 4 + ["denied"]) as upstream:
        done = ask(upstream, "-o", tmp_path / "out.jsonl", "--concurrency", 1)
    assert done.code == 5
    assert "401 Unauthorized" in done.err
    assert "Incorrect API key provided: Bearer ***" in done.err
    assert KEY not in done.err
    kept = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any(file.name == "out.jsonl.partial" for file in kept)
    assert not any(KEY.encode() in file.read_bytes() for file in kept)


def test_a_key_that_is_sent_unencrypted_is_warned_of(run, monkeypatch):
    for url, key, warned in (
        ("http://example.org/v1", KEY, True),
        ("https://example.org/v1", KEY, False),
        ("http://example.org/v1", "", False),
    ):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        done = run("generate", "--engine", "openai", "--base-url", url, "-m", "tiny")  # no input, so no call
        assert done.code == 0
        assert ("the API key is sent to http://example.org/v1 unencrypted" in done.err) == warned


@pytest.mark.parametrize(
    "reply",
    [
        refusal(400, "this prompt is too long"),
        Reply({"choices": [{"message": {"content": None, "refusal": "No."}, "index": 0}] * 10}),
    ],
    ids=["400", "refusals"],
)
def test_a_failing_input_is_an_error_line_where_errors_are_skipped(ask, reply):
    with Upstream(answer=failing(PROMPTS[3], reply)) as upstream:
        done = ask(upstream, "--on-error", "skip")
    assert done.code == 4
    assert "1 of 9 inputs were skipped" in done.err
    assert [line["id"] for line in done.results()] == list(range(1, 10))
    assert ["error" in line for line in done.results()] == [i == 3 for i in range(9)]
    assert "prompts.txt:4" in done.results()[3]["error"]


def test_a_server_that_is_gone_is_not_asked_again_for_every_input(ask):
    with Upstream("denied") as upstream:
        done = ask(upstream, "--on-error", "skip", "--concurrency", 1)
    assert (done.code, done.out) == (5, b"")
    assert len(upstream.asked) <= 3


def test_samples_that_fail_are_reported_and_the_others_elect(ask, tmp_path):
    path = lines(tmp_path / "one.txt", "when?")
    with Upstream(["ignores_n", "ignores_n", "overloaded"]) as upstream:
        done = ask(upstream, "--candidates", "sample:4", "--concurrency", 1, "--scores", input=path)
    assert done.code == 0
    assert len(done.results()[0]["scores"]) == 2
    assert "warning: inputs[0]: the server returned only 2 of 4 candidates" in done.err
    assert "answered 503 Service Unavailable. The server's message: overloaded" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "openai"], "--engine openai needs --base-url"),
        (["--base-url", "http://127.0.0.1/v1"], "--base-url is for servers; give --engine"),
        (["--engine", "openai", "--base-url", "http://h/v1", "--body", "[]"], "--body must be a JSON object"),
        (
            ["--engine", "openai", "--base-url", "http://h/v1", "--device", "cpu"],
            "--device is for models in this",
        ),
    ],
)
def test_wrong_options_are_refused_before_anything_is_sent(run, prompts, options, message):
    done = run("generate", "-m", "tiny", "-i", prompts, *options)
    assert (done.code, done.out) == (2, b"")
    assert message in done.err


# runs that end early


def test_a_run_that_was_stopped_is_resumed_to_the_same_bytes(ask, tmp_path):
    options = ("--candidates", "sample:3", "--voters", "sample:4", "--concurrency", 2)

    def files(name: str) -> list[object]:
        return ["-o", tmp_path / f"{name}.jsonl", "--ballots", tmp_path / f"{name}.nbest.jsonl"]

    with Upstream() as upstream:
        assert ask(upstream, *options, *files("whole")).code == 0
    with Upstream(answer=failing(PROMPTS[5], refusal(503, "overloaded"))) as upstream:
        stopped = ask(upstream, *options, *files("part"))
    assert stopped.code == 5
    assert "answered 503 Service Unavailable. The server's message: overloaded" in stopped.err
    assert "continue with --resume" in stopped.err
    with Upstream() as upstream:  # elsewhere, and with other bounds
        done = ask(upstream, *options, *files("part"), "--resume", "--concurrency", 3)
    assert done.code == 0
    assert {prompt_of(asked) for asked in upstream.asked} == set(PROMPTS[5:])
    for ending in ("jsonl", "nbest.jsonl"):
        assert (tmp_path / f"part.{ending}").read_bytes() == (tmp_path / f"whole.{ending}").read_bytes()


def test_ctrl_c_closes_all_calls_and_keeps_what_is_done(prompts, tmp_path):
    out = tmp_path / "out.jsonl"
    partial = tmp_path / "out.jsonl.partial"
    # by prompt: on a busy machine the third may ask before the second
    with Upstream(lambda asked: "well" if prompt_of(asked) in PROMPTS[:2] else "stalls") as upstream:
        server = ("--engine", "openai", "--base-url", upstream.url, "--model", "tiny", "--concurrency", 2)
        process = spawn("generate", *server, "-i", prompts, "-o", out, "--candidates", "sample:2")
        # Two answered and written, the next two asked: two open calls alone may still be the first two.
        until(lambda: winners_in(partial) == [1, 2] and upstream.open == 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
        until(lambda: upstream.open == 0)
    assert process.returncode == 130
    assert b"continue with --resume" in err
    assert b"Traceback" not in err
    assert winners_in(partial) == [1, 2]


def winners_in(path) -> list[int]:
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []  # the last may be half written
    return [json.loads(line)["id"] for line in lines if b'"winner"' in line]
