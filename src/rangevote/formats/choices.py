"""Choices of OpenAI-compatible servers, chat or completions: in the responses of servers and in batch files.

    {"message": {"content": "Hi"}, "finish_reason": "stop",
     "logprobs": {"content": [{"token": "Hi", "logprob": -0.31}]}}

Log-probabilities are natural, one for each token, mostly without the end of the sequence; -9999 stands for
"very unlikely" and is not a number to add up. A sum is given only where every token's part is known. What a
model wrote to itself before its answer is told apart, and a choice that calls tools is known by its calls.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from rangevote.errors import DataError
from rangevote.formats.jsonl import convert
from rangevote.hypothesis import LOGPROB_SLACK, Hypothesis, ToolCall
from rangevote.text import escape_controls, split_reasoning

#: Text to vote on, nothing, a refusal (its text is the reason), or tool calls.
ChoiceKind = Literal["text", "null", "refusal", "tool_calls"]
#: Paths under the base URL of a server.
CHAT = "/chat/completions"
COMPLETIONS = "/completions"
#: At or below this log-probability, a server means "too unlikely to tell".
UNKNOWN = -9999.0
#: Characters of a server's error message that are shown.
SHOWN = 300
#: Larger counts of tokens are taken for a mistake.
MOST_TOKENS = 2**48


class ServerChoice(NamedTuple):
    """One sample of a server.

    `logprob` is the natural-log sum over the `tokens` it lists, None unless every one is known. Most servers
    do not list the end of the sequence. `reasoning` is what the model wrote to itself before the text; the
    sum is of both, since their tokens are not told apart. `calls` are tool calls, `raw` is the choice as the
    server sent it, `member` the member of a panel that it is of.
    """

    text: str | None
    logprob: float | None = None
    tokens: int | None = None
    finish_reason: str | None = None
    kind: ChoiceKind = "text"
    reasoning: str = ""
    token_logprobs: Sequence[float] | None = None
    calls: tuple[ToolCall, ...] = ()
    raw: RawChoice | None = None
    member: str | None = None


class Usage(NamedTuple):
    """Tokens of one or more calls; `+` adds them up."""

    prompt: int = 0
    completion: int = 0
    total: int = 0

    def __add__(self, other: object) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Part(msgspec.Struct):
    """One text part of a message whose content is a list."""

    text: str = ""


class ChatMessage(msgspec.Struct):
    content: str | list[Part] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[Any] | None = None
    function_call: Any = None


class RawChoice(msgspec.Struct):
    """One choice before it is checked: of chat it has a `message`, of completions a `text`."""

    index: Any = None
    message: ChatMessage | None = None
    text: str | None = None
    logprobs: Any = None
    finish_reason: str | None = None


class Completion(msgspec.Struct):
    choices: list[RawChoice]


class NamedCall(msgspec.Struct):
    """A tool's name with its arguments, or with the text that a custom tool takes."""

    name: str
    arguments: str = "{}"
    input: str | None = None


class RawCall(msgspec.Struct):
    """One call of a message. Its id is made by the server and does not vote."""

    function: NamedCall | None = None
    custom: NamedCall | None = None


def choices_of(body: object) -> list[ServerChoice]:
    """The choices of a response, in the server's order, repeated ones once.

    A `DataError` says what does not have the expected shape.
    """
    choices = _distinct(convert(body, Completion).choices)
    return [read_choice(choice, f"choices[{i}]") for i, choice in enumerate(choices)]


def _distinct(choices: Sequence[RawChoice]) -> Iterator[RawChoice]:
    """Each choice once: the same index with the same content is one choice sent twice.

    Servers that do not number their choices give all the same index: then nothing is left out, since equal
    samples count; and nothing where all are different.
    """
    numbers = [c.index if type(c.index) is int else None for c in choices]
    if len(set(numbers)) in (0, 1, len(numbers)):
        yield from choices
        return
    seen: set[tuple[int | None, str]] = set()
    for number, choice in zip(numbers, choices, strict=True):
        message = choice.message
        key = (number, str(choice.text if message is None else (message.content, message.tool_calls)))
        if number is None or key not in seen:
            yield choice
        seen.add(key)


