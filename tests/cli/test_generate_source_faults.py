"""rangevote generate --source: keys, servers that fail, and what cannot be meant."""

from __future__ import annotations

import sys

import pytest

from tests.cli.asking import KEY, PROMPTS, ask, failing, prompt_of, prompts, short_pauses, until
from tests.sources.openai.upstream import Reply, Upstream, refusal

__all__ = ["ask", "prompts", "short_pauses"]

# keys


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


def test_a_key_that_others_could_read_on_its_way_is_told():
    from rangevote.cli.generate import ModelOptions, server_elector
    from rangevote.election.settings import Settings
    from rangevote.errors import RangevoteWarning
    from rangevote.generation.plan import GenerationPlan

    plan = GenerationPlan.of(Settings(), "sample:2")
    model = ModelOptions("tiny", None, None, False)
    calls = {"extra": {}, "concurrency": 1, "timeout": 1.0, "skip": False}

    def elector(url: str, key: str | None) -> None:
        server_elector("openai", url, key, model, plan, **calls)

    with pytest.warns(RangevoteWarning, match="the API key goes to http://example.org/v1 unencrypted"):
        elector("http://example.org/v1", KEY)
    elector("https://example.org/v1", KEY)
    elector("http://example.org/v1", None)


# faults


def test_a_server_that_stalls_is_left_in_time(ask):
    with Upstream("stalls") as upstream:
        done = ask(upstream, "--timeout", "0.3", "--concurrency", 2)
        assert done.code == 5
        assert "did not answer in time" in done.err
        until(lambda: upstream.open == 0)


def test_without_httpx_it_is_said_what_brings_it(ask, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with Upstream() as upstream:
        done = ask(upstream)
    assert done.code == 5
    assert "asking a server needs the package 'httpx'" in done.err


@pytest.mark.parametrize(
    ("mode", "code", "told"),
    [
        ("denied", 5, "answered 401 Unauthorized: it wants another API key."),
        ("overloaded", 5, "answered 503 Service Unavailable. It said: overloaded"),
        ("redirects", 5, "which is not followed"),
        ("html", 5, "answered with what is not JSON"),
        ("half_json", 5, "answered with what is not JSON"),
        ("other_shape", 5, "is not one to a completion request"),
        ("refuses", 3, "prompts.txt:1: http://127.0.0.1"),
        ("refuses", 3, "It said: this prompt is too long"),
    ],
)
def test_a_server_that_fails_ends_the_run_with_its_reason(ask, mode, code, told):
    with Upstream(mode) as upstream:
        done = ask(upstream, "--candidates", "sample:2")
    assert (done.code, done.out) == (code, b"")
    assert told in done.err


@pytest.mark.parametrize(
    "reply",
    [
        refusal(400, "this prompt is too long"),
        refusal(500, "oops"),
        Reply(b"<html>", headers={"content-type": "text/html"}),
        Reply({"choices": [{"message": {"content": None, "refusal": "No."}, "index": 0}] * 10}),
    ],
    ids=["400", "500", "html", "refusals"],
)
def test_a_failing_input_is_an_error_line_where_errors_are_skipped(ask, reply):
    with Upstream(answer=failing(PROMPTS[3], reply)) as upstream:
        done = ask(upstream, "--on-error", "skip")
    assert done.code == 4
    assert "1 of 9 inputs were skipped" in done.err
    assert [line["id"] for line in done.results()] == list(range(1, 10))
    assert ["error" in line for line in done.results()] == [i == 3 for i in range(9)]
    assert "prompts.txt:4" in done.results()[3]["error"]


def test_an_input_that_is_bad_before_it_is_asked_keeps_its_place(ask, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('{"nothing": 1}\n{"text": "a"}\n{"text": 5}\n{"text": "b"}\n[]\n')
    with Upstream() as upstream:
        done = ask(upstream, "--on-error", "skip", input=path)
    assert done.code == 4
    assert ["error" in line for line in done.results()] == [True, False, True, False, True]
    assert sorted(prompt_of(asked) for asked in upstream.asked) == ["a", "b"]


def test_a_server_that_is_gone_is_not_asked_again_for_every_input(ask):
    with Upstream("denied") as upstream:
        done = ask(upstream, "--on-error", "skip", "--concurrency", 1)
    assert (done.code, done.out) == (5, b"")
    assert len(upstream.asked) <= 3


def test_samples_that_fail_are_told_and_the_others_elect(ask, tmp_path):
    path = tmp_path / "one.txt"
    path.write_text("when?\n")
    with Upstream(["ignores_n", "ignores_n", "overloaded"]) as upstream:
        done = ask(upstream, "--candidates", "sample:4", "--concurrency", 1, "--scores", input=path)
    assert done.code == 0
    assert len(done.results()[0]["scores"]) == 2
    assert "warning: inputs[0]: only 2 of 4 candidates came" in done.err
    assert "answered 503 Service Unavailable. It said: overloaded" in done.err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--source", "openai"], "--source openai needs --base-url"),
        (["--base-url", "http://127.0.0.1/v1"], "--base-url is for servers; say which kind with --source"),
        (["--body", "{}"], "--body is for servers"),
        (["--source", "other", "--base-url", "http://h/v1"], "'other' is not one of"),
        (["--source", "openai", "--base-url", "h/v1"], "the base URL must be as http"),
        (["--source", "openai", "--base-url", "http://h/v1", "--body", "{"], "--body is not valid JSON"),
        (["--source", "openai", "--base-url", "http://h/v1", "--body", "[]"], "--body must be a JSON object"),
        (
            ["--source", "openai", "--base-url", "http://h/v1", "--device", "cpu"],
            "--device is for models in this",
        ),
        (
            ["--source", "openai", "--base-url", "http://h/v1", "--states"],
            "servers do not give hidden states",
        ),
        (
            ["--source", "openai", "--base-url", "http://h/v1", "-s", "states"],
            "servers do not give hidden states",
        ),
        (
            ["--source", "openai", "--base-url", "http://h/v1", "--candidates", "beam:4"],
            "cannot search by 'beam:4'",
        ),
        (["--source", "openai", "--base-url", "http://h/v1", "--concurrency", "0"], "0 is not in the range"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_sent(run, prompts, options, told):
    done = run("generate", "-m", "tiny", "-i", prompts, *options)
    assert (done.code, done.out) == (2, b"")
    assert told in done.err
