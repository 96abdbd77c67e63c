"""`rangevote compare`: several systems in, a table with significance out."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import ballot, lines


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two systems of 60 outputs and their references, in the working directory."""
    monkeypatch.chdir(tmp_path)
    references = [f"the number {i} is a number" for i in range(60)]
    (tmp_path / "ref.txt").write_text("".join(f"{text}\n" for text in references))
    (tmp_path / "bad.txt").write_text("".join(f"a number {i}\n" for i in range(60)))
    (tmp_path / "good.txt").write_text("".join(f"the number {i} is it\n" for i in range(60)))
    return tmp_path


def test_stars_mark_what_differs_from_the_first(run, files):
    done = run(
        "compare", "bad.txt", "good.txt", "again=bad.txt", "-r", "ref.txt", "--metric", "bleu_1,length"
    )
    assert done.code == 0
    shown = done.out.decode()
    table = {line.split()[0]: line for line in shown.splitlines()[2:5]}
    assert list(table) == ["bad", "good", "again"]
    assert table["good"].count("***") == 2
    assert "*" not in table["again"] + table["bad"]
    assert "* p < 0.05, ** p < 0.01, *** p < 0.001 against bad: paired bootstrap (two-tailed)" in shown
    assert "60 : 0" in shown  # sentences above and below


def test_json_has_intervals_p_values_and_the_sign_test(run, files):
    done = run("compare", "bad.txt", "good.txt", "-r", "ref.txt", "--metric", "chrf", "--json", "--seed", 1)
    found = json.loads(done.out)
    good = found["systems"][1]["against_first"]["chrf"]
    assert good["interval"][0] < good["difference"] < good["interval"][1]
    assert good["p"] == 2 / 10_001
    assert (good["above"], good["below"], good["sign_test_p"]) == (60, 0, 2 / 2**60)
    assert found["bootstrap"] == {"resamples": 10_000, "seed": 1, "p_value": "two_tailed"}


def test_outputs_of_other_systems_are_looked_up_in_the_beam_of_the_last(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    right = {1: "a b", 2: "d e", 3: "g", 4: "h"}
    other = {1: ["a c"], 2: ["d f"], 3: [], 4: ["i"]}
    beam = [ballot(id, text, *other[id], references=[text]) for id, text in right.items()]
    files = {"k4": beam, "w4": [{"id": id, "winner": text} for id, text in right.items()]}
    # "x" is in no beam, "d f" is there and lost, two were chosen again
    small = {4: "h", 3: "x", 2: "d f", 1: "a b"}
    files["w2"] = [{"id": id, "winner": text} for id, text in small.items()]
    for name, records in files.items():
        (tmp_path / f"{name}.jsonl").write_bytes(lines(*records))
    arguments = ["compare", "w2.jsonl", "w4.jsonl", "--beam", "k4.jsonl"]
    found = json.loads(run(*arguments, "--metric", "bleu_1", "--json").out)
    assert found["selection"] == {
        "larger": "w4",
        "systems": [{"name": "w2", "items": 4, "absent": 25, "chosen_again": 50}],
    }
    # the references travelled along with the beam
    assert found["systems"][1]["scores"]["bleu_1"]["value"] == 100
    assert "absent from the beam (%)" in run(*arguments, "--metric", "length").out.decode()


def test_curves_are_drawn_from_names_with_k(run, files):
    pytest.importorskip("matplotlib")
    systems = ["beam@2=bad.txt", "beam@10=good.txt", "vote@2=good.txt", "vote@10=good.txt"]
    arguments = ["-r", "ref.txt", "--metric", "length", "--baseline", "beam", "--plot", "curves.svg"]
    assert run("compare", *systems, *arguments).code == 0
    drawn = (files / "curves.svg").read_text()
    for text in ("beam", "vote", "references", "length", "beam size k"):
        assert f"<!-- {text} -->" in drawn
    assert "stroke-dasharray" in drawn
    done = run("compare", *systems, *arguments)
    assert (done.code, "use --force to overwrite it" in done.err) == (5, True)


@pytest.mark.parametrize(("system", "name"), [("x@0.25=bad.txt", "x@0.25"), ("k=4.txt", "k=4")])
def test_an_exponent_is_not_taken_for_k_nor_a_files_name_for_a_system(run, files, system, name):
    (files / "k=4.txt").write_text("a\n" * 60)
    result = json.loads(run("compare", system, "good.txt", "--metric", "length", "--json").out)
    assert [system["name"] for system in result["systems"]] == [name, "good"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "there is nothing to compare: give at least two files, got 0"),
        (["bad.txt", "bad.txt"], 2, "two systems are called 'bad'; name them, for example NAME=bad.txt"),
        (["bad.txt", "g@1=good.txt", "--plot", "x.svg"], 2, "for example 'bad@10=bad.txt'"),
        (["b@0.5=bad.txt", "g@1=good.txt", "--plot", "x.svg"], 2, "cannot draw 'b@0.5'"),
        (
            ["b@1=bad.txt", "g@1=good.txt", "--plot", "x.svg", "--baseline", "beam"],
            2,
            "unknown method of --baseline 'beam'",
        ),
        (["bad.txt", "--beam", "many.jsonl"], 2, "there is nothing to compare"),
        (["bad.txt", "good.txt", "--beam", "beam.jsonl"], 3, "bad.txt has 60 lines and beam.jsonl 1"),
    ],
)
def test_mistakes_have_a_message_and_a_code(run, files, arguments, code, message):
    (files / "beam.jsonl").write_bytes(lines(ballot(1, "a")))
    (files / "many.jsonl").write_bytes(lines(*(ballot(i, "a", "b") for i in range(60))))
    done = run("compare", *arguments, "-r", "ref.txt")
    assert (done.code, done.out) == (code, b"")
    assert message in done.err
    assert not list(files.glob("x.*"))


