"""People judge, in a real browser, by keyboard and mouse, with a server that fails."""

from __future__ import annotations

import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="pip install rangevote[web]")

from rangevote.study.plan import Pair
from rangevote.study.report import as_html
from rangevote.study.store import create_file, take_snapshot
from rangevote.web.images import load_image
from tests.browser.conftest import DESK, FAILED, LOOKS, no_overflow, press, screenshot, violations
from tests.study.samples import findings, pairs, png, study_file, study_of
from tests.study.samples import judge as judge_in_file

CAPTIONS = [
    Pair(
        str(n),
        f"a man sitting on a bench {n}",
        f"a black and white photo of a man sitting on a bench in a park {n}",
        source=f"Ein Mann sitzt auf einer Bank im Park und liest eine Zeitung. ({n})",
    )
    for n in range(1, 21)
]


class StudyServer:
    """`rangevote study serve` in a process of its own, on a port that stays the same over restarts."""

    def __init__(self, path):
        self.path = path
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    def start(self):
        command = [sys.executable, "-m", "rangevote", "study", "serve", self.path, "--port", self.port]
        self.process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
        self.links = []
        for line in self.process.stderr:
            self.links += re.findall(r"http://\S+", line)
            if "Ctrl-C" in line:
                self.progress = self.links.pop()
                return
        raise AssertionError("the server did not start")

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)
        self.process.wait(30)
        self.process.stderr.close()

    def kill(self):
        self.stop(signal.SIGKILL)

    def rows(self):
        """All answers that are in the file."""
        return take_snapshot(self.path).rows

    def shown(self, annotator=0):
        """The answers that count, in the order of the annotator's items."""
        snapshot = take_snapshot(self.path)
        positions = {(a.annotator, a.pair): a.position for a in snapshot.study.assignments}
        mine = [row for row in snapshot.current() if row.annotator == annotator]
        return [row.shown for row in sorted(mine, key=lambda row: positions[row.annotator, row.pair])]


@pytest.fixture
def serving(tmp_path):
    """`serving(pairs, **options)` -> the server of a new study, or of one in a file; stopped at the end."""
    started = []

    def start(study, **options):
        path = study if isinstance(study, Path) else study_file(tmp_path, study, **options)
        started.append(StudyServer(path))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.stop()


def opened(page, link):
    """The page at its first item, or where it was left."""
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector(":is(#message, #work):not([hidden])")
    begin = page.get_by_role("button", name="Begin without practice")
    if begin.is_visible():
        begin.click()
    page.wait_for_selector("#work:not([hidden])")
    return page


@pytest.fixture
def begun(page, serving):
    """`begun(pairs, **options)` -> the server of a new study; the page shows its first item."""

    def begin(study, **options):
        server = serving(study, **options)
        opened(page, server.links[0])
        return server

    return begin


def at_item(page, text):
    page.wait_for_function("text => document.getElementById('position').textContent === text", arg=text)


def save_at_once(page):
    """Let a key be the whole answer."""
    page.keyboard.press("?")  # the switch is below the instructions
    page.check("#at-once")
    page.locator("#position").focus()


def all_saved(page):
    page.wait_for_function("() => saved.textContent === 'Saved'", timeout=20000)


def judge(page, key):
    """Answer by keyboard and wait for the next item, or for the end."""
    before = page.inner_text("#position")
    press(page, key, "Enter")
    page.wait_for_function("text => position.textContent !== text || work.hidden", arg=before)


def chosen(page):
    return page.evaluate("document.querySelector('[name=answer]:checked')?.value ?? null")


