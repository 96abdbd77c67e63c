"""The election service: its requests, its configuration, its keys, and the whole of it over HTTP."""

from __future__ import annotations

import json
import logging
from functools import lru_cache
from typing import Any

import httpx
import msgspec
from starlette.types import ASGIApp

from fuzz import places
from fuzz.asgi import asked, loop
from rangevote.cli.serve import _config
from rangevote.service.app import service_app
from rangevote.service.config import Alias, Limits, RequestOptions, ServiceConfig
from rangevote.service.errors import ApiError
from rangevote.service.metrics import Metrics
from rangevote.service.middleware import Keys, log_to, read_keys
from rangevote.service.requests import read_request
from rangevote.service.upstream import Upstream
from rangevote.sources.openai.client import CallLimits, Client

URL = "http://127.0.0.1:1/v1"
SAID = ("the train leaves at ten", "the train leaves at noon", "i do not know", "trains leave at ten")
#: What stands in the command's arguments besides the configuration.
GIVEN: dict[str, Any] = {
    "model": None,
    "source": None,
    "options": {},
    "profiles": (),
    "keep_elections": None,
    "allow_model": (),
}


@lru_cache(maxsize=1)
def settings() -> ServiceConfig:
    """A service with a profile and an alias, of little patience."""
    base = RequestOptions().changed({"samples": 4})
    return ServiceConfig(
        upstream=URL,
        source="vllm",
        options=base,
        limits=Limits(retries=0, total_seconds=60, hold=0),
        profiles={"careful": base.changed({"samples": 8, "adaptive": 0.9})},
        aliases={"elected": Alias("tiny", "careful")},
        models=("tiny",),
        image_hosts=frozenset({"images.example"}),
        forward=frozenset({"more"}),
        kept=4,
    )


def requests(data: bytes) -> None:
    """A body: an order that can be sent to a model, or a problem in a few words."""
    for kind, profile in (("chat", None), ("completions", "careful")):
        try:
            order = read_request(data, kind, profile, settings())  # type: ignore[arg-type]
            _upstream().check(order)
        except ApiError as problem:
            if problem.status in (400, 404) and len(problem.message) <= 400:
                continue
            raise AssertionError(f"an odd problem: {problem.status} {problem.message}") from None
        assert 1 <= order.n <= order.options.samples <= 64
        msgspec.json.encode(order.body)  # what goes to the model's server


class _Model(httpx.AsyncBaseTransport):
    """A server of a model that always answers well."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        wanted = json.loads(await request.aread() or b"{}")
        chat = str(request.url).endswith("/chat/completions")
        n = wanted.get("n", 1)
        shown = [{"message": {"content": text}} if chat else {"text": text} for text in SAID * 16]
        tokens = {"content": [{"logprob": -0.5}], "token_logprobs": [-0.5]}
        listed = [
            {"index": i, "finish_reason": "stop", "logprobs": tokens, **one}
            for i, one in enumerate(shown[:n])
        ]
        said = json.dumps({"choices": listed, "usage": {"prompt_tokens": 3}}).encode()
        return httpx.Response(200, stream=httpx.ByteStream(said))


@lru_cache(maxsize=1)
def _upstream() -> Upstream:
    source = Upstream(settings(), Metrics())
    source.client = Client(URL, transport=_Model(), limits=CallLimits(retries=0))
    loop().run_until_complete(source.__aenter__())
    return source


@lru_cache(maxsize=1)
def _app() -> ASGIApp:
    log_to(_Failures())
    return service_app(_upstream(), settings(), Metrics(), keys=Keys(["a key of sixteen letters"]))


#: The service's own failures, from its log.
_failures: list[str] = []


class _Failures(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == "failure":
            _failures.append(self.format(record))


def http(data: bytes) -> None:
    """A whole request: an answer in JSON, or a refusal in OpenAI's shape; never our own failure."""
    _failures.clear()
    reply = asked(
        _app(), data, authorization="Bearer a key of sixteen letters", content_type="application/json"
    )
    assert not _failures, _failures
    assert reply.status < 500, (reply.status, reply.content[:300])
    assert "x-request-id" in reply.headers
    assert reply.headers["x-content-type-options"] == "nosniff"
    if reply.headers.get("content-type", "").startswith("application/json"):
        body = reply.json() if reply.content else {}
        assert reply.status < 400 or not body or set(body["error"]) == {"message", "type", "param", "code"}


def configuration(data: bytes) -> None:
    """The file that `rangevote serve --config` reads."""
    path = places.file("service.toml", data)
    found = _config({**GIVEN, "config": str(path), "upstream": URL}, ())
    assert found.upstream == URL


def keys(data: bytes) -> None:
    """A file of keys, and a header that shows one."""
    known = Keys(["a key of sixteen letters"])
    text = data.decode("utf-8", "surrogateescape")
    assert not known.admit(data) or b" " in data
    assert all(len(key) >= 16 for key in read_keys(text, "keys"))
