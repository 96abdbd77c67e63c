"""The servers that are measured, each a process of its own, and the load on them.

    python benchmarks/service_load.py PORT      # asks for /healthz every 10 ms until standard input ends

Connections are kept open where the server allows it. Times are from the first byte sent to the last one read.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import HERE, ROOT, SCRATCH, Command, Server, command_line, environment, serving

OPTILLM = ROOT / ".venv-optillm" / "bin"
LOGS = SCRATCH / "service"
#: Seconds between two questions of the probe.
PAUSE = 0.01
QUESTION = [{"role": "user", "content": "When does the train to the coast leave, and from where?"}]


def started(command: Command, path: str, **variables: str) -> AbstractContextManager[Server]:
    LOGS.mkdir(parents=True, exist_ok=True)
    return serving(command, LOGS, path, NO_PROXY="127.0.0.1", no_proxy="127.0.0.1", **variables)


def upstream(delay: float = 0.0, words: int = 100, lists: int = 32) -> AbstractContextManager[Server]:
    """The model's server, which has its answers ready."""
    options = ["--delay", delay, "--words", words, "--lists", lists]
    command: Sequence[Any] = [sys.executable, HERE / "service_upstream.py"]
    return started(lambda port: [*command, port, *options], "/v1/models")


def rangevote(model: Server, samples: int = 16, limits: str = "") -> AbstractContextManager[Server]:
    """`rangevote serve` with its defaults; `limits` are lines of its configuration."""

    def command(port: int) -> Sequence[str | Path | int]:
        config = LOGS / f"{port}.toml"
        upstream = f'upstream = "http://127.0.0.1:{model.port}/v1"'
        config.write_text(f"{upstream}\n[limits]\n{limits}\n", encoding="utf-8")
        return [*command_line(), "serve", "--config", config, "--samples", samples, "--port", port]

    return started(command, "/readyz")


def optillm(model: Server, approach: str, samples: int = 16) -> AbstractContextManager[Server]:
    """optillm with one of its approaches; its self-consistency always draws five samples."""
    program = OPTILLM / "optillm"
    if not program.exists():
        raise RuntimeError("not installed: run benchmarks/setup.sh optillm")
    options = ["--approach", approach, "--best-of-n", samples, "--log", "warning", "--host", "127.0.0.1"]
    options += ["--base-url", f"http://127.0.0.1:{model.port}/v1"]
    return started(lambda port: [program, *options, "--port", port], "/health", OPENAI_API_KEY="unused")


def post(**fields: Any) -> bytes:
    """A request for a chat completion as it goes over the line."""
    body = json.dumps({"model": "tiny", "messages": QUESTION, **fields}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Authorization: Bearer unused\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Client:
    """One connection, opened again where the server closes it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> tuple[int, float]:
        """Status and seconds; 0 where there was no answer."""
        began = time.perf_counter()
        for _ in range(2):
            fresh = self._open is None
            try:
                return await self._request(request), time.perf_counter() - began
            except (OSError, EOFError):
                await self.close()
                if fresh:
                    break
        return 0, time.perf_counter() - began

    async def _request(self, request: bytes) -> int:
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
        if self._open is not None:
            self._open[1].close()
            self._open = None


@dataclass
class Load:
    """Answers by status, and the times of the good ones."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    took: float = 0.0

    def add(self, status: int, seconds: float) -> None:
        self.statuses[status] += 1
        if status == 200:
            self.seconds.append(seconds)

    def summary(self) -> dict[str, Any]:
        return {
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "took": self.took,
            "rate": self.statuses[200] / self.took if self.took else 0.0,
            "p50": percentile(self.seconds, 0.5),
            "p99": percentile(self.seconds, 0.99),
        }


def percentile(values: list[float], share: float) -> float:
    """The value below which this share lies; 0 of none."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)] if values else 0.0


def closed(
    port: int, request: bytes, clients: int, total: int, every: int = 0, look: Callable[[int], None] = print
) -> Load:
    """`clients` that ask again as soon as they are answered, until there are `total` answers."""

    async def run() -> Load:
        load, left = Load(), iter(range(total))

        async def work() -> None:
            client = Client(port)
            for number in left:
                load.add(*await client.ask(request))
                if every and number % every == 0:
                    look(number)
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
            load.add(*await client.ask(request))
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


@contextmanager
def probed(port: int, summary: dict[str, Any]) -> Iterator[None]:
    """Another process asks for /healthz all the while; its times are added to `summary` at the end."""
    command = [sys.executable, __file__, str(port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
    assert process.stdout is not None
    process.stdout.readline()  # it has begun
    yield
    summary["healthz"] = json.loads(process.communicate(b"")[0])


async def probe(port: int) -> dict[str, Any]:
    """Ask until standard input ends; a question that fails counts as endless."""
    client, times = Client(port), list[float]()
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    print("begun", flush=True)
    while not ended.done():
        status, seconds = await client.ask(request)
        times.append(seconds if status == 200 else 1e9)
        await asyncio.sleep(PAUSE)
    await client.close()
    shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {"asked": len(times), **{name: percentile(times, share) for name, share in shares.items()}}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(probe(int(sys.argv[1])))))
