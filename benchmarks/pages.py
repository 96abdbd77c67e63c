"""What rangevote's two pages take: to install, to start, to show, to judge on."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import mean, median
from typing import Any

import generate
import pages_judging as judging
from common import (
    PATIENCE,
    ROOT,
    SCRATCH,
    Command,
    Row,
    chapter,
    command_line,
    say,
    serving,
    spread,
    versions,
)

ITEMS, ROUNDS, STARTS = 30, 3, 5
SIZES = (100, 1_000)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
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
ABOUT = """`rangevote show` and `rangevote study serve` (the `web` extra) in Chromium, and beside the latter
Potato in an environment of its own. Wall time, one thing after the other. Install: what `du` says of
`site-packages` less that of an empty environment. Start-up: to the end of the first answer to `GET /`.
Pages: from the start of the navigation to the frame that shows the candidates, or the last part. Judging:
the annotator is a script, so this is what the pages themselves take; a fifth of the answers are ties; an
answer counts when the server has acknowledged it, and what was stored is compared with what was meant. A
key, a click and a drag are one action each."""

Data = dict[str, Any]


def measure_install() -> Data:
    """Kilobytes and packages of an empty environment, with rangevote, with its `web` extra, and Potato's."""
    folder = SCRATCH / "pages"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    fresh, log = folder / "venv", folder / "install.log"
    settings = os.environ | {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}

    def run(*command: str | Path) -> None:
        with log.open("a") as file:  # it may name hosts, so it is not shown
            subprocess.run(command, stdout=file, stderr=file, env=settings, cwd=ROOT, check=True)

    run(sys.executable, "-m", "venv", fresh)
    sizes = {"empty": _installed(fresh)}
    build = f"build-dir={folder / 'build'}"
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-C", build, "-w", folder, ROOT)
    wheel = next(folder.glob("rangevote-*.whl"))
    for name, extra in (("rangevote", ""), ("rangevote[web]", "[web]")):
        run(fresh / "bin" / "python", "-m", "pip", "install", f"{wheel}{extra}")
        sizes[name] = _installed(fresh)
    if judging.POTATO.exists():
        sizes["Potato"] = _installed(judging.POTATO.parent.parent)
    return sizes


def _installed(venv: Path) -> Data:
    site = venv / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    listed = subprocess.check_output([venv / "bin" / "python", "-m", "pip", "list", "--format=json"])
    versions = {one["name"].lower(): one["version"] for one in json.loads(listed)}
    kilobytes = int(subprocess.check_output(["du", "-sk", site], text=True).split()[0])
    return {"kilobytes": kilobytes, "versions": versions}


def show_command(folder: Path, k: int) -> Command:
    path = folder / f"k{k}.jsonl"
    path.write_text("".join(generate.lines(generate.ballots(k, 1))), encoding="utf-8")
    return lambda port: [*command_line(), "show", path, "--no-browser", "--port", str(port)]


def study_command(path: Path) -> Command:
    return lambda port: [*command_line(), "study", "serve", path, "--port", str(port)]


def page_ready(browser: Any, address: str) -> Data:
    """Milliseconds from the start of the navigation to the frame with the candidates, and with everything."""
    page = judging.new_page(browser, STAMPS)
    page.goto(address)
    page.wait_for_selector("html[data-stamped]", timeout=PATIENCE * 1000)
    stamps: Data = page.evaluate("window.stamps")
    stamps["rows"] = page.locator("#candidate-list > li").count()
    page.context.close()
    return stamps


def measure_servers(browser: Any, folder: Path, starts: int) -> Data:
    """Every server is started in turn, `starts` times after one that does not count; pages are opened."""
    commands: dict[str, tuple[Command, Path]] = {
        f"show, {k:,} candidates": (show_command(folder, k), folder) for k in SIZES
    }
    commands["study serve"] = study_command(judging.new_study(folder, 60)), folder
    if judging.POTATO.exists():
        scale = next(iter(judging.POTATOES))
        commands["Potato"] = judging.potato_command, judging.set_up_potato(folder / "potato", scale, 60)
    results: Data = {name: {"seconds": [], "pages": []} for name in commands}
    for round_ in range(starts + 1):
        for name, (command, place) in commands.items():
            with serving(command, place) as server:
                if round_:
                    results[name]["seconds"].append(server.seconds)
                if round_ and name.startswith("show"):
                    results[name]["pages"].append(page_ready(browser, server.address))
    return results


