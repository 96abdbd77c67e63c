"""A study as a file: SQLite, one file, readable by its owner alone.

It is written once by `study new`; judgements are only ever added to it (`store.py`). A `Snapshot` is all of
it at one moment, for reports and exports.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from rangevote.errors import DataError, SetupError
from rangevote.study.images import StudyImage
from rangevote.study.plan import Annotator, Assignment, Pair, Study, StudyPlan
from rangevote.text import regular_file

#: "rvst": marks a study among other SQLite files.
APPLICATION = 0x72767374
VERSION = 2
BUSY = 5000  # milliseconds to wait for another writer
_OLDEST = (3, 37, 0)  # the first with STRICT tables

#: What is fixed by `study new`, and what is added while people judge. Nothing is changed or taken away.
FIXED = """
CREATE TABLE study (
  id INTEGER PRIMARY KEY CHECK (id = 1), plan TEXT NOT NULL, digest TEXT NOT NULL
) STRICT;
CREATE TABLE image (
  sha256 TEXT PRIMARY KEY, type TEXT NOT NULL, content BLOB NOT NULL
) STRICT;
CREATE TABLE pair (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, first TEXT NOT NULL, second TEXT NOT NULL, source TEXT,
  image TEXT REFERENCES image (sha256), expected INTEGER CHECK (expected IN (-1, 0, 1)),
  again TEXT REFERENCES pair (key), practice INTEGER NOT NULL CHECK (practice IN (0, 1))
) STRICT;
CREATE TABLE annotator (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, token TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE assignment (
  annotator INTEGER NOT NULL REFERENCES annotator (id), pair INTEGER NOT NULL REFERENCES pair (id),
  position INTEGER NOT NULL, handle TEXT NOT NULL UNIQUE, swapped INTEGER NOT NULL CHECK (swapped IN (0, 1)),
  PRIMARY KEY (annotator, pair), UNIQUE (annotator, position)
) STRICT;
"""
ADDED = """
CREATE TABLE visit (
  id INTEGER PRIMARY KEY, annotator INTEGER NOT NULL REFERENCES annotator (id), opened TEXT NOT NULL
) STRICT;
CREATE TABLE judgement (
  id INTEGER PRIMARY KEY, annotator INTEGER NOT NULL, pair INTEGER NOT NULL,
  shown INTEGER CHECK (shown BETWEEN -2 AND 2), resolved INTEGER CHECK (resolved BETWEEN -2 AND 2),
  swapped INTEGER NOT NULL CHECK (swapped IN (0, 1)),
  supersedes INTEGER UNIQUE REFERENCES judgement (id), key TEXT NOT NULL,
  opened TEXT, received TEXT NOT NULL, client_time TEXT NOT NULL, duration_ms INTEGER,
  image_missing INTEGER NOT NULL DEFAULT 0 CHECK (image_missing IN (0, 1)),
  cannot INTEGER NOT NULL DEFAULT 0 CHECK (cannot = 0 OR (cannot = 1 AND shown IS NULL)), comment TEXT,
  FOREIGN KEY (annotator, pair) REFERENCES assignment (annotator, pair), UNIQUE (annotator, key),
  CHECK ((shown IS NULL) = (resolved IS NULL))
) STRICT;
CREATE UNIQUE INDEX first_judgement ON judgement (annotator, pair) WHERE supersedes IS NULL;
CREATE TABLE finish (
  annotator INTEGER PRIMARY KEY REFERENCES annotator (id), received TEXT NOT NULL
) STRICT;
"""
TABLES = ("study", "image", "pair", "annotator", "assignment", "visit", "judgement", "finish")

#: The judgement of each annotator and item that no later one supersedes.
LATEST = "NOT EXISTS (SELECT 1 FROM judgement AS later WHERE later.supersedes = judgement.id)"

#: Columns of a `Judgement`.
_JUDGEMENTS = (
    "SELECT id, annotator, pair, shown, resolved, swapped, supersedes, opened, received, client_time, "
    "duration_ms, image_missing, cannot, comment FROM judgement ORDER BY id"
)

#: Where locks and shared memory between processes cannot be relied on.
_REMOTE = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "afs", "ceph", "gluster", "lustre")


def create_tables(db: sqlite3.Connection) -> None:
    """Make an empty file a study, in a transaction that is left open."""
    if sqlite3.sqlite_version_info < _OLDEST:
        raise SetupError(
            f"this Python has SQLite {sqlite3.sqlite_version}; studies need 3.37 or newer. "
            f"Use a newer Python."
        )
    db.executescript("BEGIN IMMEDIATE;" + FIXED + ADDED)
    for table in TABLES:
        for action in ("UPDATE", "DELETE"):
            db.execute(
                f"CREATE TRIGGER {table}_keeps_{action.lower()} BEFORE {action} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, 'a study is never changed, only added to'); END"
            )
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def connect(path: Path, *, writing: bool) -> sqlite3.Connection:
    """A connection to a study; every commit is on the disk before it returns."""
    if not path.is_file():
        raise SetupError(f"there is no study {path}. Make one with: rangevote study new ... -o {path}")
    mode = "rw" if writing else "ro"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY / 1000)
    try:
        check_kind(db, path)
        db.execute("PRAGMA foreign_keys = ON")
        db.execute(f"PRAGMA busy_timeout = {BUSY}")
        if writing:
            db.execute(f"PRAGMA journal_mode = {journal_mode(path)}")
            db.execute("PRAGMA synchronous = FULL")
    except sqlite3.DatabaseError as error:
        db.close()
        raise file_error(path, error) from None
    except BaseException:
        db.close()
        raise
    return db


def check_kind(db: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no study, or one of another version."""
    (kind,) = db.execute("PRAGMA application_id").fetchone()
    if kind != APPLICATION:
        raise DataError("is not a study; 'rangevote study new' makes them.", where=str(path))
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise SetupError(
            f"{path} was made by a newer rangevote (its version is {version}, known are those to {VERSION}). "
            f"Update rangevote."
        )
    if version < VERSION:
        raise SetupError(
            f"{path} was made by an earlier rangevote (its version is {version}, that of now {VERSION}). "
            f"Judge, report and export it with that one."
        )


def quick_check(db: sqlite3.Connection, path: Path) -> None:
    try:
        rows = [row[0] for row in db.execute("PRAGMA quick_check")]
    except sqlite3.DatabaseError as error:
        raise damaged(path, error) from None
    if rows != ["ok"]:
        raise damaged(path, rows[0])


def damaged(path: Path, why: object) -> DataError:
    """The error for a file that SQLite cannot read."""
    backup = backup_of(path)
    hint = (
        f"Its last backup is {backup}: copy it over the file." if backup.exists() else "Restore a copy of it."
    )
    return DataError(f"the study is damaged, or is not one ({why}). {hint}", where=str(path))


def file_error(path: Path, error: sqlite3.Error) -> DataError | SetupError:
    """A `SetupError` for locks, permissions or the disk, else the file's content is at fault."""
    if isinstance(error, sqlite3.OperationalError):
        return SetupError(f"cannot use {path}: {error}. Look at the disk, permissions and other programs.")
    return damaged(path, error)


def backup_of(path: Path) -> Path:
    """Where the copy is that `serve` makes."""
    return path.with_name(path.name + ".backup")


def journal_mode(path: Path) -> str:
    """WAL, or on a network's file system, where it is not safe, the older DELETE."""
    return "DELETE" if file_system(path).startswith(_REMOTE) else "WAL"


def file_system(path: Path, table: str = "/proc/self/mounts") -> str:
    """The kind of file system a file is on, as Linux says; empty where it does not."""
    try:
        lines = Path(table).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    mounts = [line.split() for line in lines]
    kinds = {parts[1].replace("\\040", " "): parts[2] for parts in mounts if len(parts) > 2}
    here = os.path.realpath(path)
    above = [mount for mount in kinds if here == mount or here.startswith(mount.rstrip("/") + "/")]
    return kinds[max(above, key=len)] if above else ""


def create_file(path: Path, study: Study, images: Mapping[str, StudyImage]) -> None:
    """Write a study; the file appears when it is complete, and only its owner may read it."""
    target = regular_file(path)
    draft = target.with_name(target.name + ".partial")
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
            target.with_name(target.name + ending).unlink(missing_ok=True)
        os.replace(draft, target)
    except (OSError, sqlite3.OperationalError) as error:
        raise SetupError(f"cannot write {path}: {reason(error)}.") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def reason(error: OSError | sqlite3.Error) -> str:
    """What went wrong, without the name of a file that the user does not know."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def _fill(db: sqlite3.Connection, study: Study, images: Mapping[str, StudyImage]) -> None:
    db.execute("INSERT INTO study VALUES (1, ?, ?)", (study.plan.text(), study.digest()))
    db.executemany("INSERT INTO image VALUES (?, ?, ?)", [(name, *image) for name, image in images.items()])
    db.executemany(
        "INSERT INTO pair VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (i, p.key, p.first, p.second, p.source, p.image, p.expected, p.again, int(p.practice))
            for i, p in enumerate([*study.pairs, study.practice])
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
    rows = db.execute(
        "SELECT key, first, second, source, image, expected, again, practice FROM pair ORDER BY id"
    )
    *pairs, practice = [replace(Pair(*row), practice=bool(row[-1])) for row in rows]
    annotators = [Annotator(*row) for row in db.execute("SELECT name, token FROM annotator ORDER BY id")]
    rows = db.execute(
        "SELECT annotator, pair, position, handle, swapped FROM assignment ORDER BY annotator, position"
    )
    assignments = [Assignment(a, pair, at, handle, bool(side)) for a, pair, at, handle, side in rows]
    try:
        study = Study(StudyPlan.of(plan), pairs, annotators, assignments, practice)
        intact = study.digest() == digest and _images_intact(db)
    except (ValueError, KeyError, TypeError):
        intact = False
    if not intact:
        raise DataError(
            "was edited after it was made: its plan, texts or links are not those that its digest was taken "
            "of. A study is fixed beforehand; restore the file, or make a new one.",
            where=str(path),
        )
    return study, str(digest)


def _images_intact(db: sqlite3.Connection) -> bool:
    rows = db.execute("SELECT sha256, content FROM image")
    return all(hashlib.sha256(content).hexdigest() == name for name, content in rows)


class Judgement(NamedTuple):
    """One row. `shown` is the answer as it was seen, `resolved` what it means for the challenger; both None
    for an undo, and where the annotator `cannot` judge. Times are the server's but for `client_time`."""

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
    cannot: bool
    comment: str | None


@dataclass(frozen=True)
class Snapshot:
    """What was there when it was taken; `finished` are the annotators that closed their answers."""

    study: Study
    digest: str
    rows: Sequence[Judgement]
    finished: frozenset[int]

    def current(self) -> list[Judgement]:
        """The judgements that stand, also those that say "cannot judge": neither superseded nor undone."""
        gone = {row.supersedes for row in self.rows}
        return [row for row in self.rows if row.number not in gone and (row.shown is not None or row.cannot)]

    def pair(self, row: Judgement) -> Pair:
        return self.study.pairs[row.pair]


def take_snapshot(path: Path) -> Snapshot:
    """Read all in one transaction, also while people are judging."""
    db = connect(path, writing=False)
    try:
        db.execute("BEGIN")
        study, digest = read_study(db, path)
        listed = [Judgement(*row) for row in db.execute(_JUDGEMENTS)]
        rows = [
            row._replace(
                swapped=bool(row.swapped), image_missing=bool(row.image_missing), cannot=bool(row.cannot)
            )
            for row in listed
        ]
        finished = frozenset(number for (number,) in db.execute("SELECT annotator FROM finish"))
        return Snapshot(study, digest, rows, finished)
    except sqlite3.DatabaseError as error:
        raise file_error(path, error) from None
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
