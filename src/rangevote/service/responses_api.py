"""OpenAI's Responses API on top of chat: requests become chat requests, and chat answers responses.

Texts, pictures, functions of the client and streaming are supported. The service keeps no conversations and
has no tools of its own, so requests that need them are refused.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rangevote.service.chat_api import Reply, event
from rangevote.service.errors import invalid

#: Fields that are read here, or that have no meaning for a service that keeps no conversations.
READ = frozenset({"input", "instructions", "max_output_tokens", "tools", "tool_choice", "text", "reasoning"})
READ |= {"store", "include", "truncation"}
#: Fields of a request that are part of its response, and their defaults.
SENT_BACK: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "reasoning": None,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
}
#: Types of text in messages, including the model's own answers.
TEXTS = ("input_text", "output_text", "text")


def chat_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the chat request; an `ApiError` names a wrong parameter."""
    if "messages" in fields:
        raise invalid("messages", "is not a parameter of responses; use input", "unsupported_parameter")
    chat = {name: value for name, value in fields.items() if name not in READ}
    chat["messages"] = _messages(fields)
    if "max_output_tokens" in fields:
        chat["max_completion_tokens"] = fields["max_output_tokens"]
    if tools := fields.get("tools"):
        chat["tools"] = [_tool(tool, f"tools[{i}]") for i, tool in enumerate(_objects(tools, "tools"))]
    if (choice := fields.get("tool_choice")) is not None:
        chat["tool_choice"] = _tool_choice(choice)
    if (wanted := _format(fields.get("text"))) is not None:
        chat["response_format"] = wanted
    if effort := _object(fields.get("reasoning"), "reasoning").get("effort"):
        chat["reasoning_effort"] = effort
    return chat


