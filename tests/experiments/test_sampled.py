"""Elections by sampled voters: counted once for all likelihoods, and as `elect` holds them."""

from __future__ import annotations

import json

import pytest
from experiments.findings import PANEL
from experiments.sampled import setting_name, take_chosen, vote_sampled
from experiments.translator import translate_options
from experiments.voting import read_outputs

import rangevote as rv
from experiments import translator
from rangevote.decoding import get_search
from rangevote.formats.jsonl import write_ballot
from rangevote.similarity import PRESETS

SOURCES = {
    "a": (
        [("two dogs run on a snow", -12.6), ("two dogs run in the snow", -4.2), ("dogs", -3.0)],
        ["two dogs run", "dogs run on snow", "a dog in the snow", "a snow"],
    ),
    "b": ([("the end", -2.0), ("an end", -2.5)], ["the end is near", "an end", "an end now", "end"]),
}


@pytest.fixture
def lists(tmp_path):
    candidates, voters = tmp_path / "candidates.jsonl", tmp_path / "voters.jsonl"
    with candidates.open("wb") as one, voters.open("wb") as other:
        for id, (rows, texts) in SOURCES.items():
            one.write(write_ballot(rv.Ballot([rv.Hypothesis(t, logprob=p) for t, p in rows], id=id)))
            other.write(write_ballot(rv.Ballot([rv.Hypothesis(t, sampled=True) for t in texts], id=id)))
    return candidates, voters


def test_the_winners_are_those_of_elections_with_that_likelihood(lists, tmp_path):
    candidates, voters = lists
    output, likelihoods = tmp_path / "out.json.gz", (0.0, 0.4, 3.0)
    vote_sampled(
        output,
        k=3,
        voters={"all": ["x"], "panel": {"first": ["x"], "second": ["x"]}},
        measures=["overlap_1", "chrf"],
        likelihoods=likelihoods,
        words="space",
        candidates=candidates,
        x=voters,
    )
    methods = read_outputs(output)["methods"]
    assert len(methods) == 2 * 2 * 3
    for measure in ("overlap_1", "chrf"):
        for x in likelihoods:
            expected = [
                rv.elect(
                    [t for t, _ in rows],
                    [p for _, p in rows],
                    voters=texts,
                    weights="count",
                    similarity=measure,
                    likelihood=x,
                ).winner
                for rows, texts in SOURCES.values()
            ]
            for kind in ("all", "panel"):  # a panel of equal members elects as one of them
                assert methods[setting_name(measure, x, kind)]["texts"] == expected
    assert methods["overlap_1, L = 0, voters: all"] != methods["overlap_1, L = 3, voters: all"]


def test_voters_of_another_input_are_refused(lists, tmp_path):
    candidates, voters = lists
    voters.write_bytes(b"".join(reversed(voters.read_bytes().splitlines(keepends=True))))
    options = {"voters": {"all": ["x"]}, "measures": ["overlap_1"], "likelihoods": [0.0], "words": "space"}
    with pytest.raises(ValueError, match="candidates of a met voters of"):
        vote_sampled(tmp_path / "out.json.gz", k=3, candidates=candidates, x=voters, **options)


@pytest.mark.parametrize("chosen", [None, "overlap_1, L = 3, voters: all"])
def test_the_preset_stands_alone_where_no_development_set_chose(lists, tmp_path, chosen):
    candidates, voters = lists
    votes, output, choice = tmp_path / "votes.json.gz", tmp_path / "out.json.gz", tmp_path / "choice.json"
    options = {"measures": ["overlap_1"], "likelihoods": [0.0, 3.0], "words": "space"}
    vote_sampled(votes, k=3, voters={"all": ["x"]}, candidates=candidates, x=voters, **options)
    choice.write_text(json.dumps({"chosen": chosen}))
    preset = "overlap_1, L = 0, voters: all"
    take_chosen(output, k=3, consensus=preset, outputs=votes, choice=choice if chosen else None)
    settings = {name: one["texts"] for name, one in read_outputs(votes)["methods"].items()}
    wanted = {"consensus": settings[preset]} | ({"chosen": settings[chosen]} if chosen else {})
    assert {name: one["texts"] for name, one in read_outputs(output)["methods"].items()} == wanted


def test_the_panel_that_is_compared_is_that_of_the_preset():
    preset = PRESETS["consensus"]
    assert setting_name(preset.similarity, preset.likelihood, "panel") == PANEL


def test_searches_are_told_to_ctranslate2_in_its_words():
    assert translate_options(get_search("beam:4")) == {
        "beam_size": 4,
        "num_hypotheses": 4,
        "length_penalty": 0.0,
    }
    assert translate_options(get_search("length_normalised:4"))["length_penalty"] == 1.0
    sample = translate_options(get_search("sample:50,temperature=0.7"))
    assert (sample["sampling_topk"], sample["sampling_temperature"], sample["num_hypotheses"]) == (0, 0.7, 50)
    assert translate_options(get_search("top_k:1,top=4"))["sampling_topk"] == 4
    assert translate_options(get_search("nucleus:5,p=0.8"))["sampling_topp"] == 0.8


@pytest.mark.parametrize("spec", ["beam:4,copy_filter=0.5", "diverse_decoding:4", "epsilon:5"])
def test_what_ctranslate2_lacks_is_left_to_our_own_search(spec):
    assert not translate_options(get_search(spec))


def test_a_search_that_ctranslate2_lacks_opens_the_model_it_was_made_of(tmp_path, monkeypatch):
    (tmp_path / "model.bin").touch()
    monkeypatch.setattr(translator, "Ctranslate2Model", lambda folder: ("converted", folder))
    monkeypatch.setattr(translator, "load", lambda name, **options: ("original", name))
    assert translator.open_model(tmp_path, "cpu", "sample:5") == ("converted", tmp_path)
    assert translator.open_model(tmp_path, "cpu", "epsilon:5") == ("original", str(tmp_path / "original"))
