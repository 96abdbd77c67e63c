"""A thousand requests at the same moment (case 55): few are answered, the others are told to come again.

How quickly is measured by `make bench-service`; here it is how many, and how much is kept for them.
"""

from __future__ import annotations

import asyncio
import json
import resource
import threading
from collections import Counter

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

from tests.service.running import HEAD, MESSAGES, Running, until
from tests.sources.openai.upstream import Asked, Reply, Upstream, choice, completion

MANY = 1_000
PLACES = 20


class Door:
    """An upstream whose answers wait until the door is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    def __call__(self, asked: Asked) -> Reply:
        assert self.opened.wait(120)
        return completion(asked, [choice(asked, i) for i in range(asked.n)])


async def ask(port: int, content: bytes, refused: Counter[str]) -> tuple[int, dict[str, object], bytes]:
    """Status and answer, over a connection of its own; a refusal is noted as soon as it is there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(content)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(
            next(line for line in head.split(b"\r\n") if line.startswith(b"content-length")).split()[1]
        )
        body = json.loads(await reader.readexactly(length))
    finally:
        writer.close()
    status = int(head.split()[1])
    if status != 200:
        refused[body["error"]["code"]] += 1
    return status, body, head


@pytest.fixture
def descriptors():
    """Room for both ends of so many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 3 * MANY
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"this system allows {hard} open files, and {wanted} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("descriptors")
def test_case_55_of_a_thousand_at_once_as_many_are_answered_as_there_are_places():
    said = {"model": "tiny", "messages": MESSAGES, "user": "u" * 50_000}
    body = json.dumps(said).encode()
    content = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    door, refused = Door(), Counter[str]()
    limits = {"in_flight": 4, "queue": PLACES - 4, "total_seconds": 120, "body_seconds": 120}
    limits |= {"header_seconds": 120, "connect_seconds": 120, "read_seconds": 120}
    with Upstream(answer=door) as upstream, Running(upstream.url, limits=limits, models=("tiny",)) as service:

        async def everybody() -> list[tuple[int, dict[str, object], bytes]]:
            asking = [asyncio.create_task(ask(service.port, content, refused)) for _ in range(MANY)]
            while refused["overloaded"] < MANY - PLACES:  # nobody is answered yet, so all others must be
                await asyncio.sleep(0.02)
            await asyncio.to_thread(look)
            door.opened.set()
            return await asyncio.gather(*asking)

        def look() -> None:
            """What is kept while the queue is full."""
            until(lambda: service.metric("rangevote_in_flight") == 4, 60)
            assert service.metric("rangevote_queue") == PLACES - 4
            assert service.http.get("/healthz").status_code == 200
            until(lambda: len(upstream.asked) == 4, 60)

        answers = asyncio.run(everybody())
        until(lambda: service.metric("rangevote_queue") == 0, 20)
        assert service.metric("rangevote_in_flight") == 0
        assert service.ask().status_code == 200
    assert Counter(status for status, _, _ in answers) == {200: PLACES, 503: MANY - PLACES}
    assert refused == {"overloaded": MANY - PLACES}
    assert upstream.most_open == 4
    assert all(b"retry-after: 1" in head for status, _, head in answers if status == 503)


def test_case_55_a_request_that_is_turned_away_is_not_read():
    """A place is taken before the body is: so what is sent meanwhile is no memory of ours."""
    door, limits = Door(), {"in_flight": 1, "queue": 0, "total_seconds": 120, "read_seconds": 120}
    with Upstream(answer=door) as upstream, Running(upstream.url, limits=limits, models=("tiny",)) as full:
        waiting = threading.Thread(target=full.ask, daemon=True)
        waiting.start()
        until(lambda: upstream.asked, 60)
        answer = full.raw(HEAD + b"Content-Length: 900000\r\nConnection: close\r\n\r\n", 60)
        assert answer.startswith(b"HTTP/1.1 503 ")
        door.opened.set()
        waiting.join(60)
