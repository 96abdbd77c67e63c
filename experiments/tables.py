"""Recorded numbers as tables, the paper's own beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.findings import Findings, group_of, in_order, label_of, mean, spread
from experiments.paper import ABSENT, AGAIN, EXACT_COPIES, PARTIAL_COPIES, SAMPLING, TABLES, Published
from rangevote.evaluation.metrics import Best, get_metric
from rangevote.evaluation.tables import Cell, Column, Table, TableRow, stars
from rangevote.tuning.grid import Setting

MAIN_GROUPS = ("baselines", "voting", "mbr", "beyond")


def beside_paper(found: Findings, metric: str, system: str | None = None) -> Table:
    """A metric of every method at every k: here (mean over seeds ± standard deviation), and in the paper."""
    system = system or found.main
    paper = TABLES[found.experiment].get(metric) if system == found.main else None
    ks = found.ks(system)
    best: Best = get_metric(metric).best
    columns = [_column(metric, f"k={k}", best, found.references(metric, system)) for k in ks]
    columns += [_paper_column(metric, paper, k, best) for k in paper.ks] if paper else []
    methods = in_order(found.methods(system), *MAIN_GROUPS)
    rows = []
    for method in methods:
        cells = [value_cell(found.values(metric, (method, k), system), metric) for k in ks]
        cells += [paper.at(method, k) for k in paper.ks] if paper else []
        rows.append(TableRow(label_of(method, found.experiment), cells, group_of(method)))
    rows += _reference_rows(found, metric, system, paper, len(ks))
    return Table(columns, rows, "beam size", title=_title(found, metric, system, paper))


def value_cell(values: Sequence[float], metric: str) -> Cell:
    """The mean, with the standard deviation behind it where there are several seeds."""
    apart = spread(values)
    shown = "" if apart is None else f" ±{apart:.{get_metric(metric).decimals}f}"
    return Cell(mean(values), shown)


def _column(metric: str, name: str, best: Best, target: float | None) -> Column:
    return Column(name, get_metric(metric).decimals, best, target)


def _paper_column(metric: str, paper: Published, k: int, best: Best) -> Column:
    return Column(f"paper k={k}", get_metric(metric).decimals, best, paper.references)


def _reference_rows(
    found: Findings, metric: str, system: str, paper: Published | None, width: int
) -> list[TableRow]:
    own = found.references(metric, system)
    if own is None:
        return []
    theirs = [paper.references] * len(paper.ks) if paper else []
    return [TableRow("references", [*[own] * width, *theirs], "references", competes=False)]


def _title(found: Findings, metric: str, system: str, paper: Published | None) -> str:
    where = f"here and in the paper (table {paper.table})" if paper else found.label(system)
    return f"{get_metric(metric).label}, {where}"


def sampling(found: Findings) -> Table:
    """One sample for each item: the deciding metric here and in the paper."""
    paper = SAMPLING[found.experiment]
    rows = [
        TableRow(
            label_of(method, found.experiment),
            [value_cell(found.values(found.metric, (method, 0)), found.metric), paper.get(method)],
        )
        for method in in_order(found.methods(found.main), "sampling")
    ]
    label = get_metric(found.metric).label
    return Table([Column("here"), Column("paper")], rows, "", f"{label} of sampling")


def comparisons(found: Findings, asked: Iterable[dict[str, Any]], title: str) -> Table:
    """Differences over all seeds, with intervals and p-values, and in how many seeds alone they hold."""
    names = ["ours", "theirs", "difference", "95 % interval", "p", "seeds with the same sign"]
    rows = []
    for one in asked:
        shown = one["all"]
        low, high = shown["interval"]
        same = sum((seed["difference"] > 0) == (shown["difference"] > 0) for seed in one["seeds"])
        texts = [
            f"{_point(found, one['ours'])}: {one['ours_mean']:.2f}",
            f"{_point(found, one['theirs'])}: {one['theirs_mean']:.2f}",
            f"{shown['difference']:+.2f}",
            f"[{low:.2f}, {high:.2f}]",
            f"{shown['p']:.4f}",
            f"{same} of {len(one['seeds'])}",
        ]
        cells = [Cell(text, stars(shown["p"]) if i == 4 else "") for i, text in enumerate(texts)]
        rows.append(TableRow(one["asked"], cells))
    return Table([Column(name) for name in names], rows, "question", title)


def _point(found: Findings, point: Sequence[Any]) -> str:
    return f"{label_of(point[0], found.experiment)}, k = {point[1]}"


def selections(found: Findings) -> Table:
    """What became of the winners of small beams, here and in the paper (section 4.2.1)."""
    first = found.of(found.main, found.seeds(found.main)[0])["selection"]
    columns = [
        Column(f"{group} {name}", 1) for name in ("absent (%)", "again (%)") for group in ("here", "paper")
    ]
    rows = []
    for one in first:
        method, k = one["method"], one["k"]
        listed = [
            other
            for seed in found.seeds(found.main)
            for other in found.of(found.main, seed)["selection"]
            if (other["method"], other["k"]) == (method, k)
        ]
        published = found.experiment == "translation"
        cells = []
        for name, paper in (("absent", ABSENT), ("again", AGAIN)):
            theirs = paper.get(method, {}).get(k) if published else None
            cells += [mean([other[name] for other in listed]), theirs]
        rows.append(TableRow(f"{label_of(method, found.experiment)}, k = {k}", cells))
    large = first[0]["large"] if first else 0
    return Table(columns, rows, "winners of", f"Winners of small beams in the beam of {large}")


def shares(found: Findings, system: str) -> list[Table]:
    """Outputs in percent: empty, copies of the source, cut by the length limit; a table for each."""
    known = found.settings["report"]["metrics"]
    wanted = ("empty", "exact_copies", "partial_copies", "partial_copies_by_bags")
    metrics = [metric for metric in wanted if metric in known]
    return [_share_table(found, system, metric) for metric in (*metrics, "unfinished")]


def _share_table(found: Findings, system: str, metric: str) -> Table:
    cut = metric == "unfinished"
    part = 100 / found.of(system, found.seeds(system)[0])["items"] if cut else 1.0
    ks = found.ks(system)
    rows = []
    for method in in_order(found.methods(system), *MAIN_GROUPS):
        values = [found.mean(metric, (method, k), system) for k in ks]
        cells = [None if value is None else part * value for value in values]
        rows.append(TableRow(label_of(method, found.experiment), cells, group_of(method)))
    label = "outputs cut by the length limit (%)" if cut else get_metric(metric).label
    paper = {"exact_copies": EXACT_COPIES, "partial_copies": PARTIAL_COPIES}.get(metric, {})
    shown = ", ".join(f"{value} at k = {k}" for k, value in paper.items())
    notes = [f"Beam search in the paper: {shown}."] if shown and system == found.main else []
    title = f"{label}, {found.label(system)}"
    return Table([Column(f"k={k}", decimals=1) for k in ks], rows, "beam size", title, notes)


def other_units(found: Findings) -> Table | None:
    """The main system's votes on other words; None where there are none."""
    title = f"{get_metric(found.metric).label} with other words as the voters' unit"
    return _variants(found, found.main, " (", title)


