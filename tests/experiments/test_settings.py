"""Settings: every TOML file can be read, and what cannot be meant is refused."""

from __future__ import annotations

import pytest
from experiments.command import settings_of
from experiments.findings import group_of
from experiments.settings import HERE, Folders, independent_of_k, read_settings, spec
from experiments.training import CaptionerOptions, TranslatorOptions

from rangevote.decoding import get_search
from rangevote.election.settings import Settings as Election
from rangevote.errors import DataError, SetupError, UsageError
from rangevote.evaluation.metrics import get_metric
from rangevote.similarity import PRESETS

FILES = sorted(HERE.glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_names_searches_measures_metrics_and_options_that_exist(path):
    found = read_settings(path)
    assert found.name == path.stem
    templates = [*found.searches.values(), *(found.voters.searches.values() if found.voters else ())]
    for template in templates:
        for k in (0,) if independent_of_k(template) else found.ks:
            get_search(spec(template, k, 1, found.search.max_new_tokens))
    for measure in (*found.vote.measures, *found.vote.other_measures):
        assert measure in PRESETS or Election(similarity=measure)
    for metric in (*found.report.metrics, found.report.metric):
        assert get_metric(metric)
    options = {"captions": CaptionerOptions, "translation": TranslatorOptions}[found.experiment]
    for system in found.systems.values():
        options.read(system.training)


@pytest.mark.parametrize("scale", ["local", "paper"])
@pytest.mark.parametrize("experiment", ["captions", "translation"])
def test_the_methods_and_beam_sizes_are_the_papers_and_more(experiment, scale):
    from experiments.paper import CAPTION_METHODS, SAMPLING, TABLES, TRANSLATION_METHODS

    found = settings_of(experiment, scale)
    main = found.systems[found.main]
    run = {*main.searches, *found.vote.measures}
    assert {*(CAPTION_METHODS if experiment == "captions" else TRANSLATION_METHODS)} <= run
    assert {*SAMPLING[experiment], "overlap_3", "overlap_1-4", "blend"} <= run
    assert found.ks == next(iter(TABLES[experiment].values())).ks
    assert "beam" in found.vote.not_empty
    assert all(group_of(method) for method in run)


def test_translation_votes_on_the_beams_without_copies_and_captions_on_plain_beams():
    assert settings_of("translation", "paper").systems["smoothed"].vote_on == ("no_copy",)
    assert settings_of("captions", "paper").systems["show_and_tell"].vote_on == ("beam",)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("max_rows", "max_row", "'max_row'.*Did you mean 'max_rows'"),
        ('vote_on = ["beam"]', 'vote_on = ["beams"]', "unknown search 'beams'"),
        ("[report]", "[report", r"is not TOML: .*line \d+"),
    ],
)
def test_what_a_file_cannot_mean_is_refused(tmp_path, old, new, told):
    path = tmp_path / "captions-broken.toml"
    path.write_text((HERE / "captions-smoke.toml").read_text().replace(old, new))
    with pytest.raises((UsageError, DataError), match=rf"captions-broken.toml: .*{told}"):
        read_settings(path)


def test_a_scale_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(UsageError, match="no scale 'huge' of captions; there are: local, paper, smoke"):
        settings_of("captions", "huge")


def test_the_folder_of_data_is_the_argument_or_the_variable_or_beside_the_repository(monkeypatch, tmp_path):
    monkeypatch.delenv("RANGEVOTE_DATA", raising=False)
    assert Folders.usual().data == HERE.parent.parent / "shared" / "data"
    monkeypatch.setenv("RANGEVOTE_DATA", str(tmp_path))
    assert Folders.usual().data == tmp_path
    assert Folders.usual(str(tmp_path / "other")).data == tmp_path / "other"


def test_missing_data_are_named_with_what_to_do(tmp_path):
    with pytest.raises(SetupError, match=r"no file flickr8k/captions.json.*RANGEVOTE_DATA"):
        Folders(tmp_path, tmp_path, tmp_path).given("flickr8k", "captions.json")
