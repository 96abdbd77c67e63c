"""A request, read and checked: what goes to the model, and how the answer is elected.

Parameters that are not known go to the model's server as they are: it knows what it understands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from rangevote.errors import DataError, RangevoteError
from rangevote.formats.jsonl import parse
from rangevote.service.config import RequestOptions, ServiceConfig
from rangevote.service.errors import ApiError, invalid
from rangevote.similarity.ngram import Ngrams

Endpoint = Literal["chat", "completions", "responses"]
Check = Callable[[Any], bool]

#: Names by which requests have been made to send keys elsewhere; refused anywhere in a request.
FORBIDDEN = frozenset({"api_base", "base_url", "extra_headers", "extra_body", "extra_query", "api_key"})
#: Levels of objects and lists inside each other.
DEEPEST = 64
#: Objects and lists in all.
MOST = 50_000
ROLES = ("assistant", "developer", "function", "system", "tool", "user")
#: Kinds of pictures in data URIs.
PICTURES = (
    "data:image/png;base64,",
    "data:image/jpeg;base64,",
    "data:image/webp;base64,",
    "data:image/gif;base64,",
)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _stop(value: Any) -> bool:
    several = isinstance(value, list) and 0 < len(value) <= 16 and all(isinstance(one, str) for one in value)
    return isinstance(value, str) or several


def _objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


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
    "tools": ("a list of objects", lambda value: _objects(value)),
    "functions": ("a list of objects", lambda value: _objects(value)),
    "logprobs": ("true or false", lambda value: isinstance(value, bool)),
    "max_completion_tokens": PASSED["max_tokens"],
    "response_format": ("an object", lambda value: isinstance(value, dict)),
    "reasoning_effort": ("a text", lambda value: isinstance(value, str)),
}
COMPLETIONS: dict[str, tuple[str, Check]] = {
    "suffix": ("a text", lambda value: isinstance(value, str)),
    "logprobs": ("a whole number from 0", lambda value: _whole(value) and value >= 0),
}
#: Parameters that the service uses itself.
OWN = ("model", "messages", "prompt", "n", "stream", "stream_options", "rangevote")
#: Parameters that an election cannot support, and what to do instead.
UNSUPPORTED = {
    "best_of": "is what an election does: say how many samples with rangevote.samples",
    "use_beam_search": 'is rangevote.candidates = "beam:10" here, of a vLLM server',
    "audio": "is not supported: sounds cannot be voted on",
    "previous_response_id": "is not supported: the service keeps no conversations; send the whole input",
    "conversation": "is not supported: the service keeps no conversations; send the whole input",
    "background": "is not supported; use stream",
}


@dataclass(frozen=True)
class CompletionRequest:
    """One request. `body` goes to the model, without the number of samples; `name` is what the client calls
    the model. Of several `prompts` each is an election of its own."""

    endpoint: Endpoint
    name: str
    body: Mapping[str, Any]
    n: int
    stream: bool
    include_usage: bool
    options: RequestOptions
    prompts: tuple[str | list[int], ...] = ()

    def each(self) -> list[CompletionRequest]:
        """The requests for one election each."""
        several = [replace(self, body={**self.body, "prompt": one}, prompts=()) for one in self.prompts]
        return several or [self]

    @property
    def json(self) -> bool:
        """Whether the answer must be JSON."""
        return asks_for_json(self.body)

    @property
    def question(self) -> str:
        """What was asked, as far as it is text: the last message, or the prompt."""
        if self.endpoint == "completions":
            return str(self.body["prompt"])
        content = self.body["messages"][-1].get("content")
        if isinstance(content, list):
            content = " ".join(str(part.get("text", "")) for part in content)
        return str(content or "")

    @property
    def seed(self) -> int | None:
        seed: int | None = self.body.get("seed")
        return seed


def read_request(
    content: bytes, profile: str | None, config: ServiceConfig, endpoint: Endpoint
) -> CompletionRequest:
    """The request in a body; an `ApiError` names the parameter that is wrong."""
    body = read_object(content)
    given = {name: value for name, value in body.items() if value is not None}
    _check_known(given, endpoint)
    name = given.get("model")
    if not isinstance(name, str) or not name or len(name) > 256 or not name.isprintable():
        raise invalid("model", "must be the name of a model")
    alias = config.aliases.get(name)
    passed = {key: value for key, value in given.items() if key not in OWN}
    passed["model"] = name if alias is None else alias.model
    prompts: tuple[str | list[int], ...] = ()
    if endpoint == "chat":
        check_messages(given.get("messages"), config)
        passed["messages"] = given["messages"]
    else:
        prompts = check_prompts(given.get("prompt"), config)
        passed["prompt"] = prompts[0]
    options = _options(given, profile or (None if alias is None else alias.profile), config)
    if asks_for_json(passed) and isinstance(options.settings(1).measure, Ngrams):
        options = options.changed({"tokenize": "json", **options.election})
    n = _n(given.get("n", 1), options)
    stream = _flag(given, "stream")
    include_usage = _include_usage(given, stream)
    several = prompts if len(prompts) > 1 else ()
    return CompletionRequest(endpoint, name, passed, n, stream, include_usage, options, several)


def asks_for_json(body: Mapping[str, Any]) -> bool:
    wanted = body.get("response_format")
    return isinstance(wanted, Mapping) and wanted.get("type") in ("json_object", "json_schema")


def read_object(content: bytes) -> dict[str, Any]:
    """The object in a body, without names that could send it elsewhere."""
    try:
        body = parse(content)
    except DataError as error:
        message = str(error) if error.field else f"the request is {error}"
        raise ApiError(400, message[:300], code="invalid_json") from None
    if not isinstance(body, dict):
        raise ApiError(400, "the request must be a JSON object", code="invalid_json")
    check_names(body)
    return body


def _check_known(given: Mapping[str, Any], endpoint: Endpoint) -> None:
    checks = {**PASSED, **(CHAT if endpoint == "chat" else COMPLETIONS)}
    for name, value in given.items():
        if name in UNSUPPORTED or (name == "modalities" and value != ["text"]):
            raise invalid(name, UNSUPPORTED.get(name, UNSUPPORTED["audio"]), "unsupported_parameter")
        if name in checks:
            expected, check = checks[name]
            if not check(value):
                raise invalid(name, f"must be {expected}")
    other = "prompt" if endpoint == "chat" else "messages"
    if other in given:
        raise invalid(other, f"does not belong to {endpoint}", "unsupported_parameter")


def _options(given: Mapping[str, Any], profile: str | None, config: ServiceConfig) -> RequestOptions:
    if profile is not None and profile not in config.profiles:
        raise ApiError(404, "there is no such profile", code="profile_not_found")
    options = config.options if profile is None else config.profiles[profile]
    asked = given.get("rangevote", {})
    if not isinstance(asked, dict):
        raise invalid("rangevote", 'must be an object, as {"samples": 16}')
    if not asked:  # the operator's own, which were checked at the start
        return options
    try:
        config.check_key(asked)
        options = options.changed(asked)
        config.check_orders(options)
        config.check_models(options)
    except RangevoteError as error:
        named = next((name for name in asked if str(error).startswith((name, f"unknown {name}"))), None)
        param = "rangevote" if named is None else f"rangevote.{named}"
        raise ApiError(400, f"rangevote: {error}"[:300], code="invalid_value", param=param) from None
    if options.samples > config.limits.samples:
        raise invalid("rangevote.samples", f"must be at most {config.limits.samples}")
    if options.min_votes > options.samples:
        raise invalid("rangevote.min_votes", f"must be at most the number of samples, {options.samples}")
    return options


def _n(n: Any, options: RequestOptions) -> int:
    """How many winners; several are elected by reweighted range voting."""
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= options.samples:
        raise invalid("n", f"must be a whole number from 1 to the number of samples, {options.samples}")
    try:
        options.settings(n)
    except RangevoteError as error:
        raise invalid("n", f"cannot be combined with the other options: {error}"[:300]) from None
    return n


def _flag(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise invalid(name, "must be true or false")
    return value


def _include_usage(given: Mapping[str, Any], stream: bool) -> bool:
    options = given.get("stream_options")
    if options is None:
        return False
    if not stream or not isinstance(options, dict) or not options.keys() <= {"include_usage"}:
        raise invalid("stream_options", "may have include_usage, and needs stream")
    return _flag(options, "include_usage")


def check_names(body: dict[str, Any]) -> None:
    """No name that could send the request or keys elsewhere, no deep nesting, only finite numbers."""
    pending: list[tuple[str, Any, int]] = [("", body, 0)]
    seen = 0
    while pending:
        path, value, depth = pending.pop()
        seen += 1
        if depth > DEEPEST or seen > MOST:
            most = f"nested more than {DEEPEST} deep, or has more than {MOST:,} objects and lists"
            raise ApiError(400, f"the request is {most}", code="invalid_json")
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str) and key.lower() in FORBIDDEN:
                raise invalid(_inside(path, key)[:200], "is not allowed in a request", "forbidden_parameter")
            if isinstance(inner, float) and not math.isfinite(inner):
                raise invalid(_inside(path, key)[:200], "is not a finite number")
            if isinstance(inner, (dict, list)):
                pending.append((_inside(path, key), inner, depth + 1))


def _inside(path: str, key: str | int) -> str:
    """The path of a part: `messages[0].content`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key[:60]}" if path else key[:60]


