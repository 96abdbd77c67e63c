"""One upstream and one service for many tests; `well` makes the upstream behave again before each."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def upstream():
    from tests.sources.openai.upstream import Upstream

    with Upstream() as running:
        yield running


@pytest.fixture
def well(upstream):
    upstream.mode, upstream.delay, upstream.answer = "well", 0.0, None
    upstream.models = ("tiny",)
    upstream.asked.clear()
    upstream.left.clear()


@pytest.fixture(scope="module")
def service(upstream):
    """A service of little patience."""
    from tests.service.running import Running

    with Running(upstream.url, limits={"body_seconds": 0.5, "header_seconds": 0.5}) as running:
        yield running


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    """The official client heeds the environment's proxies, which do not know our ports."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
