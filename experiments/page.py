"""RESULTS.md, TABLES.md and their figures, from the recorded results alone (and the notes of
`notes-<experiment>.md`): what was found, and every number behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import tables
from experiments.claims import verdicts
from experiments.findings import BASELINES, Findings, in_order, label_of, mean, spread
from experiments.paper import TABLES
from experiments.samples import draw as draw_samples
from experiments.settings import EXPERIMENTS
from experiments.summary import summary
from experiments.training_record import duration
from rangevote.evaluation.metrics import get_metric
from rangevote.evaluation.plot import Curve, Panel, plot_curves
from rangevote.evaluation.tables import Column, Table, TableRow, escape_markdown, to_markdown
from rangevote.text import write_atomically

PAGE, TABLE_PAGE, FIGURES = "RESULTS.md", "TABLES.md", "figures"
_HEAD = """# Results of the paper's experiments

Made from `results/*.json` by `python experiments/run.py --render`. A test compares the two, so do not edit
this page; run the experiments. With several seeds, a number is the mean over seeds, followed by ± and the
standard deviation. The best number of a column is bold (for lengths, the one nearest to the references).
Baselines choose an output by its probability; voting elects one.

**When the records were made.** Elections of stored lists (samples of an LLM, agreement with people, panels,
own likelihood, copies, what samples are worth, captions by meaning) were run on 2026-11-19 with the default
unit `words` and with rounded scores. The ensemble by probabilities is of the same day, with models that were
trained for it.
The chapters on captions and translation (local, opus, again) were recorded on 2026-11-17 and in the night
after it: training and searching took hours, and the lists are not stored, so they were not run again. Their
votes count n-grams of words cut at white space (`space`), and their scores were not rounded. [On stored
lists](../docs/reference/similarities.md#units), `blend` elects the same captions by both units, and
translations whose quality differs within chance.
"""
_TABLES_HEAD = """# All tables of the paper's experiments

[RESULTS.md](RESULTS.md) says what was found. This page has the numbers of every method, k and system, the
settings and the durations. Stars: \\* p < 0.05, \\*\\* p < 0.01, \\*\\*\\* p < 0.001.
"""
_NOTHING = """
No run has been recorded yet. `make reproduce NAME=captions` and `make reproduce NAME=translation` make them.
"""


def recorded(results: Path) -> list[Findings]:
    """The experiments that have been run."""
    paths = [path for name in EXPERIMENTS for path in sorted(results.glob(f"{name}-*.json"))]
    return [Findings.read(path) for path in paths]


def write_page(results: Path, folder: Path) -> None:
    """The page and its figures, in `folder`."""
    for found in recorded(results):
        draw(found, folder / FIGURES)
    if (samples := results / "samples.json").is_file():
        draw_samples(json.loads(samples.read_bytes()), folder / FIGURES)
    for name, text in rendered(results, folder).items():
        with write_atomically(folder / name) as file:
            file.write(text.encode())


def rendered(results: Path, folder: Path) -> dict[str, str]:
    """The texts of the pages by their names; notes are looked for in `folder`."""
    every = recorded(results)
    blocks = [_HEAD, *(summary(every, results, folder) if every else [_NOTHING])]
    tables = [_TABLES_HEAD]
    for found in every:
        blocks += _findings(found, folder)
        tables += _numbers(found)
    pages = {PAGE: blocks, TABLE_PAGE: tables}
    return {name: "\n\n".join(map(str.rstrip, parts)) + "\n" for name, parts in pages.items()}


def _heading(found: Findings) -> str:
    return f"## {found.settings['title']} ({found.data['scale']})"


def _findings(found: Findings, folder: Path) -> Iterator[str]:
    """What an experiment found, block by block."""
    yield _heading(found)
    yield f"All numbers: [{TABLE_PAGE}]({TABLE_PAGE})."
    claims = _claims(found)
    if claims.rows:
        yield "### What the paper says, and what was found"
        yield to_markdown(claims)
    notes = folder / f"notes-{found.experiment}-{found.data['scale']}.md"
    if notes.is_file():
        yield notes.read_text(encoding="utf-8")
    yield from _figures(found)
    yield "### Significance"
    report = found.settings["report"]
    yield (
        f"Paired bootstrap ({report['resamples']:,} resamples, two-tailed) of "
        f"{escape_markdown(report['metric'])}, over all seeds with the same sentences drawn for each. The "
        "best measure and k are chosen on the test set, as in the paper, so the p-values of a best one are a "
        "little too small. "
        "\\* p < 0.05, \\*\\* p < 0.01, \\*\\*\\* p < 0.001."
    )
    best = [one for one in _comparisons(found) if "k =" not in one["asked"]]
    yield to_markdown(tables.comparisons(found, best, "Each at its best k"))


def _numbers(found: Findings) -> Iterator[str]:
    """Every number of an experiment, block by block."""
    yield _heading(found)
    yield from _tables(found)
    every = [one for one in _comparisons(found) if "k =" in one["asked"] and one["ours"][1] > 1]
    yield to_markdown(tables.comparisons(found, every, "Against the best baseline of each k"))
    yield from _other_systems(found)
    yield "### Settings and durations"
    yield settings_lines(found)


def _claims(found: Findings) -> Table:
    rows = [
        TableRow(claim.text, [claim.where, "yes" if verdict.holds else "no", verdict.numbers])
        for claim, verdict in verdicts(found)
    ]
    return Table([Column("section"), Column("found here"), Column("numbers")], rows, "claim")


def _tables(found: Findings) -> Iterator[str]:
    """The paper's tables in its order, then what it tells in the text."""
    yield "### Tables"
    known = found.settings["report"]["metrics"]
    published = [metric for metric in TABLES[found.experiment] if metric in known]
    for metric in published:
        yield to_markdown(tables.beside_paper(found, metric))
    if "chrf" in known:
        yield to_markdown(tables.beside_paper(found, "chrf"))
    if tables.sampling(found).rows:
        yield to_markdown(tables.sampling(found))
    yield from _shares(found, found.main)
    if tables.selections(found).rows:
        yield to_markdown(tables.selections(found))
    several = (tables.other_units, tables.tuned, tables.voters, tables.sampled)
    for table in (make(found) for make in several):
        if table is not None:
            yield to_markdown(table)


def _shares(found: Findings, system: str) -> Iterator[str]:
    """What occurs nowhere is a line, not in a table of zeros."""
    for table in tables.shares(found, system):
        if any(value for row in table.rows for value in row.values):
            yield to_markdown(table)
        else:
            yield f"**{escape_markdown(table.title)}**: none, whatever the method and k."


def _figures(found: Findings) -> Iterator[str]:
    drawn = pictures(found)
    if drawn:
        yield "### Figures"
    for name, picture in drawn.items():
        yield f"![{escape_markdown(picture.text)}]({FIGURES}/{name}.svg)"


def _comparisons(found: Findings) -> list[dict[str, Any]]:
    """The paper's questions, then those of every k."""
    compared: list[dict[str, Any]] = found.data["systems"][found.main]["comparisons"]
    return compared


def _other_systems(found: Findings) -> Iterator[str]:
    """Systems beside the main one: other label smoothing, copies in training."""
    others = [system for system in found.systems if system != found.main]
    if others:
        yield "### Other systems"
    for system in others:
        yield to_markdown(tables.beside_paper(found, found.metric, system))
        on_others = tables.other_lists(found, system)
        if on_others is not None:
            yield to_markdown(on_others)
        yield from _shares(found, system)


def settings_lines(found: Findings) -> str:
    """Lists and tables, as Markdown."""
    settings, run = found.settings, found.data["run"]
    vote, report = settings["vote"], settings["report"]
    other = f", and again of {vote['other_words']}" if vote["other_words"] else ""
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items() if version)
    lines = [
        f"- settings: `{found.experiment}-{found.data['scale']}.toml`; seeds {_list(found.data['seeds'])}; "
        f"test items {found.of(found.main, found.seeds(found.main)[0])['items']:,}",
        *(
            f"- {escape_markdown(found.label(name))} (`{name}`): {_training(found, name)}"
            for name in found.systems
        ),
        *(f"- search `{name}`: `{template}`" for name, template in settings["searches"].items()),
        f"- votes count n-grams of the unit `{vote['words']}`{other}; lengths and diversity count units of "
        f"{report['words']}",
        f"- at most {settings['search']['max_new_tokens']} tokens per output; cut ones are `finished: false`",
        *(f"- {escape_markdown(line)}" for line in _signatures(found)),
        f"- versions: {versions}",
    ]
    return "\n".join(lines) + "\n\n" + to_markdown(_durations(found))


