"""rangevote demo: figure 1 without a model, a model's own answers with one."""

from __future__ import annotations

import base64
import json
import re
import zlib

import pytest

import rangevote as rv
from rangevote.cli.demo import BEAMS, CHOSEN, LONGEST, PROMPTS, RIGHT, SAMPLES, SUM, _marked
from rangevote.election.summary import Quote, why
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


def test_figure_1_fits_a_terminal_of_80_columns_and_no_line_is_broken(run):
    lines = run("demo").out.decode().splitlines()
    table = lines[2 : 2 + 11]
    assert max(map(len, table)) <= 80
    assert next(line for line in lines if line.startswith("Signature: ")).endswith("first")


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
        for index in (likely, result.leader):
            logprob = result.candidates[index].logprob
            assert f"log P {logprob:.2f}, score {result.scores[index]:.3f}" in shown
        assert words(f"{result.candidates[likely].text} {result.winner}") in words(shown).replace("*", "")
        parts = [f'"{part}"' if isinstance(part, Quote) else part for part in why(result)]
        assert words("".join(parts)) in words(shown)
        assert f"How firm: {result.margin:.3f} ahead of the next; " in shown
    assert re.fullmatch(r"Searching took .* s, voting .* s\.", shown.splitlines()[-1])


def test_words_that_only_one_answer_has_are_marked():
    first, second = "you can save money by cooking at home", "you can save a lot of money at home"
    assert _marked(first, second, False).plain == "you can save money *by cooking* at home"
    assert _marked(second, first, False).plain == "you can save *a lot of* money at home"
    on_screen = _marked(first, second, True)
    assert on_screen.plain == first
    assert [on_screen.plain[span.start : span.end] for span in on_screen.spans if span.style] == [
        "by cooking"
    ]
    assert _marked("same words", "same words", False).plain == "same words"


def test_samples_vote_on_a_sum(run, model):
    answers = ["it is 7", "7", "8 are left", "so 7", "I do not know"]
    model.text = lambda tokens: answers[sum(tokens) % len(answers)]
    shown = words(run("demo", "--model", "any").out.decode())
    [table] = re.findall(
        rf"{re.escape(SUM)} \({SAMPLES} samples vote; {RIGHT} is right\)(.*?)Elected: ", shown
    )
    votes = {answer: int(number) for answer, number in re.findall(r"\b(7|8|none) (\d+)", table)}
    assert sum(votes.values()) == SAMPLES
    elected = max(("7", "8"), key=lambda answer: votes.get(answer, 0))
    assert re.search(rf"{elected} {votes[elected]} elected", table)
    assert f"{RIGHT} {votes[RIGHT]}" in table
    assert f'give the answer "{elected}"' in shown or f'gives the answer "{elected}"' in shown


def test_a_sum_without_numbers_is_said_to_be_one(run, model):
    assert "samples has a number in it" in words(run("demo", "--model", "any").out.decode())


def test_the_elections_are_written_as_a_page_that_opens_from_disk(run, model, tmp_path):
    page = tmp_path / "build" / "demo.html"
    for _ in range(2):  # a second run replaces it
        done = run("demo", "--model", "any", "--export", page)
        assert (done.code, f"open {page} in a browser" in done.out.decode().replace("\n", "")) == (0, True), (
            done.err
        )
    [answers] = re.findall(r'id="answers">(.*?)</script>', page.read_text(encoding="utf-8"))
    parts = [zlib.decompress(base64.b64decode(part)).decode() for part in json.loads(answers).values()]
    assert all(any(prompt in part for part in parts) for prompt in PROMPTS)
    done = run("demo", "--export", page)
    assert (done.code, "--export belongs to --model" in done.err) == (2, True)


def test_what_a_model_writes_is_shown_and_not_obeyed(run, model, monkeypatch):
    model.text = lambda tokens: "[bold red]hi[/] \x1b[31m\x07 there"
    monkeypatch.setattr("rangevote.cli.demo.LONGEST", 2)
    done = run("demo", "--model", "any")
    assert "[bold red]hi[/] \\x1b[31m\\x07 there ..." in words(done.out.decode())  # and that it was cut off
    assert b"\x1b" not in done.out
