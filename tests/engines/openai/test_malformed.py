"""Whatever comes from a server, or stands in a file of its answers, is read or refused: no other error."""

from __future__ import annotations

import asyncio
import io
import json
import math
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rangevote as rv
from rangevote.election.settings import Settings
from rangevote.engines.openai import hypotheses_of
from rangevote.engines.openai.client import CallLimits, Client
from rangevote.engines.openai.generating import RequestBuilder, ServerElector
from rangevote.engines.openai.sampling import sample
from rangevote.errors import DataError, RangevoteError
from rangevote.formats import ReadOptions, read
from rangevote.formats.choices import CHAT, COMPLETIONS
from rangevote.generation.generate import Elected, Request
from rangevote.generation.plan import GenerationPlan

GOOD = {
    "object": "chat.completion",
    "choices": [
        {
            "index": i,
            "message": {"role": "assistant", "content": text},
            "text": text,
            "finish_reason": "stop",
            "logprobs": {"content": [{"token": text, "logprob": -0.5 - i}]},
        }
        for i, text in enumerate(["the train leaves at ten", "a train leaves at ten"])
    ],
    "usage": {"prompt_tokens": 7, "completion_tokens": 10},
}
NAMES = ["choices", "message", "content", "text", "logprobs", "logprob", "token_logprobs", "index", "error"]
NAMES += ["refusal", "tool_calls", "finish_reason", "usage", "prompt_tokens", "total_tokens", "data", "id"]
NAMES += ["object", "response", "body", "custom_id", "status_code"]
#: Whole numbers that no float holds, that no 64 bits hold, and that Python does not print.
NUMBERS = st.integers() | st.sampled_from([10**30, -(10**400), 10**4299]) | st.floats()
LEAVES = st.none() | st.booleans() | NUMBERS | st.text(max_size=5) | st.sampled_from(["chat.completion"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=10,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where a value has parts, itself first."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in pairs for place in places(inner, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], part: Any) -> Any:
    """The value with another part at a place."""
    if not path:
        return part
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], part)
    return copy


#: A good answer with something else in one place, or anything at all.
ANSWERS = st.builds(replaced, st.just(GOOD), st.sampled_from(places(GOOD)), VALUES) | VALUES
DEEP = b'{"error": {"message": ' + b"[" * 900 + b"]" * 900 + b"}}"
WRITTEN = json.dumps(GOOD).encode()
#: The bytes of such an answer, cut off, changed in one place, or anything at all.
CONTENTS = (
    st.builds(lambda value: json.dumps(value).encode(), ANSWERS)
    | st.builds(lambda end: WRITTEN[:end], st.integers(0, len(WRITTEN)))
    | st.builds(lambda at, byte: WRITTEN[:at] + byte + WRITTEN[at + 1 :], st.integers(0, 400), st.binary())
    | st.binary(max_size=50)
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "content-type": st.sampled_from(["application/json", "text/html", "", "\x00", "a;charset=\xff"]),
        "content-encoding": st.sampled_from(["gzip", "identity", "br", "x"]),
        "location": st.text(st.characters(min_codepoint=33, max_codepoint=255), max_size=20),
        "retry-after": st.text(st.characters(min_codepoint=33, max_codepoint=255), max_size=20),
        "set-cookie": st.sampled_from(["a=b", "=", "a=b; expires=soon", "\xff"]),
    },
)
STATUSES = st.just(200) | st.sampled_from([201, 204, 302, 400, 404, 422, 429, 500, 501, 503, 599, 999])
REPLIES = st.tuples(STATUSES, HEADERS, CONTENTS)
Reply = tuple[int, dict[str, str], bytes]


def endpoint(replies: list[Reply]) -> Client:
    """A server that gives these answers, the last for ever."""

    def answer(request: httpx.Request) -> httpx.Response:
        status, headers, content = replies[0] if len(replies) == 1 else replies.pop(0)
        coded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        return httpx.Response(status, headers=coded, stream=httpx.ByteStream(content))

    limits = CallLimits(retries=0)
    return Client("http://127.0.0.1:9/v1", limits=limits, transport=httpx.MockTransport(answer))


def asked(replies: list[Reply], use: Callable[[Client], Awaitable[Any]]) -> Any:
    """What came back, or the error of ours instead of it."""

    async def run() -> Any:
        async with endpoint(replies) as server:
            try:
                return await use(server)
            except RangevoteError as error:
                return error

    return asyncio.run(run())


@settings(max_examples=30)
@given(st.lists(REPLIES, min_size=1, max_size=3), st.sampled_from([CHAT, COMPLETIONS]))
@example([(200, {}, DEEP)], CHAT)
@example([(200, {}, b'{"error": 1' + b"0" * 30 + b"}")], CHAT)
@example([(200, {}, WRITTEN.replace(b"-0.5", b"-1" + b"0" * 400))], CHAT)
@example([(200, {}, WRITTEN.replace(b"7", b"1" + b"0" * 30))], CHAT)
@example([(200, {}, b'{"error": 1' + b"0" * 4290 + b"}")], CHAT)
def test_samples_and_models_are_read_or_an_error_of_ours(replies, path):
    names = asked(replies[:1], lambda server: server.models())
    assert isinstance(names, RangevoteError) or all(isinstance(name, str) for name in names)
    samples = asked(replies, lambda server: sample(server, path, {"model": "m"}, 3, seed=1))
    if isinstance(samples, RangevoteError):
        return
    assert 1 <= len(samples.choices) <= 3
    assert all(0 <= count < 2**53 for count in samples.usage)
    assert all(one.logprob is None or -math.inf < one.logprob <= 0 for one in samples.choices)


@pytest.mark.filterwarnings("ignore::rangevote.errors.RangevoteWarning")
@settings(max_examples=30)
@given(
    st.lists(REPLIES, min_size=1, max_size=4),
    st.sampled_from([("openai", "sample:3"), ("vllm", "beam:2")]),
    st.booleans(),
)
@example([(400, {}, DEEP)], ("openai", "sample:3"), False)
@example([(400, {}, b'{"error": {"message": 1' + b"0" * 4290 + b"}}")], ("openai", "sample:3"), True)
def test_an_election_is_held_or_there_is_an_error_of_ours(replies, source, skip):
    kind, search = source
    plan = GenerationPlan.of(Settings(), search)
    asking = RequestBuilder.of(kind, "m", plan, chat=True, extra={})
    served = ServerElector(endpoint(replies), asking, plan, skip=skip)
    try:
        [[held]] = served([Request.of(0, "when?")])
    except RangevoteError:
        return
    assert isinstance(held, (Elected, DataError))


@settings(max_examples=30)
@given(st.lists(ANSWERS, max_size=3))
def test_responses_are_hypotheses_that_can_be_voted_on_or_a_data_error(answers):
    try:
        found = hypotheses_of(answers)
    except DataError:
        return
    assert len(found) == len(answers)
    for listed in found:
        if listed:
            rv.elect(listed)


@settings(max_examples=30)
@given(st.lists(ANSWERS, max_size=3), st.booleans())
def test_lines_of_batch_files_are_ballots_or_errors_with_their_place(answers, bare):
    lines = [
        answer if bare else {"custom_id": str(i), "response": {"status_code": 200, "body": answer}}
        for i, answer in enumerate(answers)
    ]
    file = io.BytesIO("".join(f"{json.dumps(line)}\n" for line in lines).encode())
    for i, entry in enumerate(read(file, ReadOptions(format="openai")), 1):
        if entry.error is None:
            assert entry.ballot is not None
        else:
            assert f":{i}" in str(entry.error)