def read_choice(raw: RawChoice, field: str, *, strict: bool = False) -> ServerChoice:
    """A choice. Tool calls that cannot be read are left out, as is a sum with a token of P > 1; with
    `strict` the first is an error, and the second is left to the caller."""
    text, kind = _text(raw, field)
    message, calls = raw.message, tuple[ToolCall, ...]()
    if message is not None and kind == "tool_calls":
        try:
            calls = tool_calls_of(message.tool_calls, message.function_call, f"{field}.message")
        except DataError:
            if strict:
                raise
    texts = () if message is None else (message.reasoning_content, message.reasoning)  # one of two names
    reasoning = next((text for text in texts if isinstance(text, str) and text), "")
    if kind == "text" and text and not reasoning:
        reasoning, text = split_reasoning(text, ended(raw.finish_reason))
    values = _logprobs(raw.logprobs)
    most = math.inf if strict else LOGPROB_SLACK
    valid = [value for value in values if type(value) in (int, float) and UNKNOWN < value <= most]
    complete = kind == "text" and valid and len(valid) == len(values)
    return ServerChoice(
        text,
        min(math.fsum(valid), 0.0) if complete and max(valid) <= LOGPROB_SLACK else None,
        None if reasoning else len(values) or None,
        raw.finish_reason,
        kind,
        reasoning,
        valid if complete else None,
        calls,
        raw,
    )


def _text(raw: RawChoice, field: str) -> tuple[str | None, ChoiceKind]:
    if raw.finish_reason == "error":  # what came before is not an answer
        return None, "null"
    message = raw.message
    if message is None:
        if raw.text is None:
            raise DataError("has neither message nor text", field=field)
        return raw.text, "text"
    if message.refusal:
        return message.refusal, "refusal"
    content = message.content
    text = "".join(part.text for part in content) if isinstance(content, list) else content
    if message.tool_calls or message.function_call:
        return text or None, "tool_calls"
    return text, "null" if text is None else "text"


def _logprobs(logprobs: object) -> list[Any]:
    """Every token's log-probability, whatever it is.

    Chat has `content: [{"logprob": -1.2}]`, completions `token_logprobs: [-1.2]`; some servers answer
    completions in the way of chat. Anything else there is ignored: the text is still good.
    """
    if not isinstance(logprobs, dict):
        return []
    values = logprobs.get("content")
    if isinstance(values, list):
        return [token.get("logprob") if isinstance(token, dict) else None for token in values]
    values = logprobs.get("token_logprobs")
    return values if isinstance(values, list) else []


def tool_calls_of(calls: Any, function_call: Any, path: str) -> tuple[ToolCall, ...]:
    """The tool calls of the message at `path`: of functions, of custom tools, or the one of the old API."""
    if not calls and function_call:
        named = convert(function_call, NamedCall, f"{path}.function_call.")
        return (ToolCall(named.name, named.arguments),)
    tool_calls = []
    for i, call in enumerate(convert(calls or [], list[RawCall], f"{path}.tool_calls")):
        called = call.function or call.custom
        if called is None:
            raise DataError("has neither function nor custom", field=f"{path}.tool_calls[{i}]")
        text = called.arguments if called.input is None else json.dumps(called.input)
        tool_calls.append(ToolCall(called.name, text))
    return tuple(tool_calls)


def ended(reason: object) -> bool:
    """Whether the model ended the sequence itself, by a server's `finish_reason`."""
    return reason not in ("length", "abort", "content_filter")


def hypothesis_of(choice: ServerChoice, *, sampled: bool = True) -> Hypothesis:
    """A choice that may vote and be elected; one without text or tool calls cannot.

    The log-probability of a sample with reasoning is not that of its text, so it is left out.
    """
    if choice.text is None and not choice.calls:
        raise DataError(f"a choice of kind {choice.kind!r} has no text to vote on")
    return Hypothesis(
        choice.text,
        logprob=None if sampled and choice.reasoning else choice.logprob,
        finished=ended(choice.finish_reason),
        sampled=sampled,
        token_logprobs=choice.token_logprobs,
        member=choice.member,
        tool_calls=choice.calls or None,
    )


def hypotheses_in(choices: Iterable[ServerChoice], *, sampled: bool = True) -> list[Hypothesis]:
    """The choices that have text or call tools; refusals and null content are left out."""
    return [
        hypothesis_of(choice, sampled=sampled) for choice in choices if choice.kind in ("text", "tool_calls")
    ]


