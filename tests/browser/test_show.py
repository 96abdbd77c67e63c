"""The election page in a real browser."""

from __future__ import annotations

import math
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import rangevote as rv
from rangevote.election.settings import Settings
from rangevote.election.summary import Quote, why
from rangevote.web import serving
from rangevote.web.api import ElectedBallot
from rangevote.web.app import ElectionPage, election_app
from rangevote.web.clusters import stability
from rangevote.web.export_html import single_file
from tests.browser.conftest import DESK, FAILED, LOOKS, PHONE, no_overflow, press, screenshot, violations
from tests.election.equations import grams
from tests.figure1 import CAPTIONS, LOGPROBS, WINNER
from tests.kernel.both import needs_compiled
from tests.web.samples import FIGURE, ballot, page_of, panel


@contextmanager
def running(answers: ElectionPage) -> Iterator[str]:
    """The page on a port of its own, for as long as a test takes."""
    listening = serving.bound("127.0.0.1", 0)
    found = serving.server(election_app(answers), drain=1)
    thread = threading.Thread(target=found.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"{serving.address(listening)}/"
    finally:
        found.should_exit = True
        thread.join(10)
        listening.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """`serve(ballots, more_ballots, similarity=...)` -> the address of their page."""
    with ExitStack() as stack:
        yield lambda *lists, **options: stack.enter_context(running(page_of(*lists, **options)))


def settled(page: Any) -> None:
    """All parts of the page are there, and all ballots are listed."""
    page.wait_for_selector("html[data-complete]")
    if page.evaluate("document.body.classList.contains('with-rail')"):
        page.wait_for_selector("html[data-listed]")


def reads(page: Any, selector: str, text: str) -> None:
    """Wait until an element holds a text; to wait for a function would need eval, which is forbidden."""
    page.locator(selector).filter(has_text=text).wait_for()


def texts_of(number: int, words: int = 12, seed: int = 1) -> list[str]:
    """Made-up outputs that share many words."""
    random_words = random.Random(seed)
    return [" ".join(f"w{random_words.randrange(40)}" for _ in range(words)) for _ in range(number)]


def many(number: int, seed: int = 1) -> rv.Ballot:
    return ballot(texts_of(number, seed=seed), [-5.0 - 0.01 * i for i in range(number)], id="many")


def opened(page: Any, rank: int) -> Any:
    """The details of the candidate of this rank, opened and filled."""
    line = page.locator(f"#candidate-list details.candidate:has(.rank:text-is('{rank}'))")
    if line.get_attribute("open") is None:
        line.locator("summary").first.click()
    line.locator(".by-voter tbody tr").first.wait_for()
    return line


@pytest.fixture
def show(page: Any, serve: Any) -> Callable[..., None]:
    """`show(ballots, **options)`: the page shows them, and is complete."""

    def shown(*lists: Any, **options: Any) -> None:
        page.goto(serve(*lists, **options))
        settled(page)

    return shown


@pytest.fixture
def figure(show: Any) -> rv.Result:
    """The page shows figure 1; its result."""
    show([FIGURE], similarity="overlap_2")
    return rv.elect(FIGURE, similarity="overlap_2")


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def says(text: str, passage: str) -> bool:
    """Whether the words of a passage stand one after the other in a text."""
    words, wanted = text.split(), passage.split()
    return any(words[i : i + len(wanted)] == wanted for i in range(len(words)))


def test_the_top_says_who_won_and_why_and_how_clearly(page, figure):
    assert page.inner_text("#winner") == WINNER  # as the paper says
    assert page.inner_text(".asked .output") == "a photograph"
    parts = why(figure)
    assert page.locator("#why q").all_inner_texts() == [part for part in parts if isinstance(part, Quote)]
    assert page.inner_text("#why") == "".join(parts)
    chips = page.locator("#chips li").all_inner_texts()
    stays = stability(ElectedBallot(FIGURE, Settings(similarity="overlap_2"))).same
    assert chips[0] == f"Fragile: wins {stays} of 10 recounts without one voter"
    assert chips[1].startswith(f"Lead {figure.margin:.3g} over")
    assert chips[2] == "10 groups of 10 outputs"
    assert page.title() == f"figure 1 · {WINNER} · rangevote"
    assert figure.signature in page.inner_text("footer")
    assert page.is_hidden("#panel")
    screenshot(page, "show-figure-1")


def test_words_are_shaded_by_their_votes_and_show_who_else_says_them(page, figure):
    words = page.locator("#winner .word")
    assert words.all_inner_texts() == WINNER.split()
    shades = [int(name.split("s")[-1]) for name in words.evaluate_all("all => all.map((e) => e.className)")]
    votes = [0.0] * len(shades)
    for i, earned in enumerate(part.score for part in sorted_bigrams(WINNER)):
        votes[i] += earned / 2
        votes[i + 1] += earned / 2
    assert shades == [math.ceil(5 * vote / max(votes) - 1e-9) for vote in votes]
    words.last.hover()
    note = page.inner_text("#winner-votes .word-note")
    others = [text for text in CAPTIONS if text != WINNER and says(text, "a bench")]
    assert f"{len(others)} of 9 other outputs say a 2-gram with it too" in note
    assert others[0] in note
    words.first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == "black"
    assert page.inner_text("#winner-votes .word-note").startswith("black earned")
    assert page.locator("#winner .word[tabindex='0']").count() == 1


def sorted_bigrams(text: str) -> list[Any]:
    """What each bigram of a caption earned, in the order of the text."""
    result = rv.elect(FIGURE, similarity="overlap_2")
    earned = {part.ngram: part for part in result.explain(CAPTIONS.index(text)).ngrams}
    return [earned[" ".join(gram)] for gram in grams(text.split(), 2)]


def test_winner_and_most_likely_stand_side_by_side_with_what_differs_marked(page, figure, show):
    cards = page.locator("#duel .card")
    assert cards.nth(0).locator("mark").all_inner_texts() == ["black and white photo", "a man"]
    assert cards.nth(1).locator("mark").all_inner_texts() == ["couple", "people that are"]
    assert "10 %" in cards.nth(0).inner_text()
    assert "29 %" in cards.nth(1).inner_text()
    show([ballot(["a b", "a c"], [-1.0, -2.0])])
    assert page.is_hidden("#beside")  # they are the same


def test_candidates_are_a_list_of_groups_with_their_scores_taken_apart(page, show):
    texts = [*CAPTIONS, CAPTIONS[1], CAPTIONS[1]]
    one = ballot(texts, [*LOGPROBS, -8.0, -9.0], id="with clones")
    show([one], similarity="overlap_2", likelihood=0.01)
    result = rv.elect(one, similarity="overlap_2", likelihood=0.01)
    lines = page.locator("#candidate-list > li")
    assert lines.count() == len(result.groups) == 10
    for line, group in zip(lines.all_inner_texts(), result.groups, strict=True):
        assert CAPTIONS[group.candidates[0] if group.candidates[0] < 10 else 1] in line.replace("\n", " ")
        assert f"{group.score:.4f}".replace("-", "−") in line
    assert "× 3" in lines.filter(has_text="next to a dog").inner_text()
    assert lines.filter(has_text="most likely").count() == lines.filter(has_text="winner").count() == 1
    details = opened(page, 1)
    details.locator("button:text-matches('n-grams? more')").click()
    bars = details.locator(".by-ngram tbody tr td:last-child").all_inner_texts()
    evidence = number(details.locator(".by-ngram tr.own td:last-child").inner_text())
    assert evidence == pytest.approx(result.evidence[result.index], abs=1e-5)  # a bar of its own
    assert sum(map(number, bars)) + evidence == pytest.approx(result.score, abs=1e-4)
    total = details.locator(".by-ngram tfoot tr:last-child td:last-child").inner_text()
    assert number(total) == pytest.approx(result.score, abs=1e-5)
    page.select_option("#order-by", "probability")
    assert CAPTIONS[0] in lines.first.inner_text().replace("\n", " ")


LONG = "We read the task with care and note what is given before anything is written down. " * 4
ANSWERS = [
    f"{LONG}\n\nPlan A.\n\n```python\ndef total(n):\n    return n * (n + 1) // 2\n```\nIt is 55.",
    f"{LONG}\n\nPlan B.\n\n```python\ndef total(n):\n    return sum(range(n + 1))\n```\nIt is 55.",
    f"{LONG}\n\nPlan C.\n\nIt is 45.",
]


def test_of_long_answers_the_first_differing_passage_is_shown_with_code_and_line_breaks(page, show):
    show([ballot(ANSWERS, source="Sum the numbers.")], similarity="overlap_1")
    shown = page.locator("#candidate-list summary .output").all_inner_texts()
    assert len(set(shown)) == 3  # they do not look alike
    others = page.locator("#candidate-list details:not(.winner) summary")
    for i in range(2):
        assert "Plan" in others.nth(i).inner_text()
        assert others.nth(i).locator("mark").first.inner_text() in ("A", "B", "C")
    code = page.locator("#candidate-list summary .code").first
    assert "monospace" in code.evaluate("e => getComputedStyle(e).fontFamily")
    assert "\n" in code.evaluate("e => e.textContent")
    assert code.evaluate("e => getComputedStyle(e.closest('.output')).whiteSpace") == "pre-wrap"
    show([ballot(ANSWERS)], similarity="exact:last_number")
    answers = page.locator("#candidate-list .answer").all_inner_texts()
    assert answers == ["55 67 % of the vote", "45 33 % of the vote"]
    assert "2 of 3 outputs (67 % of the vote) give the answer 55." in page.inner_text("#why")


def test_the_map_is_walked_by_keys_and_the_panel_marks_the_shared_n_grams(page, figure):
    grades = figure.similarity.matrix(figure.candidates, figure.voters)
    # at first what the most likely caption thinks of the winner: "sitting on", "on a", "a bench" of 9 bigrams
    assert page.inner_text("#shared-count") == "The candidate has 3 of the voter's 9 2-grams."
    assert grades[0, figure.index] == pytest.approx(3 / 9)
    assert page.locator("#pair mark").all_inner_texts() == ["sitting on a bench", "sitting on a bench"]
    page.check("#clustered-0")
    page.focus("#map td[tabindex='0']")
    press(page, "PageUp", "Home", "ArrowDown")
    voter, candidate = figure.ranking[1], figure.ranking[0]
    assert f"grade {grades[voter, candidate]:.4f}" in page.inner_text("#pair-grade")
    assert CAPTIONS[voter] in page.inner_text("#pair")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "pair"
    assert page.locator("dialog").count() == 0
    names = page.locator("#clusters q").all_inner_texts()
    assert names
    assert all(any(says(text, name) for text in CAPTIONS) for name in names)
    page.check("#numbers-1")
    ranked = grades[figure.ranking, :][:, figure.ranking]
    shown = [row.split("\t")[1:] for row in page.locator("#map tbody tr").all_inner_texts()]
    assert [[float(cell) for cell in row] for row in shown] == [
        [pytest.approx(grade, abs=5e-4) for grade in row] for row in ranked
    ]
    assert f"grade {grades[voter, candidate]:.4f}" in page.inner_text("#pair-grade")  # the cell is kept
    page.check("#weighted-1")
    first = page.inner_text("#map tbody tr:first-child td")
    assert float(first) == pytest.approx(ranked[0, 0] * figure.weights[figure.ranking[0]], rel=1e-2)
    details = opened(page, 1)
    details.locator(".by-voter button.plain").first.click()
    assert page.evaluate("document.activeElement.id") == "pair"
    assert violations(page) == []


def test_how_firm_is_one_strip_of_dots(page, figure):
    names = ("overlap_1", "overlap_2", "precision_1", "precision_2", "overlap_1-4", "blend", "bleu_4")
    for name in names:
        same = rv.elect(FIGURE, similarity=name).winner == WINNER
        dot = page.locator(f"#measure-dots li:has-text('{name} (')").first
        assert ("same" in dot.get_attribute("class")) == same, name
    marks = page.locator("#voter-dots button").evaluate_all("all => all.map((e) => e.className)")
    recounts = stability(ElectedBallot(FIGURE, Settings(similarity="overlap_2")))
    changed = {change.voter for change in recounts.changes}
    assert marks == [f"mark {'other' if voter in changed else 'same'}" for voter in figure.ranking]
    assert page.is_hidden("#winner-table")
    page.click("#firm-numbers summary")
    assert page.locator("#winner-table tbody tr").count() >= 11


def test_what_if_recounts_marks_what_changes_and_stands_in_the_address(page, serve):
    address = serve([FIGURE], similarity="overlap_2")
    page.goto(address)
    settled(page)
    page.click("#what-if summary")
    page.select_option("#what-if-similarity", "chrf")
    other = rv.elect(FIGURE, similarity="chrf")
    reads(page, "#winner", str(other.winner))
    settled(page)
    assert "similarity=chrf" in page.url
    assert "another winner" in page.inner_text("#what-changed")
    assert WINNER in page.inner_text("#what-changed")
    assert page.locator("#candidate-list .badge.up").count() > 0
    page.locator("#what-if-likelihood").fill("0.5")
    both = rv.elect(FIGURE, similarity="chrf", likelihood=0.5)
    reads(page, "footer", both.signature)
    assert page.inner_text("#winner") == both.winner
    assert page.evaluate("document.activeElement.id") == "what-if-likelihood"
    assert violations(page) == []
    page.reload()
    reads(page, "footer", both.signature)  # a link shows the same
    page.click("#as-given")
    reads(page, "#winner", WINNER)
    page.locator("#voter-dots button").first.click()
    result = rv.elect(FIGURE, similarity="overlap_2")
    others = [c for i, c in enumerate(FIGURE.candidates) if i != result.ranking[0]]
    without = rv.elect(rv.Ballot(FIGURE.candidates, others), similarity="overlap_2")
    reads(page, "#winner", str(without.winner))
    assert f"without={result.ranking[0]}" in page.url
    page.locator("#what-if-temperature").fill("4")
    reads(page, "footer", "|T:4|")
    settled(page)


def test_the_n_grams_that_two_texts_share_are_those_of_the_equations(page, show):
    draw = random.Random(3)
    pairs = [[" ".join(draw.choices("abcé", k=draw.randrange(9))) for _ in range(2)] for _ in range(100)]
    show([FIGURE])
    found = page.evaluate(
        """async (pairs) => { const { read, shared } = await import("/static/ngrams.js");
        return pairs.map((pair) => [1, 2, 3].flatMap((n) => [true, false].map((bag) => {
          const rows = pair.map((text) => ({ text, units: text.split(" ").filter(Boolean) }));
          const both = shared(read(rows[0], "space"), read(rows[1], "space"), n, { bag, short: true });
          return [both.both, both.all]; }))); }""",
        pairs,
    )
    for (v, c), counts in zip(pairs, found, strict=True):
        expected = []
        for n in (1, 2, 3):
            voter, candidate = Counter(grams(v.split(), n)), Counter(grams(c.split(), n))
            expected.append([(voter & candidate).total(), voter.total()])
            expected.append([len(voter.keys() & candidate.keys()), len(voter)])
        assert counts == expected, (v, c)


def test_outputs_with_markup_and_hidden_characters_are_shown_as_text(page, show):
    nasty = [
        "<img src=x onerror=alert(1)> a b",
        "</script><script>alert(2)</script> a b",
        "a b \u202eevil\u202c \u2066x\u2069 \x1b[31m c",
        "<b>a b</b> {{7*7}} javascript:alert(3)",
        "",
        "   ",
    ]
    page.on("dialog", lambda dialog: pytest.fail(f"a text ran: {dialog.message}"))
    show([ballot(nasty, [-1.0 - i for i in range(6)], id="<i>id</i>", source="<h1>source</h1>")])
    shown = page.inner_text("#candidates")
    for text in (nasty[0], nasty[1], nasty[3], "U+202E", "U+202C", "U+2066", "U+001B", "(empty output)"):
        assert text in shown
    assert "(empty output) × 2" in shown  # no measure of words tells white space from it
    assert "\u202e" not in page.evaluate("document.body.textContent")
    assert page.locator("main img, main script, main i, #outcome h1, #candidates b, #why b").count() == 0
    assert page.locator("#candidates bdi").first.evaluate("e => getComputedStyle(e).unicodeBidi") == "isolate"
    assert page.locator("#pair bdi").count() > 0
    screenshot(page, "show-nasty")


def test_no_winner_is_shown_with_the_reason(page, show):
    abstaining = ballot(["no idea", "I do not know"])
    show([abstaining, abstaining], similarity="exact:last_number")
    assert page.inner_text(".none .label").lower() == "no winner"
    assert "no voter gave an answer" in page.inner_text("#why")
    assert page.locator(".badge.won").count() == 0
    assert "there is no winner" in page.inner_text("#firm")
    page.wait_for_selector("#ballot-list .badge:has-text('no winner')")
    screenshot(page, "show-no-winner")


def test_a_merged_object_is_shown_with_the_share_of_each_field(page, show):
    texts = ['{"a": 1, "b": "x", "c": 1}', '{"a": 1, "b": "<b>", "c": 2}', '{"a": 2, "b": "<b>", "c": 3}']
    show([ballot(texts)], rule="merge")
    assert page.inner_text("#winner").split() == ["{", '"a":', "1,", '"b":', '"<b>"', "}"]
    fields = [row.split() for row in page.locator("#merged-fields tr").all_inner_texts()]
    assert fields == [["a", "67", "%"], ["b", "67", "%"], ["c", "no", "majority,", "left", "out"]]
    assert "No single output says all of this" in page.inner_text("#why")
    assert page.locator("#candidate-list .badge.won").all_inner_texts() == ["best whole output"]
    assert violations(page) == []
    screenshot(page, "show-merged")


def test_a_text_of_many_words_is_cut_in_tables_and_scrolls_in_its_box(page, show):
    long = "word " * 50_000
    show([ballot([long, "word and more", "word"], [-1.0, -2.0, -3.0], source=long)])
    assert len(page.inner_text(".asked")) < 2000
    page.click(".asked summary")
    whole_text = "length => document.querySelector('.asked .scroll.text').textContent.length === length"
    page.wait_for_function(whole_text, arg=len(long))  # it is filled in when the box has opened
    assert "more characters" in page.inner_text("#candidate-list")
    assert len(page.inner_text("#candidate-list")) < 2000
    box = page.locator("#pair .scroll.text").first
    shown, whole = box.evaluate("e => [e.clientHeight, e.scrollHeight]")
    assert shown < 500 < whole


@needs_compiled  # plain kernels take most of a minute
def test_large_ballots_are_shown_in_parts_and_their_map_follows_the_arrow_keys(page, show):
    show([many(1000), many(100)], similarity="overlap_2")
    for _ in range(5):
        page.click("#candidates button:text-matches('^Show')")
    assert page.locator("#candidate-list > li").count() == 1000
    assert "first 100 voters of 1,000" in page.inner_text("#grades")
    page.click("#next")
    reads(page, "#position", "Ballot 2")
    settled(page)
    assert page.locator("#map tbody td").count() == 100 * 100
    page.focus("#map td[tabindex='0']")
    page.keyboard.press("ArrowRight")
    assert "of rank" in page.inner_text("#pair")
    screenshot(page, "show-100")


def test_several_lists_are_side_by_side_and_matched_by_id(page, show):
    small = [ballot(CAPTIONS[:4], LOGPROBS[:4], id="b"), FIGURE]
    large = [FIGURE, ballot(CAPTIONS[:7], LOGPROBS[:7], id="b"), ballot(["x"], id="only here")]
    show(small, large, similarity="overlap_2")
    page.click("#firm-numbers summary")
    assert page.locator("#winner-table thead th").all_inner_texts() == [
        "Similarity",
        "k1 (k = 4)",
        "k2 (k = 7)",
    ]
    cells = page.locator('#winner-table tr[data-measure="overlap_2"] td')
    for number, one in enumerate((small[0], large[1])):
        assert str(rv.elect(one, similarity="overlap_2").winner) in cells.nth(number).inner_text()
    page.select_option("#list", label="k2")
    page.wait_for_selector("#candidate-list > li:last-child:nth-child(7)")
    page.click("#next")
    reads(page, "#position", "id figure 1")
    page.fill("#wanted", "b")
    page.keyboard.press("Enter")
    reads(page, "#position", "id b")
    screenshot(page, "show-lists")
    page.fill("#wanted", "nobody")
    page.keyboard.press("Enter")
    page.wait_for_selector("#problem:not([hidden])")
    assert "There is no ballot nobody" in page.inner_text("#problem")
    page.reload()
    settled(page)
    assert "id b" in page.inner_text("#position")


def test_a_whole_file_is_listed_filtered_sorted_and_walked(page, show):
    bench = ballot(CAPTIONS, LOGPROBS, id="bench", references=["a man on a bench"])
    clear = ballot(["a b c d", "a b c", "x"], [-1.0, -2.0, -4.0], id="clear", references=["a b c"])
    tie = ballot(["a b", "c d"], [-1.0, -1.0], id="tie")
    show([bench, clear, tie, bench], similarity="overlap_2")
    assert page.locator("#ballot-list li").count() == 4
    assert "50 % of 4 ballots: voting changed the choice" in page.inner_text("#overview")
    chrf = [
        rv.elect([text], voters=["a man on a bench"], similarity="chrf").score
        for text in (WINNER, CAPTIONS[0])
    ]
    gain = 100 * (chrf[0] - chrf[1])
    sign = "+" if gain > 0 else "−"
    assert f"(chrF {sign}{abs(gain):.1f} on average)" in page.inner_text("#gains")
    assert page.locator(".histogram span").count() == 12
    page.check("#only-changed")
    assert page.locator("#ballot-list li").count() == 2
    page.keyboard.press("Tab")
    page.focus("#next")
    page.keyboard.press("j")
    reads(page, "#position", "Ballot 4 of 4")
    assert page.title().startswith("bench · ")
    page.keyboard.press("k")
    reads(page, "#position", "Ballot 1 of 4")
    page.uncheck("#only-changed")
    page.check("#only-tie")
    assert page.locator("#ballot-list li").all_inner_texts()[0].startswith("3 · tie")
    page.uncheck("#only-tie")
    page.check("#only-fragile")
    assert page.locator("#ballot-list .badge.fragile").count() >= 1
    page.uncheck("#only-fragile")
    page.fill("#contains", "B C")
    assert page.locator("#ballot-list li").count() == 1
    page.fill("#contains", "")
    page.select_option("#sort", "margin")
    assert page.locator("#ballot-list li").first.inner_text().startswith("3 · tie")
    page.locator("#ballot-list a").nth(3).click()
    reads(page, "#position", "id clear")
    settled(page)
    assert page.get_attribute("#ballot-list a[data-number='1']", "aria-current") == "true"
    assert violations(page) == []


def test_measures_without_n_grams_rules_without_voters_and_near_ties_are_told(page, show):
    show([FIGURE], similarity="bleu_4")
    details = opened(page, 1)
    assert "bleu_4 does not decompose over n-grams" in details.locator(".by-ngram").inner_text()
    details.locator("button:text-matches('^Show . voters? more')").click()
    votes = details.locator(".by-voter tbody tr td:last-child").all_inner_texts()
    score = rv.elect(FIGURE, similarity="bleu_4").score
    assert sum(map(number, votes)) == pytest.approx(score, abs=1e-4)
    show([FIGURE], rule="most_likely")
    assert page.inner_text("#winner") == CAPTIONS[0]
    assert "nobody votes" in page.inner_text("#grades")
    show([ballot(["a b", "a b", "c d", "c d"])])
    assert "Near-tie: rounding could have decided" in page.inner_text("#chips")
    show([ballot(["a b", "c d", "e f"])])
    assert page.inner_text("#chips").startswith("No support: nobody votes for the output of another")


def test_a_ballot_that_cannot_be_voted_on_and_a_server_that_went_away_are_told(page, watch):
    with running(page_of([ballot([], id="none"), FIGURE, many(5)], similarity="overlap_2")) as address:
        page.goto(address)
        page.wait_for_selector("#problem:not([hidden])")
        assert "there are no candidates" in page.inner_text("#problem")
        page.click("#next")
        settled(page)
        assert page.inner_text("#winner") == WINNER
        assert page.is_hidden("#problem")
    page.click("#next")
    page.wait_for_selector("#problem:not([hidden])")
    assert "The server does not respond" in page.inner_text("#problem")
    watch.provoked = FAILED


def test_without_scripts_the_page_says_so(new_page, serve, tmp_path: Path):
    page = new_page(java_script_enabled=False, viewport=DESK)
    file = tmp_path / "election.html"
    file.write_text(single_file(page_of([FIGURE])), encoding="utf-8")
    for address in (serve([FIGURE]), file.as_uri()):
        page.goto(address)
        assert "This page needs JavaScript" in page.inner_text("main")
        assert "Loading" not in page.inner_text("main")  # it would be for ever


@pytest.mark.parametrize("look", LOOKS)
def test_it_is_readable_in_light_and_dark_on_a_desk_and_a_phone(new_page, serve, look):
    page = new_page(**LOOKS[look])
    page.goto(serve([FIGURE, many(30)], [FIGURE, many(100)]))
    settled(page)
    for closed in ("#rail-box", "#what-if", "#firm-numbers"):
        if page.get_attribute(closed, "open") is None:
            page.click(f"{closed} > summary")
    opened(page, 2)
    assert no_overflow(page)
    assert violations(page) == []
    screenshot(page, f"show-{look}")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == look.startswith("light")


LONG = "checkpoint-of-a-name-that-nobody-would-say-aloud/" * 3


def panel_of(members: int, ballots: int = 4) -> list[rv.Ballot]:
    """A panel in which the last two members say the same; one name is long, one holds markup."""
    names = [*(f"model-{i:02}" for i in range(members - 3)), LONG, "<b>\u202eone</b>", "<b>other</b>"]
    return [
        panel(*((name, f"so {min(place, members - 2) % 3 + number}") for place, name in enumerate(names)))
        for number in range(ballots)
    ]


@pytest.mark.parametrize(("members", "look"), [(3, "light"), (18, "dark")])
def test_members_of_a_panel_have_a_sign_and_a_name_and_a_table(new_page, serve, tmp_path, members, look):
    ballots, options = panel_of(members), {"similarity": "exact:last_number"}
    path = tmp_path / "panel.html"
    path.write_text(single_file(page_of(ballots, **options)), encoding="utf-8")
    seen = []
    for address in (serve(ballots, **options), path.as_uri()):
        page = new_page(viewport=DESK, color_scheme=look)
        page.goto(address)
        settled(page)
        legend = page.locator("#member-legend .member-name").all_inner_texts()
        assert len(legend) == len(set(legend)) == members
        assert any("U+202E" in name for name in legend)  # spelled out, not obeyed
        signs = page.locator("#member-legend .sign").evaluate_all("all => all.map((one) => one.className)")
        assert len(set(signs)) == members
        lines = page.locator("#candidate-list > li")
        assert lines.count() == page.locator("#candidate-list .writers").count() > 1
        lines.first.locator("summary").first.focus()
        press(page, "Enter")  # by keys: all members of the group
        lines.first.locator(".facts .member-name").first.wait_for()
        result = rv.elect(ballots[0], **options)
        group = {ballots[0].candidates[i].member for i in result.groups[0].candidates}
        assert lines.first.locator(".facts .member-name").count() == len(group)
        assert page.locator("#winner-member .member-name").count() == 1
        assert page.locator("#member-table tbody tr").count() == members
        assert violations(page) == []
        assert no_overflow(page)
        page.set_viewport_size(PHONE)
        assert no_overflow(page)
        page.set_viewport_size(DESK)
        seen.append(page.inner_text("#member-table"))
        page.click("#next")
        reads(page, "#position", "Ballot 2 of 4")
        settled(page)
        assert page.inner_text("#member-table") == seen[-1]
    assert seen[0] == seen[1]
    screenshot(page, f"show-panel-{members}-{look}")


def test_an_export_opens_from_disk_and_shows_the_same_as_the_server(page, serve, tmp_path: Path):
    path = tmp_path / "election.html"
    nasty = ballot(["</script><script>alert(1)</script> a", "<!-- a \u2028 b", "a b"], [-1.0, -2.0, -3.0])
    path.write_text(single_file(page_of([many(100), nasty], similarity="overlap_2")), encoding="utf-8")
    seen = []
    for address in (serve([many(100), nasty], similarity="overlap_2"), path.as_uri()):
        page.goto(address)
        settled(page)
        details = opened(page, 3)
        parts = details.locator(".by-ngram").inner_text()
        seen.append(
            [page.inner_text("#outcome"), page.inner_text("#duel"), parts, page.inner_text("#clusters")]
        )
    assert seen[0] == seen[1]
    assert page.is_hidden("#what-if")  # nothing is elected again in a file
    page.click("#next")
    page.wait_for_selector("#candidate-list > li:last-child:nth-child(3)")
    assert "</script><script>alert(1)</script> a" in page.inner_text("#candidates")
    screenshot(page, "show-export")