def test_an_annotator_judges_a_study_by_keyboard_and_finishes(page, serving):
    server = serving(CAPTIONS[:10], completion_code="C0DE-<b>42</b>")
    link = server.links[0]
    asked = []
    page.on("request", lambda request: asked.append((request.url, request.headers)))
    opened(page, link)
    screenshot(page, "study-first")
    assert chosen(page) is None  # nothing preselected
    page.keyboard.press("d")  # differences are marked only where the plan says so
    assert page.is_hidden("#differences-box")
    assert page.locator(".text mark").count() == 0
    page.keyboard.press("Enter")
    assert page.inner_text("#note") == "Choose an answer first."
    page.keyboard.press("2")
    screenshot(page, "study-chosen")
    for i in range(10):
        judge(page, "12345"[i % 5])
    all_saved(page)
    assert server.shown() == [i % 5 - 2 for i in range(10)]
    assert page.inner_text("#message-title") == "All 10 items are judged"
    assert page.locator(".tally dd").all_inner_texts() == ["4", "2", "4", "0", "0"]
    assert page.locator(".tally dt").all_inner_texts()[0] == "Left better"
    screenshot(page, "study-all-judged")
    assert "C0DE" not in page.content()
    page.click("button:has-text('Finish')")
    for _ in range(2):
        page.wait_for_function("() => document.getElementById('message-title').textContent === 'Thank you'")
        assert page.inner_text(".code code") == "C0DE-<b>42</b>"
        page.reload()
    page.wait_for_selector(".code")
    assert violations(page) == []
    assert take_snapshot(server.path).finished == {0}
    screenshot(page, "study-finished")
    token = link.partition("#")[2]  # case 72: it never leaves the browser in an address
    assert sum("/api/judgement" in url for url, _ in asked) == 10
    for url, headers in asked:
        assert token not in url.partition("#")[0]
        assert not headers.get("referer")
        assert (headers.get("authorization") == f"Bearer {token}") == ("/api/" in url)


def test_a_mouse_judges_too_digits_can_save_at_once_and_progress_is_shown(page, begun):
    server = begun(7)
    for number in range(1, 5):
        page.click("label:has-text('Right is slightly better')")
        page.click("#next")
        at_item(page, f"Item {number + 1} of 7")
    assert page.inner_text("#pace").startswith("4 of 7 judged, about ")
    save_at_once(page)
    for number, key in enumerate("153", 5):
        at_item(page, f"Item {number} of 7")
        page.keyboard.press(key)
    page.wait_for_selector("#message:not([hidden])")
    all_saved(page)
    assert server.shown() == [1, 1, 1, 1, -2, 2, 0]


def test_answers_are_undone_looked_at_and_changed_and_history_is_kept(page, begun):
    server = begun(4)
    judge(page, "1")
    judge(page, "2")
    page.keyboard.press("u")
    at_item(page, "Item 2 of 4")
    assert page.inner_text("#note") == "Undone: Left is slightly better."
    page.keyboard.press("Backspace")
    at_item(page, "Item 1 of 4")
    judge(page, "5")
    at_item(page, "Item 2 of 4")
    all_saved(page)
    assert [row.shown for row in server.rows()] == [-2, -1, None, None, 2]
    judge(page, "2")
    judge(page, "3")
    page.click("#earlier")
    page.click("#earlier")
    at_item(page, "Item 2 of 4")
    assert chosen(page) == "-1"
    page.keyboard.press("Enter")  # unchanged: on, without a row
    at_item(page, "Item 4 of 4")
    all_saved(page)
    assert len(server.rows()) == 7
    page.click("#earlier")
    judge(page, "5")
    at_item(page, "Item 4 of 4")
    all_saved(page)
    assert server.shown() == [2, -1, 2]
    assert len(server.rows()) == 8
    text = page.inner_text("#left")  # case 71: reload, back and forward lead to the same item
    for go in (page.reload, lambda: (page.go_back(), page.go_forward())):
        go()
        page.wait_for_selector("#work:not([hidden])")
        at_item(page, "Item 4 of 4")
        assert page.inner_text("#left") == text
    assert len(server.rows()) == 8


def test_arrows_choose_and_keys_can_be_switched_off(page, begun):
    server = begun(3)
    press(page, "ArrowRight", "ArrowRight", "Control+1", "?")
    page.uncheck("#shortcuts")
    press(page, "1", "u")
    assert chosen(page) == "2"
    opened(page, page.url)
    page.keyboard.press("1")
    assert chosen(page) is None
    page.focus("input[value='-2']")
    page.keyboard.press("Space")  # the browser's own keys still judge
    page.keyboard.press("Enter")
    at_item(page, "Item 2 of 3")
    all_saved(page)
    assert server.shown() == [-2]


