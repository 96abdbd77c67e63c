"""People judge, in a real browser, by keyboard and mouse, with a server that fails."""

from __future__ import annotations

import io
import sqlite3
import time

import pytest

pytest.importorskip("starlette", reason="pip install rangevote[web]")

from rangevote.study.analysis import analyse
from rangevote.study.archive import create
from rangevote.study.images import import_picture
from rangevote.study.page import page as report_page
from rangevote.study.plan import Pair
from rangevote.study.snapshot import take
from tests.browser.conftest import screenshot, violations
from tests.study.making import judge as judge_in_file
from tests.study.making import pairs, study_file, study_of
from tests.study.serving import Serving, judge, place, until, wait_for_place

CAPTIONS = [
    Pair(
        str(n),
        f"a man sitting on a bench {n}",
        f"a black and white photo of a man sitting on a bench in a park {n}",
        source=f"Ein Mann sitzt auf einer Bank im Park und liest eine Zeitung. ({n})",
    )
    for n in range(1, 21)
]


@pytest.fixture
def serving():
    """`serving(path)` -> the server of a study, stopped at the end."""
    started = []

    def start(path):
        started.append(Serving(path))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.stop()


def opened(page, link):
    page.goto(link)
    page.wait_for_selector("#work:not([hidden])")
    return page


def shown(path, annotator=0):
    """The answers that count, in the order of the annotator's items."""
    snapshot = take(path)
    places = {(a.annotator, a.pair): a.position for a in snapshot.study.assignments}
    rows = [row for row in snapshot.current() if row.annotator == annotator]
    return [row.shown for row in sorted(rows, key=lambda row: places[row.annotator, row.pair])]


def judged_by_keyboard(page, link, path, number):
    opened(page, link)
    begun = time.perf_counter()
    for i in range(number):
        judge(page, "12345"[i % 5])
    seconds = time.perf_counter() - begun
    assert shown(path) == [i % 5 - 2 for i in range(number)]
    assert page.inner_text("#message-title") == f"All {number} items are judged"
    print(f"{number} judgements by keyboard, {60 * number / seconds:.0f} a minute")


def test_an_annotator_judges_a_study_by_keyboard_and_finishes(page, serving, tmp_path):
    path = study_file(tmp_path, CAPTIONS)
    server = serving(path)
    opened(page, server.links[0])
    screenshot(page, "study-first")
    assert page.evaluate("document.querySelector('input[type=radio]:checked')") is None  # nothing preselected
    page.keyboard.press("2")
    screenshot(page, "study-chosen")
    page.reload()
    judged_by_keyboard(page, server.links[0], path, 20)
    screenshot(page, "study-all-judged")
    page.click("button:has-text('Finish')")
    page.wait_for_function("() => document.getElementById('message-title').textContent === 'Thank you'")
    assert take(path).finished == {0}
    screenshot(page, "study-finished")
    page.reload()
    page.wait_for_function("() => document.getElementById('message-title').textContent === 'Thank you'")


@pytest.mark.slow
def test_five_hundred_items_are_judged_by_keyboard(page, serving, tmp_path):
    path = study_file(tmp_path, 500)
    judged_by_keyboard(page, serving(path).links[0], path, 500)


def test_digits_can_save_at_once(page, serving, tmp_path):
    path = study_file(tmp_path, 3)
    opened(page, serving(path).links[0])
    page.check("#at-once")
    for number, key in enumerate("153", 1):
        wait_for_place(page, f"Item {number} of 3")
        page.keyboard.press(key)
    page.wait_for_selector("#message:not([hidden])")
    assert shown(path) == [-2, 2, 0]


def test_a_mouse_judges_too_and_pace_and_progress_are_told(page, serving, tmp_path):
    path = study_file(tmp_path, 5)
    opened(page, serving(path).links[0])
    for number in range(1, 5):
        page.click("label:has-text('Right is slightly better')")
        page.click("#next")
        wait_for_place(page, f"Item {number + 1} of 5")
    assert page.inner_text("#pace").startswith("4 of 5 judged, about ")
    assert page.inner_text("#saved") == "Saved"
    assert shown(path) == [1] * 4


def test_enter_without_an_answer_says_so_and_saves_nothing(page, serving, tmp_path):
    path = study_file(tmp_path, 2)
    opened(page, serving(path).links[0])
    page.keyboard.press("Enter")
    assert page.inner_text("#note") == "Choose one of the five answers first."
    assert place(page) == "Item 1 of 2"
    assert take(path).rows == []