def measure_judging(browser: Any, folder: Path, items: int, rounds: int) -> Data:
    """All contestants in turn, each behind a server that stays up."""
    with ExitStack() as stack:
        path = judging.new_study(folder, items)
        study = stack.enter_context(serving(study_command(path), folder))
        links: list[str] = []
        while len(links) < judging.ANNOTATORS:
            links = re.findall(r"http://\S+/#\S+", study.log.read_text())
        contestants = [judging.study_contestant(path, links, at_once) for at_once in (False, True)]
        for number, name in enumerate(judging.POTATOES if judging.POTATO.exists() else ()):
            place = judging.set_up_potato(folder / f"potato{number}", name, items)
            server = stack.enter_context(serving(judging.potato_command, place))
            contestants.append(judging.potato_contestant(name, place, server.address))
        return judging.rounds(contestants, browser, items, rounds)


def measure(quick: bool) -> Data:
    items, rounds, starts = (6, 1, 1) if quick else (ITEMS, ROUNDS, STARTS)
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        raise SystemExit("no browser: install Chromium, and playwright from the `dev` extra")
    data: Data = {"items": items, "rounds": rounds, "install": {}}
    if not quick:
        say("install")
        data["install"] = measure_install()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with tempfile.TemporaryDirectory() as folder:
            say("start-up and pages")
            data["servers"] = measure_servers(browser, Path(folder), starts)
        with tempfile.TemporaryDirectory() as folder:
            say("judging")
            data["judging"] = measure_judging(browser, Path(folder), items, rounds)
        potato = data["install"].get("Potato", {"versions": {}})["versions"]
        data["versions"] = {
            "Python": platform.python_version(),
            **versions("rangevote", "starlette", "uvicorn", "playwright"),
            "Potato": potato.get("potato-annotation", "(absent)"),
            "Chromium": browser.version,
        }
        browser.close()
    return data


def page(data: Data) -> str:
    rows = [*_targets(data), *_install(data["install"]), *_start_up(data["servers"]), *_judging(data)]
    return chapter("What do the pages take?", ABOUT, data, {"": rows})


def _targets(data: Data) -> list[Row]:
    rows = []
    for name, one in data["servers"].items():
        if one["pages"] and "1,000" in name:
            ready, complete = ([page[part] / 1000 for page in one["pages"]] for part in ("ready", "complete"))
            measured = f"{spread(ready, '.2f', ' s')}, everything {spread(complete, '.2f', ' s')}"
            rows.append(Row(f"{name}: shown", "<= 2 s", measured, median(ready) <= 2.0))
    tie = max(_actions(data["judging"]["rangevote, digit saves at once"], tie=True))
    rows.append(Row("keystrokes for a tie, saved and the next item shown", "1", str(tie), tie == 1))
    return rows


def _install(install: Data) -> Iterator[Row]:
    (_, empty), *others = install.items() or [("", {})]
    for name, one in others:
        size = (one["kilobytes"] - empty["kilobytes"]) / 1024
        packages = len(set(one["versions"]) - set(empty["versions"]))
        yield Row(f"{name}: install", "", f"{size:.1f} MB, {packages} packages")


def _start_up(servers: Data) -> Iterator[Row]:
    for name, one in servers.items():
        yield Row(f"{name}: first answer", "", spread(one["seconds"], ".2f", " s"))


def _judging(data: Data) -> Iterator[Row]:
    speeds = {name: _per_minute(one) for name, one in data["judging"].items()}
    ours = next(iter(speeds.values()))
    for name, one in data["judging"].items():
        ratios = [a / b for a, b in zip(ours, speeds[name], strict=True)]
        tie, other = (f"{mean(_actions(one, tie)):.3g}" for tie in (True, False))
        right = sum(judged["right"] for judged in one["rounds"])
        given = sum(len(judged["values"]) for judged in one["rounds"])
        measured = f"{spread(speeds[name], '.0f')} a minute, the first is {median(ratios):.1f} x as quick"
        actions = f"{tie} actions for a tie, {other} for others; {right} of {given} stored as meant"
        yield Row(name, "", f"{measured}; {actions}")


def _actions(result: Data, tie: bool) -> list[int]:
    """The actions of all ties, or of all other answers, over the rounds."""
    pairs = [pair for one in result["rounds"] for pair in zip(one["actions"], one["values"], strict=True)]
    return [actions for actions, value in pairs if (value == 0) == tie]


def _per_minute(result: Data) -> list[float]:
    return [60 * len(one["seconds"]) / sum(one["seconds"]) for one in result["rounds"]]
