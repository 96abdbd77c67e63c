"""What was measured of elections -> targets met or not, and the chapter `elections` of RESULTS.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from common import MARKS, machine_line, table
from contestants import CONTESTANTS, LISTS, QUICK, ROUNDS, SIZES

Data = dict[str, Any]
REAL_PAIRS = (
    ("overlap_2", "sacrebleu BLEU", 1_000),
    ("overlap_2", "plain overlap_2", 10),
    ("precision_2", "plain precision_2", 10),
    ("bleu_4", "sacrebleu BLEU", 800),
    ("chrf", "fastchrf", 12),
)


@dataclass(frozen=True)
class Row:
    """One comparison: what must be reached, what was measured, and both times."""

    what: str
    target: str
    measured: str
    reached: bool | None  # None: could not be measured
    ours: str
    other: str


def tables(data: Data) -> dict[str, list[Row]]:
    """The rows of every table, by title."""
    return {
        "overlap_2 and precision_2 from text, k = 100": _linear(data),
        "overlap_2, growth from k = 1,000 to 10,000": _growth(data),
        "bleu_4 and smoothed_bleu_4, exact": _bleu(data),
        "chrf, exact pairwise": [
            faster(data, "chrf", "fastchrf", 100, 12),
            faster(data, "chrf", "fastchrf", 1_000, 25),
        ],
        "`rangevote vote` file to file, overlap_2, 3,000 ballots x 100": _files(data["files"]),
        "start-up": _start_up(data["start-up"]),
    }


def _linear(data: Data) -> list[Row]:
    return [
        faster(data, "overlap_2", "sacrebleu BLEU", 100, 1_000),
        faster(data, "precision_2", "sacrebleu BLEU", 100, 1_000),
        faster(data, "overlap_2", "plain overlap_2", 100, 10),
        faster(data, "precision_2", "plain precision_2", 100, 10),
    ]


def _growth(data: Data) -> list[Row]:
    turns = data["growth"]
    if not turns:
        times = Row("CPU time", "<= 11 x", "not measured", None, "", "")
    else:
        each = [turn["10000"] / turn["1000"] for turn in turns]
        grown = median(each)
        times = Row(
            "CPU time",
            "<= 11 x",
            f"{grown:.1f} x ({min(each):.1f} to {max(each):.1f})",
            grown <= 11,
            f"{milliseconds(median(turn['1000'] for turn in turns))} at k = 1,000",
            f"{milliseconds(median(turn['10000'] for turn in turns))} at k = 10,000",
        )
    return [times, _memory_growth(data["memory"])]


def _memory_growth(memory: Data) -> Row:
    small, large = (memory[f"overlap_2, k = {k}"] for k in ("1,000", "10,000"))
    target = "no faster than the input"
    if "error" in small or "error" in large:
        return Row("memory", target, "not measured", None, "", "")
    counted = bool(small.get("counted") and large.get("counted"))
    key = "counted" if counted else "grown"
    grown, input_grown = large[key] / max(small[key], 1), large["input"] / small["input"]
    return Row(
        "memory allocated above the input" if counted else "resident memory above the input",
        target,
        f"{grown:.1f} x (input: {input_grown:.1f} x)",
        grown <= input_grown,
        f"{megabytes(small[key])} (input {megabytes(small['input'])}) at k = 1,000",
        f"{megabytes(large[key])} (input {megabytes(large['input'])}) at k = 10,000",
    )


def _bleu(data: Data) -> list[Row]:
    rows = [
        faster(data, "bleu_4", "sacrebleu BLEU", 100, 800),
        faster(data, "smoothed_bleu_4", "sacrebleu BLEU+1", 100, 800),
        faster(data, "bleu_4", "mbrs", 1_000, 1_200),
        faster(data, "smoothed_bleu_4", "mbrs", 1_000, 1_200),
        faster(data, "bleu_4", "mbrs same", 1_000, 1_200),
        faster(data, "smoothed_bleu_4", "mbrs same+1", 1_000, 1_200),
    ]
    for name in ("bleu_4", "smoothed_bleu_4"):
        memory = data["memory"][f"{name}, k = 1,000"]
        peak = memory.get("peak")
        measured = megabytes(peak) if peak else "not measured"
        what = f"{name}, peak of the whole process, k = 1,000"
        rows.append(Row(what, "< 200 MB", measured, peak and peak < 200e6, measured, ""))
    return rows


def faster(data: Data, mine: str, theirs: str, k: int, times: int) -> Row:
    """How many times as fast as `theirs` we are at one k."""
    what = f"{mine} against {CONTESTANTS[theirs].label}, k = {k:,}"
    answers = [data["speed"][name].get(str(k), []) for name in (mine, theirs)]
    return compare(what, finished(*answers), times, why(data, theirs, k))


def compare(what: str, pairs: list[tuple[Data, Data]], times: int | None, missing: str) -> Row:
    """The median ratio of the rounds that both had; without `times` nothing must be reached."""
    target = f">= {times:,} x" if times else "-"
    if not pairs:
        return Row(what, target, f"not measured: {missing}", None, "", "")
    ours, other = (median(pair[i]["cpu"] for pair in pairs) for i in (0, 1))
    each = [b["cpu"] / a["cpu"] for a, b in pairs]
    ratio = median(each)
    spread = f" ({factor(min(each))} to {factor(max(each))})" if len(each) > 1 else ""
    return Row(
        what,
        target,
        f"{factor(ratio)} x{spread}",
        ratio >= times if times else None,
        milliseconds(ours),
        milliseconds(other),
    )


def finished(mine: list[Data], theirs: list[Data]) -> list[tuple[Data, Data]]:
    """The answers of two contestants in the rounds that both finished."""
    pairs = zip(mine, theirs, strict=False)
    return [pair for pair in pairs if "error" not in pair[0] and "error" not in pair[1]]


def on_real_lists(data: Data) -> list[tuple[Row, str, str]]:
    """The same comparisons on the real lists: row, agreement, largest difference of scores."""
    rows = []
    for name, file in data["real"].items():
        for mine, theirs, times in REAL_PAIRS:
            row = compare(
                f"{name}: {mine} against {CONTESTANTS[theirs].label}",
                finished(file["answers"][mine], file["answers"][theirs]),
                times if file["k"] == 100 else None,
                "a library is missing",
            )
            same = CONTESTANTS[theirs].like == mine
            agreed = file["agreement"][theirs]
            rows.append((row, winners(agreed) if same else "-", f"{agreed['apart']:.0e}" if same else "-"))
    return rows


def winners(agreed: Data) -> str:
    """How often two elected the same."""
    tied = f", {agreed['ties']} tied" if agreed["ties"] else ""
    return f"{agreed['same']:,} of {agreed['lists']:,}{tied}"


def another(agreed: Sequence[Data | None]) -> str:
    """On how many lists another than the exact winner was elected, one that does not tie with it."""
    known = [one for one in agreed if one]
    lists = sum(one["lists"] for one in known)
    return f"{lists - sum(one['same'] + one['ties'] for one in known):,} of {lists:,}" if lists else "-"


def typical(data: Data, name: str, k: int) -> float | None:
    """CPU seconds per election, the median of the rounds."""
    done = [a["cpu"] for a in data["speed"][name].get(str(k), []) if "error" not in a]
    return median(done) if done else None


def why(data: Data, name: str, k: int) -> str:
    """Why there is no figure."""
    errors = [a["error"] for a in data["speed"][name].get(str(k), []) if "error" in a]
    return str(errors[0]) if errors else "not in the plan"


def _files(files: Data) -> list[Row]:
    if "error" in files:
        return [Row("rangevote vote", "<= 4 x", f"not measured: {files['error']}", None, "", "")]
    rows = []
    for clock, kind in (("cpu", "msgspec"), ("wall", "msgspec"), ("cpu", "msgspec typed")):
        votes, rewrites = (after_start(files["times"], name, clock) for name in ("vote", kind))
        each = [vote / alone for vote, alone in zip(votes, rewrites, strict=True)]
        ratio = median(each)
        judged = kind == "msgspec" and clock == "cpu"
        label = "msgspec, into classes" if kind == "msgspec typed" else kind
        rows.append(
            Row(
                f"against {label}, {'CPU' if clock == 'cpu' else 'wall'} time",
                "<= 4 x" if judged else "(for comparison)",
                f"{ratio:.2f} x ({min(each):.2f} to {max(each):.2f})",
                ratio <= 4 if judged else None,
                f"{median(votes):.2f} s",
                f"{median(rewrites):.2f} s",
            )
        )
    return rows


def after_start(times: Data, name: str, clock: str) -> list[float]:
    """What all the ballots took beyond what one ballot took, by round."""
    start = median(times[f"{name} one"][clock])
    return [took - start for took in times[f"{name} all"][clock]]


def _start_up(start_up: Data) -> list[Row]:
    if "error" in start_up:
        return [Row("start-up", "", f"not measured: {start_up['error']}", None, "", "")]
    wanted = {"help": ("`rangevote --help`", 0.3), "election": ("import and first election", 0.4)}
    rows = []
    for clock in ("cpu", "wall"):
        python = median(start_up["times"]["python"][clock])
        for name, (label, limit) in wanted.items():
            took = median(start_up["times"][name][clock])
            rows.append(
                Row(
                    f"{label}, {'CPU' if clock == 'cpu' else 'wall'} time",
                    f"< {limit} s more than `python -c pass`",
                    f"{took - python:.3f} s more",
                    took - python < limit,
                    f"{took:.3f} s",
                    f"{python:.3f} s",
                )
            )
    return rows


def milliseconds(seconds: float) -> str:
    """Three figures, with thousands apart."""
    value = seconds * 1e3
    return f"{value:,.0f} ms" if value >= 99.95 else f"{value:#.3g} ms"


def megabytes(size: float) -> str:
    """In units of 10^6 bytes."""
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e6:.2f} MB"


def factor(ratio: float) -> str:
    """A ratio, with as many figures as it deserves."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}"