def test_undo_goes_back_and_history_is_kept(page, serving, tmp_path):
    path = study_file(tmp_path, 4)
    opened(page, serving(path).links[0])
    judge(page, "1")
    judge(page, "2")
    page.keyboard.press("u")
    wait_for_place(page, "Item 2 of 4")
    assert page.inner_text("#note") == "Undone: Left is slightly better."
    page.keyboard.press("Backspace")
    wait_for_place(page, "Item 1 of 4")
    judge(page, "5")
    wait_for_place(page, "Item 2 of 4")
    assert [row.shown for row in take(path).rows] == [-2, -1, None, None, 2]
    assert shown(path) == [2]


def test_earlier_items_can_be_looked_at_and_changed(page, serving, tmp_path):
    path = study_file(tmp_path, 4)
    opened(page, serving(path).links[0])
    for key in "123":
        judge(page, key)
    page.click("#earlier")
    page.click("#earlier")
    wait_for_place(page, "Item 2 of 4")
    assert page.evaluate("document.querySelector('[name=answer]:checked').value") == "-1"
    page.keyboard.press("Enter")  # unchanged: on, without a row
    wait_for_place(page, "Item 4 of 4")
    assert len(take(path).rows) == 3
    page.click("#earlier")
    judge(page, "5")
    wait_for_place(page, "Item 4 of 4")
    assert shown(path) == [-2, -1, 2]
    assert len(take(path).rows) == 4


def test_arrows_choose_and_keys_can_be_switched_off(page, serving, tmp_path):
    path = study_file(tmp_path, 3)
    opened(page, serving(path).links[0])
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.querySelector('[name=answer]:checked').value") == "2"
    page.keyboard.press("Control+1")
    assert page.evaluate("document.querySelector('[name=answer]:checked').value") == "2"
    page.uncheck("#shortcuts")
    page.keyboard.press("1")
    page.keyboard.press("u")
    assert page.evaluate("document.querySelector('[name=answer]:checked').value") == "2"
    page.reload()
    page.wait_for_selector("#work:not([hidden])")
    page.keyboard.press("1")
    assert page.evaluate("document.querySelector('[name=answer]:checked')") is None
    page.focus("input[value='-2']")
    page.keyboard.press("Space")  # the browser's own keys still judge
    page.keyboard.press("Enter")
    wait_for_place(page, "Item 2 of 3")
    assert shown(path) == [-2]


def test_case_60_double_clicks_and_held_keys_judge_one_item(page, serving, tmp_path):
    path = study_file(tmp_path, 5)
    opened(page, serving(path).links[0])
    page.dblclick("label:has-text('Left is much better')")
    page.dblclick("#next")
    wait_for_place(page, "Item 2 of 5")
    page.wait_for_timeout(200)
    assert shown(path) == [-2]
    page.keyboard.press("?")  # the instructions closed after the first answer
    page.check("#at-once")
    page.locator("#place").focus()
    page.keyboard.down("4")
    for _ in range(20):
        page.keyboard.down("4")  # Playwright marks these as repeats
    page.keyboard.up("4")
    wait_for_place(page, "Item 3 of 5")
    page.wait_for_timeout(200)
    assert shown(path) == [-2, 1]
    page.uncheck("#at-once")
    page.locator("#place").focus()
    page.keyboard.press("5")
    page.keyboard.down("Enter")
    for _ in range(20):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    wait_for_place(page, "Item 4 of 5")
    page.wait_for_timeout(200)
    assert shown(path) == [-2, 1, 2]


def test_case_60_two_tabs_judge_an_item_once(page, watch, serving, tmp_path):
    path = study_file(tmp_path, 5)
    link = serving(path).links[0]
    opened(page, link)
    other = opened(watch.page(page.context.new_page()), link)
    judge(page, "1")
    wait_for_place(other, "Item 2 of 5")
    assert other.inner_text("#note") == "The item that was here was judged in another window."
    judge(other, "5")
    wait_for_place(page, "Item 3 of 5")
    assert shown(path) == [-2, 2]
    assert len(take(path).rows) == 2


