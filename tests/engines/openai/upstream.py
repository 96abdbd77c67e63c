"""A server on a real loopback socket that answers as OpenAI-compatible ones do, or misbehaves as they do.

    with Upstream("ignores_n") as upstream:
        ... Client(upstream.url) ...
        assert [asked.body.get("n") for asked in upstream.asked] == [5, None, None, None, None]

`mode` is a key of `MODES`, "stalls" or "hangs_up", and may be changed while it runs; a list of names is for
one request each, the last for all further ones. Of a request with seed s, choice i says `text_of(s + i)`, so
that equal seeds give equal texts.
"""

from __future__ import annotations

import gzip
import json
import math
import select
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

SENTENCES = (
    "the train leaves at ten",
    "a train leaves at ten",
    "the train leaves at noon",
    "i do not know",
    "the train is leaving at ten",
    "trains leave at ten",
)
LOGPROBS = (-0.25, -0.5, -1.25)


def text_of(seed: int) -> str:
    """What a sample with this seed says."""
    return SENTENCES[seed % len(SENTENCES)]


@dataclass(frozen=True)
class Asked:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    when: float

    @property
    def chat(self) -> bool:
        return self.path.endswith("/chat/completions")

    @property
    def n(self) -> int:
        return int(self.body.get("n", 1))


@dataclass(frozen=True)
class Reply:
    """What goes back."""

    body: bytes | dict[str, Any] | list[Any]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    cut: int = 0  # so many bytes are promised and not sent
    lengthless: bool = False  # no Content-Length: the end of the connection is that of the body

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def choice(asked: Asked, index: int) -> dict[str, Any]:
    """One choice, with log-probabilities where they are asked for."""
    text = text_of(int(asked.body.get("seed", 0)) + index)
    wanted = asked.body.get("logprobs") not in (None, False)
    if asked.chat:
        listed = {"content": [{"token": "t", "logprob": value, "top_logprobs": []} for value in LOGPROBS]}
        said = {"message": {"role": "assistant", "content": text}}
    else:
        listed = {"tokens": ["t"] * len(LOGPROBS), "token_logprobs": list(LOGPROBS)}
        said = {"text": text}
    return {"index": index, **said, "finish_reason": "stop", "logprobs": listed if wanted else None}


def completion(asked: Asked, choices: Sequence[Mapping[str, Any]]) -> Reply:
    """A response with these choices; a token of the prompt and of each choice costs 1."""
    usage = {"prompt_tokens": 7, "completion_tokens": 3 * len(choices), "total_tokens": 7 + 3 * len(choices)}
    kind = "chat.completion" if asked.chat else "text_completion"
    head = {"id": "cmpl-1", "object": kind, "created": 1, "model": asked.body.get("model")}
    return Reply({**head, "choices": list(choices), "usage": usage})


def well(asked: Asked, n: int | None = None) -> Reply:
    return completion(asked, [choice(asked, i) for i in range(asked.n if n is None else n)])


def saying(*fields: Mapping[str, Any]) -> Callable[[Asked], Reply]:
    """A server whose samples have these fields, over and over, counted from the seed."""

    def answer(asked: Asked) -> Reply:
        first = int(asked.body.get("seed", 0))
        given = (fields[(first + i) % len(fields)] for i in range(asked.n))
        return completion(asked, [{**choice(asked, i), **one} for i, one in enumerate(given)])

    return answer


def message(content: str | None = None, reason: str = "stop", **fields: Any) -> dict[str, Any]:
    """The fields of a sample with this message."""
    return {"message": {"role": "assistant", "content": content, **fields}, "finish_reason": reason}


def reasoned(asked: Asked, fields: Callable[[str, str], dict[str, Any]]) -> Reply:
    """What is answered every third time has most votes; what is thought is always another text."""
    choices = []
    for i in range(asked.n):
        number = int(asked.body.get("seed", 0)) + i
        said = fields(("42", "41", "42")[number % 3], f"I said {number} to {asked.path} as {number}")
        choices.append({**choice(asked, i), **(message(**said) if asked.chat else {"text": said["content"]})})
    return completion(asked, choices)