def _list(values: list[Any]) -> str:
    return ", ".join(map(str, values))


def _training(found: Findings, system: str) -> str:
    """Options, and how the trainings ended."""
    options: Mapping[str, Any] = found.settings["systems"][system]["training"]
    if not options:
        return "published, not trained here"
    texts = ", ".join(f"{name} {value}" for name, value in options.items())
    losses = [f"{found.of(system, seed)['training']['dev_loss']:.3f}" for seed in found.seeds(system)]
    steps = [f"{found.of(system, seed)['training']['best_step']:,}" for seed in found.seeds(system)]
    seeds = ", ".join(found.seeds(system))
    return escape_markdown(
        f"{texts}; development loss {', '.join(losses)} after {', '.join(steps)} steps (seeds {seeds})"
    )


def _signatures(found: Findings) -> list[str]:
    """Signatures of the metrics, one line for those that share one."""
    signed: dict[str, list[str]] = {}
    for name, signature in found.of(found.main, found.seeds(found.main)[0])["signatures"].items():
        signed.setdefault(signature, []).append(get_metric(name).label)
    return [f"{', '.join(labels)}: {signature}" for signature, labels in signed.items()]


def _durations(found: Findings) -> Table:
    """Of steps on one thread each; how many ran at a time does not show."""
    seconds: Mapping[str, Mapping[str, float]] = found.data["run"]["seconds"]
    kinds = list(dict.fromkeys(kind for by_kind in seconds.values() for kind in by_kind))
    rows = []
    for seed, by_kind in seconds.items():
        texts = [duration(by_kind[kind]) if kind in by_kind else "" for kind in kinds]
        name = "all seeds" if seed == "all" else f"seed {seed}"
        rows.append(TableRow(name, [*texts, duration(sum(by_kind.values()))]))
    columns = [Column(kind) for kind in (*kinds, "all steps")]
    threads, cores = found.settings["threads"], found.data["run"]["machine"]["cores"]
    notes = [f"Sums over steps of {threads} thread{'s' if threads > 1 else ''} each, on {cores} cores."]
    return Table(columns, rows, "", "Durations", notes)


