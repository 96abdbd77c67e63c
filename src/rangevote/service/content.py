"""Messages and prompts of a request: their shape, their size, and pictures only from where they may come."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from rangevote.service.problem import Problem, wrong
from rangevote.service.settings import ServiceSettings

#: Names by which requests have been made to send keys elsewhere; refused wherever they stand.
FORBIDDEN = frozenset({"api_base", "base_url", "extra_headers", "extra_body", "extra_query", "api_key"})
#: Objects and lists inside each other.
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


def check_names(body: dict[str, Any]) -> None:
    """No name that could send the request, or keys, elsewhere; no nesting without end; only numbers."""
    waiting: list[tuple[str, Any, int]] = [("", body, 0)]
    seen = 0
    while waiting:
        path, value, depth = waiting.pop()
        seen += 1
        if depth > DEEPEST or seen > MOST:
            told = f"nested more than {DEEPEST} deep, or has more than {MOST:,} objects and lists"
            raise Problem(400, f"the request is {told}", code="invalid_json")
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str) and key.lower() in FORBIDDEN:
                raise wrong(_inside(path, key)[:200], "is not allowed in a request", "forbidden_parameter")
            if isinstance(inner, float) and not math.isfinite(inner):
                raise wrong(_inside(path, key)[:200], "is not a finite number")
            if isinstance(inner, (dict, list)):
                waiting.append((_inside(path, key), inner, depth + 1))


def _inside(path: str, key: str | int) -> str:
    """The path of a part: `messages[0].content`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key[:60]}" if path else key[:60]


def check_messages(messages: Any, settings: ServiceSettings) -> None:
    """A conversation that can go to a model as it is."""
    limits = settings.limits
    if not isinstance(messages, list) or not messages:
        raise wrong("messages", "must be a list of at least one message")
    if len(messages) > limits.messages:
        raise wrong("messages", f"holds {len(messages)} messages; {limits.messages} are allowed", "too_many")
    characters = 0
    for i, message in enumerate(messages):
        path = f"messages[{i}]"
        if not isinstance(message, dict):
            raise wrong(path, "must be an object")
        if message.get("role") not in ROLES:
            raise wrong(f"{path}.role", f"must be one of {', '.join(ROLES)}")
        if message.get("audio") is not None:
            raise wrong(f"{path}.audio", "is not supported")
        characters += sum(map(len, _texts(message.get("content"), f"{path}.content", settings)))
    _check_size(characters, "messages", settings)


def check_prompt(prompt: Any, settings: ServiceSettings) -> str | list[int]:
    """One prompt: a text or token ids; a list of one is that one."""
    if isinstance(prompt, list) and len(prompt) == 1 and not _is_token(prompt[0]):
        prompt = prompt[0]
    if isinstance(prompt, str):
        _check_size(len(prompt), "prompt", settings)
        return prompt
    if isinstance(prompt, list) and prompt and all(map(_is_token, prompt)):
        _check_size(len(prompt), "prompt", settings)
        return prompt
    raise wrong("prompt", "must be one text or one list of token ids; a request is one election")


def _is_token(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_size(size: int, param: str, settings: ServiceSettings) -> None:
    most = settings.limits.prompt_chars
    if size > most:
        raise wrong(param, f"has {size:,} characters; {most:,} are allowed", "too_long")


def _texts(content: Any, path: str, settings: ServiceSettings) -> Iterator[str]:
    """The texts of a message's content; its pictures are checked on the way."""
    if content is None:
        return
    if isinstance(content, str):
        yield content
        return
    if not isinstance(content, list):
        raise wrong(path, "must be a text or a list of parts")
    for i, part in enumerate(content):
        place = f"{path}[{i}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str):
            yield part["text"]
        elif kind == "refusal" and isinstance(part.get("refusal"), str):
            yield part["refusal"]
        elif kind == "image_url":
            _check_picture(part.get("image_url"), f"{place}.image_url", settings)
        else:
            raise wrong(place, "must be a part of type text or image_url")


def _check_picture(given: Any, path: str, settings: ServiceSettings) -> None:
    """A picture that comes along, or an address that the model's server may fetch; we never do."""
    url = given.get("url") if isinstance(given, dict) else None
    if not isinstance(url, str):
        raise wrong(path, "must be an object with a url")
    if url.startswith(PICTURES):
        return
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.scheme == "https" and parts.username is None else None
    except ValueError:
        host = None
    if host is None or host.lower() not in settings.image_hosts or not url.isprintable() or "\\" in url:
        raise wrong(f"{path}.url", "must be a data: URI of a picture, or https from an allowed host")