def test_case_60_on_two_devices_the_later_judgement_supersedes_visibly(new_page, serving, tmp_path):
    path = study_file(tmp_path, 5)
    link = serving(path).links[0]
    desk, phone = (opened(new_page(), link) for _ in range(2))
    judge(desk, "1")
    judge(phone, "4")
    phone.wait_for_function("() => note.textContent.includes('replaces')")
    assert 'This replaces "Left is much better"' in phone.inner_text("#note")
    assert shown(path) == [1]
    assert len(take(path).rows) == 2
    desk.reload()
    wait_for_place(desk, "Item 2 of 5")


def test_case_59_and_61_a_killed_server_loses_nothing_and_the_page_goes_on(page, watch, serving, tmp_path):
    path = study_file(tmp_path, 12)
    server = serving(path)
    opened(page, server.links[0])
    for key in "1234":
        judge(page, key)
    server.kill()
    assert shown(path) == [-2, -1, 0, 1]  # every confirmed judgement is on the disk
    for key in "5432":
        judge(page, key)
    assert place(page) == "Item 9 of 12"
    assert page.is_visible("#banner")
    assert "The server cannot be reached" in page.inner_text("#banner")
    assert page.inner_text("#saved") == "Not sent yet: 4"
    screenshot(page, "study-server-down")
    assert len(shown(path)) == 4
    server.start()
    page.wait_for_function("() => document.getElementById('saved').textContent === 'Saved'", timeout=20000)
    assert not page.is_visible("#banner")
    for key in "1111":
        judge(page, key)
    assert shown(path) == [-2, -1, 0, 1, 2, 1, 0, -1, -2, -2, -2, -2]
    rows = take(path).rows
    assert len(rows) == 12
    assert [row.client_time for row in rows] == sorted(row.client_time for row in rows)  # order kept
    assert all("Failed to load resource" in error for error in watch.errors)
    watch.errors.clear()


def test_case_61_answers_that_wait_outlive_the_page(page, watch, serving, tmp_path):
    path = study_file(tmp_path, 6)
    server = serving(path)
    opened(page, server.links[0])
    judge(page, "1")
    server.kill()
    judge(page, "2")
    page.keyboard.press("u")
    wait_for_place(page, "Item 2 of 6")
    judge(page, "3")
    judge(page, "4")
    page.goto("about:blank")
    server.start()
    opened(page, server.links[0])
    assert place(page) == "Item 4 of 6"
    page.wait_for_function("() => document.getElementById('saved').textContent === 'Saved'")
    assert shown(path) == [-2, 0, 1]
    assert [row.shown for row in take(path).rows] == [-2, -1, None, 0, 1]
    watch.errors.clear()


def test_case_59_a_reply_that_is_lost_makes_no_second_row(page, watch, serving, tmp_path):
    path = study_file(tmp_path, 3)
    opened(page, serving(path).links[0])
    lost = []

    def lose(route):
        if lost:
            route.continue_()
            return
        lost.append(route.fetch())  # the server has saved it; the browser never hears
        route.abort()

    page.route("**/api/judgement", lose)
    judge(page, "5")
    page.wait_for_function("() => document.getElementById('saved').textContent === 'Saved'")
    assert lost[0].status == 200
    assert shown(path) == [2]
    assert len(take(path).rows) == 1
    assert len(watch.errors) == 1
    watch.errors.clear()


def test_case_62_while_the_server_cannot_save_the_page_says_so_and_stays(page, watch, serving, tmp_path):
    path = study_file(tmp_path, 3)
    opened(page, serving(path).links[0])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # as a full disk: the server waits 5 s for it and gives up
    page.keyboard.press("5")
    page.keyboard.press("Enter")
    page.wait_for_function("() => saved.textContent === 'Not saved'", timeout=15000)
    assert "cannot save answers" in page.inner_text("#banner")
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    assert place(page) == "Item 1 of 3"
    screenshot(page, "study-not-saved")
    assert take(path).rows == []
    other.execute("ROLLBACK")
    other.close()
    wait_for_place(page, "Item 2 of 3")
    assert shown(path) == [2]
    assert page.inner_text("#saved") == "Saved"
    assert all("503" in error for error in watch.errors)
    watch.errors.clear()