def usage_of(body: Mapping[str, Any], choices: Sequence[ServerChoice] = (), most: float = math.inf) -> Usage:
    """The tokens of a response with these choices; 0 where the server does not report them.

    llama.cpp, which adds its `timings`, counts the first choice alone. The others count the tokens that they
    list, or else as many as the first in proportion to their characters, and at most `most` each.
    """
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return Usage()
    prompt, completion, total = (
        count if type(count) is int and 0 < count < MOST_TOKENS else 0
        for count in map(usage.get, ("prompt_tokens", "completion_tokens", "total_tokens"))
    )
    if len(choices) > 1 and "timings" in body:
        sizes = [choice.tokens or 0 for choice in choices]
        if not all(sizes):
            sizes = [len(choice.reasoning) + len(choice.text or "") for choice in choices]
        each = [completion * size / sizes[0] if sizes[0] else completion for size in sizes]
        completion = min(round(sum(min(one, most) for one in each)), MOST_TOKENS)
    return Usage(prompt, completion, max(total, prompt + completion))


def error_text(error: object) -> str:
    """A server's error on one line: its `message` where it has one.

    >>> error_text({"message": "slow\\n down", "code": 429})
    'slow down'
    """
    message = error.get("message", error) if isinstance(error, dict) else error
    try:
        text = str(message)
    except (ValueError, RecursionError):  # a number of too many digits, lists in lists in lists
        text = "(an error that cannot be shown)"
    return escape_controls(" ".join(text.split()))[:SHOWN]


# Batch files


def candidate_of(record: Mapping[str, Any], path: str) -> dict[str, Any] | None:
    """The fields of the hypothesis of a choice in a file; None if the model refused to answer. Null
    content is an answer that ran out of tokens."""
    choice = read_choice(convert(record, RawChoice, f"{path}."), path, strict=True)
    if choice.kind == "refusal" or (choice.finish_reason == "content_filter" and not choice.text):
        return None
    if choice.kind != "tool_calls":
        choice = choice._replace(text=choice.text or "")
    return msgspec.structs.asdict(hypothesis_of(choice))


def answered(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse a failed request; a response of the Responses API becomes a choice of chat."""
    if "choices" in record:
        return record
    if record.get("object") == "response":
        return {**record, "choices": [_response_choice(record)]}
    id, response, error = record.get("custom_id"), record.get("response"), record.get("error")
    if not isinstance(id, (str, int, type(None))) or isinstance(id, bool):
        raise DataError("expected a string", field="custom_id")
    status, body = _field(response, "status_code"), _field(response, "body")
    if error is not None or status not in (None, 200):
        message = _field(error or _field(body, "error"), "message") or error
        raise DataError(
            f"request {id!r} failed"
            + (f" with status {status}" if status is not None else "")
            + (f": {message}" if isinstance(message, str) else "")
        )
    if not isinstance(body, dict):
        raise DataError('has no response body; expected {"response": {"body": {"choices": [...]}}}')
    return {**record, "choices": [_response_choice(body)]} if isinstance(body.get("output"), list) else record


def _response_choice(body: Mapping[str, Any]) -> dict[str, Any]:
    """The items of a response (messages and tool calls) as one choice."""
    items = [item for item in body.get("output") or () if isinstance(item, Mapping)]
    parts = [part for item in items if item.get("type") == "message" for part in item.get("content") or ()]
    functions = [{"function": item} for item in items if item.get("type") == "function_call"]
    custom = [{"custom": item} for item in items if item.get("type") == "custom_tool_call"]
    refusals = [_field(part, "refusal") for part in parts if _field(part, "type") == "refusal"]
    reason = "stop"
    if body.get("status") == "incomplete":
        filtered = _field(body.get("incomplete_details"), "reason") == "content_filter"
        reason = "content_filter" if filtered else "length"
    return {
        "message": {
            "content": [part for part in parts if _field(part, "type") != "refusal"],
            "refusal": "".join(map(str, refusals)) or None,
            "tool_calls": functions + custom,
        },
        "finish_reason": reason,
        "logprobs": {"content": [token for part in parts for token in _field(part, "logprobs") or ()]},
    }


def _field(value: object, name: str) -> Any:
    """A field of a JSON object; None for other values and for missing fields."""
    return value.get(name) if isinstance(value, Mapping) else None
