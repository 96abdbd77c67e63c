"""The public names and their parameters are frozen: a change of any is a decision, seen in the difference."""

from __future__ import annotations

import difflib

import rangevote as rv
from tests.public_api import FILE, described, lines


def test_the_public_names_take_what_they_took():
    frozen, now = FILE.read_text(encoding="utf-8").splitlines(), described().splitlines()
    changes = list(difflib.unified_diff(frozen, now, "frozen", "now", lineterm="", n=0))
    told = "\n".join(changes)
    assert not changes, f"{told}\nIf this is meant: python -m tests.public_api, and a line in CHANGELOG.md."


def test_every_public_name_is_frozen():
    frozen = FILE.read_text(encoding="utf-8")
    for name in rv.__all__:
        assert any(
            line.removeprefix("class ").removeprefix("def ").startswith(name) for line in frozen.splitlines()
        )


def test_a_changed_default_a_new_name_and_a_lost_method_would_be_seen():
    def one(a, *, b=1): ...

    def other(a, *, b=2): ...

    assert list(lines("f", one)) == ["def f(a, *, b=1)"]
    assert list(lines("f", other)) == ["def f(a, *, b=2)"]
    text = described()
    assert "  Result.ranking\n" in text
    assert "  Result.explain(self, index=None)\n" in text
    assert "def search(model, inputs, " in text
    assert "class UnknownName: UsageError, RangevoteError, ValueError, Exception\n" in text
