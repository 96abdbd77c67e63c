"""Profiles: the options of an election in a file."""

from __future__ import annotations

from typing import get_type_hints

import click
import pytest
from msgspec.structs import fields

import rangevote as rv
from rangevote.election.settings import OPTION_TYPES, ElectionOptions, Settings, write_tables
from rangevote.errors import DataError, SetupError
from rangevote.similarity import DEFAULT_PRESET


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


def test_the_options_are_the_same_wherever_they_are_spelled():
    from rangevote.cli.options import election_options

    defaults = {option.name: option.default for option in fields(Settings)}
    assert list(get_type_hints(ElectionOptions)) == list(OPTION_TYPES) == list(defaults)
    command = click.command()(election_options(lambda **given: None))
    given = command.make_context("vote", []).params
    assert {name: value for name, value in given.items() if name != "profile"} == defaults
    texts = {option.name: option.help for option in command.params}
    assert f"[default: {DEFAULT_PRESET}, " in texts["preset"]
    for name, default in defaults.items():
        assert default is None or f"`{name}={default!r}`".replace("'", '"') in rv.elect.__doc__


def test_what_is_written_is_read_again(tmp_path):
    options = {
        "similarity": 'regex:"\\d+"\t\n\x7fäß',
        "temperature": 0.1,
        "winners": 3,
        "merge": True,
        "weights": None,
        "interval": [1.5, 2.0],
    }
    text = write_tables({"one": options, "two": {"a": 1}}, "told\nin two lines")
    tomllib = pytest.importorskip("tomllib")
    kept = {name: value for name, value in options.items() if value is not None}
    assert tomllib.loads(text) == {"one": kept, "two": {"a": 1}}
    assert text.startswith("# told\n# in two lines\n\n[one]\n")


@pytest.mark.parametrize(
    ("text", "told"),
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
def test_what_is_no_profile_is_refused_with_its_file(tmp_path, text, told):
    with pytest.raises(DataError, match=told) as caught:
        rv.read_profile(written(tmp_path, text))
    assert str(tmp_path / "profile.toml") in str(caught.value)


def test_a_profile_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "profile.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="is not UTF-8"):
        rv.read_profile(path)


def test_a_profile_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SetupError, match=r"cannot read .*none\.toml: No such file"):
        rv.read_profile(tmp_path / "none.toml")
    with pytest.raises(SetupError, match=r"cannot read .*null"):
        rv.read_profile("a\0b")
