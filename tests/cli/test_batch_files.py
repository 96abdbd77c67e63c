"""Batches of requests to OpenAI and `vllm run_batch`, and their output, as commands take them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rangevote as rv
from tests.engines.openai.upstream import LOGPROBS, Asked, Upstream, text_of, well

PATHS = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}


def body(kind: str, seed: int) -> Any:
    """What a server answers to a request for five choices with log-probabilities."""
    asked = Asked(PATHS[kind], {}, {"model": "tiny", "n": 5, "seed": seed, "logprobs": 1}, 0.0)
    return well(asked).body


def line(id: str, body: Any) -> str:
    """One line of such a file."""
    response = {"status_code": 200, "request_id": f"vllm-batch-{id}", "body": body}
    return json.dumps({"id": f"vllm-{id}", "custom_id": id, "response": response, "error": None}) + "\n"


@pytest.fixture(params=sorted(PATHS))
def batch(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Two requests, answered in another order than they were asked."""
    path = tmp_path / "batch_output.jsonl"
    path.write_text(line("r2", body(request.param, 2)) + line("r1", body(request.param, 1)))
    return path


def test_each_request_is_an_election_of_samples_named_by_its_custom_id(run, batch):
    done = run("vote", batch, "--scores")
    assert (done.code, [one["id"] for one in done.results()]) == (0, ["r2", "r1"])
    for one, seed in zip(done.results(), (2, 1), strict=True):
        texts = [text_of(seed + i) for i in range(5)]
        samples = [rv.Hypothesis(text, logprob=sum(LOGPROBS), sampled=True) for text in texts]
        expected = rv.elect(samples)
        assert (one["winner"], one["scores"]) == (expected.winner, expected.scores.tolist())
        assert "w:count" in one["signature"]


@pytest.mark.parametrize(
    ("kind", "asked", "options"),
    [
        (
            "chat",
            {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]},
            (),
        ),
        ("completions", {"prompt": "Once upon"}, ("--no-chat",)),
    ],
)
def test_a_batch_of_requests_is_asked_as_it_stands(run, tmp_path, kind, asked, options):
    path = tmp_path / "batch_input.jsonl"
    request = {
        "custom_id": "r1",
        "method": "POST",
        "url": PATHS[kind],
        "body": {"model": "other", "n": 3, **asked},
    }
    path.write_text(json.dumps(request) + "\n")
    with Upstream() as upstream:
        server = ("--engine", "openai", "--base-url", upstream.url, "--model", "tiny")
        done = run("generate", *server, "-i", path, "--candidates", "sample:5", *options)
    assert (done.code, [one["id"] for one in done.results()]) == (0, ["r1"])
    [sent] = upstream.asked
    assert sent.path == PATHS[kind]
    assert {name: sent.body[name] for name in asked} == asked
    assert (sent.body["model"], sent.body["n"]) == ("tiny", 5)  # options of the command, not of the file