def test_double_clicks_and_held_keys_judge_one_item(page, begun):
    server = begun(5)

    def hold_down(key):
        for _ in range(20):
            page.keyboard.down(key)  # Playwright marks all but the first as repeats
        page.keyboard.up(key)

    page.dblclick("label:has-text('Left is much better')")
    page.dblclick("#next")
    at_item(page, "Item 2 of 5")
    save_at_once(page)
    hold_down("4")
    at_item(page, "Item 3 of 5")
    page.uncheck("#at-once")
    page.locator("#position").focus()
    page.keyboard.press("5")
    hold_down("Enter")
    at_item(page, "Item 4 of 5")
    page.wait_for_timeout(200)
    all_saved(page)
    assert server.shown() == [-2, 1, 2]


def test_two_windows_judge_an_item_once_and_of_two_devices_the_later_wins(page, new_page, watch, serving):
    server = serving(5, annotators=2)
    link, others = server.links
    phone = opened(new_page(), link)
    opened(page, link)
    window = opened(watch.page(page.context.new_page()), link)
    judge(page, "1")
    at_item(window, "Item 2 of 5")
    assert window.inner_text("#note") == "The item that was here was judged in another window."
    judge(window, "5")
    at_item(page, "Item 3 of 5")
    assert server.shown() == [-2, 2]
    assert len(server.rows()) == 2
    judge(phone, "4")
    phone.wait_for_function("() => note.textContent.includes('replaces')")
    assert 'This replaces "Left is much better"' in phone.inner_text("#note")
    all_saved(phone)
    assert server.shown() == [1, 2]
    another = opened(new_page(), others)  # another annotator at the same time
    judge(another, "3")
    all_saved(another)
    page.reload()
    at_item(page, "Item 3 of 5")
    assert (server.shown(0), server.shown(1)) == ([1, 2], [0])


def test_a_killed_server_loses_nothing_and_the_page_goes_on(page, watch, begun):
    server = begun(8)
    for key in "12":
        judge(page, key)
    all_saved(page)
    server.kill()
    assert server.shown() == [-2, -1]  # every confirmed judgement is on the disk
    for key in "543":
        judge(page, key)
    page.keyboard.press("u")
    at_item(page, "Item 5 of 8")
    judge(page, "2")
    page.wait_for_function("() => saved.textContent === 'Not sent yet: 5'")
    assert "The server cannot be reached" in page.inner_text("#banner")
    screenshot(page, "study-server-down")
    assert violations(page) == []
    assert len(server.shown()) == 2
    page.goto("about:blank")  # answers that wait outlive the page
    server.start()
    opened(page, server.links[0])
    at_item(page, "Item 6 of 8")
    all_saved(page)
    assert not page.is_visible("#banner")
    for key in "111":
        judge(page, key)
    all_saved(page)
    assert [row.shown for row in server.rows()] == [-2, -1, 2, 1, 0, None, -1, -2, -2, -2]
    times = [row.client_time for row in server.rows()]
    assert times == sorted(times)  # order kept
    watch.provoked = FAILED


def test_a_reply_that_is_lost_makes_no_second_row(page, watch, begun):
    server = begun(3)
    lost = []

    def lose(route):
        if lost:
            route.continue_()
            return
        lost.append(route.fetch())  # the server has saved it; the browser never hears
        route.abort()

    page.route("**/api/judgement", lose)
    judge(page, "5")
    all_saved(page)
    assert lost[0].status == 200
    assert [row.shown for row in server.rows()] == [2]
    watch.provoked = FAILED


def test_behind_a_slow_line_every_key_counts_at_once_and_the_last_answers_too(page, begun):
    server = begun(10)
    save_at_once(page)
    line = page.context.new_cdp_session(page)
    line.send("Network.enable")
    slow = {"offline": False, "latency": 300, "downloadThroughput": -1, "uploadThroughput": -1}
    line.send("Network.emulateNetworkConditions", slow)
    began = time.monotonic()
    for key in "1234554321":
        page.keyboard.press(key)
    assert page.inner_text("#message-title") == "All 10 items are judged"
    assert page.inner_text("#saved") == "Saving …"
    assert len(server.rows()) < 10
    all_saved(page)
    assert time.monotonic() - began > 3  # ten answers, one after the other
    assert server.shown() == [-2, -1, 0, 1, 2, 2, 1, 0, -1, -2]
    assert len(server.rows()) == 10