def test_a_browser_that_keeps_no_data_does_not_go_on_past_what_is_not_saved(page, watch, serving, tmp_path):
    path = study_file(tmp_path, 3)
    server = serving(path)
    page.add_init_script("Storage.prototype.setItem = () => { throw new DOMException('full'); };")
    opened(page, server.links[0])
    judge(page, "1")
    server.kill()
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    page.wait_for_selector("#banner:not([hidden])")
    assert "this browser keeps no data" in page.inner_text("#banner")
    assert place(page) == "Item 2 of 3"
    server.start()
    wait_for_place(page, "Item 3 of 3")
    assert shown(path) == [-2, -1]
    watch.errors.clear()


def test_case_71_reload_back_and_forward_lead_to_the_same_item(page, serving, tmp_path):
    path = study_file(tmp_path, 5)
    link = serving(path).links[0]
    page.goto("about:blank")
    opened(page, link)
    judge(page, "1")
    judge(page, "2")
    text = page.inner_text("#left")
    for go in (page.reload, lambda: (page.go_back(), page.go_forward())):
        go()
        page.wait_for_selector("#work:not([hidden])")
        assert place(page) == "Item 3 of 5"
        assert page.inner_text("#left") == text
    assert len(take(path).rows) == 2


HOSTILE = [
    Pair("1", "<img src=x onerror=window.hit=1>", "<script>window.hit=1</script></script>"),
    Pair("2", "safe \u202egpj.exe\u202c end \u2066x\u2069", "colour \x1b[31mred\x1b[0m \x00nul"),
    Pair("3", "", "   \n\t "),
    Pair("4", "<svg onload=window.hit=1><b>bold</b>&lt;", "שלום עולם, مرحبا"),
    Pair("5", "word " * 200_000, "x" * 1_000_000),
]


def test_case_65_outputs_stay_text_and_what_misleads_is_made_visible(page, serving, tmp_path):
    path = study_file(tmp_path, HOSTILE)
    opened(page, serving(path).links[0])
    order = [dealt.pair for dealt in take(path).study.assignments]
    for number, pair in enumerate(order, 1):
        wait_for_place(page, f"Item {number} of 5")
        if pair < 4:  # a picture of the whole page lays a megabyte out again and again
            screenshot(page, f"study-hostile-{HOSTILE[pair].key}")
        seen = {page.evaluate(f"document.getElementById('{side}').textContent") for side in ("left", "right")}
        if pair in (0, 3, 4):
            assert seen == {HOSTILE[pair].first, HOSTILE[pair].second}
        elif pair == 1:
            assert seen == {
                "safe U+202Egpj.exeU+202C end U+2066xU+2069",
                "colour U+001B[31mredU+001B[0m U+0000nul",
            }
        else:
            assert seen == {"(empty output)", "(only white space)"}
        assert (
            page.locator("#left img, #left script, #left svg, #right script, #right img, #right svg").count()
            == 0
        )
        height = page.evaluate("document.getElementById('left').getBoundingClientRect().height")
        assert height < 400  # a scroll box
        judge(page, "3")
    assert page.evaluate("window.hit") is None


@pytest.fixture
def pictured(tmp_path):
    image = pytest.importorskip("PIL.Image")
    images, listed = {}, []
    for number, colour in enumerate(("#335577", "#aa6633", "#338855"), 1):
        out = io.BytesIO()
        image.new("RGB", (640, 420), colour).save(out, "JPEG")
        name, picture = import_picture(out.getvalue(), "x")
        images[name] = picture
        listed.append(Pair(str(number), f"a red field {number}", f"a field of colour {number}", image=name))
    path = tmp_path / "study.db"
    create(path, study_of(listed), images)
    return path


def test_pictures_are_shown_beside_the_outputs(page, serving, pictured):
    opened(page, serving(pictured).links[0])
    page.wait_for_function("() => image.complete && image.naturalWidth === 640")
    screenshot(page, "study-picture")
    judge(page, "4")
    page.wait_for_function("() => image.complete && image.naturalWidth === 640")
    assert not take(pictured).rows[0].image_missing


def test_case_64_a_picture_that_does_not_come_leaves_a_note_and_is_reported(page, watch, serving, pictured):
    page.route("**/img/*", lambda route: route.fulfill(status=404))
    watch.provoked = "404"
    opened(page, serving(pictured).links[0])
    page.wait_for_selector("#no-image:not([hidden])")
    screenshot(page, "study-no-picture")
    judge(page, "4")
    assert take(pictured).rows[0].image_missing
    assert analyse(take(pictured)).people[0].without_image == 1


