"""JSON texts as the set of their leaves, (path, value), with numbers by their value and names in order: two
texts are equal if their leaves are."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from rangevote.errors import UsageError
from rangevote.text import split_reasoning

#: What a decoder may raise on a text that is not JSON.
_REFUSALS = (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError)
_FENCE = re.compile(r"\A\s*```\w*\n(.*)\n\s*```\s*\Z", re.DOTALL)
#: A name that needs no quotes in a path.
_NAME = re.compile(r"[^\W\d][\w-]*")
Leaf = tuple[str, str]  # path, value as JSON


def read_json(text: str) -> Any:
    """The value of a text that is JSON, in a code fence or not, after reasoning or not; or a ValueError."""
    text = split_reasoning(text)[1]
    fenced = _FENCE.match(text)
    try:
        return msgspec.json.decode(fenced[1] if fenced else text)
    except _REFUSALS as error:
        raise ValueError(f"not JSON: {error}") from None


def leaves(value: Any, path: str = "") -> list[Leaf]:
    """Every value with its path, names in order; an empty object or list is a leaf.

    >>> leaves({"b": [1, 2.0], "a": {"x": "y"}})
    [('a.x', '"y"'), ('b[0]', '1'), ('b[1]', '2')]
    """
    if isinstance(value, dict) and value:
        named = sorted(value.items())
        return [leaf for name, inner in named for leaf in leaves(inner, path_below(path, name))]
    if isinstance(value, list) and value:
        return [leaf for i, inner in enumerate(value) for leaf in leaves(inner, f"{path}[{i}]")]
    return [(path, _scalar(value))]


def path_below(path: str, name: str) -> str:
    """The path to what a name of an object has."""
    shown = name if _NAME.fullmatch(name) else _encoded(name)
    return f"{path}.{shown}" if path else shown


def _scalar(value: Any) -> str:
    """A number by its value: 1, 1.0 and 1e0 are the same."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _encoded(value)


def _encoded(value: Any) -> str:
    return str(value) if type(value) is int else msgspec.json.encode(value).decode()


def canonical(value: Any) -> str:
    """A JSON value written in one way: names in order, numbers by their value, no spaces.

    >>> canonical({"b": 1.50, "a": [1e1]})
    '{"a":[10],"b":1.5}'
    """
    if isinstance(value, dict):
        return "{" + ",".join(f"{_encoded(k)}:{canonical(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return _scalar(value)


def json_leaves(text: str) -> list[Leaf]:
    """What `tokenize="json"` makes of a text: its leaves; none where it is not JSON, so that it abstains."""
    try:
        return leaves(read_json(text))
    except (ValueError, RecursionError):
        return []


def json_value(steps: tuple[str | int, ...], text: str) -> str | None:
    """The value at a path of a JSON text, written in one way; a text without its quotes."""
    try:
        value = read_json(text)
        for step in steps:
            value = value[step]
        return value if isinstance(value, str) else canonical(value)
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


_STEP = re.compile(r'\.?(?:"([^"]*)"|([^.\[\]"]+))|\[(\d+)\]')


def path_steps(path: str) -> tuple[str | int, ...]:
    """The names and indices of a path as items[0].price, with quotes around names that need them."""
    steps: list[str | int] = []
    rest = path.removeprefix("$")
    while rest:
        match = _STEP.match(rest)
        if match is None:
            raise UsageError(f"cannot read the path {path!r} at {rest!r}; write it as items[0].price.")
        quoted, name, index = match.groups()
        steps.append(int(index) if index is not None else name if quoted is None else quoted)
        rest = rest[match.end() :]
    return tuple(steps)
