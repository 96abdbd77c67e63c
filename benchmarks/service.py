"""What `rangevote serve` adds to a model's server, and what it bears; a chapter of RESULTS.md.

.venv/bin/python benchmarks/service.py            # everything; about half an hour, on a machine that is quiet
.venv/bin/python benchmarks/service.py --quick    # few requests, a minute or two: does all of it work?
.venv/bin/python benchmarks/service.py --render   # the page again, from the last run
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import service_report
from common import HERE, ROOT, SCRATCH, machine, publish, say
from service_load import Client, Probe, closed, offered, percentile, post
from service_servers import OPTILLM, Server, optillm, rangevote, upstream

RAW = SCRATCH / "service.json"
PATH = "/v1/chat/completions"
#: Samples of an election; `rangevote serve`'s own number.
SAMPLES = 16
#: optillm's approaches, and how many samples each draws.
PEERS = {"bon": SAMPLES, "self_consistency": 5}
#: Seconds that a call takes where capacity is the model's, and not the processor's.
MODEL_SECONDS = 0.25


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    paired: int = 2_000
    peers: int = 300
    throughput: int = 4_000
    memory: int = 50_000
    seconds: float = 20.0
    burst: int = 1_000
    long: float = 30.0


QUICK = Size(paired=40, peers=3, throughput=64, memory=120, seconds=2.0, burst=150, long=2.0)


def measure(size: Size) -> dict[str, Any]:
    """All measurements, as one dictionary."""
    began, load = time.time(), os.getloadavg()[0]
    data: dict[str, Any] = {"size": vars(size), "samples": SAMPLES, "model seconds": MODEL_SECONDS}
    parts: dict[str, Callable[[Size], dict[str, Any]]] = {
        "latency": latency,
        "throughput": throughput,
        "memory": memory,
        "overload": overload,
        "burst": burst,
        "long": long_samples,
    }
    for name, part in parts.items():
        say(name)
        data[name] = part(size)
    data["date"] = datetime.date.today().isoformat()
    data["machine"] = machine() | {"load": [load, os.getloadavg()[0]]}
    data["versions"] = versions()
    data["seconds"] = time.time() - began
    return data


def latency(size: Size) -> dict[str, Any]:
    """One client; the model's server is asked directly and through each of the others, in turn."""
    with ExitStack() as stack:
        model = stack.enter_context(upstream())
        ours = stack.enter_context(rangevote(model, SAMPLES))
        found = {"rangevote": paired(model, ours, SAMPLES, size.paired)}
        for approach, samples in PEERS.items():
            try:
                with optillm(model, approach, samples) as peer:
                    found[f"optillm {approach}"] = paired(model, peer, samples, size.peers)
            except RuntimeError as error:
                found[f"optillm {approach}"] = {"error": str(error)}
        return found


