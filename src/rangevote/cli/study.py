"""`rangevote study`: people judge pairs of outputs, as in section 4.1.4 of the paper."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rangevote.cli.compare import parse_systems
from rangevote.cli.options import HelpCommand, epilog, format_by_name, option, read_file
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
FROM_0, FROM_1 = click.IntRange(min=0), click.IntRange(min=1)
SIDES, COMBINE = click.Choice(["coin", "balanced"]), click.Choice(["median", "majority"])
OUTPUT = option("-o --output FILE", "Output file. Default: standard output.")
FORCE = option("--force", "Overwrite an existing output file.")


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
            *("--pass-share", "--combine", "--show-identical", "--mark-differences", "--completion-code"),
            *("--title", "--question", "--instructions"),
        )
    },
    example="rangevote study new beam.jsonl winners.jsonl --source source.txt -n 100 -o study.db",
)
@click.argument("systems", nargs=-1, metavar="[NAME=]BASELINE [NAME=]CHALLENGER | PAIRS")
@option("-o --output FILE", "The study, for example study.db.", required=True)
@option("--source FILE", "The inputs as text, one per line, or in JSON lines.")
@option("--images FILE|DIR", "The inputs as images: a file with one path per line, or DIR/ID.jpg.")
@option("--image-root DIR", "Folder of the images. Default: that of the file of paths.")
@option("-n --items N", "Number of items to draw.", type=FROM_1, default=500)
@option("--annotators N", "Number of people; each gets a link.", type=FROM_1, default=1)
@option("--per-item N", "How many of them judge each item. Default: all.", type=FROM_1)
@option("--seed N", "Seed of items, order and sides. Default: drawn at random.", type=FROM_0)
@option(
    "--sides NAME",
    "How sides are drawn: coin, or balanced (half of every ten items are swapped).",
    type=SIDES,
    default="coin",
)
@option("--checks N", "Number of attention checks to add.", type=FROM_0, default=0)
@option("--repeats N", "Number of items to show twice.", type=FROM_0, default=0)
@option(
    "--pass-share X",
    "Exclude annotators who pass less than this share of the checks, such as 0.8. Default: nobody.",
    type=click.FloatRange(0, 1),
)
@option(
    "--combine NAME",
    "How to combine the judgements of an item: median or majority.",
    type=COMBINE,
    default="median",
)
@option("--show-identical", "Show pairs of equal outputs too. Default: they count as ties.")
@option(
    "--mark-differences",
    "Mark the words in which the two outputs differ; annotators can switch it off.",
    name="differences",
)
@option("--completion-code CODE", "Code shown to each annotator who has finished.")
@option("--title TEXT", "Title of the page.")
@option("--question TEXT", "Question above the five possible answers.")
@option("--instructions FILE", "File with the text that explains the task.")
@option("--plain", "Read all files as text, even if they look like JSON.")
@option("--force", "Replace a study in which nobody has judged.")
@option("-q --quiet", "No notes or warnings.")
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

    BASELINE and CHALLENGER are text, one output per line, or the output of `rangevote vote`. PAIRS is JSON
    lines: {"id": "1", "outputs": {"beam": "...", "voted": "..."}, "source": "...", "image": "1.jpg"}.

    Everything is fixed here: items, sides, wording, how judgements are combined, who is excluded. The study
    is complete when all annotators have judged all their items.
    """
    from rangevote.study.create import StudyOptions, make_study
    from rangevote.study.store import create_file

    if instructions is not None:
        options["instructions"] = read_file(instructions).strip()
    wanted = StudyOptions(**{name: value for name, value in options.items() if value is not None})
    notes, path = Notes(quiet=quiet), Path(output)
    _check_replaceable(path, force)
    files = _pairs(systems, source, images, image_root, plain)
    made, loaded = files.load_images(make_study(files.systems, files.pairs, wanted))
    create_file(path, made, loaded)
    if noted := sum(image.has_notes for image in loaded.values()):
        notes.warn(
            f"{noted:,} of {len(loaded):,} images have Exif or XMP data, which annotators can read. "
            f"Remove it if it names a person or a system (for example: exiftool -all= FILE), and make the "
            f"study again."
        )
    for line in _summary(made.plan, wanted.items):
        notes.tell(line)
    notes.tell(f"the study's digest is {made.digest()}; quote it to register the study.")
    notes.tell(f"show it to the annotators with: rangevote study serve {output}")


def _check_replaceable(path: Path, force: bool) -> None:
    """Refuse to delete judgements."""
    from rangevote.study.store import has_judgements

    if not regular_file(path).exists():
        return
    if not force:
        raise SetupError(f"{path} already exists; use --force to replace it.")
    if has_judgements(path):
        raise SetupError(f"{path} has judgements, which --force does not delete. Move it elsewhere first.")


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
    return pairs_of_outputs(parse_systems(systems), source=source, images=images, root=root, plain=plain)


