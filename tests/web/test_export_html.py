"""The election page as one file: everything is in it, nothing is loaded, and no text breaks out."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from typing import Any

import msgspec
import pytest

pytest.importorskip("starlette")

import rangevote as rv
from rangevote.errors import SetupError
from rangevote.web import api, export_html
from rangevote.web.app import PAGE
from rangevote.web.serving import assets
from tests.figure1 import WINNER
from tests.web.samples import FIGURE, ballot, page_of, panel

NASTY = [
    "</script><script>alert(1)</script>",
    "<!-- <script> ]]> &lt;",
    "\u2028\u2029\x00\x07\x1b[31m\r\n\t\u202e \ufeff 💡",
    '"\\u003c\\',
    "",
]


def made(*ballots: rv.Ballot, **options: Any) -> str:
    return export_html.single_file(page_of(ballots, **options))


def elements(tag: str, page: str) -> list[tuple[str, str]]:
    """Attributes and text of all elements of a kind."""
    return re.findall(rf"<{tag}\b([^>]*)>(.*?)</{tag}>", page, re.DOTALL)


def data_of(page: str) -> dict[str, Any]:
    """All answers in a file, by their paths."""
    (_, block), _ = elements("script", page)
    found: dict[str, Any] = {}
    for start, packed in json.loads(block).items():
        some = json.loads(zlib.decompress(base64.b64decode(packed)))
        assert all(path.startswith(start) for path in some)
        found |= some
    return found


def plain(answer: Any) -> Any:
    """As it stands in a file."""
    return export_html._shorter(msgspec.to_builtins(answer))


def test_a_panel_is_in_the_file_with_its_members_over_all_ballots():
    ballots = [panel(("a", "x y"), ("b", "x z"), id=i) for i in range(3)]
    found = data_of(export_html.single_file(page_of(ballots, kept=1)))
    assert found["api/members?list=0"] == plain(page_of(ballots).members(0))
    assert found["api/members?list=0"]["ballots"] == 3


def test_every_question_of_the_page_has_its_answer_as_the_server_gives_it():
    answers = page_of([FIGURE], similarity="overlap_2")
    found = data_of(made(FIGURE, similarity="overlap_2"))
    assert found["api/election"] == plain(answers.about()) | {"measures": []}  # a file elects nothing
    assert found["api/ballots?page=0"] == plain(answers.page(0))
    assert found["api/ballots/0?list=0"] == plain(answers.election(0, 0))
    assert found["api/ballots/0?list=0"]["candidates"]["rows"][0]["text"] == WINNER
    assert found["api/ballots/0/grades?list=0"] == plain(answers.grades(0, 0))
    assert found["api/ballots/0/winners?list=0"] == plain(answers.winners(0, 0))
    for index in range(10):
        assert found[f"api/ballots/0/candidates/{index}?list=0"] == plain(answers.parts(0, 0, index))
    assert found["api/find?id=figure%201"] == {"number": 0}
    assert data_of(made(FIGURE, FIGURE))["api/find?id=figure%201"] == {"number": 0}  # the first of that id


SCRIPTS = [' type="application/json" id="answers"', ' type="module"']


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_nothing_is_loaded_and_the_policy_allows_this_script_and_this_style_alone():
    page = made(FIGURE)
    (_, data), (_, script) = elements("script", page)
    [(_, style)] = elements("style", page)
    outside = page.replace(data, "").replace(script, "").replace(style, "")
    assert not re.search(r"\s(src|href|action|srcset|style)=", outside)
    assert not re.search(
        r"https?://|//[a-z]+\.|@import|url\(|^import |^export ", script + style, re.MULTILINE
    )
    assert page.index("Content-Security-Policy") < min(page.index("<style>"), page.index("<script"), 1024)
    [policy] = re.findall(r'"Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("script-src") == hash_of(script)
    assert rules.pop("style-src") == hash_of(style)
    assert rules.pop("img-src") == "data:"
    assert rules.pop("require-trusted-types-for") == "'script'"
    assert set(rules.values()) == {"'none'"}
    assert {"default-src", "base-uri", "form-action", "trusted-types"} == rules.keys()


def test_no_text_breaks_out_of_the_data():
    one = ballot(NASTY, id="</script>", source=NASTY[0], references=[NASTY[1]])
    page = made(one)
    assert [attributes for attributes, _ in elements("script", page)] == SCRIPTS
    rows = data_of(page)["api/ballots/0?list=0"]["candidates"]["rows"]
    assert {row["index"]: row["text"] for row in rows} == dict(enumerate(NASTY))
    block = page[page.index('id="answers">') + 13 : page.index("</script>")]
    assert not re.search("[<\u2028\u2029\x00-\x1f]", block)


def test_only_so_many_ballots_are_in_it_and_it_knows_how_many_there_are():
    ballots = [ballot(["a", "b"], id=i) for i in range(PAGE + 5)]
    found = data_of(made(*ballots, kept=PAGE + 1))
    assert (found["api/election"]["kept"], found["api/election"]["ballots"]) == (PAGE + 1, PAGE + 5)
    assert f"api/ballots/{PAGE}?list=0" in found
    assert f"api/ballots/{PAGE + 1}?list=0" not in found
    assert len(found["api/ballots?page=1"]) == 1


def test_long_texts_are_in_it_whole_and_what_cannot_be_voted_on_is_its_message(monkeypatch):
    monkeypatch.setattr(api, "ALL_TEXTS", 0)
    long = "word " * 2000
    found = data_of(made(rv.Ballot([]), ballot([long, "word"])))
    assert "there are no candidates" in found["api/ballots/0?list=0"]["error"]
    assert found["api/ballots/1/text?list=0&role=candidates&index=0"]["text"] == long


def test_scores_of_the_first_candidates_and_of_the_most_likely_are_taken_apart(monkeypatch):
    monkeypatch.setattr("rangevote.web.export_html.EXPLAINED", 2)
    ranking = rv.elect(FIGURE, similarity="overlap_1").ranking
    parts = {path for path in data_of(made(FIGURE, similarity="overlap_1")) if "/candidates/" in path}
    assert parts == {f"api/ballots/0/candidates/{i}?list=0" for i in {*ranking[:2], 0}}


def test_a_page_that_no_browser_would_open_is_refused(monkeypatch):
    monkeypatch.setattr(export_html, "LARGEST", 1000)
    with pytest.raises(SetupError, match=r"larger than .* Export fewer ballots with --limit"):
        made(FIGURE)


def test_modules_are_joined_each_after_what_it_needs_and_no_name_is_there_twice():
    script = export_html.joined()
    texts = {name: asset.text for name, asset in assets("rangevote.web").items() if name.endswith(".js")}
    places = {}
    for name, text in texts.items():
        first = re.search(r"^(?:export )?((?:async )?(?:function|class|const) \w+)\b", text, re.MULTILINE)
        places[name] = re.search(rf"^{first[1]}\b", script, re.MULTILINE).start()
    for name, text in texts.items():
        for needed in re.findall(r'from "\./([^"]*)"', text):
            assert places[needed] < places[name]
    declared = re.compile(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)
    names = [name for text in texts.values() for name in declared.findall(text)]
    assert len(names) > 30
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    assert "</script" not in script
    assert "<!--" not in script
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", script)
