"""What comes over HTTP: answers of model servers, requests to the service, the election page, the study."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import zlib
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar

import httpx
import msgspec
from starlette.types import ASGIApp

from fuzz.formats import entries
from fuzz.targets import scratch, scratch_file
from rangevote.cli.serve import _config
from rangevote.election.settings import Settings
from rangevote.engines.openai import hypotheses_of
from rangevote.engines.openai.client import CallLimits, Client, checked_key, checked_url, retry_seconds
from rangevote.engines.openai.generating import RequestBuilder, ServerElector
from rangevote.engines.openai.sampling import sample
from rangevote.errors import DataError, RangevoteError
from rangevote.formats.choices import (
    CHAT,
    COMPLETIONS,
    choices_of,
    error_text,
    hypotheses_in,
    usage_of,
)
from rangevote.formats.jsonl import parse
from rangevote.generation.generate import Elected, Request
from rangevote.generation.plan import GenerationPlan
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.service.app import service_app
from rangevote.service.config import Alias, Limits, RequestOptions, ServiceConfig
from rangevote.service.errors import ApiError
from rangevote.service.metrics import Metrics
from rangevote.service.middleware import JsonLines, Keys, logger, read_keys
from rangevote.service.requests import read_object, read_request
from rangevote.service.responses_api import chat_fields
from rangevote.service.upstream import Upstream
from rangevote.study.app import FinishMessage, parse_message, study_app
from rangevote.study.create import StudyOptions, make_study
from rangevote.study.plan import Pair
from rangevote.study.store import SentAnswer, Store, create_file
from rangevote.web.api import Election
from rangevote.web.app import Ballots, ElectionPage, election_app
from rangevote.web.export_html import data_block, export_answers


def strict_json(text: str | bytes) -> Any:
    """JSON as browsers read it: without NaN."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@lru_cache(maxsize=1)
def loop() -> asyncio.AbstractEventLoop:
    """One loop for all inputs: to make one takes longer than most requests."""
    return asyncio.new_event_loop()


_NAME = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,40}")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_TARGET = re.compile(rb"/[\x21-\x7e]*")