def check_messages(messages: Any, config: ServiceConfig) -> None:
    limits = config.limits
    if not isinstance(messages, list) or not messages:
        raise invalid("messages", "must be a list of at least one message")
    if len(messages) > limits.messages:
        message = f"has {len(messages)} messages; {limits.messages} are allowed"
        raise invalid("messages", message, "too_many")
    characters = 0
    for i, message in enumerate(messages):
        path = f"messages[{i}]"
        if not isinstance(message, dict):
            raise invalid(path, "must be an object")
        if message.get("role") not in ROLES:
            raise invalid(f"{path}.role", f"must be one of {', '.join(ROLES)}")
        if message.get("audio") is not None:
            raise invalid(f"{path}.audio", "is not supported")
        characters += sum(map(len, _texts(message.get("content"), f"{path}.content", config)))
    _check_size(characters, "messages", config)


def check_prompts(prompt: Any, config: ServiceConfig) -> tuple[str | list[int], ...]:
    """Prompts, each a text or token ids; one may come alone."""
    prompts = [prompt] if isinstance(prompt, str) or _is_ids(prompt) else prompt
    if not isinstance(prompts, list) or not prompts or not all(map(_is_prompt, prompts)):
        raise invalid("prompt", "must be a text, a list of token ids, or a list of such prompts")
    if len(prompts) > config.limits.prompts:
        message = f"has {len(prompts)} prompts; {config.limits.prompts} are allowed"
        raise invalid("prompt", message, "too_many")
    _check_size(sum(map(len, prompts)), "prompt", config)
    return tuple(prompts)


