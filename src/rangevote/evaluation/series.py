"""Where systems stand on curves: which method, and at which k or number of voters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rangevote.evaluation.comparison import Comparison
from rangevote.evaluation.plot import Curve, Panel

#: Rules of an election that are the paper's baselines.
BASELINES = frozenset({"most_likely", "length_normalised"})
#: What the horizontal axis counts -> its field in a signature, and its label.
AXES = {"k": ("cand", "beam size k"), "voters": ("vot", "number of voters")}


@dataclass(frozen=True)
class Place:
    """A point on a curve: the method's name, its x, and whether it is a baseline."""

    method: str
    x: float
    baseline: bool = False


def place_of(signatures: Iterable[str], axis: str = "k") -> Place | None:
    """The place that the signatures of a system's elections tell; None where they tell none.

    Elections of one system may have had fewer candidates than k; the most of them is k.

    >>> place_of(["rv:0.1|sim:overlap_2|on:words|w:probability|T:1|cand:10|vot:10|tie:score,logprob,first"])
    Place(method='overlap_2', x=10.0, baseline=False)
    """
    methods: set[tuple[str, bool]] = set()
    sizes: list[float] = []
    for signature in signatures:
        parts = dict(part.partition(":")[::2] for part in signature.split("|"))
        size = parts.get(AXES[axis][0], "")
        if not size.isdecimal() or "sim" not in parts:
            return None
        sizes.append(float(size))
        methods.add(_method(parts))
    if len(methods) != 1:
        return None
    name, baseline = methods.pop()
    return Place(name, max(sizes), baseline)


def _method(parts: Mapping[str, str]) -> tuple[str, bool]:
    rule = parts.get("rule", "range")
    if rule in BASELINES:
        return rule, True
    heat = parts.get("T", "1")
    name = parts["sim"] if heat == "1" else f"{parts['sim']}, T = {heat}"
    return (name if rule == "range" else f"{name}, {rule}"), False


def panels_of(found: Comparison, places: Mapping[str, Place]) -> list[Panel]:
    """A panel for each metric of a comparison, with a curve for each method."""
    panels = []
    for name, metric in found.metrics.items():
        points: dict[str, list[tuple[float, float]]] = {}
        for system in found.systems:
            place = places[system.name]
            points.setdefault(place.method, []).append((place.x, system.scores[name].value))
        curves = [_curve(method, sorted(listed), places) for method, listed in points.items()]
        panels.append(Panel(metric.label, curves, found.references.get(name)))
    return panels


def _curve(method: str, points: list[tuple[float, float]], places: Mapping[str, Place]) -> Curve:
    baseline = any(place.baseline for place in places.values() if place.method == method)
    return Curve(method, [x for x, _ in points], [y for _, y in points], baseline)