def other_lists(found: Findings, system: str) -> Table | None:
    """A system's votes on other lists than usual; None where there are none."""
    title = f"{get_metric(found.metric).label} of votes on another list: {found.label(system)}"
    return _variants(found, system, " on ", title)


def _variants(found: Findings, system: str, mark: str, title: str) -> Table | None:
    """Methods with `mark` in their name, each below the one that it is a variant of."""
    extra = [method for method in found.methods(system) if mark in method and not group_of(method)]
    ks = found.ks(system)
    bases = dict.fromkeys(method.partition(mark)[0] for method in extra)
    rows = [
        TableRow(
            method,
            [value_cell(found.values(found.metric, (method, k), system), found.metric) for k in ks],
            base,
        )
        for base in bases
        for method in (base, *(m for m in extra if m.partition(mark)[0] == base))
    ]
    return Table([Column(f"k={k}") for k in ks], rows, "beam size", title) if rows else None


def voters(found: Findings) -> Table | None:
    """Figure 3 as numbers; None where no seed has it. Of one seed alone the gain is beside them."""
    known = found.part("voters")
    if not known:
        return None
    numbers = sorted(
        {int(n) for one in known for by in one["curves"].values() for c in by.values() for n in c}
    )
    gains = known[0].get("gains", {}) if len(known) == 1 else {}
    rows = []
    for kind, measures in known[0]["curves"].items():
        for measure in measures:
            curves = [one["curves"][kind][measure] for one in known]
            points = [[curve[str(n)][found.metric] for curve in curves if str(n) in curve] for n in numbers]
            cells = [value_cell(values, found.metric) for values in points]
            cells += [difference_cell(gains[kind][measure])] if gains else []
            rows.append(TableRow(f"{measure}, voters by {kind}", cells, kind))
    title = f"{get_metric(found.metric).label} against the number of voters (figure 3)"
    notes = [f"The first {known[0]['items']} test items; {len(known)} seed{'s' if len(known) > 1 else ''}."]
    columns = [Column(str(n)) for n in numbers] + ([Column("most over fewest")] if gains else [])
    return Table(columns, rows, "voters", title, notes)


