"""What `rangevote serve` adds to a model's server, and what it bears; needs a quiet machine."""

from __future__ import annotations

import asyncio
import platform
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import common
from common import Row, chapter, say
from service_load import (
    OPTILLM,
    Client,
    Server,
    closed,
    offered,
    optillm,
    percentile,
    post,
    probed,
    rangevote,
    upstream,
)

#: Samples of an election; the default of `rangevote serve`.
SAMPLES = 16
#: optillm's approaches, and how many samples each draws.
PEERS = {"bon": SAMPLES, "self_consistency": 5}
#: Seconds that a call takes where the model limits capacity, and not the processor.
MODEL_SECONDS = 0.25
#: Megabytes by which memory may differ between two looks at a process that keeps nothing.
NOISE = 2.0


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    paired: int = 2_000
    peers: int = 300
    throughput: int = 4_000
    memory: int = 50_000
    seconds: float = 20.0
    burst: int = 2_000
    long: float = 30.0


QUICK = Size(paired=40, peers=3, throughput=64, memory=120, seconds=2.0, burst=150, long=2.0)


def measure(quick: bool) -> dict[str, Any]:
    size = QUICK if quick else Size()
    data: dict[str, Any] = {"size": vars(size), "samples": SAMPLES, "model seconds": MODEL_SECONDS}
    data |= {"latency": {}, "throughput": {}}
    with upstream() as model:
        for name, samples, start in contestants(model):
            say(name)
            try:
                with start() as running:
                    rounds, total = (
                        (size.paired, size.throughput) if name == "rangevote" else (size.peers, size.peers)
                    )
                    data["latency"][name] = added_latency(model, running, samples, rounds)
                    data["throughput"][name] = throughput(running, total)
            except RuntimeError as error:
                data["latency"][name] = data["throughput"][name] = {"error": str(error)}
    parts: dict[str, Callable[[Size], dict[str, Any]]] = {
        "memory": memory,
        "overload": overload,
        "burst": burst,
        "long": long_samples,
    }
    for name, part in parts.items():
        say(name)
        data[name] = part(size)
    data["versions"] = versions()
    return data


def contestants(model: Server) -> Iterator[tuple[str, int, Any]]:
    yield "rangevote", SAMPLES, partial(rangevote, model, SAMPLES)
    for approach, samples in PEERS.items():
        yield f"optillm {approach}", samples, partial(optillm, model, approach, samples)