def parse_request(data: bytes) -> tuple[bytes, list[tuple[bytes, bytes]], bytes]:
    """First line, headers and body, as a server takes them; what it would refuse itself is left out."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    headers = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if colon and _NAME.fullmatch(name) and _VALUE.fullmatch(value.strip()):
            headers.append((name.lower(), value.strip()))
    return first, headers, body


def ask(app: ASGIApp, data: bytes, **headers: str) -> httpx.Response:
    """The answer to the request that the bytes spell; `headers` are added where it has none of that name."""
    first, given, body = parse_request(data)
    method, _, target = first.partition(b" ")
    if not _NAME.fullmatch(method) or not _TARGET.fullmatch(target):
        method, target = b"GET", b"/"
    known = {name for name, _ in given}
    extra = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    extra.append((b"host", b"127.0.0.1"))
    url = httpx.URL("http://127.0.0.1/")
    with suppress(httpx.InvalidURL):  # what no client would send
        url = url.copy_with(raw_path=target)
    request = httpx.Request(
        method.decode().upper(),
        url,
        headers=[*(pair for pair in extra if pair[0] not in known), *given],
        stream=httpx.ByteStream(body),
    )
    return loop().run_until_complete(_answer(app, request))


async def _answer(app: ASGIApp, request: httpx.Request) -> httpx.Response:
    response = await httpx.ASGITransport(app).handle_async_request(request)
    await response.aread()
    return response


# Answers of model servers

URL = "http://127.0.0.1:1/v1"


def choices(data: bytes) -> None:
    """The choices of a response."""
    body = parse(data)
    assert "\n" not in error_text(body)
    assert not isinstance(body, dict) or usage_of(body).total >= 0
    with suppress(RangevoteError):
        listed = choices_of(body)
        assert all(choice.logprob is None or choice.logprob <= 0 for choice in listed)
        assert len(hypotheses_in(listed)) <= len(listed)
    hypotheses_of([body])


def answers(data: bytes) -> None:
    """A whole answer of a server: status and headers, then the body."""
    first, headers, content = parse_request(data)
    status = first.split(b" ")[0]
    code = int(status) if status.isdigit() and len(status) == 3 and status[0] in b"2345" else 200
    headers = [pair for pair in headers if pair[0] not in (b"content-length", b"transfer-encoding")]

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(code, headers=headers, stream=httpx.ByteStream(content))

    loop().run_until_complete(_sample(httpx.MockTransport(answer)))
    client = Client(URL, limits=CallLimits(retries=0, total=60.0), transport=httpx.MockTransport(answer))
    for kind, search in (("openai", "sample:3"), ("vllm", "beam:2")):
        plan = GenerationPlan.of(Settings(), search)
        builder = RequestBuilder.of(kind, ("m",), plan, chat=True, extra={})
        with suppress(RangevoteError):
            [elected] = ServerElector(client, builder, plan)([Request.of(0, "when?")])
            assert isinstance(elected, (Elected, DataError))


async def _sample(server: httpx.MockTransport) -> None:
    body: dict[str, Any] = {"model": "m", "prompt": "p"}
    async with Client(URL, limits=CallLimits(retries=0, total=60.0), transport=server) as client:
        for path in (CHAT, COMPLETIONS):
            with suppress(RangevoteError):
                result = await sample(client, path, body, 3, seed=1)
                assert 0 < len(result.choices) <= 3
        await client.models()


def addresses(data: bytes) -> None:
    """A base URL, a key and a Retry-After, each as text of any kind."""
    text = data.decode("utf-8", "surrogateescape")
    seconds = retry_seconds(data.decode("latin-1"))
    assert seconds is None or seconds >= 0
    try:
        checked_key(text)
    except RangevoteError as error:
        if len(text) >= 8 and text in str(error):
            raise AssertionError("the key is shown") from None
    Client(checked_url(text))


# The election service

KEY = "a key of sixteen letters"
ANSWERS = ("the train leaves at ten", "the train leaves at noon", "i do not know", "trains leave at ten")


@lru_cache(maxsize=1)
def settings() -> ServiceConfig:
    """A service with a profile and an alias, of little patience."""
    base = RequestOptions().changed({"samples": 4})
    return ServiceConfig(
        upstream=URL,
        engine="vllm",
        options=base,
        limits=Limits(retries=0, total_seconds=60, hold=0),
        profiles={"careful": base.changed({"samples": 8, "adaptive": 0.9})},
        aliases={"elected": Alias("tiny", "careful")},
        allow_models=("tiny",),
        allow_image_hosts=("images.example",),
        keep_elections=4,
    )


def requests(data: bytes) -> None:
    """A body: an order that can be sent to a model, or a problem in a few words."""
    for kind, profile in (("chat", None), ("completions", "careful"), ("responses", None)):
        try:
            given, endpoint = read_object(data), "chat" if kind == "responses" else kind
            if kind == "responses":
                given = chat_fields(given)
            order = read_request(given, profile, settings(), endpoint)  # type: ignore[arg-type]
        except ApiError as problem:
            if problem.status in (400, 404) and len(problem.message) <= 400:
                continue
            raise AssertionError(f"an odd problem: {problem.status} {problem.message}") from None
        assert 1 <= order.n <= order.options.samples <= 64
        msgspec.json.encode(order.body)  # what goes to the model's server


def _model(request: httpx.Request) -> httpx.Response:
    """A server of a model that always answers well."""
    number = json.loads(request.content or b"{}").get("n", 1)
    chat = str(request.url).endswith("/chat/completions")
    texts = [{"message": {"content": text}} if chat else {"text": text} for text in ANSWERS * 16]
    tokens = {"content": [{"logprob": -0.5}], "token_logprobs": [-0.5]}
    shared = {"finish_reason": "stop", "logprobs": tokens}
    listed = [{"index": i, **shared, **text} for i, text in enumerate(texts[:number])]
    answer = json.dumps({"choices": listed, "usage": {"prompt_tokens": 3}}).encode()
    return httpx.Response(200, stream=httpx.ByteStream(answer))


@lru_cache(maxsize=1)
def _upstream() -> Upstream:
    upstream = Upstream(settings(), Metrics())
    upstream.clients[""] = Client(URL, transport=httpx.MockTransport(_model), limits=CallLimits(retries=0))
    loop().run_until_complete(upstream.__aenter__())
    return upstream


class _Failures(logging.Handler):
    """The service's own failures, from its log."""

    listed: ClassVar[list[str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == "failure":
            self.listed.append(self.format(record))


@lru_cache(maxsize=1)
def _app() -> ASGIApp:
    failures = _Failures()
    failures.setFormatter(JsonLines())
    logger.addHandler(failures)
    logger.setLevel(logging.INFO)
    return service_app(_upstream(), settings(), Metrics(), keys=Keys([KEY]))


def http(data: bytes) -> None:
    """A whole request: an answer in JSON, or a refusal in OpenAI's shape; never our own failure."""
    _Failures.listed.clear()
    reply = ask(_app(), data, authorization=f"Bearer {KEY}", content_type="application/json")
    assert not _Failures.listed, _Failures.listed
    body = _check(reply)
    assert "x-request-id" in reply.headers
    if reply.status_code >= 400 and body:
        assert set(body["error"]) == {"message", "type", "param", "code"}


def _check(reply: httpx.Response) -> Any:
    """The body of an answer, if it is JSON."""
    assert reply.status_code < 500, (reply.status_code, reply.content[:300])
    assert reply.headers["x-content-type-options"] == "nosniff"
    is_json = reply.headers.get("content-type", "").startswith("application/json")
    return strict_json(reply.content) if is_json and reply.content else None


def configuration(data: bytes) -> None:
    """The file that `rangevote serve --config` reads."""
    given = {
        "model": None,
        "engine": None,
        "options": {},
        "profiles": (),
        "keep_elections": None,
        "panel": None,
    }
    path = str(scratch_file("service.toml", data))
    config = _config({**given, "allow_models": (), "config": path, "upstreams": (URL,)}, ())
    assert config.upstream == URL


def keys(data: bytes) -> None:
    """A file of keys, and a header that shows one."""
    known = Keys([KEY])
    text = data.decode("utf-8", "surrogateescape")
    assert known.client(data) is None or b" " in data
    assert all(len(key) >= 16 for key in read_keys(text, "keys"))


# The election page and the study

#: Ballots and candidates of one input that are shown: the page compares all measures for each.
FEW, SHOWN = 2, 6
ELECTIONS: tuple[dict[str, Any], ...] = ({}, {"similarity": "0.5*chrf+0.5*exact", "weights": "count"})
#: What no block of data may contain: the end of a script, a comment, the end of a line of JavaScript.
UNSAFE = ("<", "\u2028", "\u2029")


def _few(data: bytes) -> Iterator[Ballot]:
    for entry in islice(entries(io.BytesIO(data), None), FEW):
        ballot = entry.get()
        if len(ballot.candidates) <= SHOWN and len(ballot.voters or ()) <= SHOWN:
            yield ballot


def exported(data: bytes) -> None:
    """The block of JSON in an exported page: strict, the same as the answers, and no end of a script."""
    ballots = Ballots("fuzz", _few(data))
    if not len(ballots):
        return
    for options in ELECTIONS:
        page = ElectionPage([ballots, ballots], Settings(**options))
        replies = dict(export_answers(page))
        block = data_block(replies.items())
        assert not any(sign in block for sign in UNSAFE), "a text can end the script"
        unpacked = {
            start: strict_json(zlib.decompress(b64decode(packed)))
            for start, packed in strict_json(block).items()
        }
        for number in range(len(ballots)):
            start, some = f"api/ballots/{number}", replies[f"api/ballots/{number}"]
            assert unpacked[start].keys() == some.keys()
            for path, reply in some.items():
                if path.startswith(f"{start}?") and isinstance(reply, Election):
                    assert 0 <= reply.winner < len(ballots[number].candidates)
                    assert unpacked[start][path]["candidates"]["rows"][0]["index"] == reply.winner


@lru_cache(maxsize=1)
def _page() -> ASGIApp:
    listed = [Hypothesis("a b </script>", logprob=-1.0), Hypothesis("a b", logprob=-2.0), Hypothesis("")]
    ballots = [Ballot(listed, id="one"), Ballot([Hypothesis("x y")], id=2), Ballot([])]
    return election_app(ElectionPage([Ballots("k1", ballots), Ballots("k2", ballots)], Settings()))


def questions(data: bytes) -> None:
    """Requests to the page's server."""
    _check(ask(_page(), data))


@lru_cache(maxsize=1)
def _study() -> tuple[Store, ASGIApp, str]:
    path = scratch() / "study.db"
    listed = [Pair(str(n), f"caption {n}", f"another caption {n}") for n in range(3)]
    create_file(path, make_study(("beam", "voted"), listed, StudyOptions()), {})
    store = Store(path)
    return store, study_app(store), store.study.annotators[0].token


def judgements(data: bytes) -> None:
    """What the study's page sends: `ITEM` stands for the handle of an item that is there."""
    store, app, token = _study()
    data = data.replace(b"ITEM", store.study.assignments[0].handle.encode())
    body = data.partition(b"\n\n")[2]
    for kind in (SentAnswer, FinishMessage):
        with suppress(RangevoteError):
            parse_message(body, kind)
    _check(ask(app, data, authorization=f"Bearer {token}", content_type="application/json"))
    for _, answer, _ in store.judged(0):
        assert answer == "cannot" or (type(answer) is int and -2 <= answer <= 2), "no answer"
