"""Responses of OpenAI-compatible servers, checked: chat and plain completions.

Log-probabilities are natural, one a token, mostly without the end of the sequence; -9999 stands for "very
unlikely" and is no number to add up. A sum is given only where every token's part of it is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeGuard, cast

import msgspec

from rangevote.errors import DataError
from rangevote.formats.jsonl import shape_error
from rangevote.formats.layouts import UNKNOWN, ended, tool_calls_of
from rangevote.hypothesis import LOGPROB_SLACK, Hypothesis, ToolCall
from rangevote.similarity.answers import split_reasoning
from rangevote.text import escape_controls

#: Text to vote on, nothing, a refusal (its text is the reason), or tool calls.
ChoiceKind = Literal["text", "null", "refusal", "tool_calls"]
#: Paths under the base URL.
CHAT = "/chat/completions"
COMPLETIONS = "/completions"
#: Characters of a server's error message that are shown.
SHOWN = 300
#: Larger counts of tokens are taken for a mistake.
MOST_TOKENS = 2**48


class ServerChoice(NamedTuple):
    """One sample of a server.

    `logprob` is the natural-log sum over the `tokens` it lists, None unless every one is known. Most servers
    do not list the end of the sequence. `reasoning` is what the model wrote to itself before the text; the
    sum is of both, since their tokens are not told apart. `calls` are those of tools, `raw` is the choice as
    the server sent it, `member` the member of a panel that it is of.
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
    """A piece of a message in pieces."""

    text: str = ""


class ChatMessage(msgspec.Struct):
    content: str | list[Part] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[Any] | None = None
    function_call: Any = None


class RawChoice(msgspec.Struct):
    """One choice before it is checked; for log-probabilities see `_values`."""

    index: Any = None
    message: ChatMessage | None = None
    text: str | None = None
    logprobs: Any = None
    finish_reason: str | None = None


class Completion(msgspec.Struct):
    choices: list[RawChoice]


def choices_of(body: object, path: str = CHAT) -> list[ServerChoice]:
    """The choices of a response to a request at `path`, in the server's order, repeated ones once.

    A `DataError` says what does not have the expected shape.
    """
    try:
        given = msgspec.convert(body, Completion).choices
    except msgspec.ValidationError as error:
        raise shape_error(error) from None
    chat = path.rstrip("/").endswith(CHAT)
    return [_choice(one, f"choices[{i}]", chat) for i, one in enumerate(_distinct(given))]


def hypothesis_of(choice: ServerChoice, *, sampled: bool = True) -> Hypothesis:
    """A choice that may vote and be elected; one without text or calls of tools cannot.

    The log-probability of a sample with reasoning is not that of its text, so it is left out.
    """
    if choice.text is None and not choice.calls:
        raise DataError(f"a choice of kind {choice.kind!r} has no text to vote on")
    logprob = None if sampled and choice.reasoning else choice.logprob
    return Hypothesis(
        choice.text,
        logprob=logprob,
        finished=ended(choice.finish_reason),
        sampled=sampled,
        token_logprobs=choice.token_logprobs,
        member=choice.member,
        tool_calls=choice.calls or None,
    )


def hypotheses_in(choices: Iterable[ServerChoice], *, sampled: bool = True) -> list[Hypothesis]:
    """The choices that have text or call tools; refusals and null content are left out."""
    return [hypothesis_of(one, sampled=sampled) for one in choices if one.kind in ("text", "tool_calls")]


def usage_of(body: Mapping[str, Any], choices: Sequence[ServerChoice] = ()) -> Usage:
    """The tokens of a response with these choices; 0 where the server does not report them.

    llama.cpp, which adds its `timings`, counts the first choice alone. The others count the tokens that they
    list, or else as many as the first in proportion to their characters.
    """
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return Usage()
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if len(choices) > 1 and "timings" in body:
        sizes = [choice.tokens or 0 for choice in choices]
        if not all(sizes):
            sizes = [len(choice.reasoning) + len(choice.text or "") for choice in choices]
        completion = round(completion * sum(sizes) / sizes[0]) if sizes[0] else completion * len(choices)
        completion = min(completion, MOST_TOKENS)
    return Usage(prompt, completion, max(_count(usage.get("total_tokens")), prompt + completion))


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


