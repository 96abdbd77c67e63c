"""`rangevote evaluate`: outputs and references in, numbers out."""

from __future__ import annotations

import gzip
import json
import sys

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


def test_the_numbers_are_those_of_nltk_and_sacrebleu(run, texts):
    bleu_score = pytest.importorskip("nltk.translate.bleu_score")
    sacrebleu = pytest.importorskip("sacrebleu")
    outputs = ["a dog runs", "the cat sits", ""]
    done = run("evaluate", texts[0], "-r", texts[1], "--json")
    assert done.code == 0
    found = json.loads(done.out)
    assert found["items"] == 3
    words = [[item[0].split()] for item in REFERENCES]
    expected = bleu_score.corpus_bleu(words, [text.split() for text in outputs], (0.5, 0.5))
    assert found["scores"]["bleu_2"]["value"] == pytest.approx(100 * expected)
    columns = [[item[0] for item in REFERENCES]]
    assert found["scores"]["bleu"]["value"] == pytest.approx(sacrebleu.corpus_bleu(outputs, columns).score)
    assert found["scores"]["chrf"]["value"] == pytest.approx(sacrebleu.corpus_chrf(outputs, columns).score)
    assert found["signatures"]["bleu"] == "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" + (
        sacrebleu.__version__
    )
    low, high = found["scores"]["length"]["interval"]
    assert low <= found["scores"]["length"]["value"] <= high
    assert found["references"]["length"] == pytest.approx(10 / 3)


def test_a_table_has_a_line_for_each_metric_with_the_references_beside_it(run, texts):
    shown = run("evaluate", texts[0], "-r", texts[1], "-m", "bleu_1,length", "-m", "empty").out.decode()
    found = [line.split("  ") for line in shown.splitlines()]
    rows = [row for row in found if row[0] in ("BLEU-1", "length", "empty (%)")]
    assert [row[0] for row in rows] == ["BLEU-1", "length", "empty (%)"]
    assert rows[1][-1].strip() == "3.33"
    assert "3 items, 1 reference each" in shown
    assert "nltk|nrefs:1|on:words|case:mixed" in shown


@pytest.mark.parametrize(
    ("format", "begin"), [("markdown", "|  | outputs |"), ("latex", "\\begin{tabular}"), ("json", "{")]
)
def test_other_formats_can_be_asked_for(run, texts, format, begin):
    done = run("evaluate", texts[0], "-r", texts[1], "-m", "length", "--format", format)
    assert done.out.decode().startswith(begin)


def test_what_vote_wrote_goes_with_the_ballots_it_read_by_id(run, tmp_path):
    ballots, winners = tmp_path / "nbest.jsonl.gz", tmp_path / "winners.jsonl"
    listed = [
        ballot(number, "a b c", "a b d", references=["a b c", "a b"], source="x y") for number in (3, 1, 2)
    ]
    ballots.write_bytes(gzip.compress(lines(*listed)))
    assert run("vote", ballots, "-o", winners).code == 0
    winners.write_bytes(b"".join(sorted(winners.read_bytes().splitlines(keepends=True))))
    found = json.loads(run("evaluate", winners, "-r", ballots, "-m", "bleu_1,exact_copies", "--json").out)
    assert found["scores"]["bleu_1"]["value"] == 100
    assert found["scores"]["exact_copies"]["value"] == 0
    assert found["references_per_item"] == 2


def test_the_help_names_every_metric(run):
    shown = run("evaluate", "--help").out.decode()
    assert [name for name in METRICS if name not in shown] == []


def test_several_files_are_several_references_and_sources_may_be_a_file(run, texts, tmp_path):
    (tmp_path / "ref2.txt").write_text("a dog runs\nx\ny\n")
    (tmp_path / "src.txt").write_text("ein Hund\nthe cat sits\nja\n")
    arguments = ["-r", texts[1], "-r", tmp_path / "ref2.txt", "--source", tmp_path / "src.txt"]
    found = json.loads(run("evaluate", texts[0], *arguments, "-m", "exact_copies,bleu_1", "--json").out)
    assert found["references_per_item"] == 2
    assert found["scores"]["exact_copies"]["value"] == pytest.approx(100 / 3)