def test_case_72_a_wrong_or_incomplete_link_is_told(page, watch, serving, tmp_path):
    server = serving(study_file(tmp_path, 2))
    base = server.links[0].partition("#")[0]
    page.goto(base)
    page.wait_for_selector("#message:not([hidden])")
    assert page.inner_text("#message-title") == "This link is not complete"
    page.goto(base + "#" + "A" * 22)
    page.wait_for_function(
        "() => document.getElementById('message-title').textContent === 'This link is not known'"
    )
    screenshot(page, "study-wrong-link")
    assert all("404" in error for error in watch.errors)
    watch.errors.clear()


def test_case_72_the_link_never_leaves_the_browser_in_an_address(page, serving, tmp_path):
    server = serving(study_file(tmp_path, 2))
    token = server.links[0].partition("#")[2]
    asked = []
    page.on("request", lambda request: asked.append((request.url, request.headers)))
    opened(page, server.links[0])
    judge(page, "1")
    calls = [(url, headers) for url, headers in asked if "/api/" in url]
    assert len(calls) == 2
    for url, headers in asked:
        assert token not in url.partition("#")[0]
        assert not headers.get("referer")
        assert (headers.get("authorization") == f"Bearer {token}") == ("/api/" in url)


def test_case_71_without_scripts_the_page_says_so(new_page, serving, tmp_path):
    page = new_page(java_script_enabled=False, viewport={"width": 1280, "height": 400})
    page.goto(serving(study_file(tmp_path, 2)).links[0])
    assert "This page needs JavaScript" in page.inner_text("noscript")
    screenshot(page, "study-no-script")


LOOKS = {
    "phone": {"viewport": {"width": 320, "height": 640}},
    "phone-dark": {"viewport": {"width": 320, "height": 640}, "color_scheme": "dark"},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "zoom-400": {"viewport": {"width": 320, "height": 256}, "device_scale_factor": 4},  # 1280 x 1024 at 400 %
    "still": {"viewport": {"width": 800, "height": 600}, "reduced_motion": "reduce"},
}


@pytest.mark.parametrize("look", LOOKS)
def test_case_71_the_page_is_usable_and_accessible_however_it_is_seen(new_page, serving, tmp_path, look):
    path = study_file(tmp_path, CAPTIONS)
    page = opened(new_page(**LOOKS[look]), serving(path).links[0])
    assert violations(page) == []
    judge(page, "1")
    page.keyboard.press("4")
    screenshot(page, f"study-{look}")
    assert violations(page) == []
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0  # nothing is cut off sideways
    small = page.evaluate(
        "[...document.querySelectorAll('button, label, summary')].filter(e => e.offsetParent)"
        ".map(e => e.getBoundingClientRect()).filter(r => r.width < 24 || r.height < 24).length"
    )
    assert small == 0
    if LOOKS[look]["viewport"]["width"] == 320:
        assert page.inner_text("#left-name") == "Upper"
        assert page.is_visible("label:has-text('Lower is slightly better')")
    page.click("#next")
    wait_for_place(page, "Item 3 of 20")
    assert shown(path) == [-2, 1]


@pytest.mark.parametrize("look", ["desk", "dark", "phone"])
def test_the_report_is_one_accessible_page_that_opens_from_a_file(new_page, tmp_path, look):
    path = study_file(tmp_path, pairs(30), annotators=3, checks=2)
    for number in range(3):
        judge_in_file(path, [[2, 1, 1, 0, -1, 1, 0, -2][(n + number * n % 3) % 8] for n in range(32)], number)
    file = tmp_path / "report.html"
    file.write_text(report_page(analyse(take(path))), encoding="utf-8")
    page = new_page(**LOOKS.get(look, {"viewport": {"width": 1280, "height": 800}}))
    page.goto(file.as_uri())
    screenshot(page, f"study-report-{look}")
    assert violations(page) == []
    assert page.locator("svg[role=img]").count() == 3
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0


def test_two_annotators_judge_at_the_same_time(new_page, serving, tmp_path):
    path = study_file(tmp_path, 3, annotators=2)
    links = serving(path).links
    one, two = (opened(new_page(), link) for link in links)
    for key in "123":
        judge(one, key)
        judge(two, key)
    until(lambda: len(take(path).rows) == 6)
    assert shown(path, 0) == shown(path, 1) == [-2, -1, 0]
