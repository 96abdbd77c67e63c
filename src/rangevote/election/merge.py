"""JSON merged field by field (`rule="merge"`): every field of the result won an election of its own.

Samples that are not JSON, or do not fit the schema, abstain. A field is in the result if more than half of
the weight of the others gives it the same value (`min_share` asks for another share). A sample without the
field votes for its absence. If neither a value nor absence has a majority, the field is left out and named.

* Numbers, booleans, null, dates and strings have the same value if they are equal after normalising: 1 and
  1.0, "Paris" and " paris", "2024-01-05" and "5 January 2024". The form that most of them write is taken.
* Free text, strings of several words without such a majority: the text that the similarity elects, if the
  voters that are at least `cutoff` similar to it are a majority.
* Objects are merged name by name. Values of different types are never mixed: the type needs a majority, too.
* Lists are aligned by what is in their items, not by index: equal items first, then each with the most alike.
  Each row of aligned items is merged as a field is.

Names and items are in the order in which most samples have them. Nothing depends on the order of the samples.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from rangevote.errors import DataError, UsageError, need
from rangevote.hypothesis import Array, Hypotheses
from rangevote.similarity.base import Measure
from rangevote.similarity.json_leaves import canonical, path_below, read_json

#: Shares are sums of weights such as 1/3: 2 of 3 are 2/3, whatever was rounded.
SHARE_SLACK = 1e-12
#: Items of lists are aligned from this likeness on, a share of what they have in common.
ALIKE = 1 / 3
#: JSON that is nested more deeply abstains.
DEPTH = 64
ABSENT: Any = object()
#: The step of a path to an item that is not in the merged list.
SOME_ITEM = -1
DATES = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y")
_DATED = re.compile(r".*\d.*\d{2}.*", re.DOTALL)

Steps = tuple[str | int, ...]


@dataclass(frozen=True)
class Merged:
    """What was merged of the samples, and how sure each field is.

    `shares` has the share of the vote of every value by its path, `left_out` the paths for which there was no
    majority; `items[]` are items of a list. `abstained` voters are not JSON, or do not fit the schema.
    `equal` is the candidate that says the same as the merged object, None where none does. `text` is the
    merged object as JSON, None where a whole candidate was taken instead, and `whole` says why. `margin` is
    by how much the value with the smallest lead is ahead of what stands against it.
    """

    text: str | None
    shares: dict[str, float]
    left_out: tuple[str, ...]
    abstained: int
    equal: int | None = None
    whole: str | None = None
    margin: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON has them; `whole` only where it says something."""
        fields = {
            "shares": self.shares,
            "left_out": list(self.left_out),
            "abstained": self.abstained,
            "equal": self.equal,
        }
        return fields if self.whole is None else {**fields, "whole": self.whole}


class SampleValue(NamedTuple):
    """The value of one sample at one place, its share of the vote, and whether it is a candidate."""

    sample: int
    value: Any
    weight: float
    stands: bool


class Node(NamedTuple):
    """What was merged at one place, or ABSENT; shares and leads of its values, and what was left out, by the
    way there."""

    value: Any
    shares: dict[Steps, tuple[float, float]]
    left_out: list[Steps]