KINDS = ("svg", "png")
#: What is drawn of each experiment besides the deciding metric.
PANELS = ("length", "distinct_bigrams")
#: Few enough curves to tell apart; the tables have them all.
DRAWN = (
    *("beam", "beam_not_empty", "length_normalised", "diverse_decoding", "diverse_beam", "no_copy"),
    *("overlap_1", "overlap_2", "precision_2", "states", "smoothed_bleu_4", "blend", "tuned"),
)


@dataclass(frozen=True)
class Picture:
    """A figure of an experiment, and its caption."""

    panels: Sequence[Panel]
    x_label: str
    text: str


def pictures(found: Findings) -> dict[str, Picture]:
    """By the name of the file, without ending; a figure that would have no curve is left out."""
    name = f"{found.experiment}-{found.data['scale']}"
    every = {
        f"{name}-beam-size": Picture(
            against_k(found),
            "beam size k",
            "By beam size; baselines dashed, voting solid, references black",
        ),
        f"{name}-voters": Picture(
            against_voters(found),
            "number of voters",
            "By the number of voters for fixed candidates (figure 3)",
        ),
    }
    return {name: picture for name, picture in every.items() if picture.panels}


def draw(found: Findings, folder: Path) -> list[str]:
    """Write the figures of an experiment, as SVG and PNG; returns their names without ending."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = pictures(found)
    for name, picture in drawn.items():
        for kind in KINDS:
            plot_curves(picture.panels, folder / f"{name}.{kind}", x_label=picture.x_label)
    return list(drawn)


def against_k(found: Findings) -> list[Panel]:
    """A panel for each metric, a curve for each method; nothing where there is one k."""
    if len(found.ks(found.main)) < 2:
        return []
    known = found.settings["report"]["metrics"]
    metrics = [found.metric, *(m for m in PANELS if m in known)]
    methods = [
        m for m in in_order(found.methods(found.main), "baselines", "voting", "mbr", "beyond") if m in DRAWN
    ]
    return [
        Panel(
            get_metric(metric).label,
            [_curve(found, metric, method) for method in methods],
            found.references(metric),
        )
        for metric in metrics
    ]


def _curve(found: Findings, metric: str, method: str) -> Curve:
    ks = [k for k in found.ks(found.main) if found.values(metric, (method, k))]
    values = [found.values(metric, (method, k)) for k in ks]
    return _drawn(label_of(method, found.experiment), ks, values, baseline=method in BASELINES)


def _drawn(name: str, x: Sequence[int], values: Sequence[Sequence[float]], *, baseline: bool) -> Curve:
    y = [mean(several) or 0.0 for several in values]
    apart = [spread(several) for several in values]
    band = [(at - one, at + one) for at, one in zip(y, apart, strict=True) if one is not None]
    return Curve(name, x, y, baseline, None if None in apart else band)


def against_voters(found: Findings) -> list[Panel]:
    """A panel for each measure, a curve for each kind of voters; nothing where no seed has it."""
    known = found.part("voters")
    if not known:
        return []
    curves = known[0]["curves"]
    panels = []
    for measure in next(iter(curves.values())):
        lines = []
        for kind in curves:
            numbers = sorted(map(int, curves[kind][measure]))
            values = [[one["curves"][kind][measure][str(n)][found.metric] for one in known] for n in numbers]
            lines.append(_drawn(f"voters by {kind}", numbers, values, baseline=False))
        panels.append(Panel(f"{get_metric(found.metric).label}, {measure}", lines))
    return panels
