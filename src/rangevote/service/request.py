"""A request, read and checked: what goes to the model, and how the answer is elected.

Parameters that are not known are refused, never dropped: an answer would not be what was asked for.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rangevote.errors import DataError, RangevoteError
from rangevote.formats.exact import parse
from rangevote.service.content import check_messages, check_names, check_prompt
from rangevote.service.options import Options
from rangevote.service.problem import Problem, wrong
from rangevote.service.settings import ServiceSettings

Kind = Literal["chat", "completions"]
Check = Callable[[Any], bool]


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _stop(value: Any) -> bool:
    several = isinstance(value, list) and 0 < len(value) <= 16 and all(isinstance(one, str) for one in value)
    return isinstance(value, str) or several


#: Parameters that go to the model as they are: what they must be, in words and as a test.
PASSED: dict[str, tuple[str, Check]] = {
    "temperature": ("a number from 0", lambda value: _number(value) and value >= 0),
    "top_p": ("a number above 0 and up to 1", lambda value: _number(value) and 0 < value <= 1),
    "max_tokens": ("a whole number from 1", lambda value: _whole(value) and value >= 1),
    "stop": ("a text, or a list of up to 16 texts", _stop),
    "seed": ("a whole number", _whole),
    "presence_penalty": ("a number", _number),
    "frequency_penalty": ("a number", _number),
    "logit_bias": ("an object", lambda value: isinstance(value, dict)),
    "user": ("a text", lambda value: isinstance(value, str)),
    "top_k": ("a whole number", _whole),
    "min_p": ("a number", _number),
    "min_tokens": ("a whole number from 0", lambda value: _whole(value) and value >= 0),
    "repetition_penalty": ("a number", _number),
}
CHAT: dict[str, tuple[str, Check]] = {
    "max_completion_tokens": PASSED["max_tokens"],
    "response_format": ("an object", lambda value: isinstance(value, dict)),
    "reasoning_effort": ("a text", lambda value: isinstance(value, str)),
}
COMPLETIONS: dict[str, tuple[str, Check]] = {"suffix": ("a text", lambda value: isinstance(value, str))}
#: Parameters that are the service's own.
OWN = ("model", "messages", "prompt", "n", "stream", "stream_options", "rangevote", "logprobs", "echo")
#: Parameters of OpenAI's that an election cannot honour.
TOOLS = frozenset({"tools", "tool_choice", "functions", "function_call", "parallel_tool_calls"})


@dataclass(frozen=True)
class Order:
    """One request. `body` goes to the model, without the number of samples; `name` is what the client calls
    the model."""

    kind: Kind
    name: str
    body: Mapping[str, Any]
    n: int
    stream: bool
    include_usage: bool
    options: Options

    @property
    def seed(self) -> int | None:
        """The client's seed."""
        seed: int | None = self.body.get("seed")
        return seed


def read_order(content: bytes, kind: Kind, profile: str | None, settings: ServiceSettings) -> Order:
    """The request in a body; a `Problem` names the field that cannot be meant."""
    body = _object(content)
    check_names(body)
    given = {name: value for name, value in body.items() if value is not None}
    _check_known(given, kind, settings)
    name = given.get("model")
    if not isinstance(name, str) or not name or len(name) > 256 or not name.isprintable():
        raise wrong("model", "must be the name of a model")
    alias = settings.aliases.get(name)
    passed = {key: value for key, value in given.items() if key not in OWN}
    passed["model"] = name if alias is None else alias.model
    if kind == "chat":
        check_messages(given.get("messages"), settings)
        passed["messages"] = given["messages"]
    else:
        passed["prompt"] = check_prompt(given.get("prompt"), settings)
    options = _options(given, profile or (None if alias is None else alias.profile), settings)
    n = _n(given.get("n", 1), options)
    stream = _flag(given, "stream")
    include_usage = _include_usage(given, stream)
    return Order(kind, name, passed, n, stream, include_usage, options)


def _object(content: bytes) -> dict[str, Any]:
    try:
        body = parse(content)
    except DataError as error:
        raise Problem(
            400, f"the request is {error}"[:300] if not error.field else f"{error}"[:300], code="invalid_json"
        ) from None
    if not isinstance(body, dict):
        raise Problem(400, "the request must be a JSON object", code="invalid_json")
    return body


def _check_known(given: Mapping[str, Any], kind: Kind, settings: ServiceSettings) -> None:
    checks = {**PASSED, **(CHAT if kind == "chat" else COMPLETIONS)}
    for name, value in given.items():
        shown = name[:60]
        if name in TOOLS and not (value is False or value == "none" or value == []):
            raise wrong(shown, "is not supported: calls of tools cannot be voted on", "unsupported_parameter")
        if name in checks:
            told, check = checks[name]
            if not check(value):
                raise wrong(shown, f"must be {told}")
        elif name not in OWN and name not in settings.forward and name not in TOOLS:
            near = difflib.get_close_matches(shown, [*checks, *OWN], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise wrong(shown, f"is not a parameter of this service{hint}", "unsupported_parameter")
    other = "prompt" if kind == "chat" else "messages"
    if other in given:
        raise wrong(other, f"does not belong to {kind}", "unsupported_parameter")
    for name in ("logprobs", "echo"):
        if given.get(name, False) is not False:
            raise wrong(name, "is not supported; see rangevote.explain for scores", "unsupported_parameter")


def _options(given: Mapping[str, Any], profile: str | None, settings: ServiceSettings) -> Options:
    if profile is not None and profile not in settings.profiles:
        raise Problem(404, "there is no such profile", code="profile_not_found")
    options = settings.options if profile is None else settings.profiles[profile]
    asked = given.get("rangevote", {})
    if not isinstance(asked, dict):
        raise wrong("rangevote", 'must be an object, as {"samples": 16}')
    try:
        options = options.changed(asked)
        settings.check_orders(options)
    except RangevoteError as error:
        named = next((name for name in asked if str(error).startswith((name, f"unknown {name}"))), None)
        param = "rangevote" if named is None else f"rangevote.{named}"
        raise Problem(400, f"rangevote: {error}"[:300], code="invalid_value", param=param) from None
    if options.samples > settings.limits.samples:
        raise wrong("rangevote.samples", f"must be at most {settings.limits.samples}")
    if options.min_votes > options.samples:
        raise wrong("rangevote.min_votes", f"must be at most the number of samples, {options.samples}")
    return options


def _n(n: Any, options: Options) -> int:
    """How many winners; several are elected by reweighted range voting."""
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= options.samples:
        raise wrong("n", f"must be a whole number from 1 to the number of samples, {options.samples}")
    try:
        options.settings(n)
    except RangevoteError as error:
        raise wrong("n", f"cannot be combined with the other options: {error}"[:300]) from None
    return n


def _flag(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise wrong(name, "must be true or false")
    return value


def _include_usage(given: Mapping[str, Any], stream: bool) -> bool:
    options = given.get("stream_options")
    if options is None:
        return False
    if not stream or not isinstance(options, dict) or not options.keys() <= {"include_usage"}:
        raise wrong("stream_options", "may hold include_usage, and needs stream")
    return _flag(options, "include_usage")
