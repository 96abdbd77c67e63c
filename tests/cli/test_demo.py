"""rangevote demo: figure 1 without a model, a model's own answers with one."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

import rangevote as rv
from rangevote.cli.demo import BEAMS, CHOSEN, LONGEST, PROMPTS, _cost
from tests.cli.speaker import Speaker


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Speaker:
    speaker = Speaker()
    monkeypatch.setattr("rangevote.models.load.load", lambda name: speaker)
    return speaker


def words(text: str) -> str:
    """The text of a table without its lines."""
    return " ".join(re.sub(r"[│┃┏┓┗┛┡┩┢┪└┘┌┐├┤┬┴┼╇━─]", " ", text).split())


def test_figure_1_marks_the_winner_and_the_most_likely(run):
    shown = run("demo").out.decode().splitlines()
    winner = next(line for line in shown if "elected" in line)
    assert "a black and white photo of a man sitting on a bench" in winner
    assert "0.00079" in winner
    likely = next(line for line in shown if "most likely" in line)
    assert "a couple of people that are sitting on a bench" in likely


def test_with_a_model_the_likely_and_the_elected_answers_stand_side_by_side(run, model):
    shown = run("demo", "--model", "any", "-s", "overlap_1").out.decode()
    assert max(map(len, shown.splitlines())) <= 100
    assert words(CHOSEN) in words(shown)
    results = rv.generate(
        model, PROMPTS, candidates=rv.Beam(BEAMS, max_new_tokens=LONGEST), similarity="overlap_1"
    )
    for prompt, result in zip(PROMPTS, results, strict=True):
        assert prompt in shown
        likely = max(range(BEAMS), key=lambda i: result.candidates[i].logprob or 0.0)
        for index in (likely, result.index):
            logprob = result.candidates[index].logprob
            assert f"log P {logprob:.2f}, score {result.scores[index]:.3f}" in shown
        assert words(f"{result.candidates[likely].text} {result.winner}") in words(shown)
    assert re.fullmatch(r"searching took .* % of the time", shown.splitlines()[-1])


@pytest.mark.parametrize(
    ("searching", "voting", "text"),
    [
        (250.0, 0.0009, "searching took 250.0 s, voting 0.0009 s: less than 0.01 % of the time"),
        (3.0, 1.0, "searching took 3.0 s, voting 1.0000 s: 25.00 % of the time"),
    ],
)
def test_the_share_of_the_time_spent_voting_is_shown(searching, voting, text):
    assert _cost([SimpleNamespace(searching=searching, voting=voting)]) == text


def test_what_a_model_writes_is_shown_and_not_obeyed(run, model, monkeypatch):
    monkeypatch.setattr(model, "text", lambda tokens: "[bold red]hi[/] \x1b[31m\x07 there")
    monkeypatch.setattr("rangevote.cli.demo.LONGEST", 2)
    done = run("demo", "--model", "any")
    assert "[bold red]hi[/] \\x1b[31m\\x07 there ..." in words(done.out.decode())  # and that it was cut off
    assert b"\x1b" not in done.out
