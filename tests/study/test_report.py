"""A report: what it says, and that it says when there is nothing to say."""

from __future__ import annotations

import html
import json
import re

import pytest

from rangevote.study.analysis import alpha
from rangevote.study.plan import Pair
from rangevote.study.report import as_data, as_html, as_text, tables, verdict
from rangevote.study.store import Store, take_snapshot
from tests.study.samples import answer, findings, handles, judge, pairs, study_file
from tests.study.test_analysis import CAPTIONS


def test_the_papers_study_is_reported(tmp_path):
    path = study_file(tmp_path, 500)
    judge(path, CAPTIONS)
    shown = as_text(findings(path))
    assert "all answers but ties     106     73  0.0165*         59.2 %   [51.6, 66.5]" in shown
    assert "complete: all 500 planned judgements are there" in shown
    assert "unit of analysis: the item, judged by one person each" in shown
    assert "no item was judged by two people, so alpha is undefined" in shown
    assert "Judged twice" not in shown


def test_who_is_left_out_who_is_combined_and_who_judged_twice_is_reported(tmp_path):
    path = study_file(tmp_path, 6, annotators=2, checks=4, pass_share=0.75, repeats=1)
    right = [pair.expected for pair in take_snapshot(path).study.pairs if pair.expected is not None]
    judge(path, [1] * 6 + right + [1], 0)
    judge(path, [-2] * 6 + [2, 2, 2, 2, -1], 1)
    shown, data = as_text(findings(path)), as_data(findings(path))
    assert "unit of analysis: the item, as the median of its judgements" in shown
    assert "judgements are never pooled" in shown
    assert "excluded (fewer than 75 % of the attention checks passed): annotator-2" in shown
    assert "Judged twice" in shown
    assert data["exclusion"] == {"pass_share": 0.75, "excluded": ["annotator-2"]}
    assert data["sign_test"]["better"] == 6
    assert [one["judged_twice"]["same_answer"] for one in data["annotators"]] == [1.0, 0.0]
    assert data["annotators"][0]["left_right"].keys() == {"left", "right", "p", "share", "interval"}


def test_identical_outputs_count_as_ties_and_are_stated(tmp_path):
    path = study_file(tmp_path, [*pairs(3), Pair("x", "same", "same"), Pair("y", "", "")])
    judge(path, [1, 0, -1])
    assert findings(path).ties == 3
    shown = as_text(findings(path))
    assert "ties, left out: 3, of which 2 have identical outputs and were not shown" in shown
    assert as_data(findings(path))["identical_not_shown"] == 2


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
    assert json.loads(json.dumps(as_data(result)))["sign_test"]["p"] == 1
    for number in (0, 1):
        judge(path, [0, 0, 0], number)
    result = findings(path)
    assert result.counts.sign_test.p == 1
    shown = as_text(result)
    assert shown.startswith("Result: no item is decided. 3 items are ties.\n")
    assert (
        "Agreement is complete: Krippendorff's alpha (ordinal) is undefined (all answers are the same)"
        in shown
    )
    assert "100.0 % gave the same answer" in shown


VERDICTS = {
    "Result: voted is preferred in 7 of 8 decided items; with 8 this may be chance, p = 0.07.": [1] * 7
    + [-2],
    "Result: beam is preferred in 6 of 6 decided items; this is hardly chance, p = 0.031. 1 item is a tie.": [
        *[-1] * 6,
        0,
    ],
    "Result: neither is preferred: each wins 1 of 2 decided items; with 2 this may be chance, p = 1.": [
        1,
        -1,
    ],
    "Result: voted is preferred in 20 of 20 decided items; this is hardly chance, p < 0.0001.": [2] * 20,
}


@pytest.mark.parametrize("words", VERDICTS)
def test_a_report_begins_with_a_verdict_in_words(tmp_path, words):
    path = study_file(tmp_path, len(VERDICTS[words]))
    judge(path, VERDICTS[words])
    assert verdict(findings(path)) == as_data(findings(path))["verdict"] == words
    assert as_text(findings(path)).startswith(words + "\n")
    page = as_html(findings(path))
    assert f'</h1>\n<p class="verdict">{html.escape(words)}</p>\n' in page


