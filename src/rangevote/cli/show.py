"""`rangevote show`: elections as a page in the browser, or as one file to keep."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rangevote.cli.options import HelpCommand, election_options, option, reading_options
from rangevote.cli.output import open_output, refuse_input
from rangevote.cli.progress import Bar, Notes, check_inputs
from rangevote.errors import UsageError, need

if TYPE_CHECKING:
    from rangevote.election.settings import Settings
    from rangevote.formats import ReadOptions
    from rangevote.web.app import ElectionPage


@click.command(cls=HelpCommand, example="rangevote show k4.jsonl k10.jsonl --export elections.html")
@click.argument("ballots", nargs=-1, metavar="[BALLOTS]...")
@election_options
@option("--panel", "The files are the members of one panel, as in `rangevote vote`, not several lists.")
@option("--export FILE", "Write the page as one file that opens from disk, and exit.")
@option("--limit N", "Number of ballots in an exported file.", type=click.IntRange(min=1), default=100)
@option("--force", "Overwrite an existing file.")
@option("--image-root DIR", "Folder of the images that sources or ids name. Default: that of the first file.")
@option("--host ADDRESS", "Address to listen on.", default="127.0.0.1")
@option(
    "--port N",
    "Port to listen on. Default: any free one.",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=False,
)
@option("--allow-host NAME", "Additional host name for the page.", multiple=True)
@option("--no-browser", "Do not open the browser.")
@option("-q --quiet", "No notes, warnings or progress bar.")
@reading_options
def show(
    ballots: tuple[str, ...],
    settings: Settings,
    panel: bool,
    export: str | None,
    limit: int,
    force: bool,
    image_root: str | None,
    host: str,
    port: int,
    allow_host: tuple[str, ...],
    no_browser: bool,
    quiet: bool,
    reading: ReadOptions,
) -> None:
    """Show the elections of BALLOTS as a page in the browser.

    The page shows who won and why, the winner beside the most likely output, all candidates, who supports
    whom, how firm the winner is, and who wins under other settings. Several files are several lists of the
    same elections, such as beams of different sizes (`rangevote show k4.jsonl k10.jsonl k100.jsonl`),
    matched by the ballots' ids; with --panel their candidates stand together. Without a file, the page
    shows figure 1 of the paper.
    """
    need("starlette", "web", "a page in the browser")
    from rangevote.cli.demo import figure_1
    from rangevote.cli.members import panel_files
    from rangevote.formats import read
    from rangevote.web.app import Ballots, ElectionPage, names_of

    notes = Notes(quiet=quiet)
    check_inputs(ballots)
    refuse_input(export, ballots)
    with ExitStack() as stack:
        if panel:  # one list, of the ballots of all members
            files, settings = panel_files(ballots, (), settings)
            if not files.members:
                raise UsageError("--panel needs several files, one for each member.")
            opened = [(", ".join(files.members), *files.read(stack, reading))]
        else:
            streams = [stack.enter_context(read(path, reading)) for path in ballots]
            opened = [(name, one, one) for name, one in zip(names_of(ballots), streams, strict=True)]
        lists = [
            Ballots.read(name, Bar(stream, "reading", quiet=quiet).track(entries))
            for name, stream, entries in opened
        ]
    lists = lists or [Ballots("figure 1", [figure_1()])]
    kept = None if export is None else limit
    page = ElectionPage(lists, settings, kept=kept, images=_images(ballots, image_root))
    for name, number in page.unmatched():
        reason = f"not shown, since {lists[0].name} does not have them"
        notes.tell(f"{reason}: {number:,} of the ballots in {name}.")
    if export is not None:
        export_page(page, export, force, quiet, notes)
    else:
        _serve(page, host, port, allow_host, not no_browser, notes)


def _images(ballots: Sequence[str], root: str | None) -> Path | None:
    """The folder of pictures."""
    if root is None:
        return Path(ballots[0]).parent if ballots and ballots[0] != "-" else None
    if not Path(root).is_dir():
        raise UsageError(f"--image-root: {root!r} is not a folder.")
    return Path(root)


def export_page(page: ElectionPage, path: str, force: bool, quiet: bool, notes: Notes) -> None:
    """Write the page as one file."""
    from rangevote.web.export_html import single_file

    with open_output(path, "-", {}, force=force) as out:
        with Bar(None, "exporting", quiet=quiet, total=page.kept) as bar:
            text = single_file(page, bar.advance)
        out.write(text.encode())
        out.finish()
    total = page.about().ballots
    if page.kept < total:
        notes.tell(f"{path} has the first {page.kept:,} of {total:,} ballots; --limit sets how many.")


def _serve(
    page: ElectionPage, host: str, port: int, names: Sequence[str], browser: bool, notes: Notes
) -> None:
    need("uvicorn", "web", "a page in the browser")
    from rangevote.web.app import election_app
    from rangevote.web.serving import address, bound, bracketed, is_local, serve

    if not is_local(host):
        notes.warn(f"everyone who can reach {host} can read these ballots; there is no password.")
    hosts = [bracketed(host), *names]
    listening = bound(host, port)
    url = address(listening)
    click.echo(f"rangevote: the election page is at {url} (Ctrl-C ends it)", err=True)
    if browser:
        _open(url)
    serve(election_app(page, hosts=hosts), listening, drain=1.0)


def _open(url: str) -> None:
    """In a thread: a browser may take long to start, and the page must be answered meanwhile."""
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
