"""A model's server that answers at once: prepared choices for whatever it is asked.

    python benchmarks/service_upstream.py 8000 --words 100 --delay 0

It understands `n`, as vLLM does, and answers 7 where it is asked to rate an answer, as optillm's best-of-n
does. Nothing is computed while it answers, so what clients wait for is the way to it and back.
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

LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
N = re.compile(rb'"n":\s*(\d+)')
RATE = b"Rate the above response"


def texts(words: int, number: int, seed: int) -> list[str]:
    """`number` answers of so many words that differ in some: sentences of `generate.py` in a row, or, if very
    long, words of a large vocabulary whose n-grams hardly repeat."""
    draw = random.Random(seed)
    if words > 1_000:
        base = [f"w{draw.randrange(30_000)}" for _ in range(words)]
        changed = [{draw.randrange(words) for _ in range(words // 10)} for _ in range(number)]
        return [
            " ".join(f"w{draw.randrange(30_000)}" if i in some else word for i, word in enumerate(base))
            for some in changed
        ]
    answers: list[list[str]] = [[] for _ in range(number)]
    for part in range(words):
        sentences = generate.ballot(number, seed * 1_000 + part).texts
        draw.shuffle(sentences)
        for answer, text in zip(answers, sentences, strict=True):
            answer += text.split()
        if min(map(len, answers)) >= words:
            break
    return [" ".join(answer[:words]) for answer in answers]


def completion(answers: list[str]) -> bytes:
    tokens = sum(len(answer.split()) for answer in answers)
    choices = [
        {"index": i, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
        for i, answer in enumerate(answers)
    ]
    usage = {"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": 20 + tokens}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "tiny"}
    return with_head(json.dumps({**head, "choices": choices, "usage": usage}).encode())


def with_head(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Answers:
    """Made when a number of choices is first asked for, then kept."""

    def __init__(self, words: int, lists: int) -> None:
        self._words, self._lists = words, lists
        self._kept: dict[int, list[bytes]] = {}
        self._turn = cycle(range(lists))
        self._models = with_head(b'{"object": "list", "data": [{"id": "tiny", "object": "model"}]}')
        self._rating = completion(["7"])

    def to(self, head: bytes, body: bytes) -> bytes:
        if head.startswith(b"GET"):
            return self._models
        if RATE in body:
            return self._rating
        match = N.search(body)
        n = int(match[1]) if match else 1
        if n not in self._kept:
            every = range(self._lists)
            self._kept[n] = [completion(texts(self._words, max(n, 2), seed)[:n]) for seed in every]
        return self._kept[n][next(self._turn)]


async def serve(port: int, answers: Answers, delay: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
                if delay:
                    await asyncio.sleep(delay)
                writer.write(answers.to(head, body))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", port, backlog=2048)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description="Answer at once, as a model's server does.")
    parser.add_argument("port", type=int)
    parser.add_argument("--words", type=int, default=100, help="words of an answer")
    parser.add_argument("--lists", type=int, default=32, help="different lists of answers")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    options = parser.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(options.port, Answers(options.words, options.lists), options.delay))


if __name__ == "__main__":
    main()
