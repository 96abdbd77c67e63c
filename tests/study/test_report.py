"""Reports and exports: what they say, and that they are complete, without secrets and safe."""

from __future__ import annotations

import csv
import html
import io
import json
import re

import pytest

from rangevote.study.analysis import alpha
from rangevote.study.plan import INSTRUCTIONS, Pair
from rangevote.study.report import (
    as_data,
    as_html,
    as_text,
    harmless,
    rows,
    tables,
    to_csv,
    to_jsonl,
    to_record,
    verdict,
)
from rangevote.study.store import take_snapshot
from tests.study.samples import findings, judge, judged, pairs, record, right_answers, study_file
from tests.study.test_analysis import CAPTIONS


def test_the_papers_study_is_reported(tmp_path):
    shown = as_text(findings(judged(tmp_path, 500, CAPTIONS)))
    assert "all answers but ties     106     73  0.0165*         59.2 %   [51.6, 66.5]" in shown
    assert "complete: all 500 planned judgements are there" in shown
    assert "unit of analysis: the item, judged by one person each" in shown
    assert "no item was judged by two people, so alpha is undefined" in shown
    assert "Judged twice" not in shown


def test_who_is_left_out_who_is_combined_and_who_judged_twice_is_reported(tmp_path):
    path = study_file(tmp_path, 6, annotators=2, checks=4, pass_share=0.75, repeats=1)
    judge(path, [1] * 6 + right_answers(path) + [1], 0)
    judge(path, [-2] * 6 + [2, 2, 2, 2, -1], 1)
    shown, data = as_text(findings(path)), as_data(findings(path))
    assert "unit of analysis: the item, as the median of its judgements" in shown
    assert "judgements are never pooled" in shown
    assert "excluded (fewer than 75 % of the attention checks passed): annotator-2" in shown
    assert "Judged twice" in shown
    assert (data["plan"]["pass_share"], "completion_code" in data["plan"]) == (0.75, False)
    assert [one["excluded"] for one in data["annotators"]] == [False, True]
    assert data["counts"]["sign_test"]["better"] == 6
    assert [one["judged_twice"]["same_answer"] for one in data["annotators"]] == [1.0, 0.0]
    assert data["annotators"][0]["left_right"].keys() == {"left", "right", "p", "share", "interval"}


def test_identical_outputs_count_as_ties_and_are_stated(tmp_path):
    found = findings(judged(tmp_path, [*pairs(3), Pair("x", "same", "same"), Pair("y", "", "")], [1, 0, -1]))
    assert found.ties == 3
    assert "ties, left out: 3, of which 2 have identical outputs and were not shown" in as_text(found)


def test_without_judgements_there_are_no_data_and_ties_alone_have_p_1(tmp_path):
    path = study_file(tmp_path, 3, annotators=2, checks=1)
    result = findings(path)
    assert result.counts.sign_test.p == result.counts.sign_test_much.p == 1
    assert result.counts.sign_test.share is result.agreement.alpha is None
    for text in (as_text(result), as_html(result)):
        assert "no data" in text
        assert "alpha is undefined" in text
        assert "NOT COMPLETE: 0 of 6" in text
    assert tables(result)[0].notes[0].startswith("NOT COMPLETE")  # the first thing to know
    assert json.loads(json.dumps(as_data(result)))["counts"]["sign_test"]["p"] == 1
    result = findings(judged(tmp_path, 3, [0] * 3, [0] * 3))
    assert result.counts.sign_test.p == 1
    shown = as_text(result)
    assert shown.startswith("Result: no item is decided. 3 items are ties.\n")
    alpha_told = "Krippendorff's alpha (ordinal) is undefined (all answers are the same)"
    assert f"Agreement is complete: {alpha_told}" in shown
    assert "100.0 % gave the same answer" in shown


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1] * 7 + [-2], "voted is preferred in 7 of 8 decided items; with 8 this may be chance, p = 0.07."),
        ([-1] * 6 + [0], "beam is preferred in 6 of 6 decided items; this is hardly chance, p = 0.031."),
        ([1, -1], "neither is preferred: each wins 1 of 2 decided items; with 2 this may be chance, p = 1."),
        ([2] * 20, "voted is preferred in 20 of 20 decided items; this is hardly chance, p < 0.0001."),
    ],
)
def test_a_report_begins_with_a_verdict_in_words(tmp_path, values, words):
    found = findings(judged(tmp_path, len(values), values))
    expected = f"Result: {words}" + (" 1 item is a tie." if 0 in values else "")
    assert verdict(found) == as_data(found)["verdict"] == expected
    assert as_text(found).startswith(expected + "\n")
    assert f'</h1>\n<p class="verdict">{html.escape(expected)}</p>\n' in as_html(found)


