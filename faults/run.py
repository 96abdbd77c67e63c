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
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[0] = str(HERE.parent)  # the repository, not this folder
sys.path.insert(1, str(HERE.parent / "benchmarks"))  # its ballots

import scale_ballots  # noqa: E402

import rangevote as rv  # noqa: E402
from faults.trials import TRIALS, WAYS, Bench, Count, repeat, table  # noqa: E402

HEAD = """# Runs through faults

Written by `make faults`; do not edit. Each fault is brought about at a random point of `rangevote vote`; then
the run is continued, and its output compared with that of an undisturbed run, byte for byte. What is done
and what counts as lost: [trials.py](trials.py).
"""
#: Bytes of ballots: a run takes a second or two.
SIZE = 6 * 10**6


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, help="so often each, and print the table only")
    parser.add_argument("--only", choices=TRIALS, help="this fault alone")
    parser.add_argument("--seed", type=int, default=1, help="of the random points [1]")
    options = parser.parse_args()
    began, counts = time.monotonic(), dict[str, Count]()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "ballots.jsonl"
        scale_ballots.write(data, SIZE, numbered=False)
        bench = Bench(Path(folder), data, random.Random(options.seed))
        for name in [options.only] if options.only else TRIALS:
            counts[name] = repeat(bench, name, options.times or TRIALS[name][1])
            print(f"{name}: lost {len(counts[name].lost)}", file=sys.stderr, flush=True)
    if options.times is None and options.only is None:
        ways, minutes = ", ".join(way.name for way in WAYS), (time.monotonic() - began) / 60
        line = f"{datetime.date.today().isoformat()}, rangevote {rv.__version__}, seed {options.seed}"
        line += f", {minutes:.0f} minutes; {SIZE / 1e6:.0f} MB of ballots; in turn with {ways}."
        (HERE / "RESULTS.md").write_text(f"{HEAD}\n{line}\n\n{table(counts)}", encoding="utf-8")
    sys.stdout.write(table(counts))
    return 1 if any(count.lost for count in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
