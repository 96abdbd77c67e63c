"""A ballot from JSON objects, checked field by field: the slow reading that names what is wrong.

Every place has a name (`candidates[2].logprob`). The fast reading in `jsonl` hands over to this one
whenever it is not sure, so both must agree on what both accept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rangevote.errors import DataError, nearest
from rangevote.formats.reader import ReadOptions
from rangevote.formats.score import checked
from rangevote.hypothesis import Ballot, Hypothesis

#: What a line should look like, for messages.
SCHEMA = '{"id": "42", "candidates": [{"text": "...", "logprob": -12.3}, ...]}'
#: `prob` and `logprob` may differ by this much, relatively: one of them may have been rounded.
AGREEMENT = 1e-2

BALLOT_FIELDS = ("id", "source", "references", "candidates", "hypotheses", "voters")
HYPOTHESIS_FIELDS = (
    "text",
    "tokens",
    "logprob",
    "prob",
    "state",
    "finished",
    "sampled",
    "weight",
    "ranked_by",
)
_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "true or false"}


def ballot_of(value: Any, options: ReadOptions) -> Ballot:
    """The ballot that a line's JSON value is meant to be."""
    if not isinstance(value, dict):
        hint = "; jq -c '.[]' makes lines of an array" if isinstance(value, list) else ""
        raise DataError(f"expected {SCHEMA}, got {_kind(value)}{hint}")
    note_unknown(value, BALLOT_FIELDS, "", options)
    given = [name for name in ("candidates", "hypotheses") if value.get(name) is not None]
    if not given:
        raise DataError(f"has no candidates; expected {SCHEMA}")
    if len(given) == 2:
        raise DataError("has both candidates and hypotheses, which mean the same; give one of them")
    voters = value.get("voters")
    ballot = Ballot(
        candidates=_hypotheses(value[given[0]], given[0], options),
        voters=None if voters is None else _hypotheses(voters, "voters", options),
        id=_id(value.get("id")),
        source=_text(value.get("source"), "source"),
        references=_references(value.get("references")),
    )
    check_states(ballot, given[0])
    return ballot


def check_states(ballot: Ballot, role: str = "candidates") -> None:
    """All states of a ballot have one length."""
    length = None
    for name, hypotheses in ((role, ballot.candidates), ("voters", ballot.voters or ())):
        for i, hypothesis in enumerate(hypotheses):
            if hypothesis.state is None:
                continue
            if length is None:
                length = len(hypothesis.state)
            elif len(hypothesis.state) != length:
                raise DataError(
                    f"has {len(hypothesis.state)} numbers while others have {length}",
                    field=f"{name}[{i}].state",
                )


def _hypotheses(value: Any, role: str, options: ReadOptions) -> list[Hypothesis]:
    if not isinstance(value, list):
        raise DataError(
            f"expected an array of texts or of objects with a text, got {_kind(value)}", field=role
        )
    return [_hypothesis(item, f"{role}[{i}]", i, role, options) for i, item in enumerate(value)]


def _hypothesis(item: Any, path: str, index: int, role: str, options: ReadOptions) -> Hypothesis:
    if isinstance(item, str):
        return Hypothesis(text=item)
    if not isinstance(item, dict):
        raise DataError(f"expected a text or an object with a text, got {_kind(item)}", field=path)
    note_unknown(item, HYPOTHESIS_FIELDS, f"{role}[].", options)
    text, tokens = item.get("text"), item.get("tokens")
    if text is None and tokens is None:
        raise DataError("has neither text nor tokens; give at least one", field=path)
    return Hypothesis(
        text=_text(text, f"{path}.text"),
        tokens=_tokens(tokens, f"{path}.tokens"),
        logprob=_logprob(item, path, index, role),
        state=_state(item.get("state"), f"{path}.state"),
        finished=_flag(item, "finished", True, path),
        sampled=_flag(item, "sampled", False, path),
        weight=_weight(item.get("weight"), f"{path}.weight"),
        ranked_by=None if item.get("ranked_by") is None else _finite(item["ranked_by"], f"{path}.ranked_by"),
    )


def _logprob(item: dict[str, Any], path: str, index: int, role: str) -> float | None:
    """From `logprob`, else from `prob`; both must agree."""
    logprob, prob = item.get("logprob"), item.get("prob")
    known = None if logprob is None else checked(_number(logprob, f"{path}.logprob"), index, role)
    if prob is None:
        return known
    chance = _number(prob, f"{path}.prob")
    if not 0 <= chance <= 1:
        raise DataError(f"{chance!r} is not a probability from 0 to 1", field=f"{path}.prob")
    if known is None:
        return math.log(chance) if chance else -math.inf
    if not math.isclose(math.exp(min(known, 0.0)), chance, rel_tol=AGREEMENT, abs_tol=1e-6):
        raise DataError(
            f"{chance!r} disagrees with logprob {known!r}, whose probability is "
            f"{math.exp(min(known, 0.0)):.4g}; give one of them",
            field=f"{path}.prob",
        )
    return known


def _number(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DataError(f"expected a number, got {_kind(value)}", field=path)
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _finite(value: Any, path: str) -> float:
    number = _number(value, path)
    if not math.isfinite(number):
        raise DataError(f"expected a finite number, got {number!r}", field=path)
    return number


def _weight(value: Any, path: str) -> float | None:
    if value is None:
        return None
    weight = _finite(value, path)
    if weight < 0:
        raise DataError(f"{weight!r} is not an importance weight; it must be 0 or more", field=path)
    return weight


def _state(value: Any, path: str) -> Sequence[float] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise DataError(f"expected an array of numbers, got {_kind(value)}", field=path)
    return [_finite(item, f"{path}[{i}]") for i, item in enumerate(value)]


def _tokens(value: Any, path: str) -> Sequence[int] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise DataError(f"expected an array of token ids, got {_kind(value)}", field=path)
    for i, item in enumerate(value):
        if type(item) is not int:
            raise DataError(f"expected a token id, got {_kind(item)}", field=f"{path}[{i}]")
    return value


def _text(value: Any, path: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise DataError(f"expected a string, got {_kind(value)}", field=path)


def _references(value: Any) -> Sequence[str]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise DataError(f"expected an array of strings, got {_kind(value)}", field="references")
    for i, item in enumerate(value):
        if not isinstance(item, str):
            raise DataError(f"expected a string, got {_kind(item)}", field=f"references[{i}]")
    return value


def _id(value: Any) -> str | int | None:
    if value is None or (isinstance(value, (str, int)) and not isinstance(value, bool)):
        return value
    raise DataError(f"expected a string or an integer, got {_kind(value)}", field="id")


def _flag(item: dict[str, Any], name: str, default: bool, path: str) -> bool:
    value = item.get(name, default)
    if isinstance(value, bool):
        return value
    raise DataError(f"expected true or false, got {_kind(value)}", field=f"{path}.{name}")


def note_unknown(item: Iterable[str], known: Sequence[str], prefix: str, options: ReadOptions) -> None:
    """Warn once of names that mean nothing here; where strict, refuse them."""
    for name in item:
        key = ("unknown", prefix, name)
        if name not in known and (options.strict or not options.warned(key)):
            fate = "is refused where strict" if options.strict else "is ignored"
            near = nearest(name, known)
            options.report(f"unknown field {prefix + name!r} {fate}.{near}", key=key)


def _kind(value: Any) -> str:
    """What came, for messages."""
    if value is None:
        return "null"
    shown = _NAMES.get(type(value))
    return shown if shown else f"the number {value!r}"[:60]
