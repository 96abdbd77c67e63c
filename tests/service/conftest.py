"""One upstream and one service for nearly all tests; before each the upstream behaves well again."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

#: The service needs the extra 'web', and its tests the official client.
collect_ignore_glob = [] if find_spec("starlette") and find_spec("openai") else ["test_*.py"]


@pytest.fixture(scope="session")
def session_upstream():
    from tests.engines.openai.upstream import Upstream

    with Upstream() as running:
        yield running


@pytest.fixture
def upstream(session_upstream):
    upstream = session_upstream
    upstream.mode, upstream.delay, upstream.answer, upstream.models = "well", 0.0, None, ("tiny",)
    upstream.asked.clear()
    upstream.left.clear()
    return upstream


@pytest.fixture(scope="session")
def session_service(session_upstream):
    from rangevote.service.config import Alias
    from tests.service.running import Running

    with Running(
        session_upstream.url,
        engine="vllm",
        limits={"body_bytes": 2**20, "body_seconds": 0.5, "candidate_tokens": 2000},
        profiles={"many": {"samples": 12, "similarity": "overlap_1"}},
        aliases={"elected": Alias("tiny", "many")},
        allow_models=("tiny",),
        allow_image_hosts=("images.example",),
        forward=("chat_template_kwargs",),
        keep_elections=3,
    ) as running:
        yield running


@pytest.fixture
def service(session_service, upstream):
    """A service of little patience, with a profile, an alias, and pages of its elections."""
    session_service.log.clear()
    return session_service


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    """The official client uses the environment's proxies, which do not know our ports."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
