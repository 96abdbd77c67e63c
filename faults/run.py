"""Disturb runs of `rangevote vote` in every way of trials.py, and count what was lost (must be nothing).

.venv/bin/python faults/run.py                    # or: make faults; writes RESULTS.md beside this file
.venv/bin/python faults/run.py --times 2 --seed 7 # fewer; prints the table only
"""

from __future__ import annotations

import argparse
import datetime
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[0] = str(HERE.parent)  # the repository, not this folder
sys.path.insert(1, str(HERE.parent / "benchmarks"))  # its ballots

import scale_ballots  # noqa: E402

import rangevote as rv  # noqa: E402
from faults.cluster import Cluster, cluster  # noqa: E402
from faults.ray_trials import RAY_TRIALS  # noqa: E402
from faults.runs import WAYS, Bench  # noqa: E402
from faults.suite import Count, suite, table  # noqa: E402
from rangevote.errors import SetupError  # noqa: E402

#: How often each fault is to happen, over all ways to vote.
TIMES = {
    "killed": 120,
    "worker killed": 30,
    "disk full": 20,
    "input cut off": 20,
    "checkpoint damaged": 40,
    "two at once": 20,
    "Ray worker killed": 12,
    "Ray driver killed": 12,
}
HEAD = """# Runs through faults

Written by `make faults`; do not edit. Each fault is brought about at a random point of `rangevote vote`; then
the run is gone on with, and its output compared with that of an undisturbed run, byte for byte. What is done
and what counts as lost: [trials.py](trials.py).
"""
#: Bytes of ballots: a run takes a second or two.
SIZE = 6 * 10**6


def page(counts: Mapping[str, Count], seed: int, seconds: float) -> str:
    """The page of a whole run."""
    ways = ", ".join(way.name for way in WAYS)
    told = f"{datetime.date.today().isoformat()}, rangevote {rv.__version__}, seed {seed}"
    size = f"{seconds / 60:.0f} minutes; {SIZE / 1e6:.0f} MB of ballots; in turn with {ways}, or on Ray"
    return f"{HEAD}\n{told}, {size}.\n\n{table(counts)}"


def main() -> int:
    """Run, tell, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, help="so often each, and print the table only")
    parser.add_argument("--only", choices=TIMES, help="this fault alone")
    parser.add_argument("--seed", type=int, default=1, help="of the random points [1]")
    options = parser.parse_args()
    times = TIMES if options.times is None else dict.fromkeys(TIMES, options.times)
    if options.only is not None:
        times = {options.only: times[options.only]}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "ballots.jsonl"
        scale_ballots.write(data, SIZE, numbered=False)
        with ExitStack() as stack:
            ray: Cluster | str = ""
            try:
                if times.keys() & RAY_TRIALS:
                    ray = stack.enter_context(cluster())
            except SetupError as error:
                ray = " ".join(str(error).split())
            counts = suite(Bench(Path(folder), data, random.Random(options.seed), ray), times)
    if options.times is None and options.only is None:
        (HERE / "RESULTS.md").write_text(
            page(counts, options.seed, time.monotonic() - began), encoding="utf-8"
        )
    sys.stdout.write(table(counts))
    return 1 if any(count.lost for count in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
