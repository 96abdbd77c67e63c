"""A study and its judgements as they stand at one moment, for reports and exports."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rangevote.errors import DataError
from rangevote.study.archive import read_study
from rangevote.study.plan import Pair, Study
from rangevote.study.schema import cannot, connect, damaged, is_damage

_QUERY = (
    "SELECT id, annotator, pair, shown, resolved, swapped, supersedes, opened, received, client_time, "
    "duration_ms, image_missing FROM judgement ORDER BY id"
)


class Judgement(NamedTuple):
    """One row. `shown` is the answer as it was seen, `resolved` what it means for the challenger; both None
    for an undo. Times are the server's but for `client_time`."""

    number: int
    annotator: int
    pair: int
    shown: int | None
    resolved: int | None
    swapped: bool
    supersedes: int | None
    opened: str | None
    received: str
    client_time: str
    duration_ms: int | None
    image_missing: bool


@dataclass(frozen=True)
class Snapshot:
    """What was there when it was taken; `finished` are the annotators that closed their answers."""

    study: Study
    digest: str
    rows: Sequence[Judgement]
    finished: frozenset[int]

    def current(self) -> list[Judgement]:
        """The judgements that count: superseded by none, and not undone."""
        gone = {row.supersedes for row in self.rows}
        return [row for row in self.rows if row.number not in gone and row.shown is not None]

    def pair(self, row: Judgement) -> Pair:
        """What was judged."""
        return self.study.pairs[row.pair]


def take(path: Path) -> Snapshot:
    """Read all in one transaction, also while people are judging."""
    db = connect(path, writing=False)
    try:
        db.execute("BEGIN")
        study, digest = read_study(db, path)
        listed = [Judgement(*row) for row in db.execute(_QUERY)]
        rows = [
            row._replace(swapped=bool(row.swapped), image_missing=bool(row.image_missing)) for row in listed
        ]
        finished = frozenset(number for (number,) in db.execute("SELECT annotator FROM finish"))
        return Snapshot(study, digest, rows, finished)
    except sqlite3.DatabaseError as error:
        raise damaged(path, error) if is_damage(error) else cannot(path, error) from None
    finally:
        db.close()


def has_judgements(path: Path) -> bool:
    """Whether a file is a study in which somebody has judged."""
    try:
        db = connect(path, writing=False)
    except DataError:
        return False
    try:
        return db.execute("SELECT 1 FROM judgement LIMIT 1").fetchone() is not None
    except sqlite3.DatabaseError as error:
        raise damaged(path, error) from None
    finally:
        db.close()
