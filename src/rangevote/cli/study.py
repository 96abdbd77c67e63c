"""`rangevote study`: people judge pairs of outputs, as in section 4.1.4 of the paper."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rangevote.cli.compare import parse_systems
from rangevote.cli.options import HelpCommand, epilog, format_by_name
from rangevote.cli.output import write_output
from rangevote.cli.progress import Notes, check_inputs
from rangevote.errors import SetupError, UsageError, need
from rangevote.text import regular_file

if TYPE_CHECKING:
    from rangevote.study.create import PairFiles
    from rangevote.study.plan import StudyPlan
    from rangevote.study.store import Store

#: Fixed, so that links stay valid when the server is started again.
PORT = 8710
#: Addresses that stand for all of the machine's.
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104


@click.group(epilog=epilog("rangevote study new beam.jsonl winners.jsonl --source source.txt -o study.db"))
def study() -> None:
    """Let people judge two systems' outputs, side by side and blind.

    new makes a study of two files of outputs; serve shows it to the annotators, each under a secret link;
    report gives the result, with exact sign tests; export gives the judgements.
    """


@study.command(
    cls=HelpCommand,
    sections={
        "Study": (
            *("--items", "--annotators", "--per-item", "--seed", "--sides", "--checks", "--repeats"),
            *("--pass-share", "--combine", "--show-identical", "--title", "--question", "--instructions"),
            *("--mark-differences", "--completion-code"),
        )
    },
    example="rangevote study new beam.jsonl winners.jsonl --source source.txt -n 100 -o study.db",
)
@click.argument("systems", nargs=-1, metavar="[NAME=]BASELINE [NAME=]CHALLENGER | PAIRS")
@click.option("-o", "--output", required=True, metavar="FILE", help="The study, as study.db.")
@click.option("--source", metavar="FILE", help="The inputs as text, one a line, or in JSON lines.")
@click.option("--images", metavar="FILE|DIR", help="The inputs as images: paths, one a line; or DIR/ID.jpg.")
@click.option("--image-root", metavar="DIR", help="Where images may lie; else beside the file of paths.")
@click.option(
    "-n", "--items", type=int, default=500, show_default=True, help="How many to draw, as in the paper."
)
@click.option(
    "--annotators", type=int, default=1, show_default=True, help="How many people, with a link each."
)
@click.option("--per-item", type=int, help="How many of them judge each item; else all.")
@click.option(
    "--seed", type=click.IntRange(min=0), help="Seed of items, order and sides; otherwise drawn at random."
)
@click.option(
    "--sides", default="coin", show_default=True, help="coin, or balanced: half of every ten swapped."
)
@click.option(
    "--checks", type=int, default=0, show_default=True, help="Attention checks to add, hidden among items."
)
@click.option(
    "--repeats",
    type=int,
    default=0,
    show_default=True,
    help="Items to show twice: do people agree with themselves?",
)
@click.option(
    "--pass-share", type=float, help="Leave out who passes fewer of the checks, as 0.8; else nobody."
)
@click.option(
    "--combine", default="median", show_default=True, help="Several judgements of an item: or majority."
)
@click.option(
    "--show-identical", is_flag=True, help="Show pairs of equal outputs too; else they count as ties unseen."
)
@click.option(
    "--mark-differences",
    "differences",
    is_flag=True,
    help="Mark the words in which the two outputs differ; annotators can switch it off.",
)
@click.option("--completion-code", metavar="CODE", help="Shown to each annotator who has finished.")
@click.option("--title", help="Above the page.")
@click.option("--question", help="Above the five answers.")
@click.option("--instructions", metavar="FILE", help="Text that explains the task.")
@click.option("--plain", is_flag=True, help="All files are text, even if it looks like JSON.")
@click.option("--force", is_flag=True, help="Replace a study in which nobody has judged.")
@click.option("-q", "--quiet", is_flag=True, help="No notes.")
def new(
    systems: tuple[str, ...],
    output: str,
    source: str | None,
    images: str | None,
    image_root: str | None,
    instructions: str | None,
    plain: bool,
    force: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Make a study of two systems' outputs.

    BASELINE and CHALLENGER are text, one output a line, or what `rangevote vote` wrote. PAIRS is JSON lines:
    {"id": "1", "outputs": {"beam": "...", "voted": "..."}, "source": "...", "image": "1.jpg"}.

    Everything is fixed here: items, sides, wording, how judgements are combined, who is left out. The study
    is complete when all have judged all their items.
    """
    from rangevote.study.create import StudyOptions, make_study
    from rangevote.study.store import create_file

    if instructions is not None:
        options["instructions"] = _read(Path(instructions))
    wanted = StudyOptions(**{name: value for name, value in options.items() if value is not None})
    notes, path = Notes(quiet=quiet), Path(output)
    _check_replaceable(path, force)
    files = _pairs(systems, source, images, image_root, plain)
    made, loaded = files.load_images(make_study(files.systems, files.pairs, wanted))
    create_file(path, made, loaded)
    for line in _summary(made.plan, wanted.items):
        notes.tell(line)
    notes.tell(f"the study's digest is {made.digest()}; whoever registers the study can quote it.")
    notes.tell(f"show it to the annotators with: rangevote study serve {output}")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SetupError(f"cannot read {path}: {(error.strerror or str(error)).lower()}.") from None
    except UnicodeDecodeError:
        raise SetupError(f"cannot read {path}: it is not UTF-8.") from None


