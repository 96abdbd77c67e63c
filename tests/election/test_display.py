"""A result drawn: HTML in a notebook, a table in a terminal."""

from __future__ import annotations

import math
from html.parser import HTMLParser
from io import StringIO

import pytest
from rich.console import Console

import rangevote as rv
from tests.figure1 import CAPTIONS, LOGPROBS, WINNER

LIKELY = "a couple of people that are sitting on a bench"
LEFT, RIGHT = "text-align:left", "text-align:right"
HEAD = [RIGHT, LEFT, RIGHT, RIGHT, LEFT]
CELLS = [RIGHT, "text-align:start", RIGHT, RIGHT, LEFT]


class Page(HTMLParser):
    """What a browser makes of the HTML: the tags, the cells of the table by row, and all text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.styles: list[str] = []  # inline, which the styles of a notebook do not override
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.rows: list[tuple[str, list[str]]] = []
        self.shades: list[tuple[str, str]] = []  # words with their shades
        self.kind = ""
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []  # every tag is closed

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.styles += [value for name, value in attrs if name == "style"]
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)
        self.kind = dict(attrs).get("class", "")
        if tag == "tr":
            self.rows.append((dict(attrs).get("class", ""), []))
        if tag in ("td", "th"):
            self.rows[-1][1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][1][-1] += data
            if self.open[-1] == "span":
                self.shades.append((data, self.kind))
        if self.open[-1] != "style":
            self.text += data


def figure_1():
    return rv.elect(CAPTIONS, LOGPROBS)


def drawn(result: rv.Result, width: int = 120) -> str:
    """What a terminal of this width shows."""
    console = Console(file=StringIO(), width=width, force_terminal=False)
    console.print(result)
    return console.file.getvalue()


def test_a_notebook_shows_figure_1_with_the_winner_and_the_most_likely_caption_marked():
    result = figure_1()
    page = Page(result._repr_html_())
    header, *rows = page.rows
    assert header[1] == ["rank", "candidate", "log P", "score", ""]
    assert page.styles == ["table-layout:auto", *HEAD, *CELLS * 10]
    assert [(kind, cells[1], cells[4]) for kind, cells in rows if cells[4]] == [
        ("elected", WINNER, "elected"),
        ("other", LIKELY, "most likely"),
    ]
    assert [cells[1] for _, cells in rows] == [result.candidates.content(i) for i in result.ranking]
    assert rows[0][1][0] == "1"
    assert rows[0][1][2] == f"{math.log(0.00079):.2f}"
    assert rows[0][1][3] == f"{result.score:.4f}"


def test_a_notebook_shades_words_by_their_votes_and_says_why():
    # "a b" earns 1/2 + 1/4, "b c" 1/4; half of each is a word's: a has 3/8, b has 4/8, c has 1/8
    page = Page(rv.elect(["a b c"], voters=["a b", "a b c"], similarity="overlap_2")._repr_html_())
    assert page.shades == [("a", "v4"), ("b", "v5"), ("c", "v2")]
    assert page.rows[1][1][1] == "a b c"
    page = Page(figure_1()._repr_html_())
    assert "Elected because 5 of 9 other outputs" in page.text
    plain = Page(rv.elect(["a b", "a c"], similarity="bleu_4")._repr_html_())
    assert plain.shades == []  # it does not decompose over words


def test_texts_are_shown_and_never_obeyed_in_a_notebook():
    evil = '</td><script>alert("1")</script><img src=x onerror=y> & "quoted"'
    page = Page(rv.elect([evil, "a"])._repr_html_())
    assert not {"script", "img"} & set(page.tags)
    assert page.attributes <= {"class", "scope", "dir", "style"}
    assert set(page.styles) <= {"table-layout:auto", *HEAD, *CELLS}
    assert page.rows[1][1][1] == evil


def test_however_far_down_the_most_likely_and_the_elected_are_shown():
    texts = ["a b"] * 60 + ["z"]
    result = rv.elect(texts, [-5.0] * 60 + [-1.0], voters=["a b"])
    rows = [cells for _, cells in Page(result._repr_html_()).rows[1:]]
    assert len(rows) == 21
    assert rows[-1][:2] == ["61", "z"]
    assert rows[-1][4] == "most likely"


def test_own_likelihood_has_a_column_where_it_counts():
    result = rv.elect(["a b", "a c"], [-3.0, -6.0], likelihood=0.5)
    [(_, heads), (_, first), (_, second)] = Page(result._repr_html_()).rows
    assert heads[2:5] == ["log P", "evidence", "score"]
    assert (first[2:4], second[2:4]) == (["-3.00", "-0.5000"], ["-6.00", "-1.0000"])
    assert "evidence" in drawn(result)


def test_what_is_not_known_is_a_dash():
    page = Page(rv.elect(["a", "b"])._repr_html_())
    assert [cells[2] for _, cells in page.rows[1:]] == ["–", "–"]
    assert "most likely" not in page.text
    some = Page(rv.elect(["a", "b"], [None, -3.0], weights="count")._repr_html_())
    assert {cells[1]: cells[4] for _, cells in some.rows[1:]}["b"] == "elected, most likely"


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (rv.elect(["a"]), "1 candidate, 1 voter; no rival"),
        (rv.elect(["a", "b"], voters=["a b"]), "2 candidates, 1 voter; margin 0 (near-tie)"),
        (rv.elect(["a", "a"]), "2 candidates, 2 voters; no rival"),
        (rv.elect(["a", "b"], voters=["x"]), "no voter supports any candidate but itself"),
    ],
    ids=["alone", "tie", "clones", "no support"],
)
def test_how_clear_it_was_is_shown(result, sentence):
    assert sentence in Page(result._repr_html_()).text
    assert sentence in drawn(result)


def test_a_terminal_shows_figure_1_with_the_same_marks():
    shown = drawn(figure_1())
    elected = next(line for line in shown.splitlines() if "elected" in line)
    assert WINNER in elected
    assert "most likely" in next(line for line in shown.splitlines() if LIKELY in line)
    assert figure_1().signature in shown
    assert f"margin {figure_1().margin:.4g}" in shown


def test_a_terminal_shows_markup_and_control_characters_instead_of_obeying_them():
    shown = drawn(rv.elect(["[red]x[/red] \x1b[2Jy\nz", "a"]))
    assert r"[red]x[/red] \x1b[2Jy\nz" in shown
    assert "\x1b" not in shown


def test_of_a_panel_the_member_of_each_candidate_who_won_and_the_shares_are_shown():
    result = rv.elect({"<b>": ["a dog runs", "a dog"], "other": ["a dog runs"]}, similarity="exact")
    page = Page(result._repr_html_())
    assert page.rows[0][1] == ["rank", "candidate", "member", "log P", "score", ""]
    assert [cells[2] for _, cells in page.rows[1:]] == ["<b>", "other", "<b>"]
    for shown in (page.text, drawn(result, 200)):
        assert "won by <b>, other; shares: <b> 50%, other 50%" in shown
    assert "member='<b>'" in repr(result)
    many = rv.elect({f"m{i}": ["a dog runs"] for i in range(12)})
    assert "m9 8%, 2 more" not in drawn(many, 300).replace("\n", " ")
    assert ", 2 more" in drawn(many, 300)
