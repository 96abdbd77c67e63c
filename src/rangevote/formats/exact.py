"""JSON to Python objects with nothing lost on the way, or an error that says what and where.

Python's own reader keeps the last of two equal keys, lets lone surrogates and NaN pass and dies of
deep nesting; here each of these is named. `msgspec` is faster and as strict but for equal keys, so
it goes first: if its objects hold as many keys as the text has colons, no key was lost.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from rangevote.errors import DataError
from rangevote.kernel import count_keys

#: Integers of more digits are refused: converting them takes quadratic time.
MAX_DIGITS = 4300
_LEAVES = frozenset({str, int, float, bool, type(None)})
#: What a decoder may raise on a text that is not as expected.
REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def parse(line: bytes) -> Any:
    """The value of a JSON text; NaN, Infinity and control characters in strings are let pass."""
    try:
        value = msgspec.json.decode(line)
        if distinct_keys(value) == count_keys(line):
            return value
    except REFUSALS:
        pass
    return parse_slowly(line)


def parse_slowly(line: bytes) -> Any:
    """The same by Python's own reader, which is what names the error."""
    text = decoded(line)
    try:
        value = json.loads(
            text, strict=False, object_pairs_hook=_object, parse_int=_integer, parse_constant=float
        )
        if "\\u" in text:  # the bytes were valid UTF-8, so only an escape can bring a surrogate
            _refuse_surrogates(value, "")
    except json.JSONDecodeError as error:
        place = len(text[: error.pos].encode()) + 1
        raise DataError(f"not valid JSON: {_lowered(error.msg)} (byte {place:,})") from None
    except RecursionError:
        raise DataError("not readable JSON: nested too deeply") from None
    return value


def distinct_keys(value: Any) -> int:
    """How many keys the objects of a value hold, itself and everything inside it."""
    count = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if type(item) is dict:
            count += len(item)
            item = item.values()
        elif type(item) is not list:
            continue
        # most items are numbers and texts: their types are looked at in one go
        if not _LEAVES.issuperset(map(type, item)):
            waiting += item
    return count


def decoded(line: bytes) -> str:
    """The text of a line, which must be UTF-8."""
    try:
        return line.decode().removeprefix("\ufeff")  # files with marks may have been put on end
    except UnicodeDecodeError as error:
        raise DataError(
            f"invalid UTF-8 at byte {error.start + 1:,} of the line (0x{line[error.start]:02x})"
        ) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if key in seen:
                both = f"{_short(seen[key])} and {_short(value)}"
                raise DataError(f"the key {key!r} appears more than once in one object, with {both}")
            seen[key] = value
    return found


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise DataError(f"an integer of {len(digits):,} digits is more than can be read")
    return int(digits)


def _refuse_surrogates(value: Any, path: str) -> None:
    """Texts with half a character (a lone surrogate) cannot be written again."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            half = value[error.start]
            raise DataError(
                f"contains half a character (lone surrogate U+{ord(half):04X})", field=path
            ) from None
    elif isinstance(value, dict):
        for key, inner in value.items():
            _refuse_surrogates(key, f"{path}.(key)".lstrip("."))
            _refuse_surrogates(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            _refuse_surrogates(inner, f"{path}[{i}]")


def _short(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=True)
    return shown if len(shown) <= 40 else shown[:37] + "..."


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]