HEAD = """# How fast is rangevote?

{machine}

Times are CPU time (the process, its threads and children) for one election, from texts and
log-probabilities to the winner, on one thread, unless a row says otherwise. Every ratio comes from this
one run, with both sides on the same lists, in turn: the median of the rounds, and in brackets the lowest
and the highest.

![Time against k](results.png)
"""
REAL = """The first ballots of each file. Their texts are half as long as the generated ones, so what an
election costs whatever the length of its texts (checks, weights, the result) weighs more here; and in German
every text with an umlaut is encoded to UTF-8 first.

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
* "elects another": on how many lists the winner is not that of the exact measure, ties aside; "on real
  lists": on those of the n-best files.
* Growth: {turns} turns of k = 1,000 and 10,000, one right after the other; of each the fastest pass, since
  what other work on the machine takes from the caches would be measured as growth.
* Memory, each in a fresh process: "allocated" is the most that one election has allocated at a time,
  counted by memray; "resident" is what the system says, above what the process had with the lists loaded.
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


def _targets(rows: Sequence[Row]) -> str:
    return table(
        ("what", "must reach", "measured", "reached", "rangevote", "the other"),
        ((r.what, r.target, r.measured, MARKS[r.reached], r.ours, r.other) for r in rows),
    )


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
        real = [file["agreement"].get(name) for file in data["real"].values()]
        rows.append([*cells, another([data["agreement"].get(name)]), another(real)])
    head = ("CPU time per election", *(f"k = {k:,}" for k in SIZES), "elects another", "on real lists")
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
            megabytes(memory["input"]),
            megabytes(memory["counted"]) if memory["counted"] else "-",
            megabytes(memory["grown"]),
            megabytes(memory["peak"]),
        )
        for name, memory in data["memory"].items()
        if "error" not in memory
    ]
    head = ("one election", "input", "allocated above it", "resident above it", "peak of the process")
    return "## Memory\n\n" + table(head, rows)


def _agreement(data: Data) -> str:
    rows = [
        (
            f"{CONTESTANTS[name].like}, {CONTESTANTS[name].label}",
            winners(agreed),
            f"{agreed['apart']:.1e} over {agreed['scores']:,} scores",
        )
        for name, agreed in data["agreement"].items()
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
    looks = {name: file["looks"] for name, file in data["real"].items()}
    return title + REAL + table((*head, "largest difference"), rows) + "\n" + _looks(looks)
