"""A server called over a real socket, within limits and with retries, whatever it does; and samples drawn
from it, whatever it makes of `n`."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from email.utils import formatdate
from typing import Any, TypeVar

import pytest

from rangevote.engines.openai.client import CallLimits, Client, UpstreamError, _pause, retry_seconds
from rangevote.engines.openai.sampling import Samples, sample
from rangevote.errors import UsageError
from rangevote.formats.choices import CHAT, Usage
from tests.engines.openai.upstream import ELSEWHERE, LOGPROBS, Upstream, text_of

T = TypeVar("T")
ASK = {"model": "tiny", "messages": [{"role": "user", "content": "when?"}], "logprobs": True}
#: Quick where calls are repeated.
LIMITS = CallLimits(pause=0.02)
KEY = "sk-very-secret"


def asked(upstream: Upstream, use: Callable[[Client], Awaitable[T]], **options: Any) -> T:
    """What `use` gets of a client at this server."""

    async def run() -> T:
        async with Client(upstream.url, **{"limits": LIMITS, **options}) as client:
            return await use(client)

    return asyncio.run(run())


def drawn(upstream: Upstream, n: int, *, times: int = 1, path: str = CHAT, **options: Any) -> Samples:
    """The samples of the last of some requests to one client."""

    async def use(client: Client) -> Samples:
        for _ in range(times):
            samples = await sample(client, path, ASK, n, seed=options.pop("seed", 100))
        return samples

    return asked(upstream, use, **options)


def fault(mode: str, n: int = 1, **options: Any) -> UpstreamError:
    """The error that a misbehaving server comes to."""
    with Upstream(mode) as upstream, pytest.raises(UpstreamError) as caught:
        drawn(upstream, n, **options)
    return caught.value


def texts(samples: Samples) -> list[str | None]:
    return [choice.text for choice in samples.choices]


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8000", "ftp://host/v1", "http://", "http://a b/v1", "http://[::1/v1"]
)
def test_a_base_url_must_be_valid(url):
    with pytest.raises(UsageError, match="the base URL must look like http"):
        Client(url)


def test_urls_with_secrets_and_keys_that_no_header_can_carry_are_refused_and_not_shown():
    for url, problem in [
        ("https://user:hunter2@host/v1", "contains a user name or password"),
        ("https://host/v1?key=hunter2", "must end with its path"),
    ]:
        with pytest.raises(UsageError, match=problem) as caught:
            Client(url)
        assert "hunter2" not in str(caught.value)
    for key in ("", "a b", "a\r\nx: y", "schlüssel"):
        with pytest.raises(UsageError, match="the API key is empty or contains") as caught:
            Client("http://127.0.0.1/v1", key=key)
        assert not key or key not in str(caught.value)


def test_calls_are_limited_in_number_run_together_and_keep_their_connections():
    with Upstream("ignores_n", delay=0.05) as upstream:
        drawn(upstream, 9, concurrency=3)
    assert upstream.most_open == len(upstream.connections) == 3


def test_a_busy_server_is_called_again_when_it_wants_to_be():
    with Upstream(["busy", "well"]) as upstream:
        samples = drawn(upstream, 2)
    first, second = upstream.asked
    assert len(samples.choices) == 2
    assert second.when - first.when >= 1.0  # its Retry-After


@pytest.mark.parametrize("mode", ["broken", "hangs_up"])
def test_a_broken_server_is_called_again_and_in_the_end_there_is_an_error(mode):
    with Upstream([mode, mode, "well"]) as upstream:
        assert len(drawn(upstream, 2).choices) == 2
    assert len(upstream.asked) == 3
    with Upstream(mode) as upstream, pytest.raises(UpstreamError):
        drawn(upstream, 2)
    assert len(upstream.asked) == 3


def test_pauses_grow_and_are_random():
    pauses = [[_pause(0.02, i, None) for _ in range(50)] for i in range(3)]
    for i, some in enumerate(pauses):
        assert all(0.01 * 2**i <= pause <= 0.02 * 2**i for pause in some)
        assert len(set(some)) > 40
    assert _pause(0.02, 0, 3.0) == 3.0


@pytest.mark.parametrize(
    ("mode", "kind", "status", "requests"),
    [
        ("denied", "status", 401, 1),
        ("refuses", "status", 400, 1),
        ("redirects", "redirect", 302, 1),
        ("html", "not_json", 200, 1),
        ("half_json", "not_json", 200, 1),
        ("cut_off", "not_json", 200, 1),
        ("huge", "too_large", 200, 1),
        ("huge_without_length", "too_large", 200, 1),
        ("compressed", "shape", 200, 1),
        ("no_object", "shape", 200, 1),
        ("no_choices", "shape", 200, 1),
        ("other_shape", "shape", 200, 1),
        ("broken", "status", 500, 3),
    ],
)
def test_a_misbehaving_server_is_an_error_of_its_kind(mode, kind, status, requests):
    with Upstream(mode) as upstream, pytest.raises(UpstreamError) as caught:
        drawn(upstream, 1, key=KEY)
    assert (caught.value.kind, caught.value.status) == (kind, status)
    assert len(upstream.asked) == requests
    assert caught.value.exit_code == 5


def test_json_under_another_content_type_is_read():
    with Upstream("plain_text") as upstream:
        assert len(drawn(upstream, 2).choices) == 2


def test_messages_show_neither_the_key_nor_what_the_server_wrote():
    error = fault("denied", key=KEY)
    assert "answered 401 Unauthorized: the API key is missing or wrong." in str(error)
    assert KEY not in str(error) + error.detail
    assert "Incorrect API key provided: Bearer ***" in error.detail
    error = fault("redirects")
    assert "which is not followed" in str(error)
    assert error.detail == ELSEWHERE
    assert ELSEWHERE not in str(error)
    assert KEY not in repr(Client("http://127.0.0.1:1/v1", key=KEY))


def test_the_key_goes_into_the_header_and_no_proxy_is_used(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with Upstream(models=["a", "b"]) as upstream:
        drawn(upstream, 1, key=KEY)
        drawn(upstream, 1)
        assert asked(upstream, lambda client: client.models()) == ["a", "b"]
    assert upstream.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in upstream.asked[1].headers


def test_a_retry_after_beyond_the_deadline_is_an_error_at_once():
    began = time.monotonic()
    error = fault("busy_for_long")
    assert (error.kind, error.status, error.retry_after) == ("rate", 429, 3600.0)
    assert time.monotonic() - began < 60


def test_a_retry_after_is_a_number_or_a_date():
    assert retry_seconds(formatdate(time.time() + 90, usegmt=True)) == pytest.approx(90, abs=2)
    assert retry_seconds(formatdate(time.time() - 90, usegmt=True)) == 0.0
    assert (retry_seconds("2"), retry_seconds("0.5")) == (2.0, 0.5)
    for odd in ("soon", "nan", "inf", "-3", "1e999", "", "Mon, 32 Foo 99999999999 25:61:61 GMT"):
        assert retry_seconds(odd) is None


@pytest.mark.parametrize("limits", [CallLimits(read=1), CallLimits(total=1)])
def test_a_server_that_stalls_is_left(limits):
    with (
        Upstream("stalls") as upstream,
        pytest.raises(UpstreamError, match="did not answer in time") as caught,
    ):
        drawn(upstream, 2, limits=limits)
    assert caught.value.kind == "timeout"
    assert len(upstream.asked) == 1
    assert upstream.left.wait(60)


def test_a_deadline_limits_waiting_and_calling():
    async def use(client: Client) -> list[BaseException]:
        deadline = time.monotonic() + 1
        calls = [client.call(CHAT, ASK, deadline=deadline) for _ in range(3)]
        return await asyncio.gather(*calls, return_exceptions=True)  # type: ignore[return-value]

    with Upstream("stalls") as upstream:
        errors = asked(upstream, use, concurrency=1)
    assert [error.kind for error in errors if isinstance(error, UpstreamError)] == ["timeout"] * 3
    assert len(upstream.asked) == 1


def test_cancelling_closes_every_connection():
    async def use(client: Client) -> None:
        sampling = asyncio.create_task(sample(client, CHAT, ASK, 4))
        while upstream.open < 3:
            await asyncio.sleep(0.01)
        sampling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sampling
        for _ in range(100):
            if not upstream.open:
                break
            await asyncio.sleep(0.01)
        assert upstream.open == 0
        upstream.mode = "well"
        assert len((await sample(client, CHAT, ASK, 1)).choices) == 1  # all turns are free again

    with Upstream(["ignores_n", "stalls"]) as upstream:
        asked(upstream, use, concurrency=3)


def test_what_comes_between_two_calls_is_never_the_answer_to_the_second():
    body = b'{"data": [{"id": "tiny"}]}'
    good = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    said = asyncio.Event()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while await reader.read(2**20):
                writer.write(good)
                await asyncio.sleep(0.05)  # the first call is answered
                writer.write(good.replace(b"tiny", b"evil"))
                await writer.drain()
                said.set()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with Client(f"http://127.0.0.1:{port}/v1") as client:
            assert await client.models() == ["tiny"]
            await asyncio.wait_for(said.wait(), 60)
            await asyncio.sleep(0.05)
            assert await client.models() == ["tiny"]
        await asyncio.sleep(0.1)  # the server sees its client go
        server.close()

    asyncio.run(run())


def called(url: str, **options: object) -> None:
    async def run() -> None:
        async with Client(url, limits=CallLimits(retries=0), **options) as client:  # type: ignore[arg-type]
            await client.models()

    asyncio.run(run())


def test_a_server_that_cannot_be_reached_is_named():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(UpstreamError, match=f"cannot reach {url}") as caught:
        called(url)
    assert (caught.value.kind, caught.value.status) == ("connect", None)
    for host in ("a" * 70, "a..b"):
        with pytest.raises((UpstreamError, UsageError), match=r"cannot reach|is not valid"):
            called(f"http://{host}/v1")


@pytest.mark.parametrize("n", [0, True, 2.5, "5"])
def test_numbers_of_samples_and_calls_are_checked(n):
    with Upstream() as upstream, pytest.raises(UsageError, match="n must be a whole number from 1"):
        drawn(upstream, n)
    with pytest.raises(UsageError, match="concurrency must be a whole number from 1"):
        Client("http://127.0.0.1/v1", concurrency=n)


def test_one_call_gives_all_samples_where_the_server_can():
    with Upstream() as upstream:
        samples = drawn(upstream, 5)
    assert [choice.logprob for choice in samples.choices] == [sum(LOGPROBS)] * 5
    assert (samples.calls, samples.usage, samples.failed) == (1, Usage(7, 15, 22), [])
    [request] = upstream.asked
    assert request.body == {**ASK, "n": 5, "seed": 100}
    assert request.path == "/v1/chat/completions"


SINGLE = [(101, 1), (102, 1), (103, 1), (104, 1)]


@pytest.mark.parametrize(
    ("mode", "n", "first", "later"),
    [
        ("ignores_n", 5, [(100, 5)], SINGLE),
        ("refuses_n", 5, [(100, 5), (100, 1), (101, 3)], SINGLE),
        ("one_fewer", 4, [(100, 4)], [(103, 1)]),
        ("at_most_two", 7, [(100, 7)], [(102, 2), (104, 2), (106, 1)]),
        ("refuses_more_than_four", 16, [(100, 16), (100, 1), (101, 8), (101, 4)],
         [(105, 4), (109, 4), (113, 3)]),
    ],
)  # fmt: skip
def test_missing_samples_are_asked_for_in_lots_that_the_server_gives_each_with_its_own_seed(
    mode, n, first, later
):
    with Upstream(mode) as upstream:
        samples = drawn(upstream, n)
    assert texts(samples) == [text_of(100 + i) for i in range(n)]
    requests = [(request.body["seed"], request.n) for request in upstream.asked]
    assert (requests[: len(first)], sorted(requests[len(first) :])) == (first, later)
    assert samples.calls == len(requests)
    refused = 2 if mode.startswith("refuses") else 0
    assert samples.usage.prompt == 7 * (len(requests) - refused)


def test_what_a_server_can_do_is_remembered_for_each_model():
    async def use(client: Client) -> None:
        for model in ("tiny", "tiny", "other"):
            await sample(client, CHAT, {**ASK, "model": model}, 2)

    with Upstream("ignores_n") as upstream:
        asked(upstream, use)
    assert [request.n for request in upstream.asked] == [2, 1, 1, 1, 2, 1]


def test_what_a_server_gives_is_remembered_and_forgotten_after_a_while():
    with Upstream("one_fewer") as upstream:
        drawn(upstream, 4, times=2)
    again = sorted((request.body["seed"], request.n) for request in upstream.asked[2:])
    assert again == [(100, 3), (102, 1), (103, 1)]  # in threes, of which it gives two
    with Upstream("refuses_more_than_four") as upstream:
        drawn(upstream, 16, times=2)
        assert sorted(request.n for request in upstream.asked[7:]) == [4] * 4
        forgetful = CallLimits(most_kept=0.0)
        upstream.asked.clear()
        drawn(upstream, 3, times=2, limits=forgetful)
        assert [request.n for request in upstream.asked] == [3, 3]
        drawn(upstream, 16, times=2, limits=forgetful)
    assert [request.n for request in upstream.asked].count(16) == 2


def test_no_call_is_refused_where_it_is_known_how_many_choices_one_gives():
    with Upstream("refuses_more_than_four") as upstream:
        samples = drawn(upstream, 10, most_choices=4)
        drawn(upstream, 3, most_choices=4)
    assert texts(samples) == [text_of(100 + i) for i in range(10)]
    assert (samples.calls, sorted(request.n for request in upstream.asked)) == (3, [2, 3, 4, 4])


def test_halving_ends_with_what_came_where_the_server_breaks():
    with Upstream(["refuses", "well", "broken"]) as upstream:
        samples = drawn(upstream, 8, limits=CallLimits(retries=0))
    sizes = [request.n for request in upstream.asked]
    assert (sizes[:3], sorted(sizes[3:])) == ([8, 1, 4], [3, 4])  # the last two are asked together
    assert (len(samples.choices), [error.status for error in samples.failed]) == (1, [500] * 3)


def test_greedy_requests_that_get_one_choice_do_not_change_how_others_are_sent():
    async def use(client: Client) -> None:
        for temperature in (0, 1e-6, 0.7):
            await sample(client, CHAT, {**ASK, "temperature": temperature}, 4)

    with Upstream("greedy_once") as upstream:
        asked(upstream, use)
    assert [request.n for request in upstream.asked] == [4, 1, 2, 1, 1, 1, 1, 1, 1, 1, 4]


def test_a_seed_in_the_body_is_where_seeds_begin_and_without_one_there_is_none():
    async def use(client: Client) -> None:
        await sample(client, CHAT, {**ASK, "seed": 7}, 2)
        await sample(client, CHAT, ASK, 2)

    with Upstream("ignores_n") as upstream:
        asked(upstream, use)
    assert sorted(request.body["seed"] for request in upstream.asked[:2]) == [7, 8]
    assert not any("seed" in request.body for request in upstream.asked[2:])


def test_a_refusal_that_is_not_about_n_is_told_after_a_try_without_n():
    with Upstream("refuses") as upstream, pytest.raises(UpstreamError, match="400 Bad Request"):
        drawn(upstream, 4)
    assert [request.n for request in upstream.asked] == [4, 1]


def test_what_came_is_kept_when_further_calls_fail():
    with Upstream(["ignores_n", "ignores_n", "refuses"]) as upstream:
        samples = drawn(upstream, 5)
    assert len(samples.choices) == 2
    assert [error.status for error in samples.failed] == [400] * 3
    assert samples.calls == 5


def test_an_error_with_status_200_is_kept_for_the_log():
    error = fault("error_with_200")
    assert (error.kind, error.status) == ("shape", 200)
    assert "provider is down" in error.detail
    assert "provider is down" not in str(error)
