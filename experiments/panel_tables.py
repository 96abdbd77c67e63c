"""The chapter on panels of RESULTS.md, from results/panels-*.json and notes-panels.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.tables import difference_cell
from rangevote.evaluation.tables import Cell, Column, Table, TableRow, to_markdown

#: Names of what is compared, and of the panel of all members, in the results as on the page.
ALL = "all"
MEAN, BEST, ELECTED = "mean member", "best member", "elected"
EQUAL, AGREEMENT, LABELS = "equal shares", "shares by agreement", "best of the first half"
SHOWN = {"bleu": "BLEU", "chrf": "chrF"}
#: Searches of the part "ensemble"; the first is its default.
NORMALISED, BEAM = "length_normalised", "beam"
SEARCHES = {NORMALISED: "length-normalised", BEAM: "beam search"}
LIST_VOTE = "vote over the ensemble's beam"


def ensemble_name(mean: str, search: str) -> str:
    """An ensemble on the page."""
    return f"ensemble ({mean} mean), {SEARCHES[search]}"


def panel_name(search: str) -> str:
    """A panel of the same models on the page."""
    return f"panel, lists of {SEARCHES[search]}"


Found = Mapping[str, Any]


def section(results: Path, folder: Path) -> Iterator[str]:
    """The parts that are recorded; nothing where none is."""
    known = {name: results / f"panels-{name}.json" for name in ("choice", *PARTS)}
    known = {name: path for name, path in known.items() if path.is_file()}
    if not known:
        return
    found = {name: json.loads(path.read_bytes())["found"] for name, path in known.items()}
    yield "## Panels: several systems vote"
    notes = folder / "notes-panels.md"
    if notes.is_file():
        yield notes.read_text(encoding="utf-8")
    if "choice" in found:
        yield from choice(found["choice"])
    for name, make in PARTS.items():
        if name in found:
            yield from make(found[name])


def choice(found: Found) -> Iterator[str]:
    """Which settings were looked at, and where."""
    yield "### Which settings the panels vote with"
    beam = found["beam"]
    yield (
        f"{found['looked_at']} settings were tried, only on the two sets of these tables: similarities on "
        "WMT23 English-German; OPUS-MT's beam (k) and the temperature of its votes (T) on the first "
        "400 sentences of newstest2014. The first row of settings is the default. It is kept unless the "
        "setting with the highest BLEU + chrF is above it by both, each with p < 0.05. Chosen: "
        f"`{found['similarity']}`, k = {beam['k']}, T = {beam['temperature']:g}."
    )
    for name in ("wmt23-en-de", "newstest2014, lines 1 to 400"):
        yield settings_table(found[name], name)


def settings_table(by_metric: Mapping[str, Found], corner: str) -> str:
    """A row for each setting that was tried, with its difference to the default."""
    rows = []
    for setting in by_metric["bleu"]["values"]:
        cells = [Cell(by_metric[metric]["values"][setting]) for metric in SHOWN]
        against = [_asked(by_metric[m], setting, None) for m in SHOWN if setting not in (MEAN, BEST)]
        cells += [difference_cell(one) if one else Cell("") for one in against or (None, None)]
        rows.append(TableRow(setting, cells))
    columns = [Column(label) for label in SHOWN.values()]
    columns += [Column(f"{label}, over the first") for label in SHOWN.values()]
    return to_markdown(Table(columns, rows, corner))


def _asked(found: Found, ours: str, theirs: str | None) -> Found | None:
    """A difference; `theirs` None: to another setting."""
    for one in found["differences"]:
        if one["of"] == ours and (one["to"] == theirs or (theirs is None and one["to"] not in (MEAN, BEST))):
            return one
    return None


def standing(panels: Mapping[str, Found], corner: str, decimals: int = 2) -> str:
    """A row for each panel: the mean and the best member, the elected outputs, and the differences."""
    rows = [
        TableRow(
            name,
            [
                Cell(f"{found['ballots']:,}"),
                Cell(str(len(found["members"]))),
                Cell(f"{found['values'][MEAN]:.{decimals}f}"),
                Cell(f"{found['values'][BEST]:.{decimals}f} ({found['best_member']})"),
                Cell(f"{found['values'][ELECTED]:.{decimals}f}"),
                *(_difference(found, ELECTED, rival) for rival in (MEAN, BEST)),
            ],
        )
        for name, found in panels.items()
    ]
    columns = ["ballots", "members", MEAN, BEST, ELECTED, "elected - mean member", "elected - best member"]
    return to_markdown(Table([Column(name) for name in columns], rows, corner))


def _difference(found: Found, ours: str, theirs: str) -> Cell:
    one = _asked(found, ours, theirs)
    return Cell("") if one is None else difference_cell(one)


def translators(found: Found) -> Iterator[str]:
    """By references."""
    yield "### Translators, by references"
    yield (
        "Each member has one output (OPUS-MT its beam); all outputs stand for election; shares are equal. "
        "BLEU and chrF are sacreBLEU's, with the first reference (13a). Japanese has only chrF, because its "
        "tokeniser, MeCab, was not installed. The order of newstest2014's references was restored by "
        "alignment. Open LLMs are general language models whose weights are published (Aya23, CommandR-plus, "
        'Llama3-70B; for German also Phi-3-Medium). Online systems are ONLINE-A, B, G and W. "Without near '
        'copies" goes through the members in alphabetical order and leaves one out if it wrote the same '
        "text as a member that is kept in more than a quarter of the ballots (en-ca opusmt; en-id microsoft; "
        "WMT24 TranssionMT, for German also CycleL2). The best member is the best by these scores, which "
        "nobody knows beforehand."
    )
    for metric, label in SHOWN.items():
        panels = {
            _named(name, panel): by_metric[metric]
            for name, by_panel in found.items()
            for panel, by_metric in by_panel.items()
            if metric in by_metric
        }
        yield standing(panels, label)
    [name] = [name for name in found if name.startswith("newstest2014")]
    rivals = [one["to"] for one in found[name][ALL]["bleu"]["differences"]][2:]
    rows = []
    for rival in rivals:
        cells = [_difference(found[name][ALL][metric], ELECTED, rival) for metric in SHOWN]
        rows.append(TableRow(rival, cells))
    columns = [Column(f"{label}, elected - this") for label in SHOWN.values()]
    yield to_markdown(Table(columns, rows, name))


def _named(name: str, panel: str) -> str:
    return name if panel == ALL and not name.startswith("wmt24") else f"{name}, {panel}"


def people(found: Found) -> Iterator[str]:
    """By people."""
    yield "### Texts, judged by people"
    yield (
        "TED talks by expert MQM (0 is perfect), SummEval by expert ratings from 1 to 5, WMT24 "
        "English-Czech by human ESA from 0 to 100 on the segments and members that have it. Higher is "
        "better. The judgement of a text is the mean over all members that wrote it, since raters are "
        "noisy: a third of equal TED texts have different MQM. Only one of the online systems was rated. "
        "By the rule above, TED without near copies is without metricsystem3, metricsystem4, UEdin, "
        "VolcTrans-AT and VolcTrans-GLAT."
    )
    yield standing(found, "judged by")


def answers(found: Found) -> Iterator[str]:
    """GSM8K."""
    yield "### Answers: GSM8K"
    yield (
        "Per cent of questions that are answered right; no answer counts as wrong. The panels below 90, "
        "80 and 70 % have the members that are right less often than that on the first half of the 659 "
        "questions; nothing else was chosen there. Shares by agreement (`shares='agreement'`) are found "
        'without labels, on the same questions on which the members vote. "Best of the first half" is the '
        "member that you would choose with the labels of those 329 questions. The second half is the result; "
        "the first half and both halves are shown for completeness."
    )
    for half, by_panel in found.items():
        rows = []
        for panel, one in by_panel.items():
            values = one["values"]
            cells = [Cell(str(len(one["members"]))), Cell(f"{values[MEAN]:.1f}")]
            cells += [Cell(f"{values[BEST]:.1f} ({one['best_member']})")]
            cells += [Cell(f"{values[LABELS]:.1f}")]
            cells += [Cell(f"{values[name]:.1f}") for name in (EQUAL, AGREEMENT)]
            asked = ((AGREEMENT, EQUAL), (AGREEMENT, BEST), (EQUAL, BEST), (EQUAL, MEAN))
            rows.append(TableRow(panel, [*cells, *(_difference(one, *pair) for pair in asked)]))
        columns = ["members", MEAN, BEST, LABELS, EQUAL, AGREEMENT]
        columns += ["agreement - equal", "agreement - best", "equal - best", "equal - mean"]
        ballots = next(iter(by_panel.values()))["ballots"]
        yield to_markdown(Table([Column(c) for c in columns], rows, f"{half}, {ballots} questions"))


def judge(found: Found) -> Iterator[str]:
    """AlpacaEval."""
    yield "### Open questions: AlpacaEval by a stored judge"
    yield (
        "Per cent of wins over gpt4_1106_preview by the stored judge, which prefers long answers. To control "
        "for length, the elected text of each ballot is compared with the other text of the panel whose "
        "length in characters is nearest (the first of two equally near). The second panel leaves out the "
        "two FuseChat models, which are a generation younger than the others and known to be far ahead."
    )
    for panel, one in found.items():
        rows = []
        for name, value in one["values"].items():
            characters = one["characters"].get(name)
            rival = difference_cell(against) if (against := _asked(one, ELECTED, name)) else Cell("")
            label = f"{name} ({one['best_member']})" if name == BEST else name
            cells = [Cell(f"{value:.1f}"), Cell("" if characters is None else f"{characters:.0f}"), rival]
            rows.append(TableRow(label, cells))
        columns = [Column("wins (%)"), Column("characters"), Column("elected - this")]
        yield to_markdown(
            Table(columns, rows, f"{panel}, {len(one['members'])} members, {one['ballots']} questions")
        )


def ensemble(found: Found) -> Iterator[str]:
    """The rival that averages probabilities at every step."""
    yield "### An ensemble by probabilities"
    chosen = found["chosen"]
    yield (
        f"{len(found['dev_loss'])} seeds of Multi30k (label smoothing 0.1), which share a vocabulary. The "
        "ensemble averages their probabilities at every step of one search. In the panel, each model "
        "searches by itself, all hypotheses stand for election, and each model has an equal share of the "
        "vote. The models were trained again for this part, with the settings of the earlier ones (losses "
        "on the development set: "
        f"{', '.join(f'{loss:.4f}' for loss in found['dev_loss'].values())}). "
        f"{found['looked_at']} settings were tried, all at k = 10 on the development set. The first "
        "ensemble and the first panel are the defaults and are kept by the rule above. Chosen: "
        f"{chosen['ensemble']}; {chosen['panel']}. Members are the single models, in the first table with "
        "length normalisation."
    )
    yield settings_table(found["development"], "development set")
    for k, by_search in found["test"].items():
        rows = []
        for search, by_metric in by_search.items():
            for name in (MEAN, BEST):
                rows.append(_rival(f"{name}, {SEARCHES[search]}", by_metric, name, chosen))
        by_metric = by_search[NORMALISED]
        names = [name for name in by_metric["bleu"]["values"] if name not in (MEAN, BEST)]
        rows += [_rival(name, by_metric, name, chosen) for name in names]
        columns = [Column(label) for label in SHOWN.values()]
        columns += [Column(f"{label}, {ours} - this") for ours in chosen for label in SHOWN.values()]
        yield to_markdown(Table(columns, rows, f"test set, {k}"))


def _rival(label: str, by_metric: Mapping[str, Found], name: str, chosen: Mapping[str, str]) -> TableRow:
    """What a single model, an ensemble or a panel reaches, and how far the chosen ones are above it."""
    cells = [Cell(f"{by_metric[metric]['values'][name]:.2f}") for metric in SHOWN]
    cells += [_difference(by_metric[metric], ours, name) for ours in chosen.values() for metric in SHOWN]
    return TableRow(label, cells)


PARTS: dict[str, Callable[[Found], Iterator[str]]] = {
    "translators": translators,
    "people": people,
    "answers": answers,
    "judge": judge,
    "ensemble": ensemble,
}
