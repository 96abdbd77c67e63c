"""The public names: sorted, importable, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import rangevote as rv


def test_the_public_names_are_sorted_and_told_once():
    assert list(rv.__all__) == sorted(set(rv.__all__))


@pytest.mark.parametrize("name", rv.__all__)
def test_every_public_name_can_be_imported(name):
    value = getattr(rv, name)
    assert not isinstance(value, ModuleType)
    namespace: dict[str, object] = {}
    exec(f"from rangevote import {name}", namespace)
    assert namespace[name] is value


def test_nothing_else_is_public():
    # in a fresh interpreter: what other tests imported from inside must not count
    script = "import rangevote as rv; [getattr(rv, n) for n in rv.__all__]; print(*vars(rv))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    modules = {"election", "errors", "generation", "hypothesis", "kernel", "models", "decoding"}
    modules |= {"similarity", "parallel", "_kernels", "formats", "evaluation", "tuning"}
    python = {"annotations", "importlib", "TYPE_CHECKING"}  # what __init__.py itself needs
    extra = {name for name in shown.split() if not name.startswith("_")} - modules - python - set(rv.__all__)
    assert extra == set()


def test_the_names_of_the_issue_are_there():
    needed = {
        "Ballot",
        "Electorate",
        "Hypothesis",
        "Result",
        "elect",
        "elect_many",
        "Similarity",
        "__version__",
        *("load", "search", "generate", "custom_generate"),
        *("Beam", "LengthNormalised", "DiverseDecoding", "DiverseBeam", "StochasticBeam"),
        *("Sample", "TopK", "Nucleus", "Epsilon", "MinP"),
    }
    assert needed <= set(rv.__all__)
    assert len(rv.__all__) <= 45  # about 20 and one for each search: everything else may move


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'rangevote' has no attribute 'vote'"):
        rv.vote  # noqa: B018


def test_all_public_names_come_with_a_star():
    namespace: dict[str, object] = {}
    exec("from rangevote import *", namespace)
    assert set(rv.__all__) <= set(namespace)


def test_every_public_class_and_function_says_what_it_is():
    silent = [
        n for n in rv.__all__ if callable(getattr(rv, n)) and not (getattr(rv, n).__doc__ or "").strip()
    ]
    assert silent == []


def test_the_version_is_a_version():
    assert [part.isdecimal() for part in rv.__version__.split(".")] == [True] * 3
    assert rv.elect(["a"]).signature.startswith(f"rv:{rv.__version__.rpartition('.')[0]}|")
