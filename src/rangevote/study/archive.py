"""A study as a file: written once by `study new`, read by everything else."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rangevote.errors import DataError, SetupError
from rangevote.study.plan import Annotator, Assignment, Pair, Plan, Study
from rangevote.study.schema import create_tables


class Picture(NamedTuple):
    """An image as it is served."""

    type: str
    content: bytes


def create(path: Path, study: Study, images: Mapping[str, Picture]) -> None:
    """Write a study; the file appears when it is complete, and only its owner may read it."""
    draft = path.with_name(path.name + ".partial")
    try:
        draft.unlink(missing_ok=True)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        db = sqlite3.connect(draft, isolation_level=None)
        try:
            create_tables(db)
            _fill(db, study, images)
            db.execute("COMMIT")
        finally:
            db.close()
        for ending in ("-wal", "-shm"):  # of a study that is replaced
            path.with_name(path.name + ending).unlink(missing_ok=True)
        os.replace(draft, path)
    except (OSError, sqlite3.OperationalError) as error:
        raise SetupError(f"cannot write {path}: {told(error)}.") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def told(error: OSError | sqlite3.Error) -> str:
    """What went wrong, without the name of a file that the user does not know."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def _fill(db: sqlite3.Connection, study: Study, images: Mapping[str, Picture]) -> None:
    db.execute("INSERT INTO study VALUES (1, ?, ?)", (study.plan.text(), study.digest()))
    db.executemany("INSERT INTO image VALUES (?, ?, ?)", [(name, *image) for name, image in images.items()])
    db.executemany(
        "INSERT INTO pair VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (i, p.key, p.first, p.second, p.source, p.image, p.expected, p.again)
            for i, p in enumerate(study.pairs)
        ],
    )
    db.executemany(
        "INSERT INTO annotator VALUES (?, ?, ?)",
        [(number, one.name, one.token) for number, one in enumerate(study.annotators)],
    )
    db.executemany(
        "INSERT INTO assignment VALUES (?, ?, ?, ?, ?)",
        [(a.annotator, a.pair, a.position, a.handle, int(a.swapped)) for a in study.assignments],
    )


def read_study(db: sqlite3.Connection, path: Path) -> tuple[Study, str]:
    """The study and its digest; one that was edited since it was made is refused."""
    plan, digest = db.execute("SELECT plan, digest FROM study").fetchone()
    rows = db.execute("SELECT key, first, second, source, image, expected, again FROM pair ORDER BY id")
    pairs = [Pair(*row) for row in rows]
    annotators = [Annotator(*row) for row in db.execute("SELECT name, token FROM annotator ORDER BY id")]
    dealt = db.execute(
        "SELECT annotator, pair, position, handle, swapped FROM assignment ORDER BY annotator, position"
    )
    assignments = [
        Assignment(who, pair, place, handle, bool(side)) for who, pair, place, handle, side in dealt
    ]
    try:
        study = Study(Plan.of(plan), pairs, annotators, assignments)
        intact = study.digest() == digest and _images_are_theirs(db)
    except (ValueError, KeyError, TypeError):
        intact = False
    if not intact:
        raise DataError(
            "was edited after it was made: its plan, texts or links are not those that its digest was taken "
            "of. A study is fixed beforehand; restore the file, or make a new one.",
            where=str(path),
        )
    return study, str(digest)


def _images_are_theirs(db: sqlite3.Connection) -> bool:
    rows = db.execute("SELECT sha256, content FROM image")
    return all(hashlib.sha256(content).hexdigest() == name for name, content in rows)
