"""docs/guides/serve.md and docs/reference/service.md agree with the service."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rangevote.service.config import OWN_OPTIONS, Limits, read_config

DOCS = Path(__file__).parents[2] / "docs"
PAGES = DOCS / "guides" / "serve.md", DOCS / "reference" / "service.md"
TEXT = "".join(page.read_text(encoding="utf-8") for page in PAGES)


def block(language: str) -> str:
    match = re.search(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    assert match is not None
    return match[1]


def test_the_python_example_runs(service, capsys):
    code = block("py").replace("http://127.0.0.1:8720", service.url)
    names: dict[str, Any] = {}
    exec(code, names)
    names["client"].close()
    assert capsys.readouterr().out.strip().split()[-1].isdecimal()


def test_the_configuration_can_be_read(tmp_path):
    (tmp_path / "tuned.toml").write_text('[election]\npreset = "blend"\n')
    (tmp_path / "service.toml").write_text(block("toml"))
    config = read_config(str(tmp_path / "service.toml"))
    assert set(config.profiles) == {"careful", "tuned"}
    assert config.aliases["elected"].profile == "careful"


def test_every_limit_option_and_address_is_named(service):
    for name in (*Limits.__struct_fields__, *OWN_OPTIONS):
        assert f"`{name}`" in TEXT
    for path in re.findall(r"`GET (/[a-z0-9/.]+)`", TEXT):
        assert service.http.get(path).status_code == 200, path
