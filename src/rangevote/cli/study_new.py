"""`rangevote study new`: two systems' outputs in, a study out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rangevote.cli.compare import parse_systems
from rangevote.cli.notes import Notes, check_inputs
from rangevote.cli.options import Command, grouped
from rangevote.errors import SetupError, UsageError

if TYPE_CHECKING:
    from rangevote.study.making import Wishes
    from rangevote.study.pairs import Found
    from rangevote.study.plan import Plan


def wishes_options(command: Command) -> Command:
    """What the study should be like; the command gets `wishes`, a `rangevote.study.making.Wishes`."""
    options = {
        "items": click.option(
            "-n",
            "--items",
            type=int,
            default=500,
            show_default=True,
            help="How many to draw, as in the paper.",
        ),
        "annotators": click.option(
            "--annotators", type=int, default=1, show_default=True, help="How many people, with a link each."
        ),
        "per_item": click.option("--per-item", type=int, help="How many of them judge each item; else all."),
        "seed": click.option(
            "--seed", type=click.IntRange(min=0), default=12345, show_default=True, help="Of items and sides."
        ),
        "sides": click.option(
            "--sides", default="coin", show_default=True, help="coin, or balanced: half of every ten swapped."
        ),
        "checks": click.option(
            "--checks",
            type=int,
            default=0,
            show_default=True,
            help="Attention checks to add, hidden among items.",
        ),
        "repeats": click.option(
            "--repeats",
            type=int,
            default=0,
            show_default=True,
            help="Items to show twice: do people agree with themselves?",
        ),
        "pass_share": click.option(
            "--pass-share", type=float, help="Leave out who passes fewer of the checks, as 0.8; else nobody."
        ),
        "combine": click.option(
            "--combine",
            default="median",
            show_default=True,
            help="Several judgements of an item: or majority.",
        ),
        "show_identical": click.option(
            "--show-identical",
            is_flag=True,
            help="Show pairs of equal outputs too, which else are ties unseen.",
        ),
        "title": click.option("--title", help="Above the page."),
        "question": click.option("--question", help="Above the five answers."),
        "instructions": click.option("--instructions", metavar="FILE", help="Text that explains the task."),
    }
    return grouped(command, "wishes", options, _wishes)


def _wishes(instructions: str | None, **given: Any) -> Wishes:
    from rangevote.study.making import Wishes

    if instructions is not None:
        given["instructions"] = _read(Path(instructions))
    return Wishes(**{name: value for name, value in given.items() if value is not None})


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SetupError(f"cannot read {path}: {(error.strerror or str(error)).lower()}.") from None
    except UnicodeDecodeError:
        raise SetupError(f"cannot read {path}: it is not UTF-8.") from None


@click.command()
@click.argument("systems", nargs=-1, metavar="[NAME=]BASELINE [NAME=]CHALLENGER | PAIRS")
@click.option("-o", "--output", required=True, metavar="FILE", help="The study, as study.db.")
@click.option("--source", metavar="FILE", help="The inputs as text, one a line, or in JSON lines.")
@click.option(
    "--images", metavar="FILE|DIR", help="The inputs as pictures: paths, one a line; or DIR/ID.jpg."
)
@click.option("--image-root", metavar="DIR", help="Where pictures may lie; else beside the file of paths.")
@wishes_options
@click.option("--plain", is_flag=True, help="All files are text, even if it looks like JSON.")
@click.option("--force", is_flag=True, help="Replace a study in which nobody has judged.")
@click.option("-q", "--quiet", is_flag=True, help="No notes.")
def new(
    systems: tuple[str, ...],
    output: str,
    source: str | None,
    images: str | None,
    image_root: str | None,
    wishes: Wishes,
    plain: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Make a study of two systems' outputs.

    BASELINE and CHALLENGER are text, one output a line, or what `rangevote vote` wrote. PAIRS is JSON lines:
    {"id": "1", "outputs": {"beam": "...", "voted": "..."}, "source": "...", "image": "1.jpg"},
    or a campaign of Pearmut's with two systems.

    Everything is fixed here: items, sides, wording, how judgements are combined, who is left out. The study
    is complete when all have judged all their items.
    """
    from rangevote.study.archive import create
    from rangevote.study.making import make_study

    notes, place = Notes(quiet=quiet), Path(output)
    _check_place(place, force)
    found = _found(systems, source, images, image_root, plain)
    study, pictures = found.library.imported(make_study(found.systems, found.pairs, wishes))
    create(place, study, pictures)
    for line in told(study.plan, wishes.items):
        notes.tell(line)
    notes.tell(f"the study's digest is {study.digest()}; whoever registers the study can quote it.")
    notes.tell(f"show it to the annotators with: rangevote study serve {output}")


def _check_place(place: Path, force: bool) -> None:
    """Never throw judgements away."""
    if not place.exists():
        return
    from rangevote.study.snapshot import has_judgements

    if not force:
        raise SetupError(f"{place} exists already and is left as it is. Use --force to replace it.")
    if has_judgements(place):
        raise SetupError(
            f"{place} holds judgements, which --force does not throw away. Move it elsewhere first."
        )


def _found(
    systems: Sequence[str], source: str | None, images: str | None, root: str | None, plain: bool
) -> Found:
    from rangevote.study.pairs import pairs_of_outputs, read_pairs

    check_inputs([path for path in (*systems, source) if path])
    if len(systems) == 1:
        if source or images:
            raise UsageError(
                "--source and --images go with two files of outputs; pairs have their own fields."
            )
        return read_pairs(systems[0], root=root)
    if len(systems) > 2:
        raise UsageError(f"a study compares two systems, got {len(systems)}.")
    named = {system.label: system.path for system in parse_systems(systems)}
    return pairs_of_outputs(named, source=source, images=images, root=root, plain=plain)


def told(plan: Plan, wanted: int) -> list[str]:
    """What a study came to be."""
    drawn = f"{plan.items:,} items, drawn from {plan.available:,} with seed {plan.seed}"
    lines = [drawn if plan.items < plan.available else f"{plan.items:,} items, all there are"]
    if plan.items < wanted:
        lines[0] += f" (asked for {wanted:,})"
    if plan.automatic:
        lines.append(
            f"{plan.automatic:,} have identical outputs: they count as ties and are not shown "
            f"(--show-identical shows them)"
        )
    shown = plan.stop // plan.per_item
    many = f"; {plan.per_item} of {len(plan.annotators)} annotators judge each" if plan.per_item > 1 else ""
    twice = f", {plan.repeats:,} of them twice" if plan.repeats else ""
    lines.append(f"{shown:,} to judge{twice}, {plan.checks:,} attention checks{many}")
    return [f"{line}." for line in lines]
