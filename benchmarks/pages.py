"""What rangevote's two pages take: to install, to start, to show, to judge on; a chapter of RESULTS.md.

.venv/bin/python benchmarks/pages.py             # everything; sets Potato up first. About 10 minutes
.venv/bin/python benchmarks/pages.py --quick     # 6 items, one round: does all of it work?
.venv/bin/python benchmarks/pages.py --render    # the page again, from the last run
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pages_install
import pages_judging
import pages_potato
import pages_rangevote
import pages_report
import pages_serving
from common import HERE, ROOT, SCRATCH, machine, publish, say

RAW = SCRATCH / "pages.json"
ITEMS, ROUNDS, STARTS = 60, 3, 5
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def measure(items: int, rounds: int, starts: int, install: dict[str, Any] | None) -> dict[str, Any]:
    """All measurements, as one dictionary; `install` are sizes of an earlier run, to be kept."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        raise SystemExit("no browser: install Chromium, and playwright from the `dev` extra")
    began, load = time.time(), os.getloadavg()[0]
    data: dict[str, Any] = {"items": items, "rounds": rounds}
    say("install")
    data["install"] = install or pages_install.measure()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        folder = Path(name)
        say("start-up and pages")
        data["servers"] = servers(browser, folder, starts)
        say("judging")
        data["judging"] = judging(browser, folder, items, rounds)
        data["versions"] = versions(data["install"], browser.version)
        browser.close()
    data["date"] = datetime.date.today().isoformat()
    data["machine"] = machine() | {"load": [load, os.getloadavg()[0]]}
    data["seconds"] = time.time() - began
    return data


def servers(browser: Any, folder: Path, starts: int) -> dict[str, Any]:
    """Start-up of all servers, and the election pages."""
    commands: dict[str, Any] = {
        f"show, {k:,} candidates": pages_serving.show(pages_serving.ballot_file(folder, k))
        for k in pages_serving.SIZES
    }
    small = folder / "small"
    small.mkdir()
    commands["study serve"] = pages_serving.study(pages_rangevote.new_study(small, items=60))
    found = pages_serving.start_ups(browser, folder, commands, starts)
    if not (pages_install.POTATO / "bin" / "potato").exists():
        return found | {"Potato": {"seconds": [], "pages": [], "error": "not installed"}}
    scale = next(iter(pages_potato.SETTINGS))
    pairs = pages_potato.set_up(folder / "potato", scale, items=60)
    return found | pages_serving.start_ups(browser, pairs, {"Potato": pages_potato.command}, starts)


def judging(browser: Any, folder: Path, items: int, rounds: int) -> dict[str, Any]:
    """All contestants in turn, each behind a server that stays up."""
    with ExitStack() as stack:
        path = pages_rangevote.new_study(folder, items)
        server = stack.enter_context(pages_serving.serving(pages_serving.study(path), folder))
        links = pages_serving.links(server, pages_rangevote.ANNOTATORS)
        contestants = pages_rangevote.contestants(path, links)
        missing = {}
        for number, name in enumerate(pages_potato.SETTINGS):
            place = pages_potato.set_up(folder / f"potato{number}", name, items)
            try:
                server = stack.enter_context(pages_serving.serving(pages_potato.command, place))
                contestants.append(pages_potato.contestant(name, place, server.address))
            except (RuntimeError, OSError) as error:
                missing[name] = {"rounds": [], "error": str(error).splitlines()[0]}
        return pages_judging.rounds(contestants, browser, items, rounds) | missing


def versions(install: dict[str, Any], chromium: str) -> dict[str, str]:
    """What is compared, and in which browser."""
    from importlib.metadata import version

    potato = install.get("potato", {"versions": {}})["versions"]
    return {
        "Python": platform.python_version(),
        "rangevote": version("rangevote"),
        **{name: version(name) for name in ("starlette", "uvicorn")},
        "Potato": potato.get("potato-annotation", "(absent)"),
        "Chromium": chromium,
        "playwright": version("playwright"),
    }


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description="Measure the pages, and Potato beside them.")
    parser.add_argument("--render", action="store_true", help="only write the last run's page again")
    parser.add_argument("--quick", action="store_true", help="6 items, one round; only prints its page")
    parser.add_argument("--no-install", action="store_true", help="keep the last run's sizes and environment")
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    return parser.parse_args()


def main() -> None:
    """Set Potato up, measure, write."""
    options = arguments()
    raw = RAW.with_name("pages-quick.json") if options.quick else RAW
    SCRATCH.mkdir(exist_ok=True)
    if not options.render:
        subprocess.run([HERE / "setup_potato.sh"], cwd=ROOT, check=False)
        kept = json.loads(raw.read_text())["install"] if options.no_install and raw.exists() else None
        items, rounds, starts = (6, 1, 1) if options.quick else (options.items, options.rounds, STARTS)
        data = measure(items, rounds, starts, kept) | {"quick": options.quick}
        raw.write_text(json.dumps(data, indent=1), encoding="utf-8")
    publish("pages", raw, pages_report.markdown, quick=options.quick)


if __name__ == "__main__":
    main()
