"""A model's server that answers at once: prepared choices for whatever it is asked.

    python benchmarks/service_upstream.py 8000 --words 100 --delay 0

It understands `n`, as vLLM does, and says 7 where it is asked to rate an answer, as optillm's best-of-n does.
Nothing is computed while it answers, so what clients wait for is the way to it and back.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from contextlib import suppress
from itertools import cycle

import generate

#: So many different questions have answers of their own.
LISTS = 32
LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
N = re.compile(rb'"n":\s*(\d+)')
RATE = b"Rate the above response"


def texts(words: int, number: int, seed: int) -> list[str]:
    """`number` answers of so many words that differ in some: sentences of `generate.py` in a row."""
    if words > 1_000:
        return long_texts(words, number, seed)
    found: list[list[str]] = [[] for _ in range(number)]
    part = 0
    while min(map(len, found)) < words:
        listed = generate.ballot(number, seed * 1_000 + part).texts
        random.Random(part).shuffle(listed)
        for answer, text in zip(found, listed, strict=True):
            answer += text.split()
        part += 1
    return [" ".join(answer[:words]) for answer in found]


def long_texts(words: int, number: int, seed: int) -> list[str]:
    """Very long answers over a large vocabulary, every tenth word by chance: the n-grams hardly repeat."""
    chance = random.Random(seed)
    base = [f"w{chance.randrange(30_000)}" for _ in range(words)]
    found = []
    for _ in range(number):
        answer = list(base)
        for _ in range(words // 10):
            answer[chance.randrange(words)] = f"w{chance.randrange(30_000)}"
        found.append(" ".join(answer))
    return found


def response(answers: list[str]) -> bytes:
    """The whole answer to a call for so many choices, headers included."""
    tokens = sum(len(answer.split()) for answer in answers)
    choices = [
        {"index": i, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
        for i, answer in enumerate(answers)
    ]
    usage = {"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": 20 + tokens}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "tiny"}
    return _written(json.dumps({**head, "choices": choices, "usage": usage}).encode())


def _written(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Prepared:
    """What is answered: made when a number of choices is first asked for, then kept."""

    def __init__(self, words: int, lists: int) -> None:
        self._words, self._lists = words, lists
        self._kept: dict[int, list[bytes]] = {}
        self._turn = cycle(range(lists))
        self._models = _written(b'{"object": "list", "data": [{"id": "tiny", "object": "model"}]}')
        self._rating = response(["7"])

    def answer(self, head: bytes, body: bytes) -> bytes:
        """For one request."""
        if head.startswith(b"GET"):
            return self._models
        if RATE in body:
            return self._rating
        found = N.search(body)
        n = int(found[1]) if found else 1
        if n not in self._kept:
            self._kept[n] = [response(texts(self._words, max(n, 2), seed)[:n]) for seed in range(self._lists)]
        return self._kept[n][next(self._turn)]


class Connection(asyncio.Protocol):
    """HTTP/1.1 as far as clients of completions need it."""

    def __init__(self, prepared: Prepared, delay: float) -> None:
        self._prepared, self._delay, self._came = prepared, delay, b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self._came += data
        while True:
            head, end, rest = self._came.partition(b"\r\n\r\n")
            found = LENGTH.search(head)
            length = int(found[1]) if found else 0
            if not end or len(rest) < length:
                return
            self._came = rest[length:]
            answer = self._prepared.answer(head, rest[:length])
            if self._delay:
                asyncio.get_running_loop().call_later(self._delay, self._send, answer)
            else:
                self._send(answer)

    def _send(self, answer: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(answer)


async def serve(port: int, prepared: Prepared, delay: float) -> None:
    """Until somebody ends the process."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(prepared, delay), "127.0.0.1", port, backlog=2048)
    await server.serve_forever()


def main() -> None:
    """Listen."""
    parser = argparse.ArgumentParser(description="Answer at once, as a model's server does.")
    parser.add_argument("port", type=int)
    parser.add_argument("--words", type=int, default=100, help="words of an answer")
    parser.add_argument("--lists", type=int, default=LISTS, help="different lists of answers")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    options = parser.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(options.port, Prepared(options.words, options.lists), options.delay))


if __name__ == "__main__":
    main()
