"""rangevote generate --source: runs that end early, and are resumed."""

from __future__ import annotations

import json
import signal

import pytest

from tests.cli.asking import PROMPTS, ask, failing, prompt_of, prompts, short_pauses, until
from tests.cli.conftest import spawn
from tests.sources.openai.upstream import Upstream, refusal

__all__ = ["ask", "prompts", "short_pauses"]


@pytest.mark.parametrize("mode", ["well", "refuses_n"])
def test_a_run_that_was_stopped_is_resumed_to_the_same_bytes(ask, tmp_path, mode):
    options = ("--candidates", "sample:3", "--voters", "sample:4", "--concurrency", 2)

    def files(name: str) -> list[object]:
        return ["-o", tmp_path / f"{name}.jsonl", "--ballots", tmp_path / f"{name}.nbest.jsonl"]

    with Upstream(mode) as upstream:
        assert ask(upstream, *options, *files("whole")).code == 0
    with Upstream(answer=failing(PROMPTS[5], refusal(503, "overloaded"))) as upstream:
        stopped = ask(upstream, *options, *files("part"))
    assert stopped.code == 5
    assert "answered 503 Service Unavailable. It said: overloaded" in stopped.err
    assert "go on with --resume" in stopped.err
    with Upstream(mode) as upstream:  # elsewhere, and with other bounds
        done = ask(upstream, *options, *files("part"), "--resume", "--concurrency", 3)
    assert done.code == 0
    assert {prompt_of(asked) for asked in upstream.asked} == set(PROMPTS[5:])
    for ending in ("jsonl", "nbest.jsonl"):
        assert (tmp_path / f"part.{ending}").read_bytes() == (tmp_path / f"whole.{ending}").read_bytes()


def test_a_run_is_not_resumed_with_another_model(ask, run, prompts, tmp_path):
    out = tmp_path / "out.jsonl"
    with Upstream(answer=failing(PROMPTS[5], refusal(503, "overloaded"))) as upstream:
        assert ask(upstream, "-o", out).code == 5
        server = ("--source", "openai", "--base-url", upstream.url, "--model", "other")
        done = run("generate", *server, "-i", prompts, "-o", out, "--resume")
    assert done.code == 5
    assert "model" in done.err


def test_ctrl_c_closes_all_calls_and_keeps_what_is_done(prompts, tmp_path):
    out = tmp_path / "out.jsonl"
    partial = tmp_path / "out.jsonl.partial"
    with Upstream(["well", "well", "stalls"]) as upstream:
        server = ("--source", "openai", "--base-url", upstream.url, "--model", "tiny", "--concurrency", 2)
        process = spawn("generate", *server, "-i", prompts, "-o", out, "--candidates", "sample:2")
        # Two answered and written, the next two asked: two open calls alone may still be the first two.
        until(lambda: winners_in(partial) == [1, 2] and upstream.open == 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        until(lambda: upstream.open == 0)
    assert process.returncode == 130
    assert b"go on with --resume" in err
    assert b"Traceback" not in err
    assert winners_in(partial) == [1, 2]


def winners_in(path) -> list[int]:
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []  # the last may be half written
    return [json.loads(line)["id"] for line in lines if b'"winner"' in line]
