"""`rangevote vote` on files that are no ballot files, and results beside the fields they came with."""

from __future__ import annotations

import csv
import io
import json
import sys

import pytest

from tests.cli.conftest import ballot, lines

OVERLAP = ("-s", "overlap_1")
ROWS = [
    ("p1", "a dog runs"),
    ("p2", "yes"),
    ("p1", "a dog sits"),
    ("p1", "cats"),
    ("p2", "yes"),
    ("p2", "no"),
]


def test_csv_in_and_csv_out_with_what_is_carried(run, tmp_path):
    source, output = tmp_path / "samples.csv", tmp_path / "winners.csv"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["prompt_id", "topic", "completion"], *((i, f"<{i}>", t) for i, t in ROWS)]
        )
    done = run("vote", source, *OVERLAP, "--carry", "topic", "-o", output)
    assert (done.code, done.err) == (0, "")
    with output.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["id"], r["winner"], r["topic"], r["near_tie"]) for r in rows] == [
        ("p1", "a dog runs", "<p1>", "true"),
        ("p2", "yes", "<p2>", "false"),
    ]
    piped = run("vote", source, *OVERLAP, "--carry", "topic", "--to", "csv")
    assert piped.out == output.read_bytes()


def test_tsv_keeps_texts_of_several_lines(run):
    data = lines({"outputs": ["one\n\ttwo", "one\n\ttwo"]})
    done = run("vote", "-", *OVERLAP, "--to", "tsv", "--scores", stdin=data)
    [row] = csv.DictReader(io.StringIO(done.out.decode(), newline=""), delimiter="\t")
    assert (row["winner"], json.loads(row["scores"])) == ("one\n\ttwo", [1.0, 1.0])


def test_results_of_nothing_are_a_header(run):
    done = run("vote", "-", "--to", "csv", stdin=b"")
    assert done.out.startswith(b"id,winner,winner_tokens,index,score,margin,signature")


def test_carried_fields_have_columns_of_their_kind_in_parquet(run, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="the extra 'parquet' is not installed")
    source, table = tmp_path / "a.jsonl", tmp_path / "a.parquet"
    fields = [{"level": 1, "meta": {"a": 1}, "rate": 1}, {"level": 2, "meta": "b", "rate": 0.5}]
    source.write_bytes(lines(*(ballot(i, "a", "b", **own) for i, own in enumerate(fields))))
    asked = [part for name in fields[0] for part in ("--carry", name)]
    done = run("vote", source, *OVERLAP, "-o", table, *asked, "--quiet")
    assert done.code == 0, done.err
    rows = pq.read_table(table, columns=list(fields[0])).to_pylist()
    assert rows == [{"level": 1, "meta": '{"a":1}', "rate": 1.0}, {"level": 2, "meta": "b", "rate": 0.5}]


def test_columns_of_parquet_are_read_like_fields(run, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="the extra 'parquet' is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    rows, lists = tmp_path / "rows.parquet", tmp_path / "lists.parquet"
    pq.write_table(pa.table({"task_id": [i for i, _ in ROWS], "completion": [t for _, t in ROWS]}), rows)
    grouped = [[{"output": t, "p": -1.0} for i, t in ROWS if i == id] for id in ("p1", "p2")]
    pq.write_table(pa.table({"my outs": grouped, "prompt_id": ["p1", "p2"], "k": [1, 2]}), lists)
    for by_hand in ((), ("--group-by", "task_id", "--text-field", "completion")):
        results = run("vote", rows, *OVERLAP, *by_hand).results()
        assert [(r["id"], r["winner"]) for r in results] == [("p1", "a dog runs"), ("p2", "yes")]
    fields = ("--field", "my outs", "--logprob-field", "p", "--carry", "k")
    for workers in (1, 2):
        results = run("vote", lists, *OVERLAP, *fields, "--workers", workers).results()
        assert [(r["id"], r["winner"], r["k"]) for r in results] == [
            ("p1", "a dog runs", 1),
            ("p2", "yes", 2),
        ]


@pytest.mark.parametrize(
    ("ballots", "doubted"),
    [
        ([{"id": 1, "text": "a"}, {"id": 2, "text": "b"}], True),
        ([ballot(1, "a"), ballot(2, "b")], True),
        ([ballot(1, "a"), ballot(2, "b", "c")], False),
    ],
)
def test_ballots_with_one_candidate_each_are_doubted(run, ballots, doubted):
    done = run("vote", "-", stdin=lines(*ballots))
    assert len(done.results()) == 2
    assert ("every ballot has one candidate, so nothing was decided." in done.err) == doubted
    assert ("--group-by" in done.err) == doubted


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--carry", "score"], "--carry score: results have a field of that name; give it another"),
        (["--carry", "x", "--text"], "without --carry"),
    ],
)
def test_what_cannot_be_carried_is_refused(run, asked, message):
    done = run("vote", "-", *asked, stdin=lines(ballot(1, "a")))
    assert (done.code, message in done.err) == (2, True), done.err


MEASURE = """
def shared(voter, candidate):
    return len(set(voter.split()) & set(candidate.split())) / 10

class Nested:
    shared = staticmethod(shared)

text = "no function"
"""


def test_a_measure_of_ones_own_is_named_by_module_and_function(run, three, tmp_path, monkeypatch):
    (tmp_path / "my_measure_of_words.py").write_text(MEASURE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    done = run("vote", three, "-s", "my_measure_of_words:shared")
    assert (done.code, done.err) == (0, "")
    assert "sim:shared" in done.results()[0]["signature"]
    assert run("vote", three, "-s", "my_measure_of_words:Nested.shared").out == done.out
    assert run("vote", three, "-s", "my_measure_of_words:shared", "--workers", 2).out == done.out


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("no_such_module:f", 2, "there is no module 'no_such_module', here or installed"),
        ("exat:last_number", 2, "no similarity of that name. Did you mean 'exact'?"),
        ("json:nothing", 2, "the module 'json' has no 'nothing'"),
        ("broken_measure:f", 5, "cannot import broken_measure: ZeroDivisionError"),
        ("string:ascii_letters", 2, "unknown similarity 'abc"),
    ],
)
def test_a_name_that_is_not_a_measure_is_refused(run, three, tmp_path, monkeypatch, name, code, message):
    (tmp_path / "broken_measure.py").write_text("1 / 0\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    done = run("vote", three, "-s", name)
    assert (done.code, message in done.err) == (code, True), done.err
