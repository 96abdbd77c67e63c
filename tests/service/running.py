"""A service on a real socket of this machine, in a thread of the test."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import httpx
import msgspec
import openai

from rangevote.service.app import service_app
from rangevote.service.config import Limits, RequestOptions, ServiceConfig
from rangevote.service.metrics import Metrics
from rangevote.service.middleware import JsonLines, Keys, logger
from rangevote.service.upstream import Upstream
from rangevote.web.serving import address, bound, server
from tests.engines.openai.upstream import Asked, message, saying
from tests.engines.openai.upstream import Reply as UpstreamReply

#: Quick where a test waits for the service to give up.
LIMITS = Limits(
    connect_seconds=1, read_seconds=5, total_seconds=10, retries=0, hold=0.2, keep_alive=0.1, drain=5
)
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
MESSAGES: Any = [{"role": "user", "content": "When does the train leave?"}]


class ListHandler(logging.Handler):
    """Keeps the lines of a log."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.lines = lines
        self.setFormatter(JsonLines())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class Running:
    """`with Running(url) as service`: the service asks the upstream at `url`.

    Fields of `LIMITS` and of `Options` can be given by their names. `log` has the lines of the log.
    """

    def __init__(
        self,
        upstream: str,
        *,
        keys: tuple[str, ...] = (),
        upstream_key: str | None = None,
        limits: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
        profiles: dict[str, dict[str, Any]] | None = None,
        details: bool = False,
        **settings: Any,
    ) -> None:
        base = RequestOptions().changed({"samples": 6, **(options or {})})
        self.settings = ServiceConfig(
            upstream=upstream,
            options=base,
            limits=msgspec.structs.replace(LIMITS, **(limits or {})),
            profiles={name: base.changed(options) for name, options in (profiles or {}).items()},
            **settings,
        )
        self.metrics, self.log = Metrics(), list[str]()
        self._handler = ListHandler(self.log)
        asked = Upstream(self.settings, self.metrics, key=upstream_key)
        app = service_app(asked, self.settings, self.metrics, keys=Keys(keys), details=details)
        self.server = server(app, drain=self.settings.limits.drain)
        self._socket = bound("127.0.0.1", 0)
        self.url, self.port = address(self._socket), self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self.server.run, args=([self._socket],), daemon=True)
        self.key = keys[0] if keys else "unused"
        self._clients: list[openai.OpenAI] = []

    def __enter__(self) -> Running:
        logger.addHandler(self._handler)
        logger.setLevel(logging.INFO)
        self._thread.start()
        headers = {"authorization": f"Bearer {self.key}"}
        self.http = httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=120)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in (self.http, *self._clients):
            client.close()
        self.stop()
        self._thread.join(20)
        assert not self._thread.is_alive()
        logger.removeHandler(self._handler)

    def stop(self) -> None:
        """What SIGTERM does."""
        self.server.should_exit = True

    def client(self, profile: str = "", **options: Any) -> openai.OpenAI:
        """The official client."""
        base = f"{self.url}/v1/{profile}".rstrip("/")
        client = openai.OpenAI(base_url=base, api_key=self.key, max_retries=0, **options)
        self._clients.append(client)
        return client

    def ask(self, path: str = "/v1/chat/completions", **fields: Any) -> httpx.Response:
        """One POST, with a question unless something else is given."""
        question = {"messages": MESSAGES} if path.endswith("/chat/completions") else {"prompt": "q"}
        return self.http.post(path, json={"model": "tiny", **question, **fields})

    def raw(self, content: bytes, wait: float = 10) -> bytes:
        """All bytes that come back for these."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as connection:
            connection.sendall(content)
            return read_all(connection)

    def metric(self, name: str) -> float:
        """A number of /metrics."""
        lines = self.http.get("/metrics").text.splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")), 0.0)


def read_all(connection: socket.socket) -> bytes:
    """Until the other side closes."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def error_of(response: httpx.Response) -> dict[str, Any]:
    """The error in OpenAI's shape, of which nothing is missing."""
    body = response.json()
    assert list(body) == ["error"], body
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert "x-request-id" in response.headers
    error: dict[str, Any] = body["error"]
    return error


def texts(*contents: str, reason: str = "stop") -> Callable[[Asked], UpstreamReply]:
    """An upstream whose samples are these texts, over and over."""
    return saying(*(message(text, reason) for text in contents))
