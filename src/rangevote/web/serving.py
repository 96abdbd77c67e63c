"""Run an application on this machine until the user stops it."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from typing import Any

from rangevote.errors import SetupError, need

LOCAL = "127.0.0.1"


def bound(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named TCP, since asyncio sets TCP_NODELAY only then: else every kept-alive answer comes 40 ms late.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(128)
    except (OSError, OverflowError) as error:
        found.close()
        told = getattr(error, "strerror", None) or error
        wrong = "host" if isinstance(error, socket.gaierror) else "port"
        raise SetupError(f"cannot listen on {host} port {port}: {told}. Choose another --{wrong}.") from None
    return found


def address(listening: socket.socket) -> str:
    """Where a browser finds it: `http://127.0.0.1:8000`."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_local(host: str) -> bool:
    """Whether only this machine can reach a host's address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def server(app: Any, *, ready: Callable[[], None] | None = None, drain: float = 5.0, **options: Any) -> Any:
    """A uvicorn server that is yet to run; `options` are those of its configuration.

    `ready` is called once requests are answered. Nothing is logged: addresses hold secrets.
    """
    uvicorn = need("uvicorn", "web", "a page in the browser")

    class Server(uvicorn.Server):  # type: ignore[name-defined,misc]
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if ready is not None and self.started:
                ready()

    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(drain)),
        timeout_keep_alive=15,
        **{"h11_max_incomplete_event_size": 32 * 1024, **options},
    )
    return Server(config)


def serve(
    app: Any, listening: socket.socket, *, ready: Callable[[], None] | None = None, drain: float = 5.0
) -> None:
    """Answer requests until SIGINT or SIGTERM, then finish what is under way for up to `drain` seconds."""
    try:
        server(app, ready=ready, drain=drain).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()
