"""Small studies for the tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rangevote.study.archive import create
from rangevote.study.making import Wishes, make_study
from rangevote.study.plan import Pair, Study
from rangevote.study.store import Answer, Store

SYSTEMS = ("beam", "voted")
TIME = "2026-01-31T12:00:00.000Z"
_number = itertools.count()


def pairs(number: int, **fields: Any) -> list[Pair]:
    """Pairs that all differ."""
    return [
        Pair(str(n), f"a short caption, number {n}", f"a longer and better caption, number {n}", **fields)
        for n in range(1, number + 1)
    ]


def study_of(listed: Sequence[Pair] | int, **wishes: Any) -> Study:
    found = pairs(listed) if isinstance(listed, int) else listed
    return make_study(SYSTEMS, found, Wishes(**wishes))


def study_file(folder: Path, listed: Sequence[Pair] | int = 5, **wishes: Any) -> Path:
    """A study in a file."""
    path = folder / "study.db"
    create(path, study_of(listed, **wishes), {})
    return path


def answer(handle: str, shown: int | None, key: str | None = None, **fields: Any) -> Answer:
    return Answer(handle, shown, key or f"key-of-the-test-{next(_number)}", TIME, 1500, **fields)


def handles(store: Store, annotator: int = 0) -> list[str]:
    """An annotator's items in their order."""
    return [dealt.handle for dealt in store.study.assignments if dealt.annotator == annotator]


def judge(path: Path, values: Iterable[int], annotator: int = 0) -> None:
    """Judge items in file order, for the challenger: 2 says that it is much better, whatever the sides."""
    store = Store(path)
    mine = {dealt.pair: dealt for dealt in store.study.assignments if dealt.annotator == annotator}
    for pair, value in zip(sorted(mine), values, strict=False):
        dealt = mine[pair]
        store.record(annotator, answer(dealt.handle, -value if dealt.swapped else value))
    store.close()
