"""The line on standard error: on a terminal, elsewhere, and when quiet."""

from __future__ import annotations

import io
import sys

from experiments.training.progress import Progress, duration


class Terminal(io.StringIO):
    """Where a line can be written over."""

    def isatty(self):
        return True


def run(quiet=False):
    progress = Progress(total=20, epochs=2, quiet=quiet)
    progress.step(1, 0, 2.5, 100)
    progress.evaluated(10, 0, 2.25, 1.5, better=True)
    progress.step(11, 1, 2.0, 100)
    progress.close()


def test_a_line_tells_speed_and_time_left():
    progress = Progress(total=20, epochs=2, quiet=True)
    for step in range(1, 6):
        progress.step(step, 0, 2.5, 100)
    line = progress.line(5, 0, "loss 2.500", seconds=10)
    assert line == "epoch 1/2  step 5/20  loss 2.500  50 tokens/s  0:30 min left"


def test_a_run_that_goes_on_judges_by_its_own_steps():
    progress = Progress(total=20, epochs=2, quiet=True)
    progress.step(16, 1, 2.5, 100)
    assert progress.line(16, 1, "", seconds=2).endswith("50 tokens/s  0:08 min left")


def test_on_a_terminal_one_line_is_written_over(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(Progress, "STEP", 0.0)
    run()
    shown = sys.stderr.getvalue()
    assert shown.count("\r") == 3
    assert shown.count("\n") == 2  # after the evaluation and at the end
    assert "loss 2.250  dev 1.5000 *" in shown


def test_elsewhere_there_is_a_line_for_each_evaluation(capsys):
    run()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("epoch 1/2  step 10/20  loss 2.250  dev 1.5000 *")


def test_when_quiet_there_is_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(Progress, "STEP", 0.0)
    run(quiet=True)
    assert sys.stderr.getvalue() == ""


def test_durations_are_told_in_minutes_or_hours():
    assert [duration(s) for s in (0, 59.6, 3599, 3600, 86_400)] == [
        "0:00 min",
        "1:00 min",
        "59:59 min",
        "1:00 h",
        "24:00 h",
    ]
