"""A server on a real loopback socket that answers as OpenAI-compatible ones do, or misbehaves as they do.

    with Upstream("ignores_n") as upstream:
        ... Client(upstream.url) ...
        assert [asked.body.get("n") for asked in upstream.asked] == [5, None, None, None, None]

`mode` is the name of a behaviour (a key of `REFUSALS` or a method of `Behaviour`) and may be changed while it
runs; a list of names is for one request each, the last for all further ones. Of a request with seed s, choice
i says `text_of(s + i)`, so that equal seeds give equal texts.
"""

from __future__ import annotations

import json
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
    return Reply(
        {
            "id": "cmpl-1",
            "object": "chat.completion" if asked.chat else "text_completion",
            "created": 1,
            "model": asked.body.get("model"),
            "choices": list(choices),
            "usage": usage,
        }
    )


def refusal(status: int, message: str, **headers: str) -> Reply:
    """An error as OpenAI writes it."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return Reply({"error": error}, status, {"content-type": "application/json", **headers})


#: Where a bad server sends its clients; on loopback too, where nobody answers: should a redirect ever be
#: followed, no test leaves this machine.
ELSEWHERE = "http://127.0.0.1:9/latest/meta-data/"


#: Behaviours that are the same error whatever is asked.
REFUSALS = {
    "busy": refusal(429, "slow down", **{"retry-after": "1"}),
    "busy_for_long": refusal(429, "slow down", **{"retry-after": "3600"}),
    "broken": refusal(500, "Traceback (most recent call last): /srv/model.py"),
    "overloaded": refusal(503, "overloaded"),
    "refuses": refusal(400, "this prompt is too long"),
}


class Behaviour:
    """How else a server may answer; `stalls` is told by the handler, not by a reply."""

    def well(self, asked: Asked) -> Reply:
        return completion(asked, [choice(asked, i) for i in range(asked.n)])

    def ignores_n(self, asked: Asked) -> Reply:
        return completion(asked, [choice(asked, 0)])

    def refuses_n(self, asked: Asked) -> Reply:
        if asked.n > 1:
            return refusal(400, "Invalid n value (currently only n = 1 is supported)")
        return self.ignores_n(asked)

    def one_fewer(self, asked: Asked) -> Reply:
        return completion(asked, [choice(asked, i) for i in range(max(1, asked.n - 1))])

    def at_most_two(self, asked: Asked) -> Reply:
        return completion(asked, [choice(asked, i) for i in range(min(2, asked.n))])

    def refuses_more_than_four(self, asked: Asked) -> Reply:
        if asked.n > 4:
            return refusal(400, "n must be at most 4")
        return self.well(asked)

    def greedy_once(self, asked: Asked) -> Reply:
        if asked.n > 1 and asked.body.get("temperature", 1) < 1e-5:
            return refusal(400, "n must be 1 when using greedy sampling")
        return self.well(asked)

    def denied(self, asked: Asked) -> Reply:
        return refusal(401, f"Incorrect API key provided: {asked.headers.get('authorization')}")

    def half_json(self, asked: Asked) -> Reply:
        content = self.well(asked).content
        return Reply(content[: len(content) // 2])

    def cut_off(self, asked: Asked) -> Reply:
        content = self.well(asked).content
        return Reply(content[: len(content) // 2], cut=len(content) // 2)

    def huge(self, asked: Asked) -> Reply:
        return Reply(b'{"choices": [], "x": "' + b"x" * 10_000_000 + b'"}')

    def huge_without_length(self, asked: Asked) -> Reply:
        return Reply(self.huge(asked).content, lengthless=True)

    def compressed(self, asked: Asked) -> Reply:
        import gzip

        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        return Reply(gzip.compress(self.well(asked).content), headers=headers)

    def redirects(self, asked: Asked) -> Reply:
        return Reply(b"", 302, {"location": ELSEWHERE})

    def html(self, asked: Asked) -> Reply:
        return Reply(b"<!doctype html><title>Sign in</title>", headers={"content-type": "text/html"})

    def plain_text(self, asked: Asked) -> Reply:
        return Reply(self.well(asked).content, headers={"content-type": "text/plain"})

    def no_object(self, asked: Asked) -> Reply:
        return Reply([1, 2])

    def no_choices(self, asked: Asked) -> Reply:
        return completion(asked, [])

    def other_shape(self, asked: Asked) -> Reply:
        return Reply({"output": [{"content": "hello"}]})

    def error_with_200(self, asked: Asked) -> Reply:
        return Reply({"error": {"message": "provider is down", "code": 502}})

    def nan_logprob(self, asked: Asked) -> Reply:
        return self._with_logprob(asked, float("nan"))

    def unlikely(self, asked: Asked) -> Reply:
        return self._with_logprob(asked, -9999.0)

    def greedy(self, asked: Asked) -> Reply:
        return completion(asked, [{**choice(asked, 0), "index": i} for i in range(asked.n)])

    def null_content(self, asked: Asked) -> Reply:
        return self._with_message(asked, {"content": None}, "length")

    def declines(self, asked: Asked) -> Reply:
        return self._with_message(asked, {"content": None, "refusal": "I cannot help with that."}, "stop")

    def reasons_apart(self, asked: Asked) -> Reply:
        return self._reasoned(asked, lambda text, why: {"content": text, "reasoning_content": why})

    def reasons_by_the_other_name(self, asked: Asked) -> Reply:
        return self._reasoned(asked, lambda text, why: {"content": text, "reasoning": why})

    def reasons_inline(self, asked: Asked) -> Reply:
        return self._reasoned(asked, lambda text, why: {"content": f"<think>\n{why}\n</think>\n\n{text}"})

    def reasons_after_the_prompt(self, asked: Asked) -> Reply:
        """The first tag was the end of the prompt."""
        return self._reasoned(asked, lambda text, why: {"content": f"{why}\n</think>\n\n{text}"})

    def _reasoned(self, asked: Asked, message: Callable[[str, str], dict[str, Any]]) -> Reply:
        """What is answered every third time has most votes; what is thought is always another text."""
        choices = []
        for i in range(asked.n):
            number = int(asked.body.get("seed", 0)) + i
            text, why = ("42", "41", "42")[number % 3], f"I said {number} to {asked.path} as {number}"
            answer = message(text, why)
            said = {"message": {"role": "assistant", **answer}} if asked.chat else {"text": answer["content"]}
            choices.append({**choice(asked, i), **said, "index": i})
        return completion(asked, choices)

    def _with_message(self, asked: Asked, message: Mapping[str, Any], reason: str) -> Reply:
        """The first choice says this, the others are as they should be."""
        first = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
        return completion(asked, [first, *(choice(asked, i) for i in range(1, asked.n))])

    def _with_logprob(self, asked: Asked, value: float) -> Reply:
        """One token of the first choice has this log-probability."""
        choices = [choice(asked, i) for i in range(asked.n)]
        if asked.chat:
            choices[0]["logprobs"]["content"][1]["logprob"] = value
        else:
            choices[0]["logprobs"]["token_logprobs"][1] = value
        return completion(asked, choices)


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
                    self.reply(REFUSALS.get(mode) or getattr(Behaviour(), mode)(asked))
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
