"""What other packages add, found by Python's entry points (examples/plugin has one of each):

    rangevote.similarities   (argument, tokenize) -> a Similarity, or a function (voter, candidate) -> grade
    rangevote.keys           text -> the answer in it, for `exact:NAME`
    rangevote.formats        a module or object with `decoder(options)` or `reader(stream, options)`
    rangevote.engines        model -> an Engine or a LanguageModel, for `rangevote.load("NAME:model")`

A name of our own comes before that of a package.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rangevote.errors import SetupError


@cache
def plugins(kind: str) -> dict[str, EntryPoint]:
    """What is installed of a kind ("similarities"), by name; nothing of it is imported."""
    return {point.name: point for point in entry_points(group=f"rangevote.{kind}")}


def load_plugin(kind: str, name: str) -> Any:
    """What a package has under this name."""
    point = plugins(kind)[name]
    try:
        return point.load()
    except Exception as error:  # whatever a package of others raises
        package = point.dist.name if point.dist is not None else point.module
        raise SetupError(
            f"cannot load {name!r}, which the package {package} adds to rangevote.{kind}: "
            f"{type(error).__name__}: {error}"
        ) from error
