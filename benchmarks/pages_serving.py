"""Servers in processes of their own: how long they take to answer, and how long a page takes to show."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import generate
from common import environment, say
from pages_install import rangevote

#: Seconds after which a server that does not answer counts as failed.
PATIENCE = 120.0
SIZES = (100, 1_000)
#: Stamps of the frames that show what the page has just marked as ready and as complete: a frame's callbacks
#: run before it is laid out and painted, a task after it.
STAMPS = """
window.stamps = {};
new MutationObserver(() => {
  for (const name of ["ready", "complete"]) {
    if (!(name in document.documentElement.dataset) || name in window.stamps) continue;
    window.stamps[name] = null;
    requestAnimationFrame(() => setTimeout(() => {
      window.stamps[name] = performance.now();
      if (window.stamps.ready && window.stamps.complete) document.documentElement.dataset.stamped = "";
    }));
  }
}).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-ready", "data-complete"] });
"""


class Server(NamedTuple):
    """A server that answers."""

    address: str
    seconds: float
    log: Path


@contextmanager
def serving(command: Callable[[int], Sequence[str | Path]], folder: Path) -> Iterator[Server]:
    """Start a server, `command(port)`, in a folder; `seconds` is the time to its first answered GET."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / f"{port}.log"
    with log.open("w") as file:
        began = time.perf_counter()
        process = subprocess.Popen(command(port), stdout=file, stderr=file, cwd=folder, env=environment())
    try:
        seconds = _answered(process, port, began, log)
        yield Server(f"http://127.0.0.1:{port}/", seconds, log)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answered(process: subprocess.Popen[bytes], port: int, began: float, log: Path) -> float:
    """Seconds from the start to the end of the first good answer."""
    while time.perf_counter() - began < PATIENCE:
        if process.poll() is not None:
            say(
                log.read_text(errors="replace")[-2000:]
            )  # not for the page: it may name places of this machine
            raise RuntimeError("the server ended before it answered")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            connection.request("GET", "/")
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                return time.perf_counter() - began
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.005)
    raise RuntimeError(f"the server did not answer within {PATIENCE:.0f} s")


def ballot_file(folder: Path, k: int) -> Path:
    """One ballot of `k` generated hypotheses."""
    path = folder / f"k{k}.jsonl"
    path.write_text("".join(generate.lines(generate.ballots(k, 1))), encoding="utf-8")
    return path


def show(path: Path) -> Callable[[int], list[str | Path]]:
    """`rangevote show` on a port."""
    return lambda port: [*rangevote(), "show", path, "--no-browser", "--port", str(port)]


def study(path: Path) -> Callable[[int], list[str | Path]]:
    """`rangevote study serve` on a port."""
    return lambda port: [*rangevote(), "study", "serve", path, "--port", str(port)]


def links(server: Server, number: int) -> list[str]:
    """The annotators' links, which `study serve` prints once it answers."""
    found: list[str] = []
    end = time.monotonic() + 10
    while len(found) < number and time.monotonic() < end:
        found = re.findall(r"http://\S+/#\S+", server.log.read_text())
        time.sleep(0.02)
    return found


def page_ready(browser: Any, address: str) -> dict[str, float]:
    """Milliseconds from the start of the navigation to the frame with the candidates, and with everything."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    try:
        page = context.new_page()
        page.add_init_script(STAMPS)
        page.goto(address)
        page.wait_for_selector("html[data-stamped]", timeout=PATIENCE * 1000)
        stamps: dict[str, float] = page.evaluate("window.stamps")
        stamps["rows"] = page.locator("#candidate-table tbody tr").count()
        return stamps
    finally:
        context.close()


def start_ups(
    browser: Any, folder: Path, commands: dict[str, Callable[[int], Sequence[str | Path]]], rounds: int
) -> dict[str, Any]:
    """Start every server in turn, `rounds` times after one that does not count; election pages are opened.

    Every page comes from a server that has counted nothing yet, in a browser context that has stored nothing.
    """
    found: dict[str, Any] = {name: {"seconds": [], "pages": []} for name in commands}
    for round_ in range(rounds + 1):
        for name, command in commands.items():
            if "error" in found[name]:
                continue
            try:
                with serving(command, folder) as server:
                    if round_:
                        found[name]["seconds"].append(server.seconds)
                    if round_ and name.startswith("show"):
                        found[name]["pages"].append(page_ready(browser, server.address))
            except (RuntimeError, OSError) as error:
                found[name]["error"] = str(error).splitlines()[0]
    return found
