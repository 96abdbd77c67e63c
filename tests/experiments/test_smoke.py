"""Both experiments from data to page, on tiny made-up data."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from experiments.command import collect, main, run_experiment, settings_of
from experiments.page import PAGE, TABLE_PAGE, rendered
from experiments.plan import Plan
from experiments.settings import Folders

from experiments import searching
from experiments.steps import wanted
from rangevote.errors import SetupError
from rangevote.formats import read
from tests.experiments.tiny_data import MAKE, SIZES

EXPERIMENTS = ("captions", "translation")
#: For what is the same in both.
captions_alone = pytest.mark.parametrize("done", ["captions"], indirect=True)


class Experiment:
    """A smoke run in a folder of its own."""

    def __init__(self, name, folder):
        self.settings, self.folder = settings_of(name, "smoke"), folder
        self.folders = Folders(folder / "data", folder / "work", folder / "results")
        if not self.folders.data.exists():
            MAKE[name](self.folders.data)

    def run(self, seeds=None, **options):
        """Returns the lines that were told."""
        lines: list[str] = []
        seeds = seeds or self.settings.seeds
        run_experiment(self.settings, self.folders, seeds, tell=lines.append, page=self.folder, **options)
        return lines

    def results(self):
        """The numbers, without how long they took."""
        found = json.loads((self.folders.results / f"{self.settings.name}.json").read_bytes())
        del found["run"]
        return found


@pytest.fixture(scope="module", params=EXPERIMENTS)
def done(request, tmp_path_factory):
    """A run that nothing disturbed."""
    experiment = Experiment(request.param, tmp_path_factory.mktemp(request.param))
    experiment.run()
    return experiment


def test_every_method_has_numbers_at_every_k_for_every_seed(done):
    settings, found = done.settings, done.results()
    main_system = settings.systems[settings.main]
    assert list(found["systems"][settings.main]["seeds"]) == ["1", "2"]
    for numbers in found["systems"][settings.main]["seeds"].values():
        for method in (*settings.vote.measures, "beam_not_empty", "reranked", "length_normalised"):
            assert list(numbers["methods"][method]) == [str(k) for k in settings.ks], method
        assert {*main_system.searches} <= numbers["methods"].keys()
        for search, largest in settings.search.largest.items():
            assert max(map(int, numbers["methods"][search])) == largest
        assert numbers["methods"]["nucleus"].keys() == {"0"}
        assert {*settings.report.metrics} <= numbers["methods"]["beam"]["1"].keys()
        assert numbers["items"] == SIZES["test"]
        assert len(numbers["selection"]) == 2


def test_results_are_of_what_has_been_run(done):
    """Systems that are not evaluated yet are left out, and seeds without the main system."""
    settings = done.settings
    whole = Plan(settings, done.folders, settings.seeds).done()
    assert whole.seeds == settings.seeds
    assert whole.evaluated.keys() == Plan(settings, done.folders, settings.seeds).evaluated.keys()
    hidden = {
        key: stage.mark for key, stage in whole.evaluated.items() if key[0] == 2 or key[1] != settings.main
    }
    contents = {mark: mark.read_bytes() for mark in hidden.values()}
    for mark in contents:
        mark.unlink()
    try:
        partly = Plan(settings, done.folders, settings.seeds).done()
    finally:
        for mark, content in contents.items():
            mark.write_bytes(content)
    assert list(partly.evaluated) == [(1, settings.main)]
    assert partly.seeds == (1,)


def test_parts_for_some_seeds_are_run_for_these_alone(done):
    systems = done.results()["systems"]
    if done.settings.experiment == "captions":
        assert list(systems) == ["show_and_tell"]
        return
    assert list(systems["copies"]["seeds"]) == ["1"]
    assert "overlap_2 on beam" in systems["copies"]["seeds"]["1"]["methods"]
    with_voters = [seed for seed, found in systems["smoothed"]["seeds"].items() if "voters" in found]
    assert with_voters == ["2"]
    voters = systems["smoothed"]["seeds"]["2"]["voters"]
    assert voters["items"] == 4
    assert voters["curves"].keys() == {"sample", "stochastic_beam", "no_copy"}
    curve, gain = voters["curves"]["sample"]["blend"], voters["gains"]["sample"]["blend"]
    assert list(curve) == ["2", "4", "8"]
    assert gain["difference"] == pytest.approx(curve["8"]["bleu"] - curve["2"]["bleu"])
    assert gain["interval"][0] <= gain["difference"] <= gain["interval"][1]


def test_sampled_voters_elect_by_settings_that_the_development_set_chose(done):
    sampled = done.settings.sampled
    if sampled is None:
        return
    for numbers in done.results()["systems"][sampled.system]["seeds"].values():
        settings, development = numbers["sampled"]["settings"], numbers["sampled"]["development"]
        elections = len(sampled.voters) * len(sampled.measures) + len(sampled.panel_measures)  # and the panel
        assert len(settings) == elections * len(sampled.likelihoods)
        best = max(development["means"].values())
        assert development["means"][development["chosen"]] == best
        assert all(name.endswith("voters: half") for name in development["means"])
        assert all(list(values) == ["4"] for values in development["values"].values())
        assert "panel" not in development["chosen"]
        for k in map(str, sampled.ks):
            assert numbers["methods"]["chosen"][k]["bleu"] == settings[development["chosen"]][k]["bleu"]
            consensus = settings["overlap_1-4, L = 0.4, voters: half"]
            assert numbers["methods"]["consensus"][k]["bleu"] == consensus[k]["bleu"]
    assert "by sampled voters" in (done.folder / TABLE_PAGE).read_text(encoding="utf-8")


def test_every_k_has_its_own_list_kept_as_ballots(done):
    seed = done.folders.work / done.settings.name / "seed-1" / done.settings.main / "lists"
    search = done.settings.systems[done.settings.main].vote_on[0]
    for k in done.settings.ks:
        with read(seed / f"test-{search}-k{k}.jsonl.gz") as entries:
            ballots = [entry.get() for entry in entries]
        assert len(ballots) == SIZES["test"]
        assert max(len(ballot.candidates) for ballot in ballots) == k
        assert all(ballot.references for ballot in ballots)
    assert not list(seed.glob("*.draft"))


def test_the_page_is_what_the_results_render_to(done):
    text = (done.folder / PAGE).read_text(encoding="utf-8")
    assert text == rendered(done.folders.results, done.folder)[PAGE]
    assert done.settings.title in text


@captions_alone
def test_a_second_run_or_one_of_one_seed_does_nothing_and_changes_nothing(done):
    before = done.results()
    for seeds in (None, [2]):
        assert not [line for line in done.run(seeds) if line.startswith("[")]
        assert done.results() == before


@pytest.mark.parametrize("done", ["translation"], indirect=True)
def test_systems_that_were_run_elsewhere_stay_as_they_are_recorded(done, tmp_path):
    before, seeds = done.results(), done.settings.seeds
    for system in (done.settings.main, "copies"):
        renamed = replace(done.settings, title="today's")
        assert collect(Plan(renamed, done.folders, seeds, [system])) is not None
        assert done.results()["settings"]["title"] == "today's"
        assert collect(Plan(done.settings, done.folders, seeds, [system])) is not None
        assert done.results() == before
    nothing = Folders(done.folders.data, done.folders.work, tmp_path)
    assert collect(Plan(done.settings, nothing, seeds, ["copies"])) is None


@captions_alone
def test_an_interrupted_run_goes_on_to_the_same_results(done, tmp_path, monkeypatch):
    experiment = Experiment(done.settings.experiment, tmp_path)
    calls, real = [], searching.Batch

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) in (6, 20):  # in the middle of a list that has several parts
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(searching, "Batch", interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            experiment.run()
    assert list(tmp_path.rglob("*.draft"))
    experiment.run()
    assert experiment.results() == done.results()


def test_a_run_up_to_the_training_trains_and_no_more(tmp_path):
    experiment = Experiment("captions", tmp_path)
    lines = experiment.run(seeds=[1], last="train")
    assert sorted(line.partition("] ")[2].partition(":")[0] for line in lines) == [
        "data dev",
        "data test",
        "data train",
        "seed 1 show_and_tell train",
    ]
    assert not experiment.folders.results.exists()


def test_the_list_of_steps_says_what_is_done(done, capsys, monkeypatch):
    monkeypatch.setenv("RANGEVOTE_DATA", str(done.folders.data))
    monkeypatch.setattr("experiments.settings.ROOT", done.folder)
    assert main([done.settings.experiment, "--scale", "smoke", "--list", "--jobs", "1"]) == 0
    told = capsys.readouterr().out
    steps = wanted(Plan(done.settings, done.folders, done.settings.seeds).stages)
    assert f"0 of {len(steps)} steps are done" in told
    assert "seed 1" in told


def test_missing_data_end_the_run_with_what_to_do(tmp_path, capsys):
    assert main(["captions", "--scale", "smoke", "--data", str(tmp_path)]) == SetupError.exit_code
    assert "RANGEVOTE_DATA" in capsys.readouterr().err


def test_a_run_needs_an_experiment(capsys):
    assert main([]) == 2
    assert "say which experiment" in capsys.readouterr().err