def _check_replaceable(path: Path, force: bool) -> None:
    """Never throw judgements away."""
    if not regular_file(path).exists():
        return
    from rangevote.study.store import has_judgements

    if not force:
        raise SetupError(f"{path} exists already and is left as it is. Use --force to replace it.")
    if has_judgements(path):
        raise SetupError(
            f"{path} holds judgements, which --force does not throw away. Move it elsewhere first."
        )


def _pairs(
    systems: Sequence[str], source: str | None, images: str | None, root: str | None, plain: bool
) -> PairFiles:
    from rangevote.study.create import pairs_of_outputs, read_pairs

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


def _summary(plan: StudyPlan, wanted: int) -> list[str]:
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


@study.command(
    cls=HelpCommand,
    sections={"Network": ("--port", "--host", "--public", "--allow-host", "--proxy")},
    example="rangevote study serve study.db",
)
@click.argument("file", metavar="STUDY")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any that is free."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--public", is_flag=True, help="Allow an address that others can reach.")
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="A name that browsers may use; the first is in the links.",
)
@click.option(
    "--proxy",
    metavar="ADDRESS",
    help="Address of your reverse proxy, whose X-Forwarded-For header is believed; otherwise no one's is.",
)
@click.option("-q", "--quiet", is_flag=True, help="Nothing but the links.")
def serve(
    file: str,
    port: int,
    host: str,
    public: bool,
    allow_host: tuple[str, ...],
    proxy: str | None,
    quiet: bool,
) -> None:
    """Show STUDY to its annotators until Ctrl-C. Prints a secret link for each on standard error.

    Stop and start it at any time: every judgement is on the disk before the page says so, and the pages go on
    by themselves. A backup, STUDY.backup, is made at each start and end.
    """
    need("starlette", "web", "showing a study")
    from rangevote.study.app import study_app
    from rangevote.study.store import Store
    from rangevote.web.serving import bound, is_local
    from rangevote.web.serving import serve as run

    if not is_local(host) and not public:
        raise UsageError(
            f"--host {host} lets others reach the study over an open line. If that is meant, add --public, "
            f"and --allow-host NAME with the name that they use."
        )
    if host in EVERYWHERE and not allow_host:
        raise UsageError(
            f"--host {host} stands for all addresses of this machine; add --allow-host NAME with the name or "
            f"address that browsers use."
        )
    notes = Notes(quiet=quiet)
    store = Store(Path(file))
    try:
        _back_up(store, notes)
        listening = bound(host, port)
        name = allow_host[0] if allow_host and not is_local(host) else host
        address = f"http://{_bracketed(name)}:{listening.getsockname()[1]}"
        names = allow_host if host in EVERYWHERE else (*allow_host, _bracketed(host))
        app = study_app(store, hosts=names)
        if proxy is not None:
            from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

            app = ProxyHeadersMiddleware(app, trusted_hosts=proxy)  # type: ignore[arg-type,assignment]
        run(app, listening, ready=lambda: _print_links(store, address, notes))
        _back_up(store, notes)
    finally:
        store.close()


