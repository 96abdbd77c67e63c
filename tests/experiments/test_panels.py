"""Panels: who sits in them, how an elected text is judged, and what the record says of them."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from experiments.panel_tables import BEST, ELECTED, MEAN, section
from experiments.settings import HERE, Folders

from experiments import panel_scores, panels
from rangevote.evaluation.significance import RESAMPLES, SEED, draws


def ballot(*candidates, **fields):
    """Candidates as (member, text, judgement)."""
    listed = [{"member": member, "text": text, "mark": mark} for member, text, mark in candidates]
    return {"candidates": listed, **fields}


def test_equal_texts_are_judged_by_the_mean_over_all_who_wrote_them():
    judged = ballot(("a", "x", -1.0), ("b", "x", -4.0), ("c", "y", -2.0), ("d", "x", None), ("e", "z", None))
    assert panel_scores.judgements(judged, lambda one: one["mark"]) == {"x": -2.5, "y": -2.0}


def test_whose_judgement_is_taken_does_not_depend_on_how_a_tie_is_broken():
    listed = [("a", "x y", 1.0), ("b", "x y", 5.0), ("c", "z", 0.0)]
    found = [
        panel_scores.by_marks([ballot(*order)], lambda one: one["mark"], "abc", {ELECTED: ["x y"]})
        for order in (listed, listed[::-1])
    ]
    assert [one["values"][ELECTED] for one in found] == [3.0, 3.0]
    assert found[0]["members"] == {"a": 3.0, "b": 3.0, "c": 0.0}
    assert found[0]["values"][MEAN] == 2.0  # equal to the mean of the single judgements


def test_a_text_without_judgement_is_left_out_of_the_mean():
    rows = panel_scores.mark_rows([{"x": 4.0}, {"x": 2.0}, {"y": 1.0}], ["x", "x", "x"])
    assert panel_scores.mean_mark(rows.sum(axis=0)) == 3.0


def test_differences_are_those_of_the_same_draws():
    rng = np.random.default_rng(0)
    marks = {name: np.column_stack([rng.normal(size=20), np.ones(20)]) for name in ("a", "b", ELECTED)}
    found = panel_scores.compare(
        panel_scores.mean_mark, {name: marks[name] for name in "ab"}, {ELECTED: marks[ELECTED]}
    )
    counts = np.concatenate(list(draws(20, RESAMPLES, SEED)))
    drawn = {name: counts @ rows[:, 0] / 20 for name, rows in marks.items()}
    expected = np.quantile(drawn[ELECTED] - (drawn["a"] + drawn["b"]) / 2, [0.025, 0.975])
    over_mean, over_best = found["differences"]
    assert over_mean["interval"] == pytest.approx(expected.tolist())
    assert (over_mean["to"], over_best["to"]) == (MEAN, BEST)
    best = max("ab", key=lambda name: marks[name][:, 0].mean())
    assert found["best_member"] == best
    assert over_best["difference"] == pytest.approx(marks[ELECTED][:, 0].mean() - marks[best][:, 0].mean())


def test_a_panel_that_elects_one_members_texts_does_not_differ_from_it():
    rows = np.column_stack([np.arange(10.0), np.ones(10)])
    found = panel_scores.compare(panel_scores.mean_mark, {"a": rows, "b": 0 * rows + [0, 1]}, {ELECTED: rows})
    equal = {"of": ELECTED, "to": BEST, "difference": 0.0, "interval": [0.0, 0.0], "p": 1.0}
    assert found["differences"][1] == equal


def test_a_member_with_many_outputs_has_one_share():
    many = [("a", text, None) for text in ("x y z", "x y v", "x y w")]
    listed = ballot(*many, ("b", "p q r", None), ("c", "p q r", None))
    assert panels.elected_texts([listed], ["a", "b", "c"]) == ["p q r"]
    assert panels.elected_texts([listed], ["a"]) == ["x y z"]


def test_of_near_copies_the_first_stays():
    pairs = [("a", "c"), ("b", "c"), ("c", "d")]
    assert panels.without_copies(["a", "b", "c", "d"], pairs) == ["a", "b", "d"]


def test_the_default_stays_unless_another_is_clearly_above_by_both_metrics():
    def found(bleu_p, chrf_p):
        return {
            name: {
                "values": {"first": 1.0, "second": 2.0},
                "differences": [{"of": "second", "to": "first", "difference": 1.0, "p": p}],
            }
            for name, p in (("bleu", bleu_p), ("chrf", chrf_p))
        }

    assert panels.choose(found(0.01, 0.01), ["first", "second"]) == "second"
    assert panels.choose(found(0.01, 0.2), ["first", "second"]) == "first"


def test_length_is_controlled_by_the_other_text_of_nearest_length():
    assert panels.nearest_in_length(["aaaa", "bbb", "ccccc", "bbb"], "aaaa") == "bbb"
    assert panels.nearest_in_length(["same", "same"], "same") == "same"


def test_length_normalisation_counts_the_end_of_sequence():
    listed = [("short", -2.0, ["s"]), ("longer one", -2.9, ["l", "o"])]
    own = [{"member": panels.OPUS, "text": t, "logprob": p, "tokens": k} for t, p, k in listed]
    assert panels.length_normalised([{"candidates": own}]) == ["longer one"]  # -2.9 / 3 > -2 / 2


@pytest.mark.parametrize("name", sorted({*panels.COPIES, *panels.WMT24}))
def test_the_members_that_were_written_down_are_there(name):
    path = Folders.usual().data / "panels" / f"{name}.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"no {path.name} in the folder of data sets")
    members = set(panels.members_of(panels.read_panel(path)))
    named = [*panels.COPIES.get(name, ()), *panels.WMT24.get(name, {}).values()]
    assert {member for several in named for member in several} <= members


def test_a_part_that_is_recorded_under_the_same_settings_is_not_run_again(tmp_path):
    folders = Folders(tmp_path, tmp_path, tmp_path)
    assert panels.recorded(folders, "part", {"k": (1, 2)}, lambda: {"value": 1}) == {"value": 1}
    assert panels.recorded(folders, "part", {"k": (1, 2)}, lambda: {"value": 2}) == {"value": 1}
    assert panels.recorded(folders, "part", {"k": (1, 3)}, lambda: {"value": 2}) == {"value": 2}


def test_every_part_is_recorded_with_what_was_chosen():
    chosen = json.loads((HERE / "results" / "panels-choice.json").read_bytes())["found"]
    for name in panels.PARTS:
        settings = json.loads((HERE / "results" / f"panels-{name}.json").read_bytes())["settings"]
        assert settings == {"similarity": chosen["similarity"], "beam": chosen["beam"]}


def test_the_numbers_of_the_notes_stand_in_the_tables():
    notes = (HERE / "notes-panels.md").read_text(encoding="utf-8")
    tables = "\n".join(block for block in section(HERE / "results", HERE) if block != notes)
    ours, earlier, _ = notes.partition("* **Not reproduced**")  # quotes numbers of earlier runs
    assert earlier
    numbers = set(re.findall(r"[+-]?\d+\.\d+", ours))
    assert len(numbers) > 20
    assert [
        number for number in numbers if not re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", tables)
    ] == []


def test_who_gives_no_answer_abstains_and_is_wrong():
    listed = [("a", "4", True), ("b", None, False), ("c", "5", False)]
    question = {"candidates": [{"member": m, "text": "", "answer": a, "right": r} for m, a, r in listed]}
    answered = panels._answered(question)
    assert panels.members_of([answered]) == ["a", "c"]
    rows = [panels._right_rows([answered], panel_scores.texts_of([answered], m))[0, 0] for m in "abc"]
    assert rows == [100.0, 0.0, 0.0]
