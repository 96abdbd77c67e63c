"""The answer as OpenAI's clients read it: one completion, or chunks of one."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rangevote.service.outcome import Outcome
from rangevote.service.request import Order
from rangevote.sources.openai.messages import Usage

PREFIXES = {"chat": "chatcmpl-", "completions": "cmpl-"}
DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


@dataclass(frozen=True)
class Reply:
    """One election as a completion; `election` is the address of its page, where it is kept."""

    id: str
    created: int
    order: Order
    outcome: Outcome
    election: str | None = None

    def whole(self) -> dict[str, Any]:
        """All at once."""
        return {
            **self._head(""),
            "choices": [self._choice(place, index) for place, index in enumerate(self._elected)],
            "usage": usage_of(self.outcome.usage),
            "rangevote": self._told(),
        }

    def chunks(self) -> Iterator[bytes]:
        """The same as events: role, content, finish, usage if wanted, and the end."""
        head = self._head(".chunk")
        for place, index in enumerate(self._elected):
            text = str(self.outcome.result.candidates.content(index))
            if self.order.kind == "chat":
                yield event({**head, "choices": [_delta(place, {"role": "assistant", "content": ""})]})
                yield event({**head, "choices": [_delta(place, {"content": text})]})
            else:
                yield event({**head, "choices": [_written(place, text, None)]})
        last = [self._last(place, index) for place, index in enumerate(self._elected)]
        yield event({**head, "choices": last, "rangevote": self._told()})
        if self.order.include_usage:
            yield event({**head, "choices": [], "usage": usage_of(self.outcome.usage)})
        yield DONE

    @property
    def _elected(self) -> tuple[int, ...]:
        return self.outcome.result.elected[: self.order.n]

    def _head(self, part: str) -> dict[str, Any]:
        kind = f"chat.completion{part}" if self.order.kind == "chat" else "text_completion"
        return {"id": self.id, "object": kind, "created": self.created, "model": self.order.name}

    def _told(self) -> dict[str, Any]:
        told = self.outcome.told(self.order.options.explain)
        return told if self.election is None else {**told, "election": self.election}

    def _choice(self, place: int, index: int) -> dict[str, Any]:
        text = str(self.outcome.result.candidates.content(index))
        reason = self.outcome.finish_reason(index)
        if self.order.kind == "completions":
            return _written(place, text, reason)
        message = {"role": "assistant", "content": text, "refusal": None}
        return {"index": place, "message": message, "logprobs": None, "finish_reason": reason}

    def _last(self, place: int, index: int) -> dict[str, Any]:
        reason = self.outcome.finish_reason(index)
        return _delta(place, {}, reason) if self.order.kind == "chat" else _written(place, "", reason)


def new_id(kind: str) -> str:
    """A name for an answer that cannot be guessed."""
    return PREFIXES[kind] + secrets.token_hex(16)


def reply_to(order: Order, outcome: Outcome, id: str, election: str | None) -> Reply:
    """The reply, made now."""
    return Reply(id, int(time.time()), order, outcome, election)


def event(data: Any) -> bytes:
    """One event of a stream. ASCII: some clients end lines at more signs than the standard does."""
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def usage_of(usage: Usage) -> dict[str, int]:
    """Tokens over all calls."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total,
    }


def _delta(place: int, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": place, "delta": delta, "logprobs": None, "finish_reason": reason}


def _written(place: int, text: str, reason: str | None) -> dict[str, Any]:
    return {"index": place, "text": text, "logprobs": None, "finish_reason": reason}
