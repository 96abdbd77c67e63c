"""What was measured of elections -> targets met or not, and the chapter `elections` of RESULTS.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from common import Row, chapter, table
from contestants import CONTESTANTS, SIZES

Data = dict[str, Any]
#: Ours, the peer, at k = ..., and how many times as fast we must be.
TARGETS = (
    ("overlap_2", "sacrebleu BLEU", 100, 1_000),
    ("overlap_2", "plain overlap_2", 100, 10),
    ("precision_2", "plain precision_2", 100, 10),
    ("bleu_4", "sacrebleu BLEU", 100, 800),
    ("smoothed_bleu_4", "sacrebleu BLEU+1", 100, 800),
    ("bleu_4", "mbrs", 1_000, 1_200),
    ("bleu_4", "mbrs same", 1_000, 1_200),
    ("chrf", "fastchrf", 100, 12),
    ("chrf", "fastchrf", 1_000, 25),
)
#: The same on real lists of k = 100; those of k = 10 have no target.
REAL_PAIRS = (
    ("overlap_2", "sacrebleu BLEU", 1_000),
    ("overlap_2", "plain overlap_2", 10),
    ("bleu_4", "sacrebleu BLEU", 800),
    ("chrf", "fastchrf", 12),
)
ABOUT = """CPU time (the process, its threads and children) for one election, from texts and
log-probabilities to the winner, on one thread, imports not counted, unless a row says otherwise. Every
ratio comes from this one run: all take their turn on the same lists; the median of the rounds, lowest and
highest in brackets. `-` could not be measured. Growth is that of the fastest passes, memory is counted by
memray in fresh processes. "x" marks times scaled up from the first 20 candidates against all voters.
mbrs' rows "1 worker" are set to rangevote's own BLEU; "as it comes" is 13a, `exp` smoothing, 8 workers; it
computes in single precision. "Elects another" counts lists whose winner is not that of the exact measure,
ties aside. Texts of the real lists are half as long as the generated ones, so what an election costs
whatever the length of its texts weighs more there."""


def markdown(data: Data) -> str:
    """The whole page."""
    targets = [faster(data, *target) for target in TARGETS]
    targets += [*_real(data), *_growth(data), _peak(data["memory"]), *_start_up(data["start-up"])]
    tables = {
        "": targets,
        "Do they elect the same?": _agreement(data),
    }
    page = chapter("How fast is rangevote?", ABOUT, data, tables)
    return f"{page}\n## All times\n\n![Time against k](results.png)\n\n{_all_times(data)}"


def faster(data: Data, mine: str, theirs: str, k: int, times: int) -> Row:
    """How many times as fast as `theirs` we are at one k."""
    what = f"{mine} against {CONTESTANTS[theirs].label}, k = {k:,}"
    answers = [data["speed"][name].get(str(k), []) for name in (mine, theirs)]
    errors = [a["error"] for a in answers[1] if "error" in a]
    return compare(what, finished(*answers), times, errors[0] if errors else "not in the plan")


def compare(what: str, pairs: list[tuple[Data, Data]], times: int | None, missing: str) -> Row:
    """The median ratio of the rounds that both had; without `times` nothing must be reached."""
    must = f">= {times:,} x" if times else ""
    if not pairs:
        return Row(what, must, f"not measured: {missing}")
    ours, other = (median(pair[i]["cpu"] for pair in pairs) for i in (0, 1))
    each = [b["cpu"] / a["cpu"] for a, b in pairs]
    ratio = median(each)
    between = f" ({factor(min(each))} to {factor(max(each))})" if len(each) > 1 else ""
    both = f"{milliseconds(ours)} against {milliseconds(other)}"
    return Row(what, must, f"{factor(ratio)} x{between}, {both}", ratio >= times if times else None)


def finished(mine: list[Data], theirs: list[Data]) -> list[tuple[Data, Data]]:
    """The answers of two contestants in the rounds that both finished."""
    pairs = zip(mine, theirs, strict=False)
    return [pair for pair in pairs if "error" not in pair[0] and "error" not in pair[1]]


def _growth(data: Data) -> Iterator[Row]:
    """From k = 1,000 to 10,000."""
    must, turns, grows = "<= 11 x", data["growth"], "overlap_2, k = 10,000 against 1,000"
    if not turns:
        yield Row(f"{grows}: CPU time", must, "not measured")
    else:
        each = [turn["10000"] / turn["1000"] for turn in turns]
        times = " to ".join(milliseconds(median(turn[k] for turn in turns)) for k in ("1000", "10000"))
        measured = f"{median(each):.1f} x ({min(each):.1f} to {max(each):.1f}), {times}"
        yield Row(f"{grows}: CPU time", must, measured, median(each) <= 11)
    small, large = (data["memory"][f"overlap_2, k = {k}"] for k in ("1,000", "10,000"))
    must = "no faster than the input"
    if "error" in small or "error" in large:
        yield Row(f"{grows}: memory", must, "not measured")
        return
    counted = bool(small.get("counted") and large.get("counted"))
    key = "counted" if counted else "grown"
    grown, input_grown = large[key] / max(small[key], 1), large["input"] / small["input"]
    what = f"{grows}: {'memory allocated' if counted else 'resident memory'} above the input"
    sizes = f"{megabytes(small[key])} to {megabytes(large[key])}"
    yield Row(what, must, f"{grown:.1f} x (input: {input_grown:.1f} x), {sizes}", grown <= input_grown)


def _peak(memory: Data) -> Row:
    peak = memory["bleu_4, k = 1,000"].get("peak")
    what = "bleu_4, peak of the whole process, k = 1,000"
    measured = megabytes(peak) if peak else "not measured"
    return Row(what, "< 200 MB", measured, peak < 200e6 if peak else None)


def _start_up(start_up: Data) -> Iterator[Row]:
    wanted = {"help": ("`rangevote --help`", 0.3), "election": ("import and first election", 0.4)}
    python = median(start_up["python"])
    for name, (label, limit) in wanted.items():
        more = median(start_up[name]) - python
        what = f"{label}, CPU time more than `python -c pass`"
        yield Row(what, f"< {limit} s", f"{more:.3f} s", more < limit)


def _real(data: Data) -> Iterator[Row]:
    """Of each pair its slowest file of k = 100, and the ratios at k = 10."""
    if not data["real"]:
        yield Row("skipped", "", "`../shared/data/nbest` is not there")
        return
    for mine, theirs, times in REAL_PAIRS:
        ratios: dict[int, list[float]] = {10: [], 100: []}
        for file in data["real"].values():
            pairs = finished(file["answers"][mine], file["answers"][theirs])
            ratios[file["k"]] += [median(b["cpu"] / a["cpu"] for a, b in pairs)] if pairs else []
        what = f"real lists: {mine} against {CONTESTANTS[theirs].label}, k = 100"
        large, small = (" and ".join(f"{factor(one)} x" for one in ratios[k]) for k in (100, 10))
        measured = f"{large or 'not measured'}; k = 10: {small or 'not measured'}"
        yield Row(what, f">= {times:,} x", measured, min(ratios[100]) >= times if ratios[100] else None)


def _agreement(data: Data) -> Iterator[Row]:
    for name, agreed in data["agreement"].items():
        if "approximate" in CONTESTANTS[name].label or "NLTK" in name:
            continue
        tied = f", {agreed['ties']} tied" if agreed["ties"] else ""
        apart = f"scores at most {agreed['apart']:.1e} apart over {agreed['scores']:,}"
        what = f"{CONTESTANTS[name].like}, {CONTESTANTS[name].label}"
        if not agreed["lists"]:
            yield Row(what, "all", "not measured")
            continue
        measured = f"{agreed['same']:,} of {agreed['lists']:,}{tied}; {apart}"
        yield Row(what, "all", measured, agreed["same"] + agreed["ties"] == agreed["lists"])


def _all_times(data: Data) -> str:
    """CPU time of every contestant at every k, and how often it elects another."""
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
    return table(head, rows)


def typical(data: Data, name: str, k: int) -> float | None:
    """CPU seconds per election, the median of the rounds."""
    done = [a["cpu"] for a in data["speed"][name].get(str(k), []) if "error" not in a]
    return median(done) if done else None


def another(agreed: Sequence[Data | None]) -> str:
    """On how many lists another than the exact winner was elected, one that does not tie with it."""
    known = [one for one in agreed if one]
    lists = sum(one["lists"] for one in known)
    return f"{lists - sum(one['same'] + one['ties'] for one in known):,} of {lists:,}" if lists else "-"


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