def test_outputs_may_come_by_standard_input(run, texts):
    done = run("evaluate", "-", "-r", texts[1], "-m", "length", "--json", stdin=b"a\nb c\nd\n")
    assert json.loads(done.out)["scores"]["length"]["value"] == pytest.approx(4 / 3)


def test_without_references_length_and_diversity_are_left(run, texts):
    done = run("evaluate", texts[0], "--json")
    assert "BLEU and chrF are left out" in done.err
    assert set(json.loads(done.out)["scores"]) == {
        *("length", "distinct_outputs", "distinct_unigrams", "distinct_bigrams", "empty")
    }


def test_a_file_appears_when_it_is_complete_and_is_not_replaced_unasked(run, texts, tmp_path):
    out = tmp_path / "table.md"
    arguments = ["evaluate", texts[0], "-m", "length", "--format", "markdown", "-o", out]
    assert run(*arguments).out == b""
    assert out.read_text().startswith("|  | outputs |")
    done = run(*arguments)
    assert (done.code, "Use --force to replace it" in done.err) == (5, True)
    assert run(*arguments, "--force").code == 0
    done = run("evaluate", texts[0], "-m", "length", "-o", texts[0], "--force")
    assert (done.code, "is one of the inputs" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["short.txt"], 3, "short.txt has 2 lines and ref.txt 3; without ids in both, line n"),
        (["empty.txt"], 3, "empty.txt: is empty: there are no outputs in it"),
        (["none.txt"], 5, "cannot read none.txt: no such file"),
        (["ballots.jsonl"], 3, "ballots.jsonl:1: is a ballot and not an output"),
        (["twice.jsonl"], 3, "twice.jsonl:2: id: 1 was used before, at twice.jsonl:1"),
        (["out.txt", "-r", "ref2.txt"], 3, "ref2.txt has 1 lines and ref.txt 3"),
        (["out.txt", "--source", "short.txt"], 3, "short.txt has 2 lines and ref.txt 3"),
        (["out.txt", "-m", "blue"], 2, "unknown metric 'blue'. Did you mean 'bleu'?"),
        (["out.txt", "-m", "exact_copies"], 2, "the metric 'exact_copies' needs sources"),
        (["out.txt", "--tokenize", "word"], 2, "unknown tokenisation 'word'. Did you mean 'words'?"),
        (["out.txt", "--bleu-tokenize", "13b"], 2, "unknown tokenisation of sacreBLEU '13b'"),
        (["out.txt", "--json", "--format", "latex"], 2, "--json and --format latex exclude each other"),
        (["-", "-r", "-"], 2, "'-' (standard input) can be read once"),
        (["out.txt", "--resamples", "-1"], 2, "--resamples"),
    ],
)
def test_mistakes_have_a_message_and_a_code(run, texts, monkeypatch, arguments, code, message):
    monkeypatch.chdir(texts[0].parent)
    files = {
        "short.txt": b"a\nb\n",
        "empty.txt": b"",
        "ref2.txt": b"a\n",
        "ballots.jsonl": lines(ballot(1, "a")),
        "twice.jsonl": lines({"id": 1, "winner": "a"}, {"id": 1, "winner": "b"}),
    }
    for name, content in files.items():
        (texts[0].parent / name).write_bytes(content)
    done = run("evaluate", "-r", "ref.txt", *arguments)
    assert (done.code, done.out) == (code, b"")
    assert message in done.err


def test_an_id_without_references_is_named(run, tmp_path):
    (tmp_path / "out.jsonl").write_bytes(lines({"id": 1, "winner": "a"}, {"id": 2, "winner": "b"}))
    (tmp_path / "ref.jsonl").write_bytes(lines({"id": 1, "references": ["a"]}))
    done = run("evaluate", tmp_path / "out.jsonl", "-r", tmp_path / "ref.jsonl")
    assert done.code == 3
    assert "out.jsonl:2: id: " in done.err
    assert "ref.jsonl has nothing for 2." in done.err


def test_a_missing_extra_is_named(run, texts, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    done = run("evaluate", texts[0], "-r", texts[1])
    assert done.code == 5
    assert 'pip install "rangevote[evaluate]"' in done.err