def _count(value: object) -> int:
    return value if type(value) is int and 0 < value < MOST_TOKENS else 0


def _distinct(given: Sequence[RawChoice]) -> Iterator[RawChoice]:
    """Each choice once: the same index with the same content is one choice sent twice.

    Servers that do not number their choices give all the same index: then nothing is left out, since equal
    samples count; and nothing where all are different.
    """
    numbers = [one.index if type(one.index) is int else None for one in given]
    if len(set(numbers)) in (0, 1, len(numbers)):
        yield from given
        return
    seen: set[tuple[int | None, str]] = set()
    for number, one in zip(numbers, given, strict=True):
        message = one.message
        key = (number, str(one.text if message is None else (message.content, message.tool_calls)))
        if number is None or key not in seen:
            yield one
        seen.add(key)


def _choice(given: RawChoice, field: str, chat: bool) -> ServerChoice:
    values = _values(given.logprobs)
    logprob, tokens = _total(values), None if values is None else len(values)
    text, kind = _message_text(given.message, field) if chat else _completion_text(given.text, field)
    if given.finish_reason == "error":  # what came before is not an answer
        text, kind = None, "null"
    calls: tuple[ToolCall, ...] = ()
    if kind == "tool_calls" and given.message is not None:
        try:
            calls = tool_calls_of(given.message.tool_calls, given.message.function_call, f"{field}.message")
        except DataError:  # calls that cannot be read are none to vote on
            calls = ()
    reasoning = _reasoning(given.message)
    if kind == "text" and text and not reasoning:
        reasoning, text = split_reasoning(text, ended(given.finish_reason))
    return ServerChoice(
        text,
        logprob if kind == "text" else None,
        None if reasoning else tokens,
        given.finish_reason,
        kind,
        reasoning,
        _known(values) if kind == "text" else None,
        calls,
        given,
    )


def _reasoning(message: ChatMessage | None) -> str:
    """What a server tells apart itself, by one of two names."""
    given = (message.reasoning_content, message.reasoning) if message is not None else ()
    return next((one for one in given if isinstance(one, str) and one), "")


def _completion_text(text: str | None, field: str) -> tuple[str, ChoiceKind]:
    if text is None:
        raise DataError("has no text", field=field)
    return text, "text"


def _message_text(message: ChatMessage | None, field: str) -> tuple[str | None, ChoiceKind]:
    if message is None:
        raise DataError("has no message", field=field)
    content = message.content
    if message.refusal:
        return message.refusal, "refusal"
    called = bool(message.tool_calls or message.function_call)
    if content is None:
        return None, "tool_calls" if called else "null"
    text = content if isinstance(content, str) else "".join(part.text for part in content)
    return (text or None, "tool_calls") if called else (text, "text")


def _values(logprobs: object) -> list[object] | None:
    """Every token's log-probability, whatever it is; None where none is listed.

    Chat has `content: [{"logprob": -1.2}]`, completions `token_logprobs: [-1.2]`; some servers answer
    completions in the way of chat. Anything else there is ignored: the text is still good.
    """
    if not isinstance(logprobs, dict):
        return None
    listed = logprobs.get("content")
    if isinstance(listed, list):
        return [token.get("logprob") if isinstance(token, dict) else None for token in listed]
    listed = logprobs.get("token_logprobs")
    return listed if isinstance(listed, list) else None


def _known(values: Sequence[object] | None) -> list[float] | None:
    """The log-probabilities of all tokens, None unless every one is finite and known."""
    known = [value for value in values or () if _is_known(value)]
    return known if known and len(known) == len(values or ()) else None


def _total(values: Sequence[object] | None) -> float | None:
    """Their sum."""
    known = _known(values)
    return None if known is None else min(math.fsum(known), 0.0)


def _is_known(value: object) -> TypeGuard[float]:
    """Whether it is a log-probability; NaN fails both comparisons."""
    return type(value) in (int, float) and UNKNOWN < cast(float, value) <= LOGPROB_SLACK
