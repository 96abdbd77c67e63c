"""Load on a server of this machine, bounded: so many requests, so many at a time, so many a second.

    python benchmarks/service_load.py PORT /healthz     # asks every 10 ms until standard input ends

Connections are kept open where the server allows it. Times are from the first byte sent to the last one read.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import environment

#: Seconds between two questions of the probe.
PAUSE = 0.01
QUESTION = [{"role": "user", "content": "When does the train to the coast leave, and from where?"}]


def post(path: str, **fields: Any) -> bytes:
    """A request as it goes over the line."""
    body = json.dumps({"model": "tiny", "messages": QUESTION, **fields}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Authorization: Bearer unused\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def get(path: str) -> bytes:
    """Likewise."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


class Client:
    """One connection, opened again where the server closes it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> tuple[int, float]:
        """Status and seconds; 0 where there was no answer."""
        began = time.perf_counter()
        for attempt in range(2):
            fresh = self._open is None
            try:
                status = await self._once(request)
                return status, time.perf_counter() - began
            except (OSError, EOFError):
                await self.close()
                if fresh or attempt:
                    break
        return 0, time.perf_counter() - began

    async def _once(self, request: bytes) -> int:
        if self._open is None:
            self._open = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
        reader, writer = self._open
        writer.write(request)
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = next((line for line in head.split(b"\r\n") if line.startswith(b"content-length:")), None)
        if length is not None:
            await reader.readexactly(int(length.partition(b":")[2]))
        if length is None or head.startswith(b"http/1.0") or b"connection: close" in head:
            await self.close()
        return int(head.split(None, 2)[1])

    async def close(self) -> None:
        """Hang up."""
        if self._open is not None:
            self._open[1].close()
            self._open = None


@dataclass
class Load:
    """What came of it."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    took: float = 0.0

    def note(self, status: int, seconds: float) -> None:
        """One answer; times are those of good ones."""
        self.statuses[status] += 1
        if status == 200:
            self.seconds.append(seconds)

    def told(self) -> dict[str, Any]:
        """For the page."""
        good = self.statuses[200]
        return {
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "took": self.took,
            "rate": good / self.took if self.took else 0.0,
            "p50": percentile(self.seconds, 0.5),
            "p99": percentile(self.seconds, 0.99),
        }


def percentile(values: list[float], share: float) -> float:
    """The value below which this share lies; 0 of none."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)] if values else 0.0


def closed(
    port: int, request: bytes, clients: int, total: int, every: int = 0, told: Callable[[int], None] = print
) -> Load:
    """`clients` that ask again as soon as they are answered, until there are `total` answers."""

    async def run() -> Load:
        load, left = Load(), iter(range(total))

        async def work() -> None:
            client = Client(port)
            for number in left:
                load.note(*await client.ask(request))
                if every and number % every == 0:
                    told(number)
            await client.close()

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(clients)))
        load.took = time.perf_counter() - began
        return load

    return asyncio.run(run())


def offered(port: int, request: bytes, rate: float, seconds: float, most: int) -> Load:
    """Requests at a rate, whether or not earlier ones are answered; with `most` under way none is added, and
    what could not be sent is counted as status -1."""

    async def run() -> Load:
        load, idle, under_way = Load(), [Client(port) for _ in range(most)], set[asyncio.Task[None]]()

        async def one(client: Client) -> None:
            load.note(*await client.ask(request))
            idle.append(client)

        began, sent = time.perf_counter(), 0
        while (now := time.perf_counter() - began) < seconds:
            while sent < now * rate:
                sent += 1
                if idle:
                    task = asyncio.create_task(one(idle.pop()))
                    under_way.add(task)
                    task.add_done_callback(under_way.discard)
                else:
                    load.statuses[-1] += 1
            await asyncio.sleep(0.002)
        load.took = time.perf_counter() - began
        await asyncio.gather(*under_way)
        for client in idle:
            await client.close()
        return load

    return asyncio.run(run())


class Probe:
    """`with Probe(port, "/healthz") as probe`: another process asks all the while."""

    def __init__(self, port: int, path: str) -> None:
        self._command = [sys.executable, Path(__file__), str(port), path]
        self._found: dict[str, Any] = {}

    def __enter__(self) -> Probe:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it has begun
        return self

    def __exit__(self, *error: object) -> None:
        out, _ = self._process.communicate(b"")
        self._found = json.loads(out)

    def told(self) -> dict[str, Any]:
        """How many questions, and their times."""
        return self._found


def probe(port: int, path: str) -> dict[str, Any]:
    """Ask until standard input ends; a question that fails counts as endless."""

    async def run() -> dict[str, Any]:
        client, times, request = Client(port), list[float](), get(path)
        ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        print("begun", flush=True)
        while not ended.done():
            status, seconds = await client.ask(request)
            times.append(seconds if status == 200 else float("1e9"))
            await asyncio.sleep(PAUSE)
        await client.close()
        shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
        return {"asked": len(times), **{name: percentile(times, share) for name, share in shares.items()}}

    return asyncio.run(run())


if __name__ == "__main__":
    print(json.dumps(probe(int(sys.argv[1]), sys.argv[2])))
