"""Systems as `rangevote compare` is given them: `[NAME[@K]=]FILE`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rangevote.errors import UsageError, nearest

if TYPE_CHECKING:
    from rangevote.evaluation.reading import Outputs
    from rangevote.evaluation.series import Place

#: Endings of a file's name that say nothing about a system.
ENDINGS = {".gz", ".zst", ".jsonl", ".json", ".txt"}


class System(NamedTuple):
    """One system: how tables call it, its method and K where they are given, its file."""

    label: str
    method: str
    k: float | None
    path: str


def systems_of(arguments: Sequence[str]) -> list[System]:
    """All systems; there must be two, and no two of one name."""
    systems = [_system(argument) for argument in arguments]
    if len(systems) < 2:
        raise UsageError(f"there is nothing to compare: give two files or more, got {len(systems)}.")
    labels = [system.label for system in systems]
    for system in systems:
        if labels.count(system.label) > 1:
            raise UsageError(f"two systems are called {system.label!r}; name them, as in NAME={system.path}.")
    return systems


def _system(argument: str) -> System:
    label, sign, path = argument.partition("=")
    if not sign or Path(argument).exists():  # a file's own name may hold '='
        stem = _stem(argument)
        return System(stem, stem, None, argument)
    method, _, number = label.rpartition("@")
    # a whole number only: in overlap_1-4@0.25 the rest is part of the measure's name
    if not (method and number.isascii() and number.isdecimal() and int(number)):
        return System(label, label, None, path)
    return System(label, method, float(number), path)


def _stem(path: str) -> str:
    name = Path(path).name
    while Path(name).suffix in ENDINGS:
        name = Path(name).stem
    return name or path


def places_of(
    systems: Sequence[System], outputs: Mapping[str, Outputs], axis: str, baselines: Sequence[str]
) -> dict[str, Place]:
    """Where each system stands on its curve: as given, else as its file tells."""
    from rangevote.evaluation.series import Place, place_of

    places = {}
    for system in systems:
        if system.k is not None:
            places[system.label] = Place(system.method, system.k, system.method in baselines)
            continue
        found = place_of(outputs[system.label].signatures, axis)
        if found is None:
            raise UsageError(
                f"cannot draw {system.label!r}: its file does not tell the method and the "
                f"{'beam size' if axis == 'k' else 'number of voters'}. Give both, as in "
                f"'beam search@10={system.path}'."
            )
        places[system.label] = Place(found.method, found.x, found.baseline or found.method in baselines)
    _check_baselines(baselines, {place.method for place in places.values()})
    return places


def _check_baselines(baselines: Sequence[str], methods: set[str]) -> None:
    for name in baselines:
        if name not in methods:
            raise UsageError(
                f"--baseline {name!r} is none of the methods.{nearest(name, methods)} "
                f"Choose from: {', '.join(sorted(methods))}."
            )
