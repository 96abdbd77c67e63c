"""The exception tree, unknown names, and missing packages."""

from __future__ import annotations

import pickle
import re
import sys

import pytest

import rangevote as rv
from rangevote import errors

TREE = {
    rv.RangevoteError: (Exception, 1),
    rv.UsageError: (rv.RangevoteError, 2),
    rv.UnknownName: (rv.UsageError, 2),
    rv.DataError: (rv.RangevoteError, 3),
    rv.SetupError: (rv.RangevoteError, 5),
    rv.MissingExtra: (rv.SetupError, 5),
}


@pytest.mark.parametrize(("error", "parent", "code"), [(e, *rest) for e, rest in TREE.items()])
def test_every_error_has_its_place_in_the_tree_and_its_exit_code(error, parent, code):
    assert issubclass(error, parent)
    assert error.exit_code == code


def test_the_tree_at_the_top_of_the_file_names_every_error():
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    defined = {c.__name__ for c in classes if c.__module__ == errors.__name__}
    assert defined == {error.__name__ for error in TREE} | {"RangevoteWarning"}
    assert all(name in errors.__doc__ for name in defined)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({}, "is wrong"),
        ({"field": "candidates[3].logprob"}, "candidates[3].logprob: is wrong"),
        ({"where": "nbest.jsonl:7"}, "nbest.jsonl:7: is wrong"),
        ({"where": "nbest.jsonl:7", "field": "id"}, "nbest.jsonl:7: id: is wrong"),
    ],
)
def test_a_data_error_names_the_place_it_knows(place, message):
    assert str(rv.DataError("is wrong", **place)) == message


def test_a_bad_ballot_keeps_the_place_that_it_has():
    assert rv.DataError("is wrong").placed("nbest.jsonl").where == "nbest.jsonl"
    assert rv.DataError("is wrong", where="nbest.jsonl:7").placed("nbest.jsonl").where == "nbest.jsonl:7"


def test_a_data_error_survives_the_way_between_processes():
    error = pickle.loads(pickle.dumps(rv.DataError("is wrong", field="id", where="f:1")))
    assert str(error) == "f:1: id: is wrong"
    assert (error.problem, error.field, error.where) == ("is wrong", "id", "f:1")


TABLE = {"overlap_1": 1, "overlap_2": 2, "states": 3}


@pytest.mark.parametrize(("name", "hint"), [("overlap2", " Did you mean 'overlap_2'?"), ("zzz", ""), (5, "")])
def test_an_unknown_name_gets_the_nearest_and_all_of_the_table(name, hint):
    message = f"unknown similarity {name!r}.{hint} Choose from: overlap_1, overlap_2, states."
    with pytest.raises(rv.UnknownName, match=f"^{re.escape(message)}$"):
        errors.choose("similarity", name, TABLE)


def test_a_missing_package_says_what_to_install():
    message = r"'edit' needs the package 'no_such_package'.*pip install \"rangevote\[evaluate\]\""
    with pytest.raises(rv.MissingExtra, match=message):
        errors.need("no_such_package.part", "evaluate", "the similarity 'edit'")


NEEDED = {"edit": "rapidfuzz", "rouge_l": "rapidfuzz", "13a": "sacrebleu", "zh": "sacrebleu"}


@pytest.mark.parametrize(("name", "package"), NEEDED.items())
def test_an_election_that_needs_a_missing_package_says_so(monkeypatch, name, package):
    for module in [package, *sys.modules]:
        if module.partition(".")[0] == package:
            monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    option = "similarity" if package == "rapidfuzz" else "tokenize"
    message = rf"{option.rstrip('e')}.* '{name}' needs the package '{package}'.*rangevote\[evaluate\]"
    with pytest.raises(rv.MissingExtra, match=message.replace("tokeniz", "tokenis")):
        rv.elect(["a", "b"], **{option: name})
