"""Campaigns of Pearmut, another program for evaluations: one JSON object with the items of all its tasks.

    {"info": {}, "data": [[[{"item_id": "1", "src": "...", "tgt": {"beam": "...", "voted": "..."}}]]]}

`data` is a list of items, of documents (lists of items), or of tasks (lists of documents). An item that is in
several tasks is one item here. Items with a `validation` are checks of Pearmut's scores and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rangevote.errors import DataError
from rangevote.formats.exact import parse

#: Tasks, documents, items.
_DEPTH = 3


class Listed(NamedTuple):
    """A value that stands for a pair, and its place in the file."""

    place: str
    value: Any


def campaign_items(lines: Sequence[bytes], name: str) -> list[Listed] | None:
    """The items of a campaign, on one line or on many; None for a file that is none."""
    whole = _parsed(lines[0]) if lines else None
    if whole is None:
        whole = _parsed(b"\n".join(lines))
    if not isinstance(whole, dict) or not isinstance(whole.get("data"), list):
        return None
    return list(_once(_items(whole["data"], f"{name}: data")))


def _parsed(text: bytes) -> Any:
    try:
        return parse(text)
    except DataError:  # told when the file is read line by line
        return None


def _items(value: Any, place: str, depth: int = 0) -> Iterator[Listed]:
    if isinstance(value, list) and depth < _DEPTH:
        for index, inner in enumerate(value):
            yield from _items(inner, f"{place}[{index}]", depth + 1)
    elif not (isinstance(value, dict) and "validation" in value):
        yield Listed(place, value)


def _once(items: Iterable[Listed]) -> Iterator[Listed]:
    """The same item in several tasks is told once; another one of the same name stays, to be refused."""
    known: dict[str, object] = {}
    for item in items:
        name, asked = _named(item.value)
        if name is None or known.get(name) != asked:
            yield item
        if name is not None:
            known.setdefault(name, asked)


def _named(value: Any) -> tuple[str | None, object]:
    """The name of an item, and what is judged."""
    if not isinstance(value, dict) or not isinstance(value.get("item_id"), (str, int)):
        return None, None
    return str(value["item_id"]), (value.get("src"), value.get("tgt"))
