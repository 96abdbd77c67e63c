"""Small studies for the tests."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rangevote.study.analysis import Findings, analyse
from rangevote.study.create import StudyOptions, make_study
from rangevote.study.plan import Pair, Study
from rangevote.study.store import Answer, SentAnswer, Store, create_file, take_snapshot

SYSTEMS = ("beam", "voted")
TIME = "2026-01-31T12:00:00.000Z"
_number = itertools.count()


def pairs(number: int, **fields: Any) -> list[Pair]:
    """Pairs that all differ."""
    return [
        Pair(str(n), f"a short caption, number {n}", f"a longer and better caption, number {n}", **fields)
        for n in range(1, number + 1)
    ]


def study_of(listed: Sequence[Pair] | int, **options: Any) -> Study:
    given = pairs(listed) if isinstance(listed, int) else listed
    return make_study(SYSTEMS, given, StudyOptions(**{"seed": 12345, **options}))


def study_file(folder: Path, listed: Sequence[Pair] | int = 5, **options: Any) -> Path:
    """A study in a file."""
    path = folder / "study.db"
    create_file(path, study_of(listed, **options), {})
    return path


def answer(handle: str, shown: Answer | None, key: str | None = None, **fields: Any) -> SentAnswer:
    return SentAnswer(handle, key or f"key-of-the-test-{next(_number)}", TIME, shown, 1500, **fields)


def handles(store: Store, annotator: int = 0) -> list[str]:
    """An annotator's items in their order."""
    return [one.handle for one in store.study.assignments if one.annotator == annotator]


def judge(path: Path, values: Iterable[Answer], annotator: int = 0) -> None:
    """Judge items in file order, for the challenger: 2 says that it is much better, whatever the sides."""
    store = Store(path)
    mine = {one.pair: one for one in store.study.assignments if one.annotator == annotator}
    for pair, value in zip(sorted(mine), values, strict=False):
        shown = -value if mine[pair].swapped and isinstance(value, int) else value
        store.record(annotator, answer(mine[pair].handle, shown))
    store.close()


def judged(folder: Path, listed: Sequence[Pair] | int, *values: Iterable[Answer], **options: Any) -> Path:
    """A study in a file, with an annotator for each of `values`, who gave them as with `judge`."""
    path = study_file(folder, listed, **{"annotators": max(1, len(values)), **options})
    for annotator, given in enumerate(values):
        judge(path, given, annotator)
    return path


def record(path: Path, *answers: tuple[int, Answer | None], annotator: int = 0, **fields: Any) -> None:
    """Answers of one annotator, as shown, to the items at these positions of their order."""
    store = Store(path)
    for position, shown in answers:
        store.record(annotator, answer(handles(store, annotator)[position], shown, **fields))
    store.close()


def right_answers(path: Path) -> list[int]:
    """The right answers of the attention checks."""
    return [pair.expected for pair in take_snapshot(path).study.pairs if pair.expected is not None]


def findings(path: Path) -> Findings:
    return analyse(take_snapshot(path))


def png(width: int = 4, height: int = 3, colour: tuple[int, int, int] = (200, 30, 30)) -> bytes:
    """An image of one colour."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes(colour) * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
