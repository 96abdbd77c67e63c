"""Run commands as a user does, in this process or in one of their own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rangevote.cli import run as run_command


class Run(NamedTuple):
    code: int
    out: bytes
    err: str

    def results(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """`run("vote", path, stdin=b"...")` -> exit code, standard output, standard error."""

    def call(*arguments: object, stdin: bytes = b"") -> Run:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfdbinary.readouterr()
        code = run_command([str(argument) for argument in arguments])
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        assert b"Traceback" not in err, err.decode()
        return Run(code, out, err.decode())

    return call


def spawn(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    """The command in a process of its own."""
    environment = {**os.environ, **options.pop("env", {})}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "rangevote", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, **{**pipes, **options})


def ballot(id: object, *texts: str, **fields: Any) -> dict[str, Any]:
    """A ballot with falling log-probabilities."""
    listed = [{"text": text, "logprob": -1.0 - i} for i, text in enumerate(texts)]
    return {"id": id, "candidates": listed, **fields}


def lines(*ballots: Any) -> bytes:
    return b"".join(json.dumps(b).encode() + b"\n" for b in ballots)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A file of three good ballots."""
    path = tmp_path / "nbest.jsonl"
    path.write_bytes(
        lines(
            ballot(
                "a", "i know", "the train leaves at ten", "the train leaves at noon", "trains leave at ten"
            ),
            ballot("b", "x y", "x z"),
            ballot("c", "one"),
        )
    )
    return path