def test_before_the_end_the_verdict_gives_no_p(tmp_path):
    path = study_file(tmp_path, 10)
    judge(path, [1] * 9)
    begins = "Not complete: 9 of 10 judgements are there. So far voted is preferred in 9 of 9 decided items; "
    assert verdict(findings(path)) == begins + "p-values mean nothing before the end."


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
    path = study_file(tmp_path, 8, annotators=2)
    first = [2, 1, 0, -1, -2, 2, 1, 0]
    judge(path, first, 0)
    judge(path, second, 1)
    number = f"{alpha(list(map(list, zip(first, second, strict=True)))):.3f}"
    assert f"Agreement is {words}: Krippendorff's alpha (ordinal) is {number} on 8 items" in as_text(
        findings(path)
    )


def test_items_are_shown_with_both_texts_the_most_disputed_first(tmp_path):
    listed = [
        Pair("one", "a man on a bench", "a man on a horse", source="Ein Mann."),
        Pair("two", "safe \u202egpj.exe", "<b>bold</b>"),
        Pair("three", "", "a dog"),
    ]
    path = study_file(tmp_path, listed, annotators=2)
    judge(path, [1, 2, 0], 0)
    judge(path, [2, -2, 0], 1)
    store = Store(path)
    store.record(1, answer(handles(store, 1)[0], "cannot", comment="<i>why</i>"))
    store.close()
    judge(path, [2, -2, 0], 1)
    page = as_html(findings(path))
    items = page[page.index("<h2>Items</h2>") :]
    assert "2 of 3 are judged differently and come first" in items
    assert re.findall(r"<h3>Item (\w+)", items) == ["two", "one", "three"]
    assert '<p class="output" dir="auto">a man on a <mark>bench</mark></p>' in items
    assert '<p class="output" dir="auto">a man on a <mark>horse</mark></p>' in items
    assert '<bdi class="unseen">U+202E</bdi>' in items
    assert "\u202e" not in page
    assert "<b>" not in page
    assert '<i class="faint">(empty)</i>' in items
    assert "<li>annotator-1: voted slightly better</li><li>annotator-2: voted much better</li>" in items
    shown = as_text(findings(path))
    assert re.search(r"two +4\.00 +\+2 -2 +safe \\u202egpj.exe", shown)
    data = as_data(findings(path))["judged_items"]
    assert [item["item"] for item in data] == ["two", "one", "three"]
    assert data[1]["outputs"] == {"beam": "a man on a bench", "voted": "a man on a horse"}


def test_comments_and_who_cannot_judge_are_in_the_report(tmp_path):
    path = study_file(tmp_path, 2)
    store = Store(path)
    for handle, value in zip(handles(store), ("cannot", 0), strict=True):
        store.record(0, answer(handle, value, comment="<i>why</i>"))
    store.close()
    page = as_html(findings(path))
    assert 'annotator-1: cannot judge <q dir="auto">&lt;i&gt;why&lt;/i&gt;</q>' in page
    assert "cannot judge: 1 times; not counted" in as_text(findings(path))


def test_the_page_is_whole_and_shows_hostile_names_as_text(tmp_path):
    path = study_file(tmp_path, 4, annotators=2, title="<script>alert(1)</script> & more")
    judge(path, [1, 2, -1, 0])
    text = as_html(findings(path))
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in text
    assert "http://" not in text
    assert "https://" not in text
    assert "style-src 'sha256-" in text


@pytest.mark.parametrize("format", ["text", "markdown", "latex"])
def test_every_format_has_every_table(tmp_path, format):
    text = as_text(findings(study_file(tmp_path, 4, checks=1)), format)
    for title in ("Answers", "Annotators", "Left and right", "Attention checks"):
        assert title in text
