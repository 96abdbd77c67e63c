"""Configuration files, profiles and limits."""

from __future__ import annotations

import pytest

from rangevote.errors import DataError, UsageError
from rangevote.service.config import (
    Alias,
    Limits,
    RequestOptions,
    ServiceConfig,
    profile_options,
    read_config,
)

URL = "http://127.0.0.1:1/v1"


def test_a_file_has_everything(tmp_path):
    (tmp_path / "tuned.toml").write_text(
        '[election]\nsimilarity = "overlap_1-4@0.25"\ntemperature = 2.0\n\n[tuned]\nmetric = "bleu"\n'
    )
    path = tmp_path / "service.toml"
    path.write_text(
        f'upstream = "{URL}"\nallow_models = ["a"]\n[limits]\nqueue = 3\n'
        "[options]\nsamples = 8\n[profiles.careful]\nsamples = 32\nadaptive = true\n"
        '[profiles.tuned]\nfile = "tuned.toml"\nsamples = 5\n[aliases.x]\nmodel = "a"\nprofile = "tuned"\n'
    )
    config = read_config(str(path))
    assert (config.upstream, config.limits) == (URL, Limits(queue=3))
    assert config.profiles["tuned"] == {"similarity": "overlap_1-4@0.25", "temperature": 2.0, "samples": 5}
    assert config.aliases == {"x": Alias("a", "tuned")}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("upstrem = 'x'", "unknown key 'upstrem'. Did you mean 'upstream'?"),
        ("upstream = 7", "upstream: expected a string"),
        ("allow_models = [1]", "allow_models[0]: expected a string"),
        ("[limits]\nbody = 1", "unknown field body"),
        ("[limits]\nsamples = 0", "limits.samples: expected an integer >= 1"),
        ("[limits]\nsamples = true", "limits.samples: expected an integer"),
        ("[limits]\nhold = -1", "limits.hold: expected a number >= 0"),
        ("[aliases.x]\nprofile = 'y'", "missing required field model"),
        ("[aliases.x]\nmodel = 1", "aliases[...].model: expected a string"),
        ("[profiles]\nx = 1", "profiles[...]: expected an object"),
        ("[profiles.x]\nfile = 1", "profiles.x.file: must be a path"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_path(tmp_path, text, problem):
    path = tmp_path / "service.toml"
    path.write_text(text)
    with pytest.raises(DataError) as error:
        read_config(str(path))
    assert str(path) in str(error.value)
    assert problem in str(error.value)


def test_a_profile_of_tune_may_set_how_many_samples(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text('[election]\npreset = "blend"\nwinners = 1\n[sampling]\nsamples = 7\n')
    assert profile_options(str(path)) == {"preset": "blend", "samples": 7}
    path.write_text('[election]\npreset = "blend"\n[sampling]\nsampels = 7\n')
    with pytest.raises(DataError, match=r"unknown option 'sampels'\. Did you mean 'samples'"):
        profile_options(str(path))


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        *(({"profiles": {name: {}}}, "a profile is called") for name in ("chat", "Big", "a/b", "", "-x")),
        ({"aliases": {"x": Alias("m", "y")}}, "unknown profile 'y'"),
        ({"options": {"samples": 65}}, r"samples must be at most 64 \(limits.samples\), got 65"),
        (
            {"options": {"samples": 8, "min_votes": 9}},
            "min_votes must be at most samples, 8, got 9",
        ),
        ({"options": {"similarity": "overlap_1-9"}}, r"counts n-grams of 9 orders; 8 are allowed"),
        ({"upstream": URL, "options": {"candidates": "beam:4"}}, "of a vLLM server"),
        ({"upstream": URL, "options": {"voters": "candidates"}}, "voters='candidates' needs a search"),
        ({"engine": "vlm"}, "unknown engine 'vlm'"),
    ],
)
def test_what_every_request_would_be_refused_for_is_refused_at_once(config, problem):
    changed = dict(config)
    if "options" in config:
        changed["options"] = RequestOptions().changed(config["options"])
    if "profiles" in config:
        changed["profiles"] = {name: RequestOptions() for name in config["profiles"]}
    with pytest.raises(UsageError, match=problem):
        ServiceConfig(**changed)