class Merging(NamedTuple):
    """How samples are merged: by which measure texts are compared, which share of the vote a value needs
    (None: more than half), and what a value lacks to fit the schema ("": nothing)."""

    texts: Measure
    min_share: float | None = None
    fault: Callable[[Any], str] | None = None

    def read(self, hypotheses: Hypotheses) -> list[Any]:
        """The value of each, ABSENT where it abstains."""
        if hypotheses.texts is None:
            raise DataError("is missing; rule='merge' merges JSON texts.", field=f"{hypotheses.role}[].text")
        values = [_value(text) for text in hypotheses.texts]
        if self.fault is None:
            return values
        return [ABSENT if value is ABSENT or self.fault(value) else value for value in values]

    def merge(self, candidates: Sequence[Any], voters: Sequence[Any] | None, weights: Array) -> Merged | str:
        """The merged object of values that were `read`, or why there is none; `voters=None`: the candidates
        vote. Weights need not sum to 1."""
        masses: list[float] = weights.tolist()
        speaking = [v is not ABSENT for v in (candidates if voters is None else voters)]
        total = math.fsum(mass for mass, speaks in zip(masses, speaking, strict=True) if speaks)
        if not total > 0 or all(value is ABSENT for value in candidates):
            return "no sample is JSON" + ("" if self.fault is None else " that fits the schema")
        if voters is None:
            weighed = [(value, mass, True) for value, mass in zip(candidates, masses, strict=True)]
        else:
            weighed = [(value, 0.0, True) for value in candidates]
            weighed += [(value, mass, False) for value, mass in zip(voters, masses, strict=True)]
        samples = [SampleValue(i, x, mass / total, stands) for i, (x, mass, stands) in enumerate(weighed)]
        node = self.node([sample for sample in samples if sample.value is not ABSENT])
        if node.value is ABSENT:
            return "no field has a majority of the samples"
        key = canonical(node.value)
        equal = next((i for i, v in enumerate(candidates) if v is not ABSENT and canonical(v) == key), None)
        fault = self.fault(node.value) if self.fault is not None else ""
        return Merged(
            None if fault else json.dumps(node.value, ensure_ascii=False, separators=(",", ":")),
            {_path(steps): share for steps, (share, _) in node.shares.items()},
            tuple(dict.fromkeys(map(_path, node.left_out))),
            speaking.count(False),
            equal,
            f"the merged object does not fit the schema: {fault}" if fault else None,
            min(lead for _, lead in node.shares.values()),
        )

    def enough(self, share: float, lead: float = 1.0) -> bool:
        """Whether this share of the vote decides, with this lead over what stands against it; no tie does."""
        if lead <= SHARE_SLACK:
            return False
        if self.min_share is None:
            return share > 0.5 + SHARE_SLACK
        return share > 0 and share >= self.min_share - SHARE_SLACK

    def node(self, values: Sequence[SampleValue]) -> Node:
        """The election at one place."""
        kinds = _grouped(values, lambda sample: _kind(sample.value))
        kind, of_kind = min(kinds.items(), key=lambda item: (-round(_mass(item[1]), 12), item[0]))
        against = [1 - _mass(values), *(_mass(others) for name, others in kinds.items() if name != kind)]
        if not self.enough(_mass(of_kind), _mass(of_kind) - max(against)):
            return self._left_out(values)
        empty = [sample for sample in of_kind if sample.value in ({}, [])]
        if kind in ("object", "list") and not self.enough(_mass(empty)):
            return self._object(of_kind) if kind == "object" else self._list(of_kind)
        return self._scalar(values, kind, of_kind)

    def _left_out(self, values: Sequence[SampleValue]) -> Node:
        """Nothing; named unless the majority says that nothing is there."""
        return Node(ABSENT, {}, [] if self.enough(1 - _mass(values)) else [()])

    def _scalar(self, values: Sequence[SampleValue], kind: str, of_kind: Sequence[SampleValue]) -> Node:
        """The value with the most votes; of free texts without a majority the one that is elected."""
        groups = _grouped(of_kind, lambda sample: _key(sample.value))
        masses = {key: _mass(group) for key, group in groups.items()}
        standing = [key for key, group in groups.items() if any(sample.stands for sample in group)]
        best = min(standing, key=lambda key: (-round(masses[key], 12), key), default=None)
        others = [mass for key, mass in masses.items() if key != best]
        lead = masses.get(best or "", 0.0) - max([*others, 1 - _mass(of_kind)])
        if best is not None and self.enough(masses[best], lead):
            candidates = [sample for sample in groups[best] if sample.stands]
            forms = _grouped(candidates, lambda sample: json.dumps(sample.value))
            form = min(forms, key=lambda form: (-round(_mass(forms[form]), 12), form))
            return Node(forms[form][0].value, {(): (masses[best], lead)}, [])
        prose = _mass([sample for sample in of_kind if kind == "string" and len(sample.value.split()) > 1])
        if best is None or prose <= _mass(of_kind) / 2:
            return self._left_out(values)
        return self._text(values, of_kind)

    def _text(self, values: Sequence[SampleValue], strings: Sequence[SampleValue]) -> Node:
        by_text = _grouped(strings, lambda sample: sample.value)
        texts = sorted(by_text)
        standing = [text for text in texts if any(sample.stands for sample in by_text[text])]
        masses = np.array([_mass(by_text[text]) for text in texts])
        grades = self.texts.matrix(Hypotheses.of(standing), Hypotheses.of(texts, role="voters"))
        best = int(np.round(masses @ grades, 12).argmax())  # of equal ones the first in the alphabet
        share = math.fsum(masses[grades[:, best] > 0].tolist())
        if not self.enough(share, 2 * share - 1):
            return self._left_out(values)
        return Node(standing[best], {(): (share, 2 * share - 1)}, [])

    def _object(self, objects: Sequence[SampleValue]) -> Node:
        fields: dict[str, list[SampleValue]] = {}
        for sample in objects:
            for name, value in sample.value.items():
                fields.setdefault(name, []).append(sample._replace(value=value))
        nodes = {name: self.node(fields[name]) for name in sorted(fields)}
        kept = [name for name, node in nodes.items() if node.value is not ABSENT]
        order = _ordered(kept, [(sample.weight, list(sample.value)) for sample in objects])
        left_out = [(name, *steps) for name, node in nodes.items() for steps in node.left_out]
        if not kept:
            return Node(ABSENT, {}, left_out or [()])
        shares = {(name, *steps): share for name in order for steps, share in nodes[name].shares.items()}
        return Node({name: nodes[name].value for name in order}, shares, left_out)

    def _list(self, lists: Sequence[SampleValue]) -> Node:
        rows, sequences = _aligned(lists)
        nodes = {label: self.node(row) for label, row in rows.items()}
        kept = [label for label, node in nodes.items() if node.value is not ABSENT]
        most = Counter[str]()  # how often any sample has an item
        for sample in lists:
            most |= Counter(map(canonical, sample.value))
        shares: dict[Steps, tuple[float, float]] = {}
        left_out: list[Steps] = [
            (SOME_ITEM, *steps) for label in nodes if label not in kept for steps in nodes[label].left_out
        ]
        values: list[Any] = []
        used = Counter[str]()
        for label in _ordered(kept, sequences):
            node = nodes[label]
            key = canonical(node.value)
            if used[key] >= max(1, most[key]):  # two different items, of which the same is left
                left_out.append((SOME_ITEM,))
                continue
            used[key] += 1
            shares |= {(len(values), *steps): share for steps, share in node.shares.items()}
            left_out += [(len(values), *steps) for steps in node.left_out]
            values.append(node.value)
        return Node(values, shares, left_out) if values else Node(ABSENT, {}, left_out or [()])


