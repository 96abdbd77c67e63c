"""The tables of a study file, and how it is opened: SQLite, one file, readable by its owner alone."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from rangevote.errors import DataError, SetupError

#: "rvst": tells a study from any other SQLite file.
APPLICATION = 0x72767374
VERSION = 1
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
  again TEXT REFERENCES pair (key)
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
        raise damaged(path, error) if is_damage(error) else cannot(path, error) from None
    except BaseException:
        db.close()
        raise
    return db


def check_kind(db: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no study, or one of a later version."""
    (kind,) = db.execute("PRAGMA application_id").fetchone()
    if kind != APPLICATION:
        raise DataError("is not a study; 'rangevote study new' makes them.", where=str(path))
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise SetupError(
            f"{path} was made by a newer rangevote (its version is {version}, known are those to {VERSION}). "
            f"Update rangevote."
        )


def quick_check(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a damaged file."""
    try:
        rows = [row[0] for row in db.execute("PRAGMA quick_check")]
    except sqlite3.DatabaseError as error:
        raise damaged(path, error) from None
    if rows != ["ok"]:
        raise damaged(path, rows[0])


def damaged(path: Path, why: object) -> DataError:
    """What is said of a file that SQLite cannot read."""
    backup = backup_of(path)
    hint = (
        f"Its last backup is {backup}: copy it over the file." if backup.exists() else "Restore a copy of it."
    )
    return DataError(f"the study is damaged, or is not one ({why}). {hint}", where=str(path))


def cannot(path: Path, error: sqlite3.Error) -> SetupError:
    """What is said when the world around the file is not as needed."""
    return SetupError(f"cannot use {path}: {error}. The disk, its rights or another program are in the way.")


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether a file's content is at fault: not locks, rights or the disk."""
    return not isinstance(error, sqlite3.OperationalError)


def backup_of(path: Path) -> Path:
    """Where the copy is that `serve` makes."""
    return path.with_name(path.name + ".backup")


def journal_mode(path: Path) -> str:
    """WAL, or on a network's file system, where it is not safe, the older DELETE."""
    return "DELETE" if file_system(path).startswith(_REMOTE) else "WAL"


def file_system(path: Path, table: str = "/proc/self/mounts") -> str:
    """The kind of file system a file is on, as Linux tells; empty where it does not."""
    try:
        lines = Path(table).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    mounts = [line.split() for line in lines]
    places = {parts[1].replace("\\040", " "): parts[2] for parts in mounts if len(parts) > 2}
    here = os.path.realpath(path)
    around = [place for place in places if here == place or here.startswith(place.rstrip("/") + "/")]
    return places[max(around, key=len)] if around else ""
