"""The searches that give hypotheses: `SEARCHES` lists them, `get_search` reads "beam:10,copy_filter=0.5".

`run.search` runs one on a model (`rv.search`). A sum, as "sample:50+nucleus:50,p=0.9", has the hypotheses of
all its parts.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from rangevote.decoding.base import Search, SearchSum
from rangevote.decoding.beam import Beam, LengthNormalised
from rangevote.decoding.diverse import DiverseBeam, DiverseDecoding
from rangevote.decoding.sample import Epsilon, MinP, Nucleus, Sample, TopK
from rangevote.decoding.stochastic import StochasticBeam
from rangevote.errors import UsageError, choose

SEARCHES: dict[str, type[Search]] = {
    "beam": Beam,
    "length_normalised": LengthNormalised,
    "diverse_decoding": DiverseDecoding,
    "diverse_beam": DiverseBeam,
    "stochastic_beam": StochasticBeam,
    "sample": Sample,
    "top_k": TopK,
    "nucleus": Nucleus,
    "epsilon": Epsilon,
    "min_p": MinP,
}
NAMES = {kind: name for name, kind in SEARCHES.items()}
#: Between the parts of a sum; a plus within a number is followed by a digit.
_PLUS = re.compile(r"\s*\+\s*(?=[a-z_])")


def get_search(spec: Search | str, **common: Any) -> Search:
    """The search of this name, size and options; a search is itself.

    `common` are options for every part of a sum that has them and does not set them itself.

    >>> get_search("beam:10,copy_filter=0.5")
    Beam(max_new_tokens=64, min_new_tokens=0, copy_filter=0.5, k=10, finish='compete', ...)
    >>> str(get_search("greedy")), get_search("nucleus:100,p=0.8,seed=3").p
    ('beam:1', 0.8)
    >>> str(get_search("sample:50+nucleus:50,seed=2", seed=1))
    'sample:50,seed=1+nucleus:50,seed=2'
    """
    if isinstance(spec, Search):
        return spec
    if not isinstance(spec, str):
        raise UsageError(f"a search is a name such as 'beam:10' or an object such as Beam(10), got {spec!r}.")
    parts = [_one_search(part, common) for part in _PLUS.split(spec)]
    return parts[0] if len(parts) == 1 else SearchSum(tuple(parts))


def _one_search(spec: str, common: dict[str, Any]) -> Search:
    head, *options = spec.split(",")
    name, _, size = ("beam:1" if head.strip() == "greedy" else head.strip()).partition(":")
    kind = choose("search", name.strip(), SEARCHES)
    size = size.strip()
    if not size.isdecimal() or len(size) > 9:
        raise UsageError(f"search {spec!r}: say how many hypotheses, as in '{name}:10'.")
    given = dict(_option(kind, spec, option) for option in options if option.strip())
    shared = {name: value for name, value in common.items() if name in _known(kind)}
    return kind(int(size), **{**shared, **given})  # type: ignore[call-arg]


def open_options(spec: str) -> set[str]:
    """The options that a search, or a part of a sum, has and does not set.

    >>> "p" in open_options("sample:5+nucleus:5"), "p" in open_options("sample:5+nucleus:5,p=0.8")
    (True, False)
    """
    parts = _PLUS.split(spec)
    kinds = [type(_one_search(part, {})) for part in parts]
    own = [{option.partition("=")[0].strip() for option in part.split(",")[1:]} for part in parts]
    return {name for kind, given in zip(kinds, own, strict=True) for name in _known(kind).keys() - given}


def _known(kind: type[Search]) -> dict[str, Any]:
    """The options of a search and their types."""
    return {field.name: field.type for field in fields(kind) if field.kw_only}


def _option(kind: type[Search], spec: str, option: str) -> tuple[str, Any]:
    name, equals, value = (part.strip() for part in option.partition("="))
    known = _known(kind)
    choose(f"option of search {NAMES[kind]}", name, known)
    if not equals:
        raise UsageError(f"search {spec!r}: option {name!r} needs a value, as in '{name}=...'.")
    return name, _value(str(known[name]), value)


def _value(type: str, value: str) -> Any:
    """A number, true, false or a word, as the option's type has it."""
    if value.lower() in ("true", "false") and "bool" in type:
        return value.lower() == "true"
    if value.lower() == "none" and "None" in type:
        return None
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
