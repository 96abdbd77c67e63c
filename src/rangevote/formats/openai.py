"""Batch output of OpenAI and of `vllm run_batch`, chat or completions, one request a line.

    {"custom_id": "r1", "response": {"status_code": 200, "body": {"choices": [
        {"message": {"content": "Hi"}, "finish_reason": "stop",
         "logprobs": {"content": [{"token": "Hi", "logprob": -0.31}]}}]}}, "error": null}

A bare response body (`{"choices": [...]}`) is read too. What scores mean: natural log of P of each
token, without the end of the sequence; -9999 stands for "very unlikely" and is no number to add up.
Choices are samples: each counts once, and its log-probability only breaks ties. Since the end of the
sequence is missing, these may add up to more than 1, which is therefore not looked at. Refusals, and answers
of which a filter left nothing, are no candidates; a request that got nothing else is an error. What a model
wrote to itself before its answer does not vote. A choice that calls tools is elected by its calls.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from rangevote.errors import DataError
from rangevote.formats.jsonl import convert, parse
from rangevote.formats.logprobs import checked, settled, total
from rangevote.formats.reader import Decode, ReadOptions
from rangevote.hypothesis import Ballot, Hypothesis, ToolCall
from rangevote.similarity.answers import split_reasoning

#: At or below this, a server means "too unlikely to tell".
UNKNOWN = -9999.0
_EXPECTED = 'expected {"custom_id": "...", "response": {"body": {"choices": [...]}}}'


class Part(msgspec.Struct):
    """A piece of a message in pieces."""

    text: str = ""


class Message(msgspec.Struct):
    """What a chat model answered."""

    content: str | list[Part] | None = None
    refusal: str | None = None
    tool_calls: list[Any] | None = None
    function_call: Any = None


class Token(msgspec.Struct):
    """One token's log-probability."""

    logprob: float | None = None


class Logprobs(msgspec.Struct):
    """Of chat: `content`. Of completions: `token_logprobs`."""

    content: list[Token] | None = None
    token_logprobs: list[float | None] | None = None


class Choice(msgspec.Struct):
    """One sample."""

    message: Message | None = None
    text: str | None = None
    logprobs: Logprobs | None = None
    finish_reason: str | None = None


class Body(msgspec.Struct):
    """A response."""

    choices: list[Choice]
    id: str | None = None


def ended(reason: str | None) -> bool:
    """Whether the model ended the sequence itself, by a server's `finish_reason`."""
    return reason not in ("length", "abort", "content_filter")


class NamedCall(msgspec.Struct):
    """A tool's name with its arguments, or with the text that a tool of the user's own kind takes."""

    name: str
    arguments: str = "{}"
    input: str | None = None


class RawCall(msgspec.Struct):
    """One call of a message; its id is the server's, and no part of what is voted on."""

    function: NamedCall | None = None
    custom: NamedCall | None = None


def tool_calls_of(calls: list[Any] | None, function_call: Any, path: str) -> tuple[ToolCall, ...]:
    """The calls of a message, whose field is `path`: of functions, of custom tools, or the one of old."""
    if not calls and function_call:
        named = convert(function_call, NamedCall, f"{path}.function_call.")
        return (ToolCall(named.name, named.arguments),)
    listed = []
    for i, raw in enumerate(calls or ()):
        call = convert(raw, RawCall, f"{path}.tool_calls[{i}].")
        called = call.function or call.custom
        if called is None:
            raise DataError("has neither function nor custom", field=f"{path}.tool_calls[{i}]")
        text = called.arguments if called.input is None else json.dumps(called.input)
        listed.append(ToolCall(called.name, text))
    return tuple(listed)


def decoder(options: ReadOptions) -> Decode:
    """Ballots come in the order of the file, which is not that of the requests; failed ones are errors."""
    scored = settled(options, "openai")
    return lambda line: _ballot(parse(line), scored, options)


def _ballot(row: Any, scored: bool, options: ReadOptions) -> Ballot:
    if not isinstance(row, dict):
        raise DataError(_EXPECTED)
    path = "response.body." if "choices" not in row else ""
    body = _body(row) if path else row
    answer = convert(body, Body, path)
    custom = row.get("custom_id", answer.id)
    if not isinstance(custom, (str, int, type(None))) or isinstance(custom, bool):
        raise DataError("expected a string", field="custom_id")
    hypotheses = [
        _hypothesis(choice, i, f"{path}choices[{i}]", scored)
        for i, choice in enumerate(answer.choices)
        if not _refused(choice)
    ]
    _report_refusals(len(answer.choices) - len(hypotheses), len(answer.choices), f"{path}choices", options)
    return Ballot(hypotheses, id=custom)


def _hypothesis(choice: Choice, index: int, path: str, scored: bool) -> Hypothesis:
    finished, message = ended(choice.finish_reason), choice.message
    if message is not None and (message.tool_calls or message.function_call):
        calls = tool_calls_of(message.tool_calls, message.function_call, f"{path}.message")
        return Hypothesis(_text(choice, path) or None, finished=finished, sampled=True, tool_calls=calls)
    reasoning, text = split_reasoning(_text(choice, path), finished)
    known = _token_logprobs(choice) if scored else None
    # the log-probability of a choice with reasoning is not that of its text
    logprob = None if known is None or reasoning else checked(total(known), index, "choices")
    return Hypothesis(text, logprob=logprob, finished=finished, sampled=True, token_logprobs=known)


def _refused(choice: Choice) -> bool:
    """Whether there is no answer: a refusal, or one of which a filter left nothing."""
    message = choice.message
    if message is not None and message.refusal:
        return True
    text = choice.text if message is None else message.content
    return choice.finish_reason == "content_filter" and not text


def _report_refusals(refused: int, choices: int, field: str, options: ReadOptions) -> None:
    if refused and refused == choices:
        raise DataError(
            "every choice is a refusal or was filtered out, so there is nothing to vote on", field=field
        )
    if refused:
        options.report(
            "a refusal, or an answer that was filtered out, is no candidate and is left out",
            field=field,
            key=("refusal", field),
        )


def _body(row: dict[str, Any]) -> Any:
    """The response of a request that succeeded."""
    response, error = row.get("response"), row.get("error")
    status = response.get("status_code") if isinstance(response, dict) else None
    if error is not None or (status is not None and status != 200):
        body = response.get("body") if isinstance(response, dict) else None
        error = error or (body.get("error") if isinstance(body, dict) else None)
        message = error.get("message") if isinstance(error, dict) else error
        raise DataError(
            f"request {row.get('custom_id')!r} failed"
            + (f" with status {status}" if status is not None else "")
            + (f": {message}" if message else "")
        )
    if not isinstance(response, dict) or not isinstance(response.get("body"), dict):
        raise DataError(f"has no response body; {_EXPECTED}")
    return response["body"]


def _text(choice: Choice, path: str) -> str:
    """The text of a choice; null is what a model says that ran out of tokens while thinking."""
    if choice.message is None:
        if choice.text is None:
            raise DataError("has neither message nor text", field=path)
        return choice.text
    content = choice.message.content
    if isinstance(content, list):
        return "".join(part.text for part in content)
    return content or ""


def _token_logprobs(choice: Choice) -> list[float] | None:
    """Those of all tokens, None unless every one is known."""
    logprobs = choice.logprobs
    if logprobs is None:
        return None
    if logprobs.content is not None:
        values = [token.logprob for token in logprobs.content]
    else:
        values = list(logprobs.token_logprobs or ())
    known = [value for value in values if value is not None and not value <= UNKNOWN]
    return known if known and len(known) == len(values) else None