def _back_up(store: Store, notes: Notes) -> None:
    """A backup that fails is a warning: people can judge without it."""
    try:
        store.back_up()
    except SetupError as error:
        notes.warn(str(error))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _print_links(store: Store, address: str, notes: Notes) -> None:
    from rangevote.study.app import runner_token

    notes.tell(f"serving {store.path}; each annotator has a link of their own, which is a secret:")
    for annotator in store.study.annotators:
        click.echo(f"{annotator.name}  {address}/#{annotator.token}", err=True)
    notes.tell("how far everybody is, for you alone:")
    click.echo(f"progress  {address}/progress#{runner_token(store.study.annotators)}", err=True)
    notes.tell("press Ctrl-C to stop.")


@study.command(cls=HelpCommand, example="rangevote study report study.db --to html -o report.html")
@click.argument("file", metavar="STUDY")
@click.option(
    "--to",
    "format",
    type=click.Choice(["text", "markdown", "latex", "json", "html"]),
    default="text",
    show_default=True,
    help="html: a page in one file.",
)
@click.option("-o", "--output", metavar="FILE", help="Where to write; standard output if not given.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def report(file: str, format: str, output: str | None, force: bool) -> None:
    """Report the result of STUDY: a verdict in words, sign tests, answers, agreement, disputed items,
    annotators, sides, attention checks.

    It can be asked for at any time; before the study is complete it says so.
    """
    from rangevote.study.analysis import analyse
    from rangevote.study.report import as_data, as_html, as_text
    from rangevote.study.store import take_snapshot

    findings = analyse(take_snapshot(Path(file)))
    if format == "json":
        text = json.dumps(as_data(findings), ensure_ascii=False, indent=1) + "\n"
    else:
        text = as_html(findings) if format == "html" else as_text(findings, format)
    write_output(text, output, [file], force=force)


@study.command(cls=HelpCommand, example="rangevote study export study.db -o judgements.csv")
@click.argument("file", metavar="STUDY")
@click.option(
    "--to",
    "format",
    type=click.Choice(["jsonl", "csv", "record"]),
    help="jsonl, or by the name of the output (.csv); csv is for spreadsheets; record describes the study.",
)
@click.option("--history", is_flag=True, help="Include judgements that were replaced or undone.")
@click.option("--bom", is_flag=True, help="Begin the CSV with a byte order mark, for Excel.")
@click.option("-o", "--output", metavar="FILE", help="Where to write; standard output if not given.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def export(file: str, format: str | None, history: bool, bom: bool, output: str | None, force: bool) -> None:
    """Write the judgements of STUDY, with the sides as they were shown and the outputs.

    In csv, texts that a spreadsheet would run as a formula begin with an apostrophe; jsonl has them as they
    are.
    """
    from rangevote.study.report import to_csv, to_jsonl, to_record
    from rangevote.study.store import take_snapshot

    format = format or format_by_name(output, "jsonl", "csv", option="--to")
    if history and format == "record":
        raise UsageError("--history goes with jsonl and csv, not with record.")
    if bom and format != "csv":
        raise UsageError(f"--bom goes with csv, not with {format}.")
    snapshot = take_snapshot(Path(file))
    if format == "record":
        text = to_record(snapshot)
    elif format == "csv":
        text = to_csv(snapshot, history=history, mark=bom)
    else:
        text = to_jsonl(snapshot, history=history)
    write_output(text, output, [file], force=force)