def test_after_an_outage_the_answers_are_sent_at_once_on_demand(page, watch, serving):
    server = serving(3)
    page.clock.install()
    opened(page, server.links[0])
    judge(page, "1")
    all_saved(page)
    page.clock.pause_at(time.time() + 3600)  # no timer of the page ends: it tries when it is asked to
    server.kill()
    judge(page, "5")
    page.wait_for_selector("#retry")
    page.click("#retry")  # in vain
    page.wait_for_function("() => saved.textContent === 'Not sent yet: 1'")
    assert page.evaluate("document.activeElement.id") == "retry"
    server.start()
    page.keyboard.press("Enter")
    all_saved(page)
    assert server.shown() == [-2, 2]
    assert page.is_hidden("#banner")
    assert page.evaluate("document.activeElement.id") == "position"
    watch.provoked = FAILED


def test_an_answer_that_is_refused_is_asked_for_again_and_the_item_in_sight_stays(page, watch, begun):
    server = begun(3)
    page.route(
        "**/api/judgement", lambda route: route.fulfill(status=400, json={"error": "not so."}), times=1
    )
    watch.provoked = FAILED
    judge(page, "1")
    page.wait_for_function("() => note.textContent.includes('did not accept an answer: not so.')")
    assert page.inner_text("#position") == "Item 2 of 3"
    judge(page, "2")
    at_item(page, "Item 1 of 3")
    judge(page, "3")
    at_item(page, "Item 3 of 3")
    all_saved(page)
    assert server.shown() == [0, -1]