def _messages(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if instructions := fields.get("instructions"):
        messages.append({"role": "system", "content": instructions})
    asked = fields.get("input")
    if isinstance(asked, str):
        return [*messages, {"role": "user", "content": asked}]
    for i, item in enumerate(_objects(asked, "input")):
        message = _message(item, f"input[{i}]")
        last = messages[-1] if messages else {}
        if "tool_calls" in message and "tool_calls" in last:  # the calls of a turn are one message
            last["tool_calls"] += message["tool_calls"]
        elif message:
            messages.append(message)
    return messages


def _message(item: Mapping[str, Any], path: str) -> dict[str, Any]:
    """An item of the input as a chat message; empty if chat has no such message."""
    kind = item.get("type", "message")
    if kind == "message":
        content = item.get("content")
        if isinstance(content, list):
            content = [_part(part, f"{path}.content[{i}]") for i, part in enumerate(content)]
        return {"role": item.get("role"), "content": content}
    if kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments", "{}")}
        call = {"id": item.get("call_id"), "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if kind == "function_call_output":
        output = item.get("output")
        text = output if isinstance(output, str) else json.dumps(output)
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": text}
    if kind == "reasoning":  # of the model, in an earlier turn
        return {}
    raise invalid(f"{path}.type", "must be message, function_call, function_call_output or reasoning")


def _part(part: Any, path: str) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in TEXTS:
        return {"type": "text", "text": part.get("text")}
    if kind == "refusal":
        return {"type": "refusal", "refusal": part.get("refusal")}
    if kind == "input_image":
        detail = {"detail": part["detail"]} if part.get("detail") else {}
        return {"type": "image_url", "image_url": {"url": part.get("image_url"), **detail}}
    raise invalid(path, "must be a part of type input_text or input_image")


def _tool(tool: Mapping[str, Any], path: str) -> dict[str, Any]:
    if tool.get("type") != "function":
        raise invalid(f"{path}.type", "must be function: the service has no built-in tools")
    return {"type": "function", "function": {name: one for name, one in tool.items() if name != "type"}}


def _tool_choice(choice: Any) -> Any:
    if isinstance(choice, str):
        return choice
    named = _object(choice, "tool_choice")
    if named.get("type") != "function":
        raise invalid("tool_choice", 'must be none, auto, required, or {"type": "function", "name": ...}')
    return {"type": "function", "function": {"name": named.get("name")}}


def _format(text: Any) -> dict[str, Any] | None:
    wanted = _object(_object(text, "text").get("format"), "text.format")
    if wanted.get("type") != "json_schema":
        return dict(wanted) or None
    schema = {name: one for name, one in wanted.items() if name != "type"}
    return {"type": "json_schema", "json_schema": schema}


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise invalid(path, "must be an object")
    return value or {}


def _objects(value: Any, path: str) -> Sequence[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        shape = "a text or a list of objects" if path == "input" else "a list of objects"
        raise invalid(path, f"must be {shape}")
    return value


class ResponsesReply(Reply):
    """A chat's answer as a response."""

    def completion(self) -> dict[str, Any]:
        return {
            **self._response("completed", self._items()),
            "usage": self._usage(),
            "rangevote": self.elections(),
        }

    def events(self) -> Iterator[bytes]:
        """The events: created, all events of every item, completed."""
        numbers = iter(range(2**62))

        def named(kind: str, **data: Any) -> bytes:
            content = {"type": kind, "sequence_number": next(numbers), **data}
            return f"event: {kind}\n".encode() + event(content)

        begun = self._response("in_progress", [])
        yield named("response.created", response=begun)
        yield named("response.in_progress", response=begun)
        items = self._items()
        for i, item in enumerate(items):
            yield named("response.output_item.added", output_index=i, item=_empty(item))
            for kind, data in _parts(item):
                yield named(kind, item_id=item["id"], output_index=i, **data)
            yield named("response.output_item.done", output_index=i, item=item)
        whole = {**self.completion(), "output": items}  # with the ids of the events
        yield named(f"response.{whole['status']}", response=whole)

    def _response(self, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        sent, ended = self.request.sent, self.winners[0].reason
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(ended)
        incomplete = reason is not None and status == "completed"
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": "incomplete" if incomplete else status,
            "error": None,
            "incomplete_details": {"reason": reason} if incomplete else None,
            "model": self.request.name,
            "output": output,
            "previous_response_id": None,
            "store": False,
            "truncation": "disabled",
            **{name: sent.get(name, default) for name, default in SENT_BACK.items()},
        }

    def _items(self) -> list[dict[str, Any]]:
        """The winner's reasoning, message and tool calls, as far as it has them."""
        id, winner = self.id.removeprefix("resp_"), self.winners[0]
        message, items = winner.message, list[dict[str, Any]]()
        if reasoning := winner.reasoning.get("reasoning_content"):
            summary = [{"type": "summary_text", "text": reasoning}]
            items.append({"id": f"rs_{id}", "type": "reasoning", "summary": summary})
        if message.get("refusal") is not None:
            content = {"type": "refusal", "refusal": message["refusal"]}
        else:
            content = {"type": "output_text", "text": message.get("content") or "", "annotations": []}
        called = message.get("tool_calls", ())
        if not called or message.get("content"):
            status = "incomplete" if winner.reason in ("length", "content_filter") else "completed"
            head = {"id": f"msg_{id}", "type": "message", "role": "assistant"}
            items.append({**head, "status": status, "content": [content]})
        for i, call in enumerate(called):
            function = call.get("function") or {}
            items.append(
                {
                    "id": f"fc_{id}{i}",
                    "type": "function_call",
                    "call_id": call.get("id") or f"call_{secrets.token_hex(8)}",
                    "name": function.get("name", ""),
                    "arguments": function.get("arguments", ""),
                    "status": "completed",
                }
            )
        return items

    def _usage(self) -> dict[str, Any]:
        usage = self.usage
        return {
            "input_tokens": usage.prompt,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage.completion,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.total,
        }


def _empty(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item without its content."""
    begun: dict[str, Any] = {
        "message": {"status": "in_progress", "content": []},
        "function_call": {"status": "in_progress", "arguments": ""},
        "reasoning": {"summary": []},
    }
    return {**item, **begun[item["type"]]}


def _parts(item: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events between the first and the last event of an item."""
    if item["type"] == "function_call":
        arguments, kind = item["arguments"], "response.function_call_arguments"
        yield f"{kind}.delta", {"delta": arguments}
        yield f"{kind}.done", {"arguments": arguments, "name": item["name"]}
        return
    logprobs: dict[str, Any] = {}
    if item["type"] == "reasoning":
        [part], name, number = item["summary"], "text", {"summary_index": 0}
        around, kind = "response.reasoning_summary_part", "response.reasoning_summary_text"
    else:
        [part], number = item["content"], {"content_index": 0}
        around, kind = "response.content_part", f"response.{part['type']}"
        name = "refusal" if part["type"] == "refusal" else "text"
        logprobs = {"logprobs": []} if name == "text" else {}
    yield f"{around}.added", {**number, "part": {**part, name: ""}}
    yield f"{kind}.delta", {**number, "delta": part[name], **logprobs}
    yield f"{kind}.done", {**number, name: part[name], **logprobs}
    yield f"{around}.done", {**number, "part": part}
