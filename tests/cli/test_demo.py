"""rangevote demo: figure 1 without a model, a model's own answers with one."""

from __future__ import annotations

import base64
import json
import re
import zlib

import pytest

import rangevote as rv
from rangevote.cli.demo import (
    CAPITALS,
    FIGURE_1,
    LIMITS,
    OPEN_TOKENS,
    PROMPTS,
    QUESTION,
    SAMPLES,
    figure_1,
)
from rangevote.election.summary import Quote, why
from tests.cli.speaker import speaker

__all__ = ["speaker"]


def words(text: str) -> str:
    """The text of a table without its lines."""
    return " ".join(re.sub(r"[│┃┏┓┗┛┡┩┢┪└┘┌┐├┤┬┴┼╇━─]", " ", text).split())


def test_figure_1_marks_the_winner_and_the_most_likely_and_says_why_it_won(run):
    shown = run("demo").out.decode()
    rows = [words(line) for line in shown.splitlines()]
    assert "1 a black and white photo of a man sitting on a bench -7.14 0.5334 elected" in rows
    assert "2 a couple of people that are sitting on a bench -6.07 0.5285 most likely" in rows
    assert "5 of 9 other outputs (71 % of the vote) also say" in words(shown)
    assert rv.elect(figure_1(), similarity="overlap_2").signature in shown


def test_with_a_model_the_answers_to_an_open_question_are_an_election(run, speaker):
    shown = run("demo", "--model", "any", "-s", "overlap_1").out.decode()
    assert max(map(len, shown.splitlines())) <= 100
    [drawn] = rv.search(speaker, [QUESTION], rv.Sample(SAMPLES, temperature=0.7, max_new_tokens=OPEN_TOKENS))
    result = rv.elect(drawn, similarity="overlap_1")
    assert result.signature in words(shown)
    parts = [f'"{part}"' if isinstance(part, Quote) else part for part in why(result)]
    assert words("".join(parts)) in words(shown)
    assert words(LIMITS) in words(shown)


#: How many of its answers are right; the others name a wrong city each, or none.
RIGHT = dict(zip(PROMPTS, (40, 30, 30, 20, 0, 0, 10), strict=True))


@pytest.fixture
def scripted(speaker, monkeypatch):
    """The model answers every prompt rightly as often as `RIGHT` says."""

    def answer(asked: str) -> str:
        for row, prompt in enumerate(PROMPTS):
            for column, (country, capital) in enumerate(CAPITALS.items()):
                if prompt.format(country) == asked:
                    right = (column + 7 * row) % len(CAPITALS) < RIGHT[prompt]
                    return (
                        f"it is {capital}." if right else f"it is City{chr(65 + row)}{chr(97 + column % 26)}."
                    )
        return "because of the air"

    def search(network, inputs, method):
        return [
            [rv.Hypothesis(answer(one) + " so" * i, logprob=-3.0) for i in range(method.size)]
            for one in inputs
        ]

    monkeypatch.setattr("rangevote.decoding.search", search)


def test_prompts_vote_on_answers_with_equal_shares_and_by_agreement(run, scripted):
    shown = run("demo", "--model", "any").out.decode().splitlines()
    rows = {
        prompt: next(line for line in shown if line.startswith(prompt.format("..."))) for prompt in PROMPTS
    }
    for prompt, line in rows.items():
        right, agrees, share = re.findall(r"(\d+)%?", line)[-3:]
        assert int(right) == RIGHT[prompt]
        assert int(agrees) <= 100
        assert (int(share) > 0) == (RIGHT[prompt] > 5)
    mean, best, equal, agreement = (
        int(next(line for line in shown if line.startswith(f"the {name}")).split()[-1])
        for name in ("mean prompt", "best prompt", "vote with equal shares", "vote with shares by agreement")
    )
    assert (mean, best) == (round(sum(RIGHT.values()) / 7), 40)
    assert equal == 50  # every capital has two votes or more, and every wrong city one
    assert mean < agreement <= 50


def test_answers_without_names_have_no_shares_by_agreement(run, speaker):
    shown = run("demo", "--model", "any").out.decode()
    assert "the vote with equal shares" in shown
    assert "the vote with shares by agreement" not in shown


def test_the_elections_are_written_as_a_page_that_opens_from_disk(run, speaker, tmp_path):
    page = tmp_path / "build" / "demo.html"
    for _ in range(2):  # a second run replaces it
        done = run("demo", "--model", "any", "--export", page)
        assert (done.code, f"open {page} in a browser" in done.out.decode().replace("\n", "")) == (0, True), (
            done.err
        )
    [answers] = re.findall(r'id="answers">(.*?)</script>', page.read_text(encoding="utf-8"))
    parts = [zlib.decompress(base64.b64decode(part)).decode() for part in json.loads(answers).values()]
    listed = [QUESTION, *list(FIGURE_1)[:3], *CAPITALS]
    assert [text for text in listed if not any(text in part for part in parts)] == []
    [first] = [shown for part in parts if (shown := json.loads(part).get("api/ballots/0?list=0"))]
    assert "|sim:overlap_2|" in first["signature"]  # the page elects as the command does
    done = run("demo", "--export", page)
    assert (done.code, "--export belongs to --model" in done.err) == (2, True)


def test_what_a_model_writes_is_shown_and_not_obeyed(run, speaker, monkeypatch):
    speaker.text = lambda tokens: "[bold red]hi[/] \x1b[31m\x07 there"
    monkeypatch.setattr("rangevote.cli.demo.OPEN_TOKENS", 2)
    done = run("demo", "--model", "any")
    assert "[bold red]hi[/] \\x1b[31m\\x07 there" in words(done.out.decode())
    assert b"\x1b" not in done.out
