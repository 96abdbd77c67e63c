"""One schema of options: Python, the commands, requests, the docs, and profiles in files."""

from __future__ import annotations

import gc
import inspect
import math
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import click
import pytest

import rangevote as rv
from rangevote.cli.options import election_options
from rangevote.election.elect import elect_ballot
from rangevote.election.settings import SCHEMA, ElectionOptions, Settings, override, write_tables
from rangevote.errors import DataError, SetupError, UsageError
from rangevote.hypothesis import Ballot
from rangevote.service.config import RequestOptions


def written(tmp_path, text):
    path = tmp_path / "profile.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_profile_elects_as_its_options_do(tmp_path):
    path = written(tmp_path, '[election]\nsimilarity = "overlap_1@0.5"\ntemperature = 2\n[tuned]\nx = 1\n')
    options = rv.read_profile(path)
    assert options == {"similarity": "overlap_1@0.5", "temperature": 2}
    texts, logprobs = ["a b", "a c", "d"], [-1.0, -2.0, -0.5]
    alone = rv.elect(texts, logprobs, similarity="overlap_1@0.5", temperature=2)
    assert rv.elect(texts, logprobs, **options).signature == alone.signature
    assert rv.read_profile(path, similarity="exact") == {"similarity": "exact"}
    assert rv.read_profile(path, merge=True) == {**options, "merge": True}


def test_no_cycle_keeps_settings_from_being_freed():
    settings = Settings()
    assert not gc.is_tracked(settings)  # so that nothing would find a cycle
    before = sys.getrefcount(settings)
    result = elect_ballot(Ballot(["a b", "a c"]), settings)
    assert result.signature == rv.elect(["a b", "a c"]).signature
    del result
    assert sys.getrefcount(settings) == before


def test_type_checkers_see_the_options_that_are_declared():
    declared = {
        name: get_args(hint)[0] for name, hint in get_type_hints(Settings, include_extras=True).items()
    }
    assert get_type_hints(ElectionOptions) == declared
    assert list(SCHEMA) == list(declared)


def test_the_commands_options_come_from_the_schema():
    command = click.command()(election_options(lambda **given: None))
    options = {option.name: option for option in command.params if option.name != "profile"}
    assert {name: option.default for name, option in options.items()} == {
        name: option.default for name, option in SCHEMA.items()
    }
    for name, option in options.items():
        assert option.help == SCHEMA[name].help
        assert set(option.opts) <= set(SCHEMA[name].flags.split())
    sampling = click.command()(election_options(lambda **given: None, sampling=True))
    assert "--temperature" not in {flag for option in sampling.params for flag in option.opts}


def test_requests_may_set_what_the_schema_lets_clients_set():
    values = {float: 1, int: 1, bool: True, dict: {"a": 1}}
    names = {
        "similarity": "exact",
        "preset": "paper",
        "weights": "count",
        "normalize": "NFC",
        "tokenize": "13a",
        "shares": {"a": 1},
    }
    for name, option in SCHEMA.items():
        value = names.get(name, option.default) if str in option.types else values[option.types[-1]]
        if option.client:
            assert RequestOptions().changed({name: value}).election == {name: value}
        else:
            with pytest.raises(UsageError, match=name):
                RequestOptions().changed({name: value})


def test_the_reference_has_a_row_for_every_option():
    page = (Path(__file__).parents[2] / "docs/reference/election.md").read_text(encoding="utf-8")
    for option in SCHEMA.values():
        assert f"| `{option.name}` | `{option.default!r}` |" in page


@pytest.mark.parametrize("new", [{"similarity": "exact"}, {"preset": "paper"}])
def test_a_new_similarity_resets_what_was_chosen_for_the_old_one(new):
    profile = {"similarity": "overlap_2", "temperature": 2.0, "likelihood": 0.4, "cutoff": 0.5}
    assert override(profile, new) == {"cutoff": 0.5, **new}
    assert override(profile, {**new, "temperature": 3.0}) == {"cutoff": 0.5, "temperature": 3.0, **new}
    assert override(profile, {"cutoff": 0.6}) == {**profile, "cutoff": 0.6}


NOT = {
    "temperature": ([0, -1.0, math.nan, math.inf, "2"], "temperature must be a number above 0, got"),
    "likelihood": ([-1, math.inf], "likelihood must be a finite number from 0"),
    "cutoff": ([0, -0.1, 1.5, True, "0.5", math.nan], "cutoff must be a similarity above 0"),
    "min_score": ([math.nan, math.inf, True], "min_score must be a finite number"),
    "min_share": ([1.5, -0.1, "half", math.nan], "min_share must be a share of the vote"),
    "winners": ([0, -1, 1.5, True], "winners must be a whole number from 1, got"),
    "normalize": (["nfc"], "unknown normalize 'nfc'. Did you mean 'NFC'"),
    "rule": (["rang", None], "unknown rule .*Choose from: cluster, length_normalised"),
    "preset": (["blnd"], "unknown preset 'blnd'. Did you mean 'blend'"),
    "tokenize": (["none"], "unknown tokenisation 'none'"),
    "similarity": ([2], "similarity must be a name.*got int"),
}