def refusal(status: int, message: str, **headers: str) -> Reply:
    """An error as OpenAI writes it."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return Reply({"error": error}, status, {"content-type": "application/json", **headers})


def half(asked: Asked, **options: Any) -> Reply:
    content = well(asked).content
    return Reply(content[: len(content) // 2], **options)


#: Where a bad server sends its clients; on loopback too, where nobody answers: should a redirect ever be
#: followed, no test leaves this machine.
ELSEWHERE = "http://127.0.0.1:9/latest/meta-data/"
HUGE = b'{"choices": [], "x": "' + b"x" * 10_000_000 + b'"}'
GZIP = {"content-type": "application/json", "content-encoding": "gzip"}
NAN = {"logprobs": {"content": [{"token": "t", "logprob": value} for value in (-0.25, math.nan, -1.25)]}}

#: How a server may answer.
MODES: dict[str, Callable[[Asked], Reply]] = {
    "well": well,
    "ignores_n": lambda asked: well(asked, 1),
    "refuses_n": lambda asked: (
        refusal(400, "Invalid n value (currently only n = 1 is supported)") if asked.n > 1 else well(asked)
    ),
    "one_fewer": lambda asked: well(asked, max(1, asked.n - 1)),
    "at_most_two": lambda asked: well(asked, min(2, asked.n)),
    "refuses_more_than_four": lambda asked: (
        refusal(400, "n must be at most 4") if asked.n > 4 else well(asked)
    ),
    "greedy_once": lambda asked: (
        refusal(400, "n must be 1 when using greedy sampling")
        if asked.n > 1 and asked.body.get("temperature", 1) < 1e-5
        else well(asked)
    ),
    "busy": lambda asked: refusal(429, "slow down", **{"retry-after": "1"}),
    "busy_for_long": lambda asked: refusal(429, "slow down", **{"retry-after": "3600"}),
    "broken": lambda asked: refusal(500, "Traceback (most recent call last): /srv/model.py"),
    "overloaded": lambda asked: refusal(503, "overloaded"),
    "refuses": lambda asked: refusal(400, "this prompt is too long"),
    "denied": lambda asked: refusal(401, f"Incorrect API key provided: {asked.headers.get('authorization')}"),
    "half_json": half,
    "cut_off": lambda asked: half(asked, cut=len(well(asked).content) // 2),
    "huge": lambda asked: Reply(HUGE),
    "huge_without_length": lambda asked: Reply(HUGE, lengthless=True),
    "compressed": lambda asked: Reply(gzip.compress(well(asked).content), headers=GZIP),
    "redirects": lambda asked: Reply(b"", 302, {"location": ELSEWHERE}),
    "html": lambda asked: Reply(b"<!doctype html><title>Sign in</title>", 200, {"content-type": "text/html"}),
    "plain_text": lambda asked: Reply(well(asked).content, headers={"content-type": "text/plain"}),
    "no_object": lambda asked: Reply([1, 2]),
    "no_choices": lambda asked: well(asked, 0),
    "other_shape": lambda asked: Reply({"output": [{"content": "hello"}]}),
    "error_with_200": lambda asked: Reply({"error": {"message": "provider is down", "code": 502}}),
    "nan_logprob": lambda asked: completion(
        asked, [{**choice(asked, i), **(NAN if i == 0 else {})} for i in range(asked.n)]
    ),
    "greedy": lambda asked: completion(asked, [{**choice(asked, 0), "index": i} for i in range(asked.n)]),
    "reasons_apart": lambda asked: reasoned(asked, lambda a, why: {"content": a, "reasoning_content": why}),
    "reasons_inline": lambda asked: reasoned(
        asked, lambda text, why: {"content": f"<think>\n{why}\n</think>\n\n{text}"}
    ),
}


class Upstream:
    """The server; what it was asked stands in `asked`, in the order in which it came.

    `most_open` is how many requests were under way at once, `connections` are those over which requests came,
    `left` is set when a client goes away from a request that stalls; `answer`, if given, is used instead
    of a mode. `delay`: seconds per request.
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
        self.connections: set[tuple[str, int]] = set()
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
            upstream.connections.add(self.client_address)
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
                else:
                    self.reply((upstream.answer or MODES[mode])(asked))
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
