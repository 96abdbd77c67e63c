"""Measure one chapter of RESULTS.md and write it.

    make bench NAME=small
    .venv/bin/python benchmarks/run.py small --quick    # fewer rounds, nothing is installed or written
    .venv/bin/python benchmarks/run.py small --render   # the page again, from the last run
    .venv/bin/python benchmarks/run.py scale --size 1   # a large file of 1 GB instead of 10

A chapter is a module here with `measure(quick) -> data` and `page(data) -> Markdown`.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from common import CHAPTERS, HERE, PEERS, SCRATCH, machine, say, write_chapter

#: What a chapter is compared with, where setup.sh has to install that.
SETUP = {"elections": "peers", "comet": "peers", "pages": "potato", "service": "optillm"}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure one chapter of RESULTS.md and write it.")
    parser.add_argument("name", choices=CHAPTERS)
    parser.add_argument(
        "--quick", action="store_true", help="measure less, install nothing, and only print the page"
    )
    parser.add_argument("--render", action="store_true", help="write the last run's page again")
    parser.add_argument("--size", type=float, help="gigabytes of the large file, for scale; default: 10")
    options = parser.parse_args()
    if options.size is not None and (options.name != "scale" or options.size <= 0):
        parser.error("--size is for scale, and above 0")
    raw = SCRATCH / f"{options.name}{'-quick' if options.quick else ''}.json"
    if options.render and not raw.exists():
        raise SystemExit("nothing has been measured yet: run it without --render")
    if options.name in SETUP and not (options.quick or options.render):
        subprocess.run([HERE / "setup.sh", SETUP[options.name]], check=False)
    if options.name == "comet" and PEERS.exists() and Path(sys.prefix) != PEERS.parent.parent:
        os.execv(PEERS, [PEERS, *sys.argv])  # where unbabel-comet is
    # a module named `comet` would hide the package of that name
    chapter = importlib.import_module("comet_mbr" if options.name == "comet" else options.name)
    if not options.render:
        SCRATCH.mkdir(exist_ok=True)
        began, load = time.time(), os.getloadavg()[0]
        sizes = {} if options.size is None else {"size": options.size}
        data = chapter.measure(options.quick, **sizes)
        data["quick"] = options.quick
        data["date"] = datetime.date.today().isoformat()
        data["machine"] = machine() | {"load": [load, os.getloadavg()[0]]}
        data["seconds"] = time.time() - began
        raw.write_text(json.dumps(data, indent=1), encoding="utf-8")
    page = chapter.page(json.loads(raw.read_text(encoding="utf-8")))
    if options.quick:
        print(f"{page}\n**A quick run shows that everything works; its numbers mean little.**")
    else:
        write_chapter(options.name, page)
        say("wrote the chapter of RESULTS.md")


if __name__ == "__main__":
    main()
