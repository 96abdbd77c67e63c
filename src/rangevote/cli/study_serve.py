"""`rangevote study serve`: the page on which people judge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rangevote.cli.notes import Notes
from rangevote.errors import SetupError, UsageError, need

if TYPE_CHECKING:
    from rangevote.study.store import Store

#: Fixed, so that links hold when the server is started again.
PORT = 8710
#: Addresses that stand for all of the machine's.
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104


@click.command()
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
@click.option("-q", "--quiet", is_flag=True, help="Nothing but the links.")
def serve(file: str, port: int, host: str, public: bool, allow_host: tuple[str, ...], quiet: bool) -> None:
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
        address = f"http://{f'[{name}]' if ':' in name else name}:{listening.getsockname()[1]}"
        run(
            study_app(store, hosts=(*allow_host, *_own(host))),
            listening,
            ready=lambda: _tell(store, address, notes),
        )
        _back_up(store, notes)
    finally:
        store.close()


def _back_up(store: Store, notes: Notes) -> None:
    """Want of a copy is no reason to let people wait."""
    try:
        store.back_up()
    except SetupError as error:
        notes.warn(str(error))


def _own(host: str) -> list[str]:
    """The address itself is a name of the server, unless it stands for all."""
    return [] if host in EVERYWHERE else [f"[{host}]" if ":" in host else host]


def _tell(store: Store, address: str, notes: Notes) -> None:
    notes.tell(f"serving {store.path}; each annotator has a link of their own, which is a secret:")
    for annotator in store.study.annotators:
        click.echo(f"{annotator.name}  {address}/#{annotator.token}", err=True)
    notes.tell("press Ctrl-C to stop.")