def fault_finder(schema: Mapping[str, Any]) -> Callable[[Any], str]:
    """The function that says what a value lacks to fit a JSON schema, "" if it fits. Nothing is fetched."""
    jsonschema = need("jsonschema", "schema", "checking samples by a JSON schema")
    registry = importlib.import_module("referencing").Registry()
    try:
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        where = "".join(f"[{step!r}]" for step in error.absolute_path)
        raise UsageError(f"schema{where} is not valid JSON Schema: {error.message[:200]}") from None
    validator = kind(schema, registry=registry)

    def fault(value: Any) -> str:
        try:
            error = jsonschema.exceptions.best_match(validator.iter_errors(value))
        except Exception as unresolved:  # of the package `referencing`, or a regular expression
            raise UsageError(f"the schema cannot be used: {str(unresolved)[:200]}") from None
        return "" if error is None else f"{error.json_path}: {error.message}"[:200]

    return fault


Label = tuple[str, int]  # the key of an item, and how many equal ones the sample has before it
Sequences = list[tuple[float, list[Label]]]  # weight of a sample, and what it has, in its order


def _aligned(lists: Sequence[SampleValue]) -> tuple[dict[Label, list[SampleValue]], Sequences]:
    """The items of lists in rows, at most one of each sample in a row; and each sample's rows in order."""
    rows: dict[Label, list[SampleValue]] = {}
    sequences: Sequences = []
    for sample in lists:
        seen = Counter[str]()
        labels = []
        for item in sample.value:
            key = _key(item)
            labels.append((key, seen[key]))
            rows.setdefault(labels[-1], []).append(sample._replace(value=item))
            seen[key] += 1
        sequences.append((sample.weight, labels))
    aligned: dict[Label, list[SampleValue]] = {}
    row_of: dict[Label, Label] = {}
    for label in sorted(rows, key=lambda label: (-round(_mass(rows[label]), 12), label)):
        samples = {sample.sample for sample in rows[label]}
        alike = {
            other: round(_likeness(rows[label][0].value, row[0].value), 12)
            for other, row in aligned.items()
            if samples.isdisjoint(sample.sample for sample in row)
        }
        best = max(alike, key=lambda other: alike[other], default=label)
        row_of[label] = best if alike.get(best, 0.0) >= ALIKE - SHARE_SLACK else label
        aligned.setdefault(row_of[label], []).extend(rows[label])
    return aligned, [(weight, [row_of[label] for label in labels]) for weight, labels in sequences]


