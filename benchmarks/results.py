"""What was measured of elections -> the chapter `elections` of RESULTS.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from contestants import CONTESTANTS, LISTS, ROUNDS, SIZES
from speed import QUICK
from targets import Data, Row, megabytes, milliseconds, on_real_lists, tables, typical, winners

MARKS = {True: "yes", False: "**no**", None: "-"}
HEAD = """# How fast is rangevote?

{machine}

Times are CPU time (the process, its threads and children) for one election, from texts and
log-probabilities to the winner, on one thread, unless a row says otherwise. Every ratio comes from this
one run, with both sides on the same lists, in turn: the median of the rounds, and in brackets the lowest
and the highest.

![Time against k](results.png)
"""
REAL = """The first ballots of each file. Their texts are half as long as the generated ones, so what an
election costs whatever the length of its texts (checks, weights, the result: about 30 us) weighs more here;
and in German every text with an umlaut is encoded to UTF-8 first. That is where a row falls short.

"""
METHOD = """## How it was measured

* Our side ran in `.venv`, the peers in `.venv-peers`, each in one process that stays up: imports and
  objects that a user makes once are not counted, except under "start-up" and "file to file".
* In every round all contestants take their turn on the round's own lists: {lists}.
  A quick contestant goes over its lists until {quick} s of CPU are used; the median pass counts. Before
  each pass texts are parsed anew, so nothing kept in a string object carries over. The slow ones take
  part in the first rounds only; mbrs, and loops at k = 1,000, in one.
* "x" marks times scaled up from the first 20 candidates against all voters: the loop's cost is the same
  for each. mbrs' rows "1 worker" are set to rangevote's own BLEU (tokens at white space, no
  effective order) and spend the least CPU time it can; "as it comes" is 13a, `exp` smoothing, 8 workers.
* Growth: {turns} turns of k = 1,000 and 10,000, one right after the other; of each the fastest pass, since
  what other work on the machine takes from the caches would be measured as growth.
* Memory, each in a fresh process: "allocated" is the most that one election has allocated at a time,
  counted by memray; "resident" is what the system says, above what the process held with the lists loaded.
  Under a megabyte the latter is mostly chance (pages, and room freed before), so growth is judged by
  the former.
* File to file: whole commands, from start to exit, median of {file_rounds}, minus the same command on a
  file of one ballot; on one thread. Start-up: median of {start_rounds}.
