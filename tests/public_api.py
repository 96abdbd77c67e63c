"""The public names with their parameters, as text: what `tests/public_api.txt` freezes.

`python -m tests.public_api` writes that file anew. A line that changes or goes breaks somebody's program, so
the changelog has to tell it.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import rangevote as rv
from rangevote.election.settings import Settings

FILE = Path(__file__).with_name("public_api.txt")


def described() -> str:
    """One line for each name, and for each public method, property and field of a class."""
    named = [line for name in rv.__all__ for line in lines(name, value_of(name))]
    return "".join(f"{line}\n" for line in [*named, f"**options{parameters(Settings)}"])


def value_of(name: str) -> Any:
    """What a name stands for; `search` is a folder that can be called, and stands for the function in it."""
    value = getattr(rv, name)
    if isinstance(value, ModuleType):
        return getattr(importlib.import_module(f"rangevote.{rv._HOMES[name]}"), name)
    return value


def lines(name: str, value: Any) -> Iterator[str]:
    """The lines of one name."""
    if inspect.isclass(value):
        if issubclass(value, Exception):  # what counts is by which names it can be caught
            bases = [base.__name__ for base in value.__mro__[1:] if issubclass(base, Exception)]
            yield f"class {name}: {', '.join(bases)}"
            return
        yield f"class {name}{parameters(value)}"
        yield from members(name, value)
    elif callable(value):
        yield f"def {name}{parameters(value)}"
    elif isinstance(value, dict):
        yield f"{name}: {', '.join(sorted(value))}"
    else:
        yield f"{name}: {type(value).__name__}"


def members(name: str, kind: type) -> Iterator[str]:
    """The public members of a class, inherited ones too."""
    for member in sorted(member for member in dir(kind) if not member.startswith("_")):
        attribute = inspect.getattr_static(kind, member)
        target = attribute.__func__ if isinstance(attribute, (classmethod, staticmethod)) else attribute
        if inspect.isfunction(target):
            yield f"  {name}.{member}{parameters(target)}"
        elif not callable(target):  # a field or a property; what is callable here is Python's own
            yield f"  {name}.{member}"


def parameters(function: Any) -> str:
    """Names, kinds and defaults of the parameters; types print differently from one Python to the next."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


if __name__ == "__main__":
    FILE.write_text(described(), encoding="utf-8")
