"""From lists to outputs: every method chooses what its name says."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.data import beside
from experiments.voting import first, first_not_empty, read_outputs, reranked, vote, vote_with_voters

import rangevote as rv
from rangevote.formats.jsonl import write_ballot
from rangevote.text import write_atomically

TEXTS = ["", "a dog", "a dog runs fast", "a dog runs", "a cat"]
LOGPROBS = [-1.2, -1.5, -1.6, -1.7, -2.5]


def ballot(id="x", texts=TEXTS, logprobs=LOGPROBS, **fields):
    listed = [
        rv.Hypothesis(text, tokens=tuple(sum(map(ord, word)) for word in text.split()), logprob=p, **fields)
        for text, p in zip(texts, logprobs, strict=True)
    ]
    return rv.Ballot(listed, id=id)


def written(path, ballots):
    with write_atomically(path) as file:
        file.writelines(write_ballot(one) for one in ballots)
    return path


def votes(tmp_path, ballots, **options):
    usual = {
        "search": "beam",
        "k": 5,
        "measures": ["overlap_2"],
        "words": "space",
        "other_measures": [],
        "other_words": "",
        "not_empty": True,
        "rerank": True,
        "suffix": "",
    }
    vote(tmp_path / "out.json.gz", **{**usual, **options, "ballots": ballots})
    found = read_outputs(tmp_path / "out.json.gz")
    return {name: method["texts"] for name, method in found["methods"].items()}


def test_the_first_the_first_with_words_and_the_best_by_length():
    assert first(ballot()).text == ""
    assert first_not_empty(ballot()).text == "a dog"
    assert first_not_empty(ballot(texts=["", " "], logprobs=[-1, -2])).text == ""
    assert reranked(ballot()).text == "a dog runs fast"  # -1.6 / 5 tokens


def test_a_vote_names_every_method_and_elects_what_elect_elects(tmp_path):
    ballots = written(tmp_path / "test-beam-k5.jsonl.gz", [ballot("x"), ballot("y")])
    found = votes(
        tmp_path, ballots, measures=["overlap_2", "blend"], other_measures=["overlap_1"], other_words="13a"
    )
    assert list(found) == ["beam", "beam_not_empty", "reranked", "overlap_2", "blend", "overlap_1 (13a)"]
    assert found["overlap_2"] == [rv.elect(ballot()).winner] * 2
    assert found["blend"] == [rv.elect(ballot(), preset="blend").winner] * 2
    assert found["overlap_1 (13a)"] == [rv.elect(ballot(), similarity="overlap_1", tokenize="13a").winner] * 2


def test_votes_on_another_list_than_usual_say_so(tmp_path):
    ballots = written(tmp_path / "test-beam-k5.jsonl.gz", [ballot()])
    found = votes(tmp_path, ballots, not_empty=False, rerank=False, suffix=" on beam")
    assert list(found) == ["beam", "overlap_2 on beam"]


def test_states_are_read_from_the_array_beside_the_ballots(tmp_path):
    ballots = written(tmp_path / "test-beam-k5.jsonl.gz", [ballot("x"), ballot("y")])
    one, other = np.eye(2, dtype=np.float16)
    # the most likely of the first item stands alone against the rest; of the second all agree
    np.save(beside(ballots), np.stack([one, other, other, other, other, *[one] * 5]))
    assert votes(tmp_path, ballots, measures=["states"])["states"] == ["a dog", ""]


def test_outputs_that_the_length_limit_cut_are_counted(tmp_path):
    ballots = written(tmp_path / "test-beam-k5.jsonl.gz", [ballot("x", finished=False), ballot("y")])
    votes(tmp_path, ballots)
    found = read_outputs(tmp_path / "out.json.gz")
    assert found["methods"]["beam"]["unfinished"] == 1


def test_tuned_settings_come_from_a_profile(tmp_path):
    profile = tmp_path / "profile.toml"
    profile.write_text('[election]\nsimilarity = "overlap_1"\ntemperature = 3.0\n[found]\nbleu = 1.0\n')
    ballots = written(tmp_path / "test-beam-k5.jsonl.gz", [ballot()])
    found = votes(tmp_path, ballots, profile=profile)
    assert found["tuned"] == [rv.elect(ballot(), similarity="overlap_1", temperature=3.0).winner]


def by_voters(tmp_path, number, subset, rolls):
    slates = written(tmp_path / "c.jsonl.gz", [ballot("x"), ballot("y"), ballot("z")])
    voters = written(tmp_path / "v.jsonl.gz", rolls)
    options = {"kind": "sample", "number": number, "measures": ["overlap_2"], "words": "space", "seed": 1}
    vote_with_voters(tmp_path / "o.json.gz", **options, subset=subset, candidates=slates, voters=voters)
    return read_outputs(tmp_path / "o.json.gz")["methods"]["overlap_2"]["texts"]


def test_voters_elect_among_the_candidates_of_the_same_item(tmp_path):
    rolls = [ballot(id, ["a cat"] * 4, [-1.0, -1.1, -1.2, -1.3], sampled=True) for id in ("x", "y")]
    assert by_voters(tmp_path, 4, False, rolls) == ["a cat"] * 2  # of the items that have voters


def test_fewer_voters_are_drawn_from_a_longer_list_whatever_its_order(tmp_path):
    texts = ["a cat"] * 30 + ["a dog runs fast"] * 70
    rolls = [ballot("x", texts, list(np.linspace(-1, -2, 100)), sampled=True)]
    chosen = [by_voters(tmp_path, number, True, rolls) for number in (25, 100)]
    assert chosen == [["a dog runs fast"]] * 2  # the first 25 of the list would all elect the cat


def test_candidates_and_voters_of_different_items_are_not_mixed(tmp_path):
    with pytest.raises(ValueError, match="candidates of x met voters of y"):
        by_voters(tmp_path, 4, False, [ballot("y")])
