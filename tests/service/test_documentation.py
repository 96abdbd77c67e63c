"""docs/service.md says what is so."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

from rangevote.service.config import CHECKS, Limits, read_config
from tests.service.running import Running

TEXT = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_python_example_runs(service, capsys):
    code = block("py").replace("http://127.0.0.1:8720", service.url)
    names: dict[str, Any] = {}
    exec(code, names)
    names["client"].close()
    out = capsys.readouterr().out
    assert out.strip().split()[-1].isdecimal()


def test_the_configuration_can_be_read(tmp_path):
    (tmp_path / "tuned.toml").write_text('[election]\npreset = "blend"\n')
    (tmp_path / "service.toml").write_text(block("toml"))
    found = read_config(str(tmp_path / "service.toml"))
    assert set(found["profiles"]) == {"careful", "tuned"}
    assert found["aliases"]["elected"].profile == "careful"


@pytest.mark.parametrize("name", [*(field.name for field in fields(Limits)), *CHECKS])
def test_every_limit_and_option_is_named(name):
    assert f"`{name}`" in TEXT


def test_every_address_is_named(upstream):
    with Running(upstream.url, kept=1) as service:
        for path in re.findall(r"`GET (/[a-z0-9/.]+)`", TEXT):
            assert service.http.get(path).status_code == 200, path
