"""`rangevote generate --engine` against a server of the tests; import the fixtures `ask` and `prompts`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rangevote.engines.openai import client as client_module
from tests.engines.openai.upstream import Asked, Behaviour, Reply, Upstream

PROMPTS = [f"question {i}" for i in range(9)]
KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(client_module, "PAUSE", 0.01)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.txt"
    path.write_text("".join(f"{prompt}\n" for prompt in PROMPTS), encoding="utf-8")
    return path


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
        return reply if prompt_of(asked) == prompt else Behaviour().well(asked)

    return answer
