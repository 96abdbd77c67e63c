"""`rangevote evaluate`: outputs and references in, numbers out."""

from __future__ import annotations

import gzip
import json

import pytest

from rangevote.evaluation.metrics import METRICS
from tests.cli.conftest import ballot, lines

REFERENCES = [["a dog runs fast"], ["the cat sits"], ["yes it is"]]


@pytest.fixture
def texts(tmp_path):
    """Outputs and references as text, one a line."""
    (tmp_path / "out.txt").write_text("a dog runs\nthe cat sits\n\n")
    (tmp_path / "ref.txt").write_text("".join(f"{item[0]}\n" for item in REFERENCES))
    return tmp_path / "out.txt", tmp_path / "ref.txt"


def test_json_has_every_number_with_its_interval_and_signature(run, texts):
    sacrebleu = pytest.importorskip("sacrebleu")
    found = json.loads(run("evaluate", texts[0], "-r", texts[1], "--json").out)
    assert found["items"] == 3
    expected = sacrebleu.corpus_bleu(["a dog runs", "the cat sits", ""], [[item[0] for item in REFERENCES]])
    assert found["scores"]["bleu"]["value"] == pytest.approx(expected.score)
    signature = f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"
    assert found["signatures"]["bleu"] == signature
    low, high = found["scores"]["length"]["interval"]
    assert low <= found["scores"]["length"]["value"] <= high
    assert found["references"]["length"] == pytest.approx(10 / 3)


def test_a_table_has_a_line_for_each_metric_with_the_references_beside_it(run, texts):
    shown = run(
        "evaluate", texts[0], "-r", texts[1], "--metric", "BLEU-1,length", "--metric", "empty"
    ).out.decode()
    found = [line.split("  ") for line in shown.splitlines()]
    rows = [row for row in found if row[0] in ("BLEU-1", "length", "empty (%)")]
    assert [row[0] for row in rows] == ["BLEU-1", "length", "empty (%)"]
    assert rows[1][-1].strip() == "3.33"
    assert "3 items, 1 reference each" in shown
    assert "nltk|nrefs:1|on:space|case:mixed" in shown


def test_what_vote_wrote_goes_with_the_ballots_it_read_by_id(run, tmp_path):
    ballots, winners = tmp_path / "nbest.jsonl.gz", tmp_path / "winners.jsonl"
    listed = [
        ballot(number, "a b c", "a b d", references=["a b c", "a b"], source="x y") for number in (3, 1, 2)
    ]
    ballots.write_bytes(gzip.compress(lines(*listed)))
    assert run("vote", ballots, "-o", winners).code == 0
    winners.write_bytes(b"".join(sorted(winners.read_bytes().splitlines(keepends=True))))
    found = json.loads(
        run("evaluate", winners, "-r", ballots, "--metric", "bleu_1,exact_copies", "--json").out
    )
    assert found["scores"]["bleu_1"]["value"] == 100
    assert found["scores"]["exact_copies"]["value"] == 0
    assert found["references_per_item"] == 2


def test_the_help_names_every_metric(run):
    shown = run("evaluate", "--help").out.decode()
    assert [name for name in METRICS if name not in shown] == []


def test_outputs_may_come_by_standard_input(run, texts):
    done = run("evaluate", "-", "-r", texts[1], "--metric", "length", "--json", stdin=b"a\nb c\nd\n")
    assert json.loads(done.out)["scores"]["length"]["value"] == pytest.approx(4 / 3)


def test_without_references_length_and_diversity_are_left(run, texts):
    done = run("evaluate", texts[0], "--json")
    assert "BLEU and chrF are left out" in done.err
    assert set(json.loads(done.out)["scores"]) == {
        *("length", "distinct_outputs", "distinct_unigrams", "distinct_bigrams", "empty")
    }


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["short.txt"], 3, "short.txt has 2 lines and ref.txt 3; without ids in both, line n"),
        (["out.txt", "--json", "--to", "latex"], 2, "--json and --to latex exclude each other"),
        (["-", "-r", "-"], 2, "'-' (standard input) can be read once"),
        (["empty.txt"], 3, "empty.txt"),
    ],
)
def test_mistakes_have_a_message_and_a_code(run, texts, monkeypatch, arguments, code, message):
    monkeypatch.chdir(texts[0].parent)
    (texts[0].parent / "short.txt").write_bytes(b"a\nb\n")
    (texts[0].parent / "empty.txt").touch()
    done = run("evaluate", "-r", "ref.txt", *arguments)
    assert (done.code, done.out) == (code, b"")
    assert message in done.err


@pytest.fixture
def samples(tmp_path):
    """Three questions with four answers each; the right one is in `answer`."""
    path = tmp_path / "samples.jsonl"
    answers = [("1 1 1 2", 1), ("1 2 2 3", "#### 1"), ("5 5 6 6", 5.0)]
    records = [
        {"id": i, "samples": [f"so {one}" for one in some.split()], "answer": gold, "meta": {"gold": gold}}
        for i, (some, gold) in enumerate(answers)
    ]
    path.write_bytes(lines(*records))
    return path


@pytest.mark.parametrize("gold", ["answer", "meta.gold"])
def test_samples_are_measured_against_a_field_of_their_file(run, samples, gold):
    done = run("evaluate", samples, "--key", "last_number", "--gold", gold, "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["maj_at"]["1"]["value"] == pytest.approx(100 * (3 + 1 + 2) / 12)
    assert found["maj_at"]["4"]["value"] == pytest.approx(100 * (1 + 0 + 0.5) / 3)
    assert found["pass_at"]["4"]["value"] == 100
    same = run("evaluate", samples, "-s", "exact:last_number", "--gold", gold, "--json", "--field", "samples")
    assert same.out == done.out


def test_samples_make_tables_and_a_picture(run, samples, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "curves.png"
    done = run("evaluate", samples, "--key", "last_number", "--gold", "answer", "--plot", picture)
    assert done.code == 0
    assert picture.stat().st_size > 1000
    shown = done.out.decode()
    assert all(word in shown for word in ("maj@n", "pass@n", "coverage", "calibration", "confidence 0.95"))
    assert run("evaluate", samples, "--key", "last_number", "--gold", "answer", "--plot", picture).code == 5
    unknown = run("evaluate", samples, "--key", "last_number", "--confidence", "0.8").out.decode()
    assert "entropy" in unknown
    assert "confidence 0.8" in unknown
    assert "maj@n" not in unknown


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        (["--key", "last_number", "--gold", "gold"], 3, "samples.jsonl:1: gold"),
        (["--key", "boxed", "--gold", "answer"], 3, "exact:boxed"),
        (["--key", "last_numbr"], 2, "last_number"),
        (["--key", "last_number", "-s", "exact"], 2, "-s"),
        (["--key", "last_number", "--metric", "bleu"], 2, "--metric"),
        (["--key", "last_number", "--plot", "x.png"], 2, "--gold"),
        (["--key", "last_number", "--confidence", "2"], 2, "--confidence"),
        (["--field", "samples"], 2, "--key"),
        (["--plot", "x.png"], 2, "--key"),
    ],
)
def test_what_samples_lack_is_named(run, samples, options, code, named):
    done = run("evaluate", samples, *options)
    assert (done.code, done.out) == (code, b"")
    assert named in done.err
