"""Replies as OpenAI's clients read them: one completion, or a stream of events.

A stream cannot begin before the election. Its headers are held back for a moment, so that an early failure
has its real status. Then it is 200, comments keep the connection open until the answer is there, and a late
failure is an event. When a client disconnects or the service stops, the work and all its upstream calls are
cancelled.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.types import Receive, Scope, Send

from rangevote.election.result import first
from rangevote.engines.openai.sample_and_elect import ElectionOutcome
from rangevote.formats.choices import Usage
from rangevote.service.config import Limits
from rangevote.service.errors import ApiError, json_response
from rangevote.service.requests import CompletionRequest
from rangevote.text import finite

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"
STREAM_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}


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
        return self.request.endpoint != "completions"

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
        elections = [self._election(*both) for both in zip(self.outcomes, self.pages, strict=True)]
        return elections[0] if len(elections) == 1 else {**elections[0], "elections": elections}

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


async def respond(
    work: Coroutine[Any, Any, Reply],
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    stream: bool,
    limits: Limits,
    report: Callable[[BaseException], ApiError],
) -> bool:
    """Send the reply that `work` makes, or its error, which in a stream that has begun is the last event.

    `report` logs an error and returns what the client gets. The result is False if the client disconnected.
    """
    begun = False

    async def send_chunk(content: bytes, headers: Mapping[str, str], *, more: bool = True) -> None:
        nonlocal begun
        if not begun:
            begun = True
            pairs = [(name.encode(), value.encode()) for name, value in {**STREAM_HEADERS, **headers}.items()]
            await send({"type": "http.response.start", "status": 200, "headers": pairs})
        await send({"type": "http.response.body", "body": content, "more_body": more})

    async def send_error(error: BaseException) -> None:
        shown = report(error)
        if begun:
            await send_chunk(event(shown.body()), {}, more=False)
        else:
            await shown.response()(scope, receive, send)

    task, gone = asyncio.create_task(work), asyncio.create_task(_disconnected(receive))
    pause = limits.hold if stream else None
    try:
        while True:
            done, _ = await asyncio.wait({task, gone}, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            if done:
                break
            await send_chunk(KEEP_ALIVE, {})
            pause = limits.keep_alive
        if gone in done:  # even if the reply is there: nobody would read it
            return False
        reply = task.result()
        if stream:
            for chunk in reply.events():
                await send_chunk(chunk, reply.headers())
            await send_chunk(b"", {}, more=False)
        else:
            await json_response(reply.completion(), headers=reply.headers())(scope, receive, send)
    except asyncio.CancelledError:  # the service stops and no longer waits for this response
        await send_error(ApiError(503, "the service is stopping; try again", code="stopping", retry_after=1))
    except Exception as error:
        await send_error(error)
    finally:
        for pending in (task, gone):
            pending.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)
    return True


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