def added_latency(model: Server, server: Server, samples: int, rounds: int) -> dict[str, Any]:
    """One client: seconds of a call through a server without those of the same call made directly before."""

    async def run() -> list[tuple[float, float]]:
        straight, through = Client(model.port), Client(server.port)
        pairs = []
        for number in range(rounds + rounds // 10 + 5):  # the first ones do not count
            first, second = await straight.ask(post(n=samples)), await through.ask(post())
            assert first[0] == second[0] == 200, (first, second)
            if number >= rounds // 10 + 5:
                pairs.append((first[1], second[1]))
        await straight.close()
        await through.close()
        return pairs

    pairs = asyncio.run(run())
    added = [second - first for first, second in pairs]
    shares = {"p50": percentile(added, 0.5), "p99": percentile(added, 0.99)}
    direct = percentile([first for first, _ in pairs], 0.5)
    return {"requests": rounds, "samples": samples, "direct": direct, **shares}


def throughput(server: Server, total: int) -> dict[str, Any]:
    """16 clients that never rest, and a model's server that answers at once: all there is is overhead."""
    closed(server.port, post(), 4, max(total // 10, 4))
    before = server.cpu
    load = closed(server.port, post(), 16, total)
    return load.summary() | {"cpu": (server.cpu - before) / total, "memory": server.memory}


def memory(size: Size) -> dict[str, Any]:
    """Megabytes while many requests are answered; a tenth of them comes first and counts as warming up."""
    seen: list[tuple[int, float]] = []
    with upstream() as model, rangevote(model, SAMPLES) as ours:

        def look(number: int) -> None:
            seen.append((number, ours.memory))

        load = closed(ours.port, post(), 16, size.memory, max(size.memory // 40, 1), look)
        look(size.memory)
    warm = [megabytes for number, megabytes in seen if number >= size.memory // 10]
    return load.summary() | {"seen": seen, "warm": warm[0], "end": warm[-1], "most": max(warm)}


@contextmanager
def slow_model() -> Iterator[Server]:
    with upstream(delay=MODEL_SECONDS) as model, rangevote(model, SAMPLES) as ours:
        yield ours


def overload(size: Size) -> dict[str, Any]:
    """Four times as many requests as the elections in flight can answer."""
    capacity, found = 16 / MODEL_SECONDS, dict[str, Any]()
    with slow_model() as ours:
        with probed(ours.port, found):
            load = offered(ours.port, post(), 4 * capacity, size.seconds, most=600)
        return load.summary() | found | {"capacity": capacity, "memory": ours.peak}


def burst(size: Size) -> dict[str, Any]:
    """So many requests at the same moment."""
    pause, found = min(1.0, size.seconds / 4), dict[str, Any]()
    with slow_model() as ours:
        closed(ours.port, post(), 16, 64)
        before = ours.peak
        with probed(ours.port, found):
            time.sleep(pause)
            load = closed(ours.port, post(), size.burst, size.burst)
            time.sleep(pause)
        return load.summary() | found | {"before": before, "memory": ours.peak}


def long_samples(size: Size) -> dict[str, Any]:
    """64 samples of 20,000 words for every request, from two clients."""
    found, limits = dict[str, Any](), "response_bytes = 33554432\n"
    with upstream(words=20_000, lists=1) as model, rangevote(model, 64, limits) as ours:
        closed(ours.port, post(), 1, 2)
        with probed(ours.port, found):
            end, count, times = time.monotonic() + size.long, 0, list[float]()
            while time.monotonic() < end:
                load = closed(ours.port, post(), 2, 4)
                count += load.statuses[200]
                times += load.seconds
        return found | {"answers": count, "p50": percentile(times, 0.5), "memory": ours.peak}


def versions() -> dict[str, str]:
    ours = common.versions("rangevote", "starlette", "uvicorn", "httpx")
    command = [OPTILLM / "python", "-c", "from importlib.metadata import version; print(version('optillm'))"]
    there = (OPTILLM / "optillm").exists()
    peer = subprocess.run(command, capture_output=True, text=True).stdout.strip() if there else "(absent)"
    return {"Python": platform.python_version(), **ours, "optillm": peer}


ABOUT = """Everything runs on one machine over loopback, each server in a process of its own; the model's
server has its answers ready (100 words each, 16 a request). Added latency is the time of a request less
that of the same call made directly just before, by one client; requests a second are with 16 clients that
never rest. optillm's `bon` makes one call for all samples and one for the grade of each, its
`self_consistency` draws five samples one after the other; these calls cost nothing here, and seconds of a
real model."""


def page(data: dict[str, Any]) -> str:
    title = "What does the election service add, and what does it bear?"
    return chapter(title, ABOUT, data, {"": [*targets(data), *beside(data)]})


def targets(data: dict[str, Any]) -> Iterator[Row]:
    size, added, memory, over = data["size"], data["latency"]["rangevote"], data["memory"], data["overload"]
    what = f"added latency, p50, n = {added['samples']}, 100-word answers"
    yield Row(what, "<= 1.6 ms", ms(added["p50"]), added["p50"] <= 0.0016)
    what = f"memory after {size['memory']:,} requests, against a tenth of them"
    grown = f"{memory['warm']:.1f} -> {memory['end']:.1f} MB"
    must = f"no growth (within {NOISE:.0f} MB)"
    yield Row(what, must, grown, memory["end"] - memory["warm"] <= NOISE)
    for part, name in (
        ("overload", f"4 x capacity ({over['capacity']:.0f} a second)"),
        ("burst", f"{size['burst']:,} connections at once"),
        ("long", "64 x 20,000-word samples"),
    ):
        found = data[part]
        if statuses := found.get("statuses"):
            only = set(statuses) <= {"200", "503"} and "503" in statuses
            counts = ", ".join(f"{count:,} x {status}" for status, count in sorted(statuses.items()))
            yield Row(f"{name}: answers", "200 or 503 alone", counts, only)
        p99, most = found["healthz"]["p99"], f"{found['memory']:.0f} MB at most"
        yield Row(f"{name}: /healthz p99", "< 50 ms", f"{ms(p99)}, {most}", p99 < 0.05)


def beside(data: dict[str, Any]) -> Iterator[Row]:
    for name, added in data["latency"].items():
        rate = data["throughput"][name]
        measured = added.get("error") or rate.get("error")
        if measured is None:
            latency = f"added p50 {ms(added['p50'])}, p99 {ms(added['p99'])}"
            cost = f"{rate['rate']:.0f} requests a second, {ms(rate['cpu'])} of processor each"
            measured = f"{latency}; {cost}; {rate['memory']:.0f} MB"
        yield Row(f"{name}, {added.get('samples', '?')} samples", "", measured)


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"
