"""A server on a real loopback socket that answers as OpenAI-compatible ones do, or misbehaves as they do.

    with Upstream("ignores_n") as upstream:
        ... Client(upstream.url) ...
        assert [asked.body.get("n") for asked in upstream.asked] == [5, None, None, None, None]

`mode` is the name of a behaviour (the methods of `Behaviour`) and may be changed while it runs; a list of
names is for one request each, the last for all further ones. Of a request with seed s, choice i says
`text_of(s + i)`, so that equal seeds give equal texts.
"""

from __future__ import annotations

import json
import select
import sys
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.engines.openai.behaviour import ELSEWHERE as ELSEWHERE
from tests.engines.openai.behaviour import LOGPROBS as LOGPROBS
from tests.engines.openai.behaviour import SENTENCES as SENTENCES
from tests.engines.openai.behaviour import Asked as Asked
from tests.engines.openai.behaviour import Behaviour as Behaviour
from tests.engines.openai.behaviour import Reply as Reply
from tests.engines.openai.behaviour import choice as choice
from tests.engines.openai.behaviour import completion as completion
from tests.engines.openai.behaviour import refusal as refusal
from tests.engines.openai.behaviour import text_of as text_of


class Upstream:
    """The server; what it was asked stands in `asked`, in the order in which it came.

    `most_open` is how many requests were under way at once, `left` is set when a client goes away from a
    request that stalls; `answer`, where given, is used in place of a behaviour. `delay`: seconds per request.
    """

    def __init__(
        self,
        mode: str | Sequence[str] | Callable[[Asked], str] = "well",
        *,
        answer: Callable[[Asked], Reply] | None = None,
        delay: float = 0.0,
        models: Sequence[str] = ("tiny",),
    ) -> None:
        self.mode, self.answer, self.delay, self.models = mode, answer, delay, models
        self.asked: list[Asked] = []
        self.open = self.most_open = 0
        self.left, self.closing = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Upstream:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, asked: Asked) -> str:
        """Note a request; returns how to answer it."""
        with self._lock:
            number = len(self.asked)
            self.asked.append(asked)
            self.open += 1
            self.most_open = max(self.most_open, self.open)
            if isinstance(self.mode, str):
                return self.mode
            if callable(self.mode):
                return self.mode(asked)
            return self.mode[min(number, len(self.mode) - 1)]

    def done(self) -> None:
        """A request is over, one way or another."""
        with self._lock:
            self.open -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the tests."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def _handler(upstream: Upstream) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            listed = [{"id": name, "object": "model"} for name in upstream.models]
            self.reply(Reply({"object": "list", "data": listed}))

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", 0))
            content = self.rfile.read(length)
            if len(content) < length:  # the client went away between head and body
                self.close_connection = True
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.path, headers, json.loads(content), time.monotonic())
            mode = upstream.take(asked)
            try:
                if upstream.delay:
                    upstream.closing.wait(upstream.delay)
                if mode == "stalls":
                    self.stall()
                elif mode == "hangs_up":
                    self.close_connection = True
                elif upstream.answer is not None:
                    self.reply(upstream.answer(asked))
                else:
                    self.reply(getattr(Behaviour(), mode)(asked))
            finally:
                upstream.done()

        def stall(self) -> None:
            """Say nothing until the client or the test goes away."""
            while not upstream.closing.is_set():
                if select.select([self.connection], [], [], 0.02)[0]:
                    upstream.left.set()  # what can be read of a silent client is its end
                    break
            self.close_connection = True

        def reply(self, reply: Reply) -> None:
            content = reply.content
            try:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if reply.lengthless:
                    self.send_header("connection", "close")
                else:
                    self.send_header("content-length", str(len(content) + reply.cut))
                self.end_headers()
                self.wfile.write(content)
            except (BrokenPipeError, ConnectionResetError):  # the client has read enough
                self.close_connection = True
            if reply.cut or reply.lengthless:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Tests are silent."""

    return Handler