def test_while_the_server_cannot_save_the_page_says_so_and_takes_no_more(page, watch, begun):
    server = begun(3)
    other = sqlite3.connect(server.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # as a full disk: the server waits 5 s for it and gives up
    press(page, "5", "Enter")
    page.wait_for_function("() => saved.textContent === 'Not saved'", timeout=15000)
    assert "cannot save answers" in page.inner_text("#banner")
    press(page, "1", "Enter")
    assert page.inner_text("#position") == "Item 2 of 3"
    assert chosen(page) is None
    assert page.is_visible("#retry")
    screenshot(page, "study-not-saved")
    assert server.rows() == []
    other.execute("ROLLBACK")
    other.close()
    all_saved(page)
    assert server.shown() == [2]
    judge(page, "1")
    at_item(page, "Item 3 of 3")
    all_saved(page)
    assert server.shown() == [2, -2]
    watch.provoked = FAILED


def test_a_browser_that_keeps_no_data_takes_no_more_while_an_answer_is_not_saved(page, watch, serving):
    server = serving(3)
    page.add_init_script("Storage.prototype.setItem = () => { throw new DOMException('full'); };")
    opened(page, server.links[0])
    judge(page, "1")
    all_saved(page)
    server.kill()
    judge(page, "2")
    page.wait_for_selector("#banner:not([hidden])")
    assert "this browser keeps no data" in page.inner_text("#banner")
    page.keyboard.press("3")
    assert chosen(page) is None
    server.start()
    all_saved(page)
    assert server.shown() == [-2, -1]
    watch.provoked = FAILED


HOSTILE = [
    Pair("1", "<img src=x onerror=window.hit=1>", "<script>window.hit=1</script></script>"),
    Pair("2", "safe \u202egpj.exe\u202c end \u2066x\u2069", "colour \x1b[31mred\x1b[0m \x00nul"),
    Pair("3", "", "   \n\t "),
    Pair("4", "<svg onload=window.hit=1><b>bold</b>&lt;", "שלום עולם, مرحبا"),
    Pair("5", "word " * 100_000, "x" * 500_000),
]
#: What is seen of them where it is not the text itself.
SEEN = {
    1: {"safe U+202Egpj.exeU+202C end U+2066xU+2069", "colour U+001B[31mredU+001B[0m U+0000nul"},
    2: {"(empty output)", "(only white space)"},
}


def test_outputs_stay_text_and_what_misleads_is_made_visible(page, begun):
    server = begun(HOSTILE)
    for number, assignment in enumerate(take_snapshot(server.path).study.assignments, 1):
        at_item(page, f"Item {number} of 5")
        pair = HOSTILE[assignment.pair]
        seen = {page.evaluate(f"document.getElementById('{side}').textContent") for side in ("left", "right")}
        assert seen == SEEN.get(assignment.pair, {pair.first, pair.second})
        assert page.locator(":is(#left, #right) :is(img, script, svg)").count() == 0
        height = page.evaluate("document.getElementById('left').getBoundingClientRect().height")
        assert height < 400  # a scroll box
        if assignment.pair == 1:
            screenshot(page, "study-hostile")
        judge(page, "3")
    all_saved(page)  # before the server ends
    assert page.evaluate("window.hit") is None


def test_wrong_links_and_browsers_without_scripts_are_told(page, new_page, watch, serving):
    link = serving(2).links[0]
    base = link.partition("#")[0]
    for address, title in (
        (base, "This link is not complete"),
        (base + "#" + "A" * 22, "This link is not known"),
    ):
        page.goto(address)
        page.wait_for_function("title => window['message-title'].textContent === title", arg=title)
    screenshot(page, "study-wrong-link")
    watch.provoked = FAILED
    plain = new_page(java_script_enabled=False, viewport={"width": 1280, "height": 400})
    plain.goto(link)
    assert "This page needs JavaScript" in plain.inner_text("noscript")


@pytest.mark.parametrize("look", ["dark-phone", "light-zoom-400"])
def test_the_page_is_usable_and_accessible_however_it_is_seen(new_page, serving, look):
    server = serving(CAPTIONS)
    page = opened(new_page(**LOOKS[look]), server.links[0])
    judge(page, "1")
    page.keyboard.press("4")
    screenshot(page, f"study-{look}")
    assert violations(page) == []
    assert no_overflow(page)
    small = page.evaluate(
        "[...document.querySelectorAll('button, label, summary')].filter(e => e.offsetParent)"
        ".map(e => e.getBoundingClientRect()).filter(r => r.width < 24 || r.height < 24).length"
    )
    assert small == 0
    wide = "[...document.querySelectorAll('#answers label')].filter(e => e.scrollWidth > e.clientWidth)"
    assert page.evaluate(f"{wide}.length") == 0  # no text runs out of its answer
    assert page.inner_text("#left-name") == "Upper"
    assert page.is_visible("label:has-text('Lower is slightly better')")
    page.click("#next")
    at_item(page, "Item 3 of 20")
    all_saved(page)
    assert server.shown() == [-2, 1]


@pytest.mark.parametrize("look", ["light-desk", "dark-phone"])
def test_the_report_is_one_accessible_page_that_opens_from_a_file(new_page, tmp_path, look):
    path = study_file(tmp_path, pairs(30), annotators=3, checks=2)
    for number in range(3):
        judge_in_file(path, [[2, 1, 1, 0, -1, 1, 0, -2][(n + number * n % 3) % 8] for n in range(32)], number)
    file = tmp_path / "report.html"
    file.write_text(as_html(findings(path)), encoding="utf-8")
    page = new_page(**LOOKS[look])
    page.goto(file.as_uri())
    screenshot(page, f"study-report-{look}")
    assert violations(page) == []
    assert no_overflow(page)


LONG = "A sentence of many words that goes on and on until nobody wants to read any more of it. " * 60
PHONE = {"viewport": {"width": 390, "height": 760}, "has_touch": True, "is_mobile": True}


def picture_study(folder, **options):
    """A study of one item with a large picture, a long source and long outputs, and a short one."""
    (folder / "image").write_bytes(png(1600, 1200))
    name, image = load_image(folder / "image", folder, "here")
    listed = [Pair("1", LONG, LONG + "The end.", LONG, image=name), Pair("2", "a man", "a man on a bench")]
    create_file(folder / "study.db", study_of(listed, **options), {name: image})
    return folder / "study.db"


def test_a_start_screen_explains_and_practice_is_not_kept(page, serving):
    server = serving(CAPTIONS[:3], instructions="First line.\nSecond <b>line</b>.")
    link = server.links[0]
    page.goto(link)
    page.wait_for_selector("#message:not([hidden])")
    assert page.inner_text("#message-title") == "Before you begin"
    assert page.inner_text("#message-text") == "First line.\nSecond <b>line</b>."
    assert "There are 3 items." in page.inner_text("#message-more")
    assert violations(page) == []
    page.keyboard.press("5")  # no item is in sight yet
    press(page, "Tab", "Enter")
    page.wait_for_selector("#work:not([hidden])")
    assert page.inner_text("#position") == "Practice: this one does not count"
    screenshot(page, "study-practice")
    press(page, "u", "4", "Enter")
    assert "You answered: Right is slightly better." in page.inner_text("#message-text")
    page.get_by_role("button", name="Begin", exact=True).click()
    at_item(page, "Item 1 of 3")
    assert chosen(page) is None
    judge(page, "1")
    all_saved(page)
    assert server.shown() == [-2]
    assert len(server.rows()) == 1
    page.reload()  # who has begun goes on where they were
    at_item(page, "Item 2 of 3")


@pytest.mark.parametrize("options", [{"viewport": DESK}, PHONE])
def test_the_answers_are_in_reach_without_scrolling_however_long_the_texts(
    new_page, serving, tmp_path, options
):
    page = opened(new_page(**options), serving(picture_study(tmp_path)).links[0])
    height = options["viewport"]["height"]
    for _ in range(2):
        boxes = [one.bounding_box() for one in page.locator("#answers label, #undo, #comment-button").all()]
        assert len(boxes) == 8
        assert all(box["y"] >= 0 and box["y"] + box["height"] <= height for box in boxes)
        assert page.evaluate("scrollY") == 0
        assert no_overflow(page)
        page.wait_for_timeout(300)
        page.locator("#answers label").first.click()
        if page.is_visible("#next"):
            page.click("#next")


def test_on_a_phone_a_tap_saves_a_double_tap_judges_once_and_undo_takes_back(new_page, serving):
    server = serving(4)
    page = opened(new_page(**PHONE), server.links[0])
    assert not page.is_visible("#next")
    labels = page.locator("#answers label")
    page.wait_for_timeout(300)
    tap = "new MouseEvent('click', {detail: 1, bubbles: true, cancelable: true})"
    page.evaluate(  # the second comes so soon that it was meant for the item before
        f"() => {{ for (const i of [4, 0]) answers.querySelectorAll('label')[i].dispatchEvent({tap}); }}"
    )
    at_item(page, "Item 2 of 4")
    assert page.inner_text("#note") == "Answered: Lower is much better."
    page.wait_for_timeout(300)
    labels.nth(5).tap()
    at_item(page, "Item 3 of 4")
    page.locator("#undo").tap()
    at_item(page, "Item 2 of 4")
    assert page.inner_text("#note") == "Undone: Cannot judge."
    page.wait_for_timeout(300)
    labels.nth(2).tap()
    at_item(page, "Item 3 of 4")
    all_saved(page)
    assert server.shown() == [2, 0]
    screenshot(page, "study-phone")
    assert violations(page) == []


def test_comments_and_what_cannot_be_judged_are_kept_changed_and_undone(page, begun):
    server = begun(3)
    page.keyboard.press("c")
    page.keyboard.type("1 of <b>2</b>\nlines")  # digits and Enter are text here
    page.keyboard.press("Escape")
    judge(page, "0")
    judge(page, "3")
    all_saved(page)
    assert [(row.cannot, row.comment) for row in server.rows()] == [
        (True, "1 of <b>2</b>\nlines"),
        (False, None),
    ]
    press(page, "u", "u")
    at_item(page, "Item 1 of 3")
    assert page.input_value("#comment") == "1 of <b>2</b>\nlines"
    judge(page, "1")
    judge(page, "3")
    page.click("#earlier")
    page.click("#earlier")
    page.fill("#comment", "better")  # the same answer with another comment is saved again
    page.locator("#position").focus()
    page.keyboard.press("Enter")
    at_item(page, "Item 3 of 3")
    all_saved(page)
    page.reload()
    page.wait_for_selector("#work:not([hidden])")
    page.click("#earlier")
    page.click("#earlier")
    assert (chosen(page), page.input_value("#comment")) == ("-2", "better")
    assert [(row.shown, row.comment) for row in take_snapshot(server.path).current()] == [
        (0, None),
        (-2, "better"),
    ]
    assert violations(page) == []


def test_words_that_differ_are_marked_where_the_plan_says_so(page, begun):
    first, second = "a <b>man</b> on a bench.", "a <b>dog</b> on a green bench."
    begun([Pair("1", first, second), Pair("2", "a b", "a c")], differences=True)
    seen = {}
    for number in (1, 2):
        at_item(page, f"Item {number} of 2")
        for side in ("left", "right"):
            text = page.evaluate(f"document.getElementById('{side}').textContent")
            seen[text] = page.locator(f"#{side} mark").all_inner_texts()
        if number == 1:
            judge(page, "3")
    assert seen == {first: ["man"], second: ["dog", "green"], "a b": ["b"], "a c": ["c"]}
    assert violations(page) == []
    page.keyboard.press("d")
    assert page.locator(".text mark").count() == 0
    page.reload()
    page.wait_for_selector("#work:not([hidden])")
    assert page.locator(".text mark").count() == 0  # remembered
    page.keyboard.press("d")
    assert page.locator(".text mark").count() == 2


def test_a_picture_is_enlarged_by_click_and_key_and_one_that_does_not_come_is_reported(
    page, watch, begun, tmp_path
):
    server = begun(picture_study(tmp_path))
    if page.is_hidden("#picture"):
        judge(page, "3")
    page.wait_for_function("() => image.complete && image.naturalWidth === 1600")
    small = page.locator("#image").bounding_box()
    page.keyboard.press("e")
    large = page.locator("#large-image").bounding_box()
    assert large["width"] * large["height"] > 3 * small["width"] * small["height"]
    assert violations(page) == []
    page.keyboard.press("1")
    page.click("#large-image", position={"x": 600, "y": 400})  # pixel by pixel
    assert page.locator("#large-image").bounding_box()["width"] == 1600
    page.keyboard.press("Escape")
    assert page.is_hidden("#large")
    assert chosen(page) is None
    page.click("#enlarge")
    page.click("#close-large")
    assert page.is_hidden("#large")
    page.route("**/img/*", lambda route: route.fulfill(status=404))
    watch.provoked = FAILED
    opened(page, page.url)
    page.wait_for_selector("#no-image:not([hidden])")
    screenshot(page, "study-no-image")
    judge(page, "4")
    all_saved(page)
    assert server.rows()[-1].image_missing


def test_who_runs_the_study_follows_its_progress_live_and_sees_no_result(page, new_page, watch, serving):
    server = serving(4, annotators=2, title="Captions")
    page.goto(server.progress)
    page.wait_for_selector("#study:not([hidden])")
    assert page.inner_text("#summary").startswith("0 of 8 answers are there (0 %), 0 of 2 annotators")
    assert page.locator("#people tr").first.inner_text().split("\t")[1] == "link not opened yet"
    annotator = opened(new_page(), server.links[0])
    judge(annotator, "0")
    judge(annotator, "5")
    all_saved(annotator)
    page.wait_for_function("() => summary.textContent.startsWith('2 of 8 answers')")
    cells = page.locator("#people tr").first.locator("th, td").all_inner_texts()
    assert (cells[0], cells[1], cells[2], cells[6]) == ("annotator-1", "at work", "2 of 4", "1")
    assert violations(page) == []
    assert no_overflow(page)
    for word in ("beam", "voted", "better", "p ="):
        assert word not in page.inner_text("main")
    server.kill()
    page.wait_for_selector("#banner:not([hidden])")
    assert "not being served" in page.inner_text("#banner")
    server.start()
    page.wait_for_selector("#banner", state="hidden")
    other = new_page()
    other.goto(server.progress.partition("#")[0] + "#" + server.links[0].partition("#")[2])
    other.wait_for_selector("#banner:not([hidden])")
    assert "This link is not known" in other.inner_text("#banner")
    watch.provoked = FAILED