def paired(model: Server, server: Server, samples: int, rounds: int) -> dict[str, Any]:
    """Seconds that a server adds: those of the call through it without those of the same call asked directly,
    made just before."""

    async def run() -> list[tuple[float, float]]:
        straight, through = Client(model.port), Client(server.port)
        direct, indirect = post(PATH, n=samples), post(PATH)
        found = []
        for number in range(rounds + rounds // 10 + 5):  # the first ones do not count
            first, second = await straight.ask(direct), await through.ask(indirect)
            assert first[0] == second[0] == 200, (first, second)
            if number >= rounds // 10 + 5:
                found.append((first[1], second[1]))
        await straight.close()
        await through.close()
        return found

    pairs = asyncio.run(run())
    added = [second - first for first, second in pairs]
    direct = [first for first, _ in pairs]
    return {
        "requests": rounds,
        "samples": samples,
        "direct": percentile(direct, 0.5),
        "p50": percentile(added, 0.5),
        "p99": percentile(added, 0.99),
    }


def throughput(size: Size) -> dict[str, Any]:
    """16 clients that never rest, and a model's server that answers at once: all there is is overhead."""
    found: dict[str, Any] = {}
    with upstream() as model:
        with rangevote(model, SAMPLES) as ours:
            found["rangevote"] = drive(ours, size.throughput)
        for approach, samples in PEERS.items():
            try:
                with optillm(model, approach, samples) as peer:
                    found[f"optillm {approach}"] = drive(peer, size.peers)
            except RuntimeError as error:
                found[f"optillm {approach}"] = {"error": str(error)}
    return found


def drive(server: Server, total: int) -> dict[str, Any]:
    """Requests a second, and what they take of the processor."""
    closed(server.port, post(PATH), 4, max(total // 10, 4))
    before = server.cpu
    load = closed(server.port, post(PATH), 16, total)
    return load.told() | {"cpu": (server.cpu - before) / total, "memory": server.memory}


def memory(size: Size) -> dict[str, Any]:
    """Megabytes while many requests are answered; a tenth of them comes first and counts as warming up."""
    seen: list[tuple[int, float]] = []
    with upstream() as model, rangevote(model, SAMPLES) as ours:

        def look(number: int) -> None:
            seen.append((number, ours.memory))

        load = closed(ours.port, post(PATH), 16, size.memory, max(size.memory // 40, 1), look)
        seen.append((size.memory, ours.memory))
    warm = [megabytes for number, megabytes in seen if number >= size.memory // 10]
    return load.told() | {"seen": seen, "warm": warm[0], "end": warm[-1], "most": max(warm)}


def overload(size: Size) -> dict[str, Any]:
    """Four times as many requests as the elections in flight can answer, and somebody who looks after it."""
    with upstream(delay=MODEL_SECONDS) as model, rangevote(model, SAMPLES) as ours:
        capacity = 16 / MODEL_SECONDS
        with Probe(ours.port, "/healthz") as probe:
            load = offered(ours.port, post(PATH), 4 * capacity, size.seconds, most=600)
        return load.told() | {"capacity": capacity, "healthz": probe.told(), "memory": ours.peak}


def burst(size: Size) -> dict[str, Any]:
    """So many requests at the same moment."""
    with upstream(delay=MODEL_SECONDS) as model, rangevote(model, SAMPLES) as ours:
        closed(ours.port, post(PATH), 16, 64)
        before = ours.peak
        with Probe(ours.port, "/healthz") as probe:
            time.sleep(min(1.0, size.seconds / 4))
            load = closed(ours.port, post(PATH), size.burst, size.burst)
            time.sleep(min(1.0, size.seconds / 4))
        return load.told() | {"healthz": probe.told(), "before": before, "memory": ours.peak}


def long_samples(size: Size) -> dict[str, Any]:
    """64 samples of 20,000 words for every request, from two clients, and somebody who looks after it."""
    with (
        upstream(words=20_000, lists=1) as model,
        rangevote(model, 64, limits="response_bytes = 33554432\n") as ours,
    ):
        request = post(PATH)
        closed(ours.port, request, 1, 2)
        with Probe(ours.port, "/healthz") as probe:
            end, count, times = time.monotonic() + size.long, 0, list[float]()
            while time.monotonic() < end:
                load = closed(ours.port, request, 2, 4)
                count += load.statuses[200]
                times += load.seconds
        return {"answers": count, "p50": percentile(times, 0.5), "healthz": probe.told(), "memory": ours.peak}


def versions() -> dict[str, str]:
    """What is compared."""
    found = {name: version(name) for name in ("rangevote", "starlette", "uvicorn", "httpx")}
    asked = [OPTILLM / "python", "-c", "from importlib.metadata import version; print(version('optillm'))"]
    there = (OPTILLM / "optillm").exists()
    peer = subprocess.run(asked, capture_output=True, text=True).stdout.strip() if there else "(absent)"
    return {"Python": platform.python_version(), **found, "optillm": peer}


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description="Measure rangevote serve, and optillm beside it.")
    parser.add_argument("--render", action="store_true", help="only write the last run's page again")
    parser.add_argument("--quick", action="store_true", help="few requests; only prints its page")
    for name, default in vars(Size()).items():
        parser.add_argument(f"--{name}", type=type(default), help=f"instead of {default:,g}")
    return parser.parse_args()


def main() -> None:
    """Set optillm up, measure, write."""
    options = arguments()
    raw = RAW.with_name("service-quick.json") if options.quick else RAW
    SCRATCH.mkdir(exist_ok=True)
    if not options.render:
        subprocess.run([HERE / "setup_optillm.sh"], cwd=ROOT, check=False)
        sizes = vars(QUICK if options.quick else Size())
        chosen = {name: getattr(options, name) for name in sizes if getattr(options, name) is not None}
        data = measure(Size(**{**sizes, **chosen})) | {"quick": options.quick or bool(chosen)}
        raw.write_text(json.dumps(data, indent=1), encoding="utf-8")
    publish("service", raw, service_report.markdown, quick=options.quick)


if __name__ == "__main__":
    main()