def difference_cell(found: Mapping[str, Any]) -> str:
    """A difference with its 95 % interval and p."""
    low, high = found["interval"]
    return f"{found['difference']:+.2f} [{low:.2f}, {high:.2f}], p = {found['p']:.4f}"


def sampled(found: Findings) -> Table | None:
    """Elections by sampled voters under every setting, on the development and the test set."""
    known = found.part("sampled")
    if not known:
        return None
    ks = sorted({int(k) for by_k in known[0]["settings"].values() for k in by_k})
    rows = []
    for name in known[0]["settings"]:
        dev = [one["development"]["means"].get(name) for one in known]
        values = [
            [float(one["settings"][name][str(k)][found.metric]) for one in known if name in one["settings"]]
            for k in ks
        ]
        means = [value for value in dev if value is not None]
        cells = [value_cell(means, found.metric), *(value_cell(some, found.metric) for some in values)]
        rows.append(TableRow(name, cells, name.partition(",")[0]))
    chosen = ", ".join(dict.fromkeys(one["development"]["chosen"] for one in known))
    columns = [_column(found.metric, "development", "highest", None)]
    columns += [_column(found.metric, f"k={k}", "highest", None) for k in ks]
    notes = [f"Development: the mean over k, by which was chosen: {chosen}."]
    title = f"{get_metric(found.metric).label} by sampled voters (L: own likelihood)"
    return Table(columns, rows, "setting", title, notes)


def tuned(found: Findings) -> Table | None:
    """Which settings the development set chose, for each k and seed; None where nothing was tuned."""
    names = ["chosen", "score", "95 % interval", "over overlap_2", "p", "left out", "within noise"]
    rows = []
    for seed in found.seeds(found.main):
        for k, one in found.of(found.main, seed).get("tuned", {}).items():
            low, high = one["interval"]
            texts = [
                Setting(**one["options"]).name,
                f"{one['score']:.2f}",
                f"[{low:.2f}, {high:.2f}]",
                f"{one['over_default']:+.2f}",
                f"{one['p']:.4f}",
                f"{one['gain_unseen']:+.2f}" if "gain_unseen" in one else "",
                "yes" if one["within_noise"] else "no",
            ]
            rows.append(TableRow(f"k = {k}, seed {seed}", list(texts), str(seed)))
    if not rows:
        return None
    notes = [
        "Scores are those of the development set, which the choice was made on. Left out: the gain over "
        "overlap_2 on ballots that a choice had not seen, mean over resamples."
    ]
    title = f"Settings tuned on the development set by {get_metric(found.metric).label}"
    return Table([Column(name) for name in names], rows, "tuned", title, notes)