"""


def markdown(data: Data) -> str:
    """The whole page."""
    parts = [HEAD.format(machine=machine_line(data))]
    for number, (title, rows) in enumerate(tables(data).items(), start=1):
        parts.append(f"## {number}. {title}\n\n{_targets(rows)}")
        if number == 5 and "error" not in data["files"]:
            parts.append(_file_note(data["files"]))
    parts += [_all_times(data), _memory(data), _agreement(data), _lists(data), _real(data)]
    file_rounds, start_rounds = (data[name].get("rounds", 0) for name in ("files", "start-up"))
    lists = ", ".join(f"{ROUNDS[k]} rounds of {LISTS[k]} at k = {k:,}" for k in SIZES)
    parts.append(
        METHOD.format(
            quick=QUICK,
            turns=len(data["growth"]),
            lists=lists,
            file_rounds=file_rounds,
            start_rounds=start_rounds,
        )
    )
    return "\n".join(part.rstrip() + "\n" for part in parts)


def machine_line(data: Data) -> str:
    """When, on what, and with what a run was made."""
    machine = data["machine"]
    load = " and ".join(f"{value:.1f}" for value in machine["load"])
    versions = ", ".join(f"{name} {number}" for name, number in data["versions"].items())
    return (
        f"{data['date']}, {machine['cpu']}, {machine['cores']} cores, {machine['system']}; "
        f"load average {load} before and after, {data['seconds'] / 60:.0f} minutes.\n{versions}."
    )


def _targets(rows: Sequence[Row]) -> str:
    return table(
        ("what", "must reach", "measured", "reached", "rangevote", "the other"),
        ((r.what, r.target, r.measured, MARKS[r.reached], r.ours, r.other) for r in rows),
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _file_note(files: Data) -> str:
    times = files["times"]
    tied = f", {files['ties']} tie with it: of equals rangevote takes the more probable"
    starts = {name: median(times[f"{name} one"]["cpu"]) for name in ("vote", "msgspec")}
    return (
        f"The file has {megabytes(files['bytes'])}. Start-up taken off: {starts['vote']:.2f} s of "
        f"`rangevote vote`, {starts['msgspec']:.2f} s of Python with msgspec. "
        f"{files['same']:,} of {files['ballots']:,} winners are those of the plain-Python version"
        f"{tied if files['ties'] else ''}."
    )


def _all_times(data: Data) -> str:
    rows = []
    for name, contestant in CONTESTANTS.items():
        cells = [contestant.label]
        for k in SIZES:
            seconds = typical(data, name, k)
            answers = data["speed"][name].get(str(k), [])
            scaled = any(a.get("extrapolated") for a in answers)
            failed = "failed" if answers else "-"
            cells.append(failed if seconds is None else milliseconds(seconds) + " x" * scaled)
        rows.append(cells)
    head = ("CPU time per election", *(f"k = {k:,}" for k in SIZES))
    missing = {
        f"{CONTESTANTS[name].label}: {answer['error']}"
        for name, sizes in data["speed"].items()
        for answers in sizes.values()
        for answer in answers
        if "error" in answer
    }
    notes = "".join(f"\n* not measured: {line}" for line in sorted(missing))
    return "## All times\n\n" + table(head, rows) + notes


def _memory(data: Data) -> str:
    rows = [
        (
            name,
            megabytes(found["input"]),
            megabytes(found["counted"]) if found["counted"] else "-",
            megabytes(found["grown"]),
            megabytes(found["peak"]),
        )
        for name, found in data["memory"].items()
        if "error" not in found
    ]
    head = ("one election", "input", "allocated above it", "resident above it", "peak of the process")
    return "## Memory\n\n" + table(head, rows)


def _agreement(data: Data) -> str:
    rows = [
        (
            pair,
            winners(found),
            f"{found['apart']:.1e} over {found['scores']:,} scores",
        )
        for pair, found in data["agreement"].items()
    ]
    return (
        "## Do they elect the same?\n\nmbrs computes in single precision. Scores lie in [0, 1].\n\n"
        + table(("pair", "same winner", "largest difference"), rows)
    )


def _lists(data: Data) -> str:
    return "## The generated lists\n\n" + _looks(
        {f"k = {int(k):,}": looks for k, looks in data["looks"].items()}
    )


def _looks(by_name: dict[str, Data]) -> str:
    rows = [
        (
            name,
            f"{looks['ballots']}",
            f"{looks['words']:.1f}",
            f"{looks['overlap with top-1']:.2f}",
            f"{looks['distinct bigrams']:,.0f}",
            f"{looks['share of top-1']:.3f}",
            f"{looks['sum of P']:.2g}",
        )
        for name, looks in by_name.items()
    ]
    head = ("means over", "ballots", "words per text", "words shared with the most probable")
    return table((*head, "distinct bigrams", "share of the most probable", "sum of P"), rows)


def _real(data: Data) -> str:
    title = "## Real n-best lists\n\n"
    if not data["real"]:
        return title + "Skipped: `../shared/data/nbest` is not there."
    rows = [
        (r.what, r.target, r.measured, MARKS[r.reached], r.ours, r.other, same, apart)
        for r, same, apart in on_real_lists(data)
    ]
    head = ("what", "must reach", "measured", "reached", "rangevote", "the other", "same winner")
    looks = {name: found["looks"] for name, found in data["real"].items()}
    return title + REAL + table((*head, "largest difference"), rows) + "\n" + _looks(looks)
