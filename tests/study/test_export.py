"""Exports: complete, without secrets, safe in spreadsheets."""

from __future__ import annotations

import csv
import io
import json

import pytest

from rangevote.study.plan import INSTRUCTIONS, Pair
from rangevote.study.report import harmless, rows, to_csv, to_jsonl, to_record
from rangevote.study.store import Store, take_snapshot
from tests.study.samples import answer, judge, study_file

FORMULA = "=HYPERLINK(1)"


@pytest.fixture
def path(tmp_path):
    listed = [
        Pair("1", FORMULA, 'he said "no",\nthen left', "@source"),
        Pair("2", "\tx", "-y"),
        Pair("3", "a", "b"),
    ]
    found = study_file(tmp_path, listed, annotators=2, checks=0)
    judge(found, [2, -1, 0], 0)
    judge(found, [1, 1, 1], 1)
    return found


def test_a_line_tells_sides_answer_and_meaning(path):
    listed = [json.loads(line) for line in to_jsonl(take_snapshot(path)).splitlines()]
    assert len(listed) == 6
    for row in listed:
        assert {row["left"], row["right"]} == {"beam", "voted"}
        assert row["value"] == (row["shown"] if row["right"] == "voted" else -row["shown"])
    first = next(row for row in listed if (row["annotator"], row["item"]) == ("annotator-1", "1"))
    assert first["winner"] == "voted"
    assert first["outputs"] == {"beam": FORMULA, "voted": 'he said "no",\nthen left'}
    assert first["check"] is None


def test_links_are_in_no_export(path):
    snapshot = take_snapshot(path)
    for write in (to_csv, to_jsonl, to_record):
        text = write(snapshot)
        for annotator in snapshot.study.annotators:
            assert annotator.token not in text
        for assignment in snapshot.study.assignments:
            assert assignment.handle not in text


def read(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_csv_runs_no_formula_and_numbers_stay_numbers(path):
    text = to_csv(take_snapshot(path))
    assert to_csv(take_snapshot(path), mark=True) == "\ufeff" + text
    assert text.count("\r\n") == 7
    listed = read(text)
    assert {row["baseline_output"] for row in listed} == {f"'{FORMULA}", "'\tx", "a"}
    assert {row["challenger_output"] for row in listed} == {'he said "no",\nthen left', "'-y", "b"}
    assert {row["source"] for row in listed} == {"'@source", ""}
    assert {row["value"] for row in listed} >= {"2", "-1"}


def test_every_text_of_the_csv_is_quoted_so_that_no_separator_begins_a_cell(tmp_path):
    path = study_file(tmp_path, [Pair("1", "x;=1+1", "b")])
    judge(path, [1])
    _, line = to_csv(take_snapshot(path)).splitlines()
    assert '"x;=1+1"' in line
    assert '"annotator-1"' in line


@pytest.mark.parametrize(
    "sign", ["=", "+", "-", "@", "\t", "\r", "\n", "\0", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
)
def test_every_sign_that_begins_a_formula_is_made_harmless(sign):
    assert harmless(f"{sign}1") == f"'{sign}1"
    assert harmless(f"1{sign}") == f"1{sign}"


def test_history_has_what_was_replaced_and_undone(tmp_path):
    path = study_file(tmp_path, 1)
    store = Store(path)
    [assignment] = store.study.assignments
    for shown in (1, None, -2):
        store.record(0, answer(assignment.handle, shown))
    store.close()
    whole = list(rows(take_snapshot(path), history=True))
    assert [(row["shown"], row["supersedes"], row["counts"]) for row in whole] == [
        (1, None, False),
        (None, 1, False),
        (-2, 2, True),
    ]
    assert [row["shown"] for row in rows(take_snapshot(path))] == [-2]
    assert len(read(to_csv(take_snapshot(path), history=True))) == 3


def test_checks_are_marked_with_their_answer(tmp_path):
    path = study_file(tmp_path, 4, checks=2)
    judge(path, [1] * 6)
    listed = list(rows(take_snapshot(path)))
    assert {row["item"]: row["check"] for row in listed if row["check"]}.keys() == {"check-1", "check-2"}
    assert {row["check"] for row in listed} <= {None, "tie", "beam", "voted"}


def test_second_judgements_name_the_item(tmp_path):
    path = study_file(tmp_path, 3, repeats=2)
    judge(path, [1, 1, 1, -2, -2])
    snapshot = take_snapshot(path)
    assert sorted(filter(None, (row["again"] for row in rows(snapshot)))) == sorted(
        pair.again for pair in snapshot.study.pairs if pair.again
    )
    assert {row["again"] for row in read(to_csv(snapshot))} >= {""}
    assert json.loads(to_record(snapshot))["shown_twice"].startswith("2 items")


def test_the_record_tells_how_the_study_was_made(path):
    record = json.loads(to_record(take_snapshot(path)))
    assert record["seed"] == 12345
    assert record["annotators"]["number"] == record["annotators"]["per_item"] == 2
    assert record["scale"]["wording"][0] == "{left} is much better"
    assert record["instructions"] == INSTRUCTIONS
    assert record["items"]["number"] == 3
    assert record["exclusion"] == "nobody"
    assert record["stopping"] == "6 judgements, fixed beforehand"
    assert record["software"].startswith("rangevote ")
    assert record["collected"]["from"] <= record["collected"]["to"]
    assert record["results"]["complete"] is True
