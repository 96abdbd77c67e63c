"""The progress bar: on a terminal, after a second, with rate and time left; never in a pipe."""

from __future__ import annotations

import io
import re
import sys
import warnings
from contextlib import contextmanager

import pytest

from rangevote.cli.progress import Bar, Notes, loading
from rangevote.models.load import WhileLoading
from rangevote.similarity.neural import LazyModel


class Halfway:
    position, size = 500, 1000


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch):
    """A clock that the test moves."""
    now = [100.0]
    monkeypatch.setattr("rangevote.cli.progress.time.monotonic", lambda: now[0])
    return now


def shown(monkeypatch: pytest.MonkeyPatch, clock: list[float], *, seconds: float, **options: bool) -> str:
    terminal = Terminal() if options.pop("terminal", True) else io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    stream = None if options.pop("counted", False) else Halfway()
    bar = Bar(stream, "voting", quiet=options.get("quiet", False), total=30, done=5)
    for _ in bar.track(range(10)):
        clock[0] += seconds / 10
    assert bar.items == 10
    return terminal.getvalue()


def test_a_long_run_shows_share_rate_and_time_left(monkeypatch, clock):
    assert "50%" in shown(monkeypatch, clock, seconds=2.0, counted=True)  # 5 done before, and 10, of 30
    text = shown(monkeypatch, clock, seconds=2.0)
    assert "50%" in text
    assert "ballots/s" in text
    assert "0:00" in text or "-:--:--" in text


@pytest.mark.parametrize(
    "options",
    [{"seconds": 0.5}, {"seconds": 2.0, "quiet": True}, {"seconds": 2.0, "terminal": False}],
    ids=["short", "quiet", "piped"],
)
def test_otherwise_nothing_is_shown(monkeypatch, clock, options):
    assert shown(monkeypatch, clock, **options) == ""


@pytest.mark.parametrize(
    ("terminal", "quiet", "visible"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_a_line_says_which_model_loads_and_for_how_long(monkeypatch, terminal, quiet, visible):
    screen = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    with loading("[my] model", quiet=quiet):
        pass
    text = screen.getvalue()
    assert ("loading model [my] model ... 0:00:00" in re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", text)) == visible
    assert visible or not text


def test_models_of_measures_are_named_too(monkeypatch):
    shown = []

    @contextmanager
    def show(name):
        shown.append(name)
        yield

    monkeypatch.setattr("rangevote.models.load.WhileLoading.show", show)
    lazy = LazyModel()
    for _ in range(2):
        with lazy.use("embedding:x", lambda: "model") as model:
            assert model == "model"
    assert shown == ["embedding:x"]
    with warnings.catch_warnings():
        Notes(quiet=True)
    with WhileLoading.show("x"):  # the command line's own
        pass
    assert shown == ["embedding:x"]
