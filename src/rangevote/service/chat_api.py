"""Replies as OpenAI's clients read them: one completion, or a stream of events.

A stream cannot begin before the election. Its headers are held back for a moment, so that an early failure
has its real status. Then it is 200, comments keep the connection open until the answer is there, and a late
failure is an event. When a client disconnects or the service stops, the work and all its upstream calls are
cancelled.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from rangevote.election.result import first
from rangevote.engines.openai.sample_and_elect import ElectionOutcome
from rangevote.formats.choices import Usage
from rangevote.service.config import Limits
from rangevote.service.errors import ApiError, internal_error, json_response
from rangevote.service.requests import CompletionRequest
from rangevote.text import finite

PREFIXES = {"chat": "chatcmpl-", "completions": "cmpl-", "responses": "resp_"}
DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"
STREAM_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}


def new_id(endpoint: str) -> str:
    """A new id, which cannot be guessed."""
    return PREFIXES[endpoint] + secrets.token_hex(16)


@dataclass(frozen=True)
class Reply:
    """The elections of a request, usually one, as a completion; `pages` has the addresses of their pages."""

    id: str
    request: CompletionRequest
    outcomes: Sequence[ElectionOutcome]
    pages: Sequence[str | None]
    created: int = field(default_factory=lambda: int(time.time()))

    def completion(self) -> dict[str, Any]:
        choices = []
        for index, winner in enumerate(self.winners):
            message = {"role": "assistant", "content": None, "refusal": None, **winner.message}
            content = {"message": message | winner.reasoning} if self.chat else winner.continuation
            choices.append(_choice(index, content, winner.reason, winner.logprobs))
        return {
            **self._head(""),
            "choices": choices,
            "usage": self._usage(),
            "rangevote": self.elections(),
        }

    def events(self) -> Iterator[bytes]:
        """The completion as a stream: role, content, finish, usage if requested, and the end."""
        head = self._head(".chunk")
        for index, winner in enumerate(self.winners):
            if self.chat:
                start = {"delta": {"role": "assistant", "content": ""}}
                yield event({**head, "choices": [_choice(index, start)]})
                if winner.reasoning:
                    yield event({**head, "choices": [_choice(index, {"delta": winner.reasoning})]})
                delta = {key: value for key, value in winner.message.items() if value is not None}
                if "tool_calls" in delta:
                    delta["tool_calls"] = [{"index": i, **one} for i, one in enumerate(delta["tool_calls"])]
            content = {"delta": delta} if self.chat else winner.continuation
            yield event({**head, "choices": [_choice(index, content, logprobs=winner.logprobs)]})
        end: dict[str, Any] = {"delta": {}} if self.chat else {"text": ""}
        last = [_choice(index, end, winner.reason) for index, winner in enumerate(self.winners)]
        yield event({**head, "choices": last, "rangevote": self.elections()})
        if self.request.include_usage:
            yield event({**head, "choices": [], "usage": self._usage()})
        yield DONE

    @property
    def chat(self) -> bool:
        return self.request.endpoint == "chat"

    @cached_property
    def winners(self) -> list[Winner]:
        """The winners of all elections, in the order of the prompts."""
        logprobs = self.request.body.get("logprobs", False) is not False
        return [
            Winner.of(outcome, index, logprobs)
            for outcome in self.outcomes
            for index in first(outcome.result, 1 if outcome.result.no_winner else self.request.n)
        ]

    @property
    def usage(self) -> Usage:
        return sum((outcome.usage for outcome in self.outcomes), Usage())

    def _head(self, part: str) -> dict[str, Any]:
        kind = f"chat.completion{part}" if self.chat else "text_completion"
        return {"id": self.id, "object": kind, "created": self.created, "model": self.request.name}

    def _usage(self) -> dict[str, int]:
        usage = self.usage
        return {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "total_tokens": usage.total,
        }

    def headers(self) -> dict[str, str]:
        """Of a panel: how many samples each member was asked for, over all prompts; how many were saved."""
        asked: Counter[str] = Counter()
        for outcome in self.outcomes:
            asked.update(outcome.members)
        if len(asked) < 2:
            return {}
        members = ", ".join(f"{quote(name)}={number}" for name, number in asked.items())
        saved = sum(outcome.saved for outcome in self.outcomes)
        return {"x-rangevote-members": members, "x-rangevote-saved": str(saved)}

    def elections(self) -> dict[str, Any]:
        """The object `rangevote` of a reply; for several prompts that of the first, and a list of all."""
        listed = [self._election(*both) for both in zip(self.outcomes, self.pages, strict=True)]
        return listed[0] if len(listed) == 1 else {**listed[0], "elections": listed}

    def _election(self, outcome: ElectionOutcome, page: str | None) -> dict[str, Any]:
        result, fields = outcome.result, outcome.result.fields()
        always = ("signature", "candidates", "score", "margin", "near_tie", "no_support")
        election = {name: fields[name] for name in always} | {
            "votes": outcome.votes,
            "samples": {"asked": outcome.asked, "saved": outcome.saved, **outcome.counts},
            "certain": outcome.certain,
        }
        others = ("no_winner", "answers", "panel", "member", "merged")
        election |= {name: fields[name] for name in others if fields[name]}
        if len(outcome.members) > 1:
            election["members"] = outcome.members
        if self.request.options.explain:
            whose = result.candidates.members
            election["scores"] = [
                {"text": str(result.candidates.content(i)), "score": finite(float(result.scores[i]))}
                | ({} if whose is None else {"member": whose[i]})
                for i in result.ranking
            ]
        return election if page is None else {**election, "election": page}


class Winner(NamedTuple):
    """A winner as the model's server sent it, or the leader of an election without a winner.

    `message` is the chat message: an answer, tool calls, or a refusal if every sample is one or nobody is
    elected. `reasoning` is the model's reasoning before it.
    """

    text: str
    reason: str
    message: dict[str, Any]
    reasoning: dict[str, str]
    logprobs: Any

    @property
    def continuation(self) -> dict[str, Any]:
        """The content of a choice in a plain completion."""
        return {"text": self.text, **self.reasoning}

    @classmethod
    def of(cls, outcome: ElectionOutcome, index: int, logprobs: bool) -> Winner:
        choice, result = outcome.choices[index], outcome.result
        reason = choice.finish_reason or "stop"
        if result.no_winner:
            refusal = f"No answer has enough support: {result.no_winner}."
            return cls("", reason, {"refusal": refusal}, {}, None)
        if result.merged is not None and result.merged.text is not None:  # merged texts have no reasoning
            return cls(result.merged.text, "stop", {"content": result.merged.text}, {}, None)
        raw, text = choice.raw, str(result.candidates.content(index))
        assert raw is not None
        message: dict[str, Any] = {"refusal" if choice.kind == "refusal" else "content": text}
        if choice.calls and raw.message is not None:
            calls = raw.message.tool_calls
            called = {"tool_calls": calls} if calls else {"function_call": raw.message.function_call}
            message = {"content": choice.text, **called}
        reasoning = {"reasoning_content": choice.reasoning} if choice.reasoning else {}
        return cls(text, reason, message, reasoning, raw.logprobs if logprobs else None)


def event(data: Any) -> bytes:
    """One event of a stream, in ASCII: some clients end lines at other characters too."""
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def _choice(
    index: int, content: dict[str, Any], reason: str | None = None, logprobs: Any = None
) -> dict[str, Any]:
    return {"index": index, **content, "logprobs": logprobs, "finish_reason": reason}


class ElectionResponse(Response):
    """A response that does the work of its request when it is called.

    `report` is called with the error that becomes the response, or with None if the client disconnected.
    """

    def __init__(
        self,
        work: Callable[[], Coroutine[Any, Any, Reply]],
        limits: Limits,
        report: Callable[[BaseException | None], None],
        *,
        stream: bool,
    ) -> None:
        super().__init__()
        self._work, self._limits, self._report, self._stream = work, limits, report, stream
        self._begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.create_task(self._work())
        gone = asyncio.create_task(_disconnected(receive))
        try:
            if await self._wait(task, gone, send):
                await self._answer(task, scope, receive, send)
            else:
                self._report(None)
        except asyncio.CancelledError:  # the service stops and no longer waits for this response
            error = ApiError(503, "the service is stopping; try again", code="stopping", retry_after=1)
            self._report(error)
            await self._fail(error, scope, receive, send)
        finally:
            for pending in (task, gone):
                pending.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)

    async def _wait(self, task: asyncio.Task[Reply], gone: asyncio.Task[None], send: Send) -> bool:
        """Wait until the work is done (True) or the client disconnects (False); a stream sends comments."""
        pause = self._limits.hold if self._stream else None
        while True:
            done, _ = await asyncio.wait({task, gone}, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            if gone in done:  # even if the answer is there: nobody would read it
                return False
            if task in done:
                return True
            if not self._begun:
                await self._begin(send)
                pause = self._limits.keep_alive
            await send({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})

    async def _answer(self, task: asyncio.Task[Reply], scope: Scope, receive: Receive, send: Send) -> None:
        try:
            reply = task.result()
        except Exception as error:
            self._report(error)
            shown = error if isinstance(error, ApiError) else internal_error()
            await self._fail(shown, scope, receive, send)
            return
        if not self._stream:
            await json_response(reply.completion(), headers=reply.headers())(scope, receive, send)
            return
        if not self._begun:
            await self._begin(send, reply.headers())
        for chunk in reply.events():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _begin(self, send: Send, more: Mapping[str, str] | None = None) -> None:
        self._begun = True
        headers = [
            (name.encode(), value.encode()) for name, value in {**STREAM_HEADERS, **(more or {})}.items()
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _fail(self, error: ApiError, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the error as the response, or as the last event of a stream that has begun."""
        if self._begun:
            await send({"type": "http.response.body", "body": event(error.body()), "more_body": False})
        else:
            await error.response()(scope, receive, send)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