def test_a_name_that_is_no_text_is_a_usage_error(run, tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("a b\n")
    done = run("compare", f"a\udcff={tmp_path / 'a.txt'}", f"b={tmp_path / 'b.txt'}")
    assert done.code == 2
    assert "an argument holds bytes that are not UTF-8 text: " in done.err


@pytest.fixture
def panel(tmp_path):
    """Two members with two outputs for each of 30 items: b is always right, a in 10, and a's are elected."""
    references = [f"word{i} one two three four" for i in range(30)]
    wrong = [f"other{i} six seven" for i in range(30)]
    a = [reference if i < 10 else wrong[i] for i, reference in enumerate(references)]
    files = {"a": a, "b": references}
    for name, texts in files.items():
        records = (ballot(i, text, text, references=[references[i]]) for i, text in enumerate(texts))
        (tmp_path / f"{name}.jsonl").write_bytes(lines(*records))
    (tmp_path / "voted.jsonl").write_bytes(lines(*({"id": i, "winner": text} for i, text in enumerate(a))))
    return tmp_path


def test_members_of_the_beams_are_compared_and_a_panel_below_the_best_is_warned_of(run, panel):
    beams = ["--beam", panel / "a.jsonl", "--beam", panel / "b.jsonl"]
    done = run("compare", panel / "voted.jsonl", *beams, "--metric", "bleu", "--json", "--resamples", 200)
    found = json.loads(done.out)
    scores = {system["name"]: system["scores"]["bleu"]["value"] for system in found["systems"]}
    assert scores["b alone"] == pytest.approx(100)
    assert scores["a alone"] == scores["voted"] < 100
    best = found["best_member"]
    assert (best["name"], best["gain"]) == ("b", pytest.approx(100 - scores["voted"]))
    assert best["p"] < 0.05
    assert "below its best member, b" in done.err
    assert "b alone" in run("compare", panel / "voted.jsonl", *beams, "--metric", "bleu").out.decode()
    good = panel / "good.txt"
    good.write_text("".join(f"word{i} one two three four\n" for i in range(30)))
    as_good = run("compare", good, *beams, "--metric", "ter", "--resamples", 0)
    assert (as_good.code, "best member" in as_good.err) == (0, False)
