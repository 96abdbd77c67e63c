"""Configuration files, profiles and limits."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")

from rangevote.errors import DataError, UsageError
from rangevote.service.config import (
    Alias,
    Limits,
    RequestOptions,
    ServiceConfig,
    profile_options,
    read_config,
)


def test_the_limits_are_those_of_the_contract():
    limits = Limits()
    assert (limits.body_bytes, limits.body_seconds, limits.samples) == (2**20, 10, 64)
    assert (limits.messages, limits.in_flight, limits.queue) == (256, 16, 64)
    assert (limits.connect_seconds, limits.read_seconds, limits.total_seconds) == (5, 120, 300)
    assert (limits.response_bytes, limits.candidate_tokens, limits.retries) == (4 * 2**20, 20_000, 2)


@pytest.mark.parametrize(
    ("name", "value"), [("samples", 0), ("samples", True), ("in_flight", 1.5), ("hold", -1)]
)
def test_a_limit_that_cannot_be_is_named(name, value):
    with pytest.raises(UsageError, match=f"the limit {name} must be a"):
        Limits(**{name: value})


def test_a_file_has_everything(tmp_path):
    (tmp_path / "tuned.toml").write_text(
        '[election]\nsimilarity = "overlap_1-4@0.25"\ntemperature = 2.0\n\n[tuned]\nmetric = "bleu"\n'
    )
    path = tmp_path / "service.toml"
    path.write_text(
        'upstream = "http://127.0.0.1:8000/v1"\nallow_models = ["a"]\n[limits]\nqueue = 3\n'
        "[options]\nsamples = 8\n[profiles.careful]\nsamples = 32\nadaptive = true\n"
        '[profiles.tuned]\nfile = "tuned.toml"\nsamples = 5\n[aliases.x]\nmodel = "a"\nprofile = "tuned"\n'
    )
    found = read_config(str(path))
    assert found["upstream"] == "http://127.0.0.1:8000/v1"
    assert found["limits"] == {"queue": 3}
    assert found["profiles"]["tuned"] == {"similarity": "overlap_1-4@0.25", "temperature": 2.0, "samples": 5}
    assert found["aliases"] == {"x": Alias("a", "tuned")}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("upstrem = 'x'", "unknown key 'upstrem'. Did you mean 'upstream'?"),
        ("upstream = 7", "upstream must be a str"),
        ("allow_models = [1]", "allow_models must be a list of names"),
        ("[limits]\nbody = 1", "unknown limit 'body'"),
        ("[aliases.x]\nprofile = 'y'", "aliases.x names no model"),
        ("[aliases.x]\nmodel = 1", "aliases.x.model must be a name"),
        ("[profiles]\nx = 1", "profiles.x must be a table"),
        ("[profiles.x]\nfile = 1", "profiles.x.file must be a path"),
    ],
)
def test_what_a_file_cannot_mean_is_told_with_its_place(tmp_path, text, told):
    path = tmp_path / "service.toml"
    path.write_text(text)
    with pytest.raises(DataError) as error:
        read_config(str(path))
    assert str(path) in str(error.value)
    assert told in str(error.value)


def test_a_profile_of_tune_may_say_how_many_samples(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text('[election]\npreset = "blend"\nwinners = 1\n[sampling]\nsamples = 7\n')
    assert profile_options(str(path)) == {"preset": "blend", "samples": 7}
    path.write_text('[election]\npreset = "blend"\n[sampling]\nsampels = 7\n')
    with pytest.raises(DataError, match=r"unknown option 'sampels'\. Did you mean 'samples'"):
        profile_options(str(path))


def test_who_changes_the_measure_leaves_the_other_ones_temperature_behind():
    blend = RequestOptions().changed({"preset": "blend"})
    assert blend.settings(1).temperature == 2.0
    assert blend.changed({"similarity": "exact"}).settings(1).temperature == 1.0
    assert blend.changed({"weights": "count"}).settings(1).temperature == 2.0


@pytest.mark.parametrize("name", ["chat", "models", "Big", "a/b", "", "-x"])
def test_names_that_cannot_stand_in_an_address_are_no_profiles(name):
    with pytest.raises(UsageError, match="a profile is called"):
        ServiceConfig(profiles={name: RequestOptions()})


def test_an_alias_needs_its_profile_and_samples_stay_below_their_limit():
    with pytest.raises(UsageError, match="unknown profile 'y'"):
        ServiceConfig(aliases={"x": Alias("m", "y")})
    with pytest.raises(UsageError, match="65 samples are more than the limit 64"):
        ServiceConfig(options=RequestOptions(samples=65))


def test_options_that_every_request_would_be_refused_for_are_refused_at_once():
    with pytest.raises(UsageError, match="of a vLLM server"):
        ServiceConfig(upstream="http://127.0.0.1:1/v1", options=RequestOptions(candidates="beam:4"))
    with pytest.raises(UsageError, match="a search, as 'beam:4'"):
        ServiceConfig(options=RequestOptions(candidates=4))
    with pytest.raises(UsageError, match="voters are samples where the candidates are"):
        ServiceConfig(upstream="http://127.0.0.1:1/v1", options=RequestOptions(voters="candidates"))
    with pytest.raises(UsageError, match="unknown source 'vlm'"):
        ServiceConfig(source="vlm")
    ServiceConfig(
        upstream="http://127.0.0.1:1/v1", source="vllm", options=RequestOptions(candidates="beam:4")
    )
    with pytest.raises(UsageError, match="9 votes cannot come of 8 samples"):
        ServiceConfig(options=RequestOptions(samples=8, min_votes=9))
    with pytest.raises(UsageError, match=r"counts n-grams of 9 orders; 8 are allowed \(limits\.orders\)"):
        ServiceConfig(options=RequestOptions(election={"similarity": "overlap_1-9"}))
    ServiceConfig(options=RequestOptions(election={"similarity": "overlap_1-9"}), limits=Limits(orders=9))
