"""The part of the page that says how the numbers came about: settings, seeds, durations, versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.findings import Findings
from experiments.training.progress import duration
from rangevote.evaluation.metrics import METRICS
from rangevote.evaluation.tables import Cell, Column, Table, TableRow, escape_markdown, to_markdown


def settings_lines(found: Findings) -> str:
    """Lists and tables, as Markdown."""
    settings, run = found.settings, found.data["run"]
    vote, report = settings["vote"], settings["report"]
    other = f", once more on {vote['other_words']}" if vote["other_words"] else ""
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items() if version)
    lines = [
        f"- settings: `{found.experiment}-{found.data['scale']}.toml`; seeds {_list(found.data['seeds'])}; "
        f"test items {found.of(found.main, found.seeds(found.main)[0])['items']:,}",
        *(
            f"- {escape_markdown(found.label(name))} (`{name}`): {_training(found, name)}"
            for name in found.systems
        ),
        *(f"- search `{name}`: `{template}`" for name, template in settings["searches"].items()),
        f"- votes count n-grams of {vote['words']}{other}; lengths and diversity those of {report['words']}",
        f"- at most {settings['search']['max_new_tokens']} tokens an output; cut ones keep `finished: false`",
        *(f"- {escape_markdown(line)}" for line in _signatures(found)),
        f"- versions: {versions}",
    ]
    return "\n".join(lines) + "\n\n" + to_markdown(_durations(found))


def _list(values: list[Any]) -> str:
    return ", ".join(map(str, values))


def _training(found: Findings, system: str) -> str:
    """Options, and how the trainings ended."""
    options: Mapping[str, Any] = found.settings["systems"][system]["training"]
    told = ", ".join(f"{name} {value}" for name, value in options.items())
    losses = [f"{found.of(system, seed)['training']['dev_loss']:.3f}" for seed in found.seeds(system)]
    steps = [f"{found.of(system, seed)['training']['best_step']:,}" for seed in found.seeds(system)]
    seeds = ", ".join(found.seeds(system))
    return escape_markdown(
        f"{told}; development loss {', '.join(losses)} after {', '.join(steps)} steps (seeds {seeds})"
    )


def _signatures(found: Findings) -> list[str]:
    """Signatures of the metrics, one line for those that share one."""
    signed: dict[str, list[str]] = {}
    for name, signature in found.of(found.main, found.seeds(found.main)[0])["signatures"].items():
        signed.setdefault(signature, []).append(METRICS[name].label)
    return [f"{', '.join(labels)}: {signature}" for signature, labels in signed.items()]


def _durations(found: Findings) -> Table:
    """Of steps on one thread each; how many ran at a time does not show."""
    seconds: Mapping[str, Mapping[str, float]] = found.data["run"]["seconds"]
    kinds = list(dict.fromkeys(kind for by_kind in seconds.values() for kind in by_kind))
    rows = []
    for seed, by_kind in seconds.items():
        told = [duration(by_kind[kind]) if kind in by_kind else "" for kind in kinds]
        name = "all seeds" if seed == "all" else f"seed {seed}"
        rows.append(TableRow(name, [Cell(text) for text in (*told, duration(sum(by_kind.values())))]))
    columns = [Column(kind) for kind in (*kinds, "all steps")]
    threads, cores = found.settings["threads"], found.data["run"]["machine"]["cores"]
    notes = [
        f"Sums over steps of {threads} thread{'s' if threads > 1 else ''} each; {cores} cores were there."
    ]
    return Table(columns, rows, "", "Durations", notes)