@pytest.mark.parametrize(
    ("options", "message"),
    [({name: value}, message) for name, (values, message) in NOT.items() for value in values]
    + [
        (
            {"rule": "most_likely", name: 0.5},
            f"{name} does not apply to rule='most_likely', under which nobody votes",
        )
        for name in ("min_share", "cutoff", "likelihood")
    ]
    + [({"rule": "most_likely", "scores": {"reward": 1}}, "scores does not apply to rule='most_likely'")],
    ids=str,
)
def test_a_wrong_value_is_refused_with_what_it_must_be(options, message):
    with pytest.raises(UsageError, match=message):
        Settings(**options)


def test_options_are_checked_before_the_first_ballot_is_asked_for():
    for call in (rv.elect, rv.elect_many, rv.Electorate):
        with pytest.raises(UsageError, match="temperature must be"):
            call(["a"], temperature=0)


def test_what_is_written_is_read_again(tmp_path):
    options = {
        "similarity": 'regex:"\\d+"\t\n\x7fäß',
        "temperature": 0.1,
        "winners": 3,
        "merge": True,
        "weights": None,
        "interval": [1.5, 2.0],
        "scores": {"a b": 0.5},
    }
    text = write_tables({"one": options, "two": {"a": 1}}, "message\nin two lines")
    tomllib = pytest.importorskip("tomllib")
    kept = {name: value for name, value in options.items() if value is not None}
    assert tomllib.loads(text) == {"one": kept, "two": {"a": 1}}
    assert text.startswith("# message\n# in two lines\n\n[one]\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"no table \[election\]"),
        ('similarity = "overlap_2"', r"no table \[election\]"),
        ("[election]\n", r"no table \[election\] with options"),
        ("election = 3", r"no table \[election\]"),
        ("[election]\nsimilarity = = 1", "is not TOML: .*line 2"),
        ('[election]\nsimilarity = "overlop_2"', "election: unknown similarity 'overlop_2'. Did you mean"),
        ('[election]\nsimilarty = "overlap_2"', "unknown option 'similarty'. Did you mean 'similarity'"),
        ('[election]\nsimilarity = "exact:command=ls"', "a profile runs no programs"),
        ('[election]\nsimilarity = "Majority:command=ls"', "a profile runs no programs"),
        ("[election]\nsimilarity = 2", "similarity must be str, got 2"),
        ("[election]\ntemperature = true", "temperature must be int or float, got True"),
        ("[election]\ntemperature = -1", "temperature must be a number above 0"),
        ("[election]\nwinners = 1.5", "winners must be int"),
        ("[election]\nmerge = 1", "merge must be bool, got 1"),
        ("[election]\nmerge = 0x" + "f" * 4000, "merge must be bool, got a number of very many digits"),
        ("[election]\nwinners = 0x" + "f" * 4000, "winners must be a whole number from 1"),
        ("[election]\nwinners = " + "9" * 5000, "is not TOML: Exceeds the limit"),
        (
            "[election]\ntemperature = 1" + "0" * 400,
            "temperature must be a number above 0, got 1000.*0\\.\\.\\.",
        ),
        ("[election]\nx = " + "[" * 9999, "is not TOML"),
    ],
    ids=lambda value: value[:40],
)
def test_what_is_no_profile_is_refused_with_its_file(tmp_path, text, message):
    with pytest.raises(DataError, match=message) as caught:
        rv.read_profile(written(tmp_path, text))
    assert str(tmp_path / "profile.toml") in str(caught.value)


def test_a_profile_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "profile.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="is not UTF-8"):
        rv.read_profile(path)
    with pytest.raises(SetupError, match=r"cannot read .*none\.toml: no such file"):
        rv.read_profile(tmp_path / "none.toml")
    with pytest.raises(SetupError, match=r"cannot read .*null"):
        rv.read_profile("a\0b")


@pytest.mark.parametrize("function", [rv.elect, rv.elect_many, rv.Electorate, rv.agreement_shares])
def test_signatures_name_every_option_with_its_default_so_that_editors_complete_them(function):
    shown = inspect.signature(function).parameters
    assert {name: shown[name].default for name in SCHEMA} == {o.name: o.default for o in SCHEMA.values()}
    assert not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in shown.values())
