"""Steps: done once, done again when anything that decides them has changed."""

from __future__ import annotations

import pytest

from experiments.steps import InputFile, Stage, run, wanted
from tests.experiments.steps import fail, in_parts, write


def step(folder, name, text, work=write, **needs):
    return Stage(name, "data", folder / name, work, {"text": text}, needs)


def ran(stages, **options):
    """The names of the steps that a run did."""
    lines: list[str] = []
    run(stages, tell=lines.append, **options)
    return [line.partition("] ")[2].partition(":")[0] for line in lines if line.startswith("[")]


def test_a_step_runs_after_what_it_needs_and_only_once(tmp_path):
    first = step(tmp_path, "a", "1")
    second = step(tmp_path, "b", "2", before=first)
    assert wanted([second]) == [first, second]
    assert ran([second]) == ["a", "b"]
    assert (tmp_path / "b").read_text() == "12"
    assert ran([second]) == []


def test_another_option_runs_the_step_again_and_all_that_follow(tmp_path):
    ran([step(tmp_path, "b", "2", before=step(tmp_path, "a", "1"))])
    changed = step(tmp_path, "b", "2", before=step(tmp_path, "a", "3"))
    assert ran([changed]) == ["a", "b"]
    assert (tmp_path / "b").read_text() == "32"


def test_another_given_file_runs_the_step_again(tmp_path):
    (tmp_path / "given").write_text("x")
    assert ran([step(tmp_path, "a", "1", before=InputFile(tmp_path / "given"))]) == ["a"]
    assert ran([step(tmp_path, "a", "1", before=InputFile(tmp_path / "given"))]) == []
    (tmp_path / "given").write_text("y")
    assert ran([step(tmp_path, "a", "1", before=InputFile(tmp_path / "given"))]) == ["a"]


def test_an_interrupted_step_is_not_done_even_if_an_earlier_one_was(tmp_path):
    ran([step(tmp_path, "a", "1")])
    with pytest.raises(KeyboardInterrupt):
        ran([step(tmp_path, "a", "22", fail)])
    assert not step(tmp_path, "a", "1").done  # what lies there is neither's
    assert ran([step(tmp_path, "a", "1")]) == ["a"]


def test_a_draft_belongs_to_one_fingerprint_and_goes_when_the_step_is_done(tmp_path):
    def parts(size):
        return Stage("a", "search", tmp_path / "a", in_parts, {"size": size}, draft=True)

    other = tmp_path / f"a.{parts(3).key[:8]}.draft"
    other.mkdir()
    (other / "0").write_text("of an interrupted run")
    ran([parts(2)])
    assert (tmp_path / "a").read_text() == "[] 2"
    ran([parts(3)])
    assert (tmp_path / "a").read_text() == "['0'] 3"
    assert not list(tmp_path.glob("*.draft"))


def test_a_keyed_output_never_meets_that_of_other_options(tmp_path):
    one, other = (
        Stage("m", "train", tmp_path / "model", write, {"text": text}, keyed=True) for text in ("1", "2")
    )
    assert one.output != other.output
    assert one.output.name.startswith("model-")


def test_steps_side_by_side_give_what_steps_in_turn_give(tmp_path):
    first = [step(tmp_path, name, name) for name in "abc"]
    last = [step(tmp_path, f"{one.name}-after", "!", before=one) for one in first]
    assert sorted(ran(last, jobs=2)) == sorted(stage.name for stage in (*first, *last))
    assert [stage.output.read_text() for stage in last] == ["a!", "b!", "c!"]
    assert all(stage.done for stage in last)
