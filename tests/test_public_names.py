"""The public names: sorted, importable, frozen with their parameters, and nothing else."""

from __future__ import annotations

import difflib
import pkgutil
import sys
from types import ModuleType

import pytest

import rangevote as rv
from tests.public_api import FILE, described
from tests.wheels import done


def test_the_public_names_are_sorted_documented_and_can_be_imported():
    assert list(rv.__all__) == sorted(set(rv.__all__))
    namespace: dict[str, object] = {}
    exec("from rangevote import *", namespace)
    for name in rv.__all__:
        value = namespace[name]
        assert not isinstance(value, ModuleType)
        assert not callable(value) or (value.__doc__ or "").strip(), name


def test_nothing_else_is_public():
    # in a fresh interpreter: what other tests imported from inside must not count
    script = "import rangevote as rv; [getattr(rv, n) for n in rv.__all__]; print(*vars(rv))"
    printed = done([sys.executable, "-c", script])
    public = {name for name in printed.split() if not name.startswith("_")}
    modules = {module.name for module in pkgutil.iter_modules(rv.__path__)}
    python = {"annotations", "importlib", "TYPE_CHECKING"}  # what __init__.py itself needs
    assert public - python - modules == set(rv.__all__) - {"__version__"}


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'rangevote' has no attribute 'vote'"):
        rv.vote  # noqa: B018


def test_the_public_names_take_what_they_took():
    frozen, now = FILE.read_text(encoding="utf-8").splitlines(), described().splitlines()
    changes = "\n".join(difflib.unified_diff(frozen, now, "frozen", "now", lineterm="", n=0))
    assert not changes, (
        f"{changes}\nIf this is meant: python -m tests.public_api, and a line in CHANGELOG.md."
    )


def test_the_version_is_in_the_signature():
    assert rv.elect(["a"]).signature.startswith(f"rv:{rv.__version__.rpartition('.')[0]}|")