def _is_prompt(value: Any) -> bool:
    return isinstance(value, str) or _is_ids(value)


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_token, value))


def _is_token(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_size(size: int, param: str, config: ServiceConfig) -> None:
    most = config.limits.prompt_chars
    if size > most:
        raise invalid(param, f"has {size:,} characters; {most:,} are allowed", "too_long")


def _texts(content: Any, path: str, config: ServiceConfig) -> Iterator[str]:
    """The texts of a message's content, whose pictures are checked too."""
    if content is None:
        return
    if isinstance(content, str):
        yield content
        return
    if not isinstance(content, list):
        raise invalid(path, "must be a text or a list of parts")
    for i, part in enumerate(content):
        part_path = f"{path}[{i}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str):
            yield part["text"]
        elif kind == "refusal" and isinstance(part.get("refusal"), str):
            yield part["refusal"]
        elif kind == "image_url":
            _check_picture(part.get("image_url"), f"{part_path}.image_url", config)
        else:
            raise invalid(part_path, "must be a part of type text or image_url")


def _check_picture(given: Any, path: str, config: ServiceConfig) -> None:
    """A picture in the request, or an address that the model's server may fetch; the service never does."""
    url = given.get("url") if isinstance(given, dict) else None
    if not isinstance(url, str):
        raise invalid(path, "must be an object with a url")
    if url.startswith(PICTURES):
        return
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.scheme == "https" and parts.username is None else None
    except ValueError:
        host = None
    if host is None or host.lower() not in config.image_hosts or not url.isprintable() or "\\" in url:
        raise invalid(f"{path}.url", "must be a data: URI of a picture, or https from an allowed host")