def _summary(plan: StudyPlan, wanted: int) -> list[str]:
    drawn = f"{plan.items:,} items, drawn from {plan.available:,} with seed {plan.seed}"
    lines = [drawn if plan.items < plan.available else f"{plan.items:,} items, all there are"]
    if plan.items < wanted:
        lines[0] += f" (asked for {wanted:,})"
    if plan.automatic:
        lines.append(
            f"pairs with identical outputs: {plan.automatic:,}; they count as ties and are not shown "
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
@option("--port N", "Port; 0 takes a free one.", type=click.IntRange(0, 65535), default=PORT)
@option("--host ADDRESS", "Address to listen on.", default="127.0.0.1")
@option("--public", "Allow an address that others can reach.")
@option("--allow-host NAME", "Host name that browsers may use; the first is in the links.", multiple=True)
@option("--proxy ADDRESS", "Address of your reverse proxy; its X-Forwarded-For header is trusted.")
@option("-q --quiet", "Print only the links.")
def serve(
    file: str,
    port: int,
    host: str,
    public: bool,
    allow_host: tuple[str, ...],
    proxy: str | None,
    quiet: bool,
) -> None:
    """Show STUDY to its annotators until Ctrl-C.

    A secret link for each annotator is printed on standard error. You can stop and start the server at any
    time: every judgement is on the disk before the page says so, and the pages continue by themselves. A
    backup, STUDY.backup, is made at each start and end.
    """
    need("starlette", "web", "showing a study")
    from rangevote.study.app import study_app
    from rangevote.study.store import Store
    from rangevote.web.serving import bound, bracketed, host_names, is_local
    from rangevote.web.serving import serve as run

    if not is_local(host) and not public:
        raise UsageError(
            f"--host {host} lets others reach the study, without encryption. If you mean that, add --public, "
            f"and --allow-host NAME with the name that they use."
        )
    names = host_names(host, allow_host, "browsers")
    notes = Notes(quiet=quiet)
    with closing(Store(Path(file))) as store:
        _back_up(store, notes)
        listening = bound(host, port)
        name = allow_host[0] if allow_host and not is_local(host) else host
        address = f"http://{bracketed(name)}:{listening.getsockname()[1]}"
        app = study_app(store, hosts=names)
        if proxy is not None:
            from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

            app = ProxyHeadersMiddleware(app, trusted_hosts=proxy)  # type: ignore[arg-type,assignment]
        _print_links(store, address, notes)
        run(app, listening)
        _back_up(store, notes)


def _back_up(store: Store, notes: Notes) -> None:
    """A backup that fails is a warning: people can judge without it."""
    try:
        store.back_up()
    except SetupError as error:
        notes.warn(str(error))


def _print_links(store: Store, address: str, notes: Notes) -> None:
    from rangevote.study.app import runner_token

    notes.tell(f"serving {store.path}; each annotator has a secret link:")
    for annotator in store.study.annotators:
        click.echo(f"{annotator.name}  {address}/#{annotator.token}", err=True)
    notes.tell("progress of all annotators, for you only:")
    click.echo(f"progress  {address}/progress#{runner_token(store.study.annotators)}", err=True)
    notes.tell("press Ctrl-C to stop.")


@study.command(cls=HelpCommand, example="rangevote study report study.db --to html -o report.html")
@click.argument("file", metavar="STUDY")
@option(
    "--to",
    "Format of the report; html is a page in one file.",
    name="format",
    type=click.Choice(["text", "markdown", "latex", "json", "html"]),
    default="text",
)
@OUTPUT
@FORCE
def report(file: str, format: str, output: str | None, force: bool) -> None:
    """Report the result of STUDY.

    The report has a verdict in words, sign tests, answers, agreement, disputed items, annotators, sides and
    attention checks. You can run it at any time; it says if the study is not complete.
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
@option(
    "--to",
    "Format: csv is for spreadsheets, record describes the study. Default: by the name of the output (.csv), "
    "otherwise jsonl.",
    name="format",
    type=click.Choice(["jsonl", "csv", "record"]),
)
@option("--history", "Include judgements that were replaced or undone.")
@option("--bom", "Begin the CSV with a byte order mark, for Excel.")
@OUTPUT
@FORCE
def export(file: str, format: str | None, history: bool, bom: bool, output: str | None, force: bool) -> None:
    """Write the judgements of STUDY.

    Each judgement has the sides as they were shown and the outputs. In csv, texts are quoted, and those that
    a spreadsheet would run as a formula begin with an apostrophe.
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