def _likeness(a: Any, b: Any) -> float:
    """How much two items have in common, from 0 to 1; an item of another type nothing."""
    if _kind(a) != _kind(b):
        return 0.0
    if isinstance(a, dict):
        names = a.keys() | b.keys()
        shared = [_likeness(a[name], b[name]) for name in sorted(a.keys() & b.keys())]
        return math.fsum(shared) / len(names) if names else 1.0
    if _key(a) == _key(b):
        return 1.0
    if isinstance(a, (list, str)):
        parts = [
            Counter(map(_key, x)) if isinstance(x, list) else Counter(_normal(x).split()) for x in (a, b)
        ]
        sizes = sum(part.total() for part in parts)
        return 2 * (parts[0] & parts[1]).total() / sizes if sizes else 0.0
    return 0.0


def _ordered(kept: Sequence[Any], sequences: Iterable[tuple[float, Sequence[Any]]]) -> list[Any]:
    """Names or rows in the order in which most samples have them: first what comes before most others."""
    columns = {label: i for i, label in enumerate(kept)}
    orders = [
        (weight, [columns[label] for label in labels if label in columns]) for weight, labels in sequences
    ]
    before = np.zeros((len(kept), len(kept)))
    for weight, order in sorted(orders):
        for position, i in enumerate(order):
            before[i, order[position + 1 :]] += weight
    wins = (np.round(before - before.T, 12) > 0).sum(axis=1).tolist()
    return sorted(kept, key=lambda label: (-wins[columns[label]], label))


def _grouped(
    samples: Iterable[SampleValue], key: Callable[[SampleValue], str]
) -> dict[str, list[SampleValue]]:
    groups: dict[str, list[SampleValue]] = {}
    for sample in samples:
        groups.setdefault(key(sample), []).append(sample)
    return groups


def _mass(samples: Iterable[SampleValue]) -> float:
    return math.fsum(sample.weight for sample in samples)


def _kind(value: Any) -> str:
    kinds = {dict: "object", list: "list", str: "string", bool: "boolean", type(None): "null"}
    return kinds.get(type(value), "number")


def _key(value: Any) -> str:
    """The same for values that are equal after normalising."""
    return canonical(_normalised(value))


def _normalised(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _normalised(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_normalised(inner) for inner in value]
    return _normal(value) if isinstance(value, str) else value


def _normal(text: str) -> str:
    """A text without case and with single spaces; a date as the same day is always written.

    >>> _normal(" Saint  PAUL"), _normal("5 January 2024"), _normal("2024/01/05")
    ('saint paul', '2024-01-05', '2024-01-05')
    """
    plain = " ".join(unicodedata.normalize("NFKC", text).split())
    if len(plain) <= 20 and _DATED.fullmatch(plain):
        for form in DATES:
            try:
                return datetime.strptime(plain, form).date().isoformat()
            except ValueError:
                continue
    return plain.casefold()


def _value(text: str) -> Any:
    """The value of a text that is JSON and not nested too deeply; otherwise ABSENT."""
    try:
        value = read_json(text)
        return value if _depth(value) <= DEPTH else ABSENT
    except (ValueError, RecursionError):
        return ABSENT


def _depth(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, parts), default=0)


def _path(steps: Steps) -> str:
    path = ""
    for step in steps:
        if isinstance(step, str):
            path = path_below(path, step)
        else:
            path += "[]" if step == SOME_ITEM else f"[{step}]"
    return path
