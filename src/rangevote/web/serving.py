"""Serve an application and the files of its pages until the user stops it.

Files come from inside the package, by name: never from a path that a client names.
"""

from __future__ import annotations

import importlib.resources
import ipaddress
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rangevote.errors import SetupError, UsageError, need

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    content: bytes
    media_type: str

    @property
    def text(self) -> str:
        return self.content.decode()

    async def respond(self, request: Request) -> Response:
        return Response(self.content, media_type=self.media_type)


@cache
def assets(package: str) -> Mapping[str, Asset]:
    """The files in the folder `static` of a package, by name."""
    files = {}
    for file in (importlib.resources.files(package) / "static").iterdir():
        ending = "." + file.name.rpartition(".")[2]
        if file.is_file() and ending in MEDIA_TYPES:
            files[file.name] = Asset(file.read_bytes(), MEDIA_TYPES[ending])
    return files


def asset_routes(*packages: str) -> list[Route]:
    """GET /static/NAME for every file of these packages but the pages; the favicon under its usual name."""
    served: dict[str, Asset] = {}
    for package in packages:
        again = served.keys() & assets(package).keys()
        assert not again, f"two packages have a file {', '.join(sorted(again))}"
        served |= assets(package)

    async def static(request: Request) -> Response:
        asset = served.get(request.path_params["name"])
        if asset is None or asset.media_type.startswith("text/html"):
            return Response(status_code=404)
        return await asset.respond(request)

    favicon = assets("rangevote.web")["favicon.svg"]
    return [Route("/static/{name}", static), Route("/favicon.ico", favicon.respond)]


def bound(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named TCP, since asyncio sets TCP_NODELAY only then: else every kept-alive answer comes 40 ms late.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        option = "host" if isinstance(error, socket.gaierror) else "port"
        raise SetupError(
            f"cannot listen on {host} port {port}: {reason}. Choose another --{option}."
        ) from None
    return listening


def address(listening: socket.socket) -> str:
    """Where a browser finds it: `http://127.0.0.1:8000`."""
    host, port = listening.getsockname()[:2]
    return f"http://{bracketed(host)}:{port}"


def bracketed(host: str) -> str:
    """A host as it is written in an address."""
    return f"[{host}]" if ":" in host else host


def host_names(host: str, names: Sequence[str], who: str) -> Sequence[str]:
    """The names that a server answers to; one that listens on all addresses needs the name that `who` use."""
    if host not in ("0.0.0.0", "::"):  # noqa: S104
        return (*names, bracketed(host))
    if not names:
        raise UsageError(
            f"--host {host} stands for all addresses of this machine; add --allow-host NAME with the name or "
            f"address that {who} use."
        )
    return names


def is_local(host: str) -> bool:
    """Whether only this machine can reach a host's address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def server(app: Any, *, drain: float = 5.0) -> Any:
    """A uvicorn server that is not yet running.

    Nothing is logged, since addresses contain secrets. httptools refuses what two servers may read
    differently: bare LF, folded headers, two lengths of one body.
    """
    uvicorn = need("uvicorn", "web", "a page in the browser")
    need("httptools", "web", "a page in the browser")
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            proxy_headers=False,
            log_level="critical",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=max(1, round(drain)),
            timeout_keep_alive=15,
        )
    )


def serve(app: Any, listening: socket.socket, *, drain: float = 5.0) -> None:
    """Answer requests until SIGINT, SIGTERM or SIGHUP, then finish what is under way.

    Clients may connect as soon as the socket is `bound`. Under `nohup`, SIGHUP stays ignored.
    """
    running = server(app, drain=drain)
    # Before uvicorn handles signals, and again when it has ended and repeats the signal that ended it.
    handlers: dict[int, Any] = {signal.SIGTERM: signal.default_int_handler}
    hangup = getattr(signal, "SIGHUP", None)  # not on Windows
    if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:
        handlers[hangup] = lambda number, frame: signal.raise_signal(signal.SIGTERM)
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        running.run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()
        for number, handler in before.items():
            signal.signal(number, handler)