def test_before_the_end_the_verdict_gives_no_p(tmp_path):
    begins = "Not complete: 9 of 10 judgements are there. So far voted is preferred in 9 of 9 decided items; "
    shown = verdict(findings(judged(tmp_path, 10, [1] * 9)))
    assert shown == begins + "p-values mean nothing before the end."


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ([2, 1, 0, -1, -2, 2, 1, 0], "good"),
        ([1, 2, 0, -2, -2, 1, 0, 1], "fair, enough for tentative conclusions"),
        ([2, 0, 1, 1, -1, 1, -1, -1], "weak"),
        ([-2, -1, 0, 1, 2, -2, -1, 0], "hardly better than chance"),
    ],
)
def test_agreement_is_told_in_words_and_as_a_number(tmp_path, second, words):
    first = [2, 1, 0, -1, -2, 2, 1, 0]
    number = f"{alpha(list(map(list, zip(first, second, strict=True)))):.3f}"
    expected = f"Agreement is {words}: Krippendorff's alpha (ordinal) is {number} on 8 items"
    assert expected in as_text(findings(judged(tmp_path, 8, first, second)))


def test_items_are_shown_with_texts_and_comments_the_most_disputed_first(tmp_path):
    listed = [
        Pair("one", "a man on a bench", "a man on a horse", source="Ein Mann."),
        Pair("two", "safe \u202egpj.exe", "<b>bold</b>"),
        Pair("three", "", "a dog"),
    ]
    path = judged(tmp_path, listed, [1, 2], [2, -2, 0], title="<script>alert(1)</script> & more")
    last = next(one.position for one in take_snapshot(path).study.assignments if one.pair == 2)
    record(path, (last, "cannot"), comment="<i>why</i>")
    found = findings(path)
    page = as_html(found)
    items = page[page.index("<h2>Items</h2>") :]
    assert "2 of 3 are judged differently and come first" in items
    assert re.findall(r"<h3>Item (\w+)", items) == ["two", "one", "three"]
    assert '<p class="output" dir="auto">a man on a <mark>bench</mark></p>' in items
    assert '<p class="output" dir="auto">a man on a <mark>horse</mark></p>' in items
    assert '<bdi class="unseen">U+202E</bdi>' in items
    assert '<i class="faint">(empty)</i>' in items
    assert "<li>annotator-1: voted slightly better</li><li>annotator-2: voted much better</li>" in items
    assert 'annotator-1: cannot judge <q dir="auto">&lt;i&gt;why&lt;/i&gt;</q>' in items
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page
    for hostile in ("\u202e", "<b>", "<script", "http://", "https://"):
        assert hostile not in page
    assert "style-src 'sha256-" in page
    shown = as_text(found)
    assert re.search(r"two +4\.00 +\+2 -2 +safe \\u202egpj.exe", shown)
    assert "cannot judge, not counted: 1" in shown
    data = as_data(found)["judged_items"]
    assert [item["item"] for item in data] == ["two", "one", "three"]
    assert data[1]["outputs"] == {"beam": "a man on a bench", "voted": "a man on a horse"}


@pytest.mark.parametrize("format", ["text", "markdown", "latex"])
def test_every_format_has_every_table(tmp_path, format):
    text = as_text(findings(study_file(tmp_path, 4, checks=1)), format)
    for title in ("Answers", "Annotators", "Left and right", "Attention checks"):
        assert title in text


FORMULA = "=HYPERLINK(1)"


@pytest.fixture
def path(tmp_path):
    listed = [
        Pair("1", FORMULA, 'he said "no",\nthen left', "@source"),
        Pair("2", "\tx", "-y"),
        Pair("3", "a", "b"),
    ]
    return judged(tmp_path, listed, [2, -1, 0], [1, 1, 1])


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
    assert '"annotator-1"' in text  # a separator in a quoted text begins no cell
    listed = read(text)
    assert {row["baseline_output"] for row in listed} == {f"'{FORMULA}", "'\tx", "a"}
    assert {row["challenger_output"] for row in listed} == {'he said "no",\nthen left', "'-y", "b"}
    assert {row["source"] for row in listed} == {"'@source", ""}
    assert {row["value"] for row in listed} >= {"2", "-1"}


@pytest.mark.parametrize(
    "sign", ["=", "+", "-", "@", "\t", "\r", "\n", "\0", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
)
def test_every_sign_that_begins_a_formula_is_made_harmless(sign):
    assert harmless(f"{sign}1") == f"'{sign}1"
    assert harmless(f"1{sign}") == f"1{sign}"


def test_history_has_what_was_replaced_and_undone(tmp_path):
    path = study_file(tmp_path, 1)
    record(path, (0, 1), (0, None), (0, -2))
    history_rows = [
        (row["shown"], row["supersedes"], row["counts"]) for row in rows(take_snapshot(path), history=True)
    ]
    assert history_rows == [(1, None, False), (None, 1, False), (-2, 2, True)]
    assert [row["shown"] for row in rows(take_snapshot(path))] == [-2]
    assert len(read(to_csv(take_snapshot(path), history=True))) == 3


def test_checks_are_marked_with_their_answer_and_second_judgements_with_their_item(tmp_path):
    snapshot = take_snapshot(judged(tmp_path, 4, [1] * 8, checks=2, repeats=2))
    checks = {row["item"]: row["check"] for row in rows(snapshot) if row["check"]}
    assert checks.keys() == {"check-1", "check-2"}
    assert set(checks.values()) <= {"tie", "beam", "voted"}
    again = sorted(pair.again for pair in snapshot.study.pairs if pair.again)
    assert sorted(filter(None, (row["again"] for row in rows(snapshot)))) == again
    assert sorted(filter(None, (row["again"] for row in read(to_csv(snapshot))))) == again
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
