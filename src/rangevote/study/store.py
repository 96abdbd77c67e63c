"""A study as a file: SQLite, one file, readable by its owner alone.

`study new` writes what is fixed, one document and the images; judgements are only ever added. Every judgement
is a row, which is on the disk before the browser gets its answer. A changed answer or an undo is another row
that supersedes the last one; the last row of an annotator and item counts. A `Snapshot` is the state at one
moment, for reports and exports.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from rangevote.errors import DataError, SetupError
from rangevote.study.plan import Pair, Study, resolved
from rangevote.text import draft_of, regular_file
from rangevote.web.images import PageImage

#: "rvst": marks a study among other SQLite files.
APPLICATION = 0x72767374
VERSION = 3
BUSY = 5  # seconds to wait for another writer
_OLDEST = (3, 37, 0)  # the first with STRICT tables

#: `study new` fills the first two tables, judging the others. Nothing is changed or deleted.
SCHEMA = """
CREATE TABLE study (
  id INTEGER PRIMARY KEY CHECK (id = 1), document TEXT NOT NULL, digest TEXT NOT NULL
) STRICT;
CREATE TABLE image (
  sha256 TEXT PRIMARY KEY, type TEXT NOT NULL, content BLOB NOT NULL
) STRICT;
CREATE TABLE visit (
  id INTEGER PRIMARY KEY, annotator INTEGER NOT NULL, opened TEXT NOT NULL
) STRICT;
CREATE TABLE judgement (
  id INTEGER PRIMARY KEY, annotator INTEGER NOT NULL, pair INTEGER NOT NULL,
  shown INTEGER CHECK (shown BETWEEN -2 AND 2), resolved INTEGER CHECK (resolved BETWEEN -2 AND 2),
  swapped INTEGER NOT NULL CHECK (swapped IN (0, 1)),
  supersedes INTEGER UNIQUE REFERENCES judgement (id), key TEXT NOT NULL,
  opened TEXT, received TEXT NOT NULL, client_time TEXT NOT NULL, duration_ms INTEGER,
  image_missing INTEGER NOT NULL DEFAULT 0 CHECK (image_missing IN (0, 1)),
  cannot INTEGER NOT NULL DEFAULT 0 CHECK (cannot = 0 OR (cannot = 1 AND shown IS NULL)), comment TEXT,
  UNIQUE (annotator, key), CHECK ((shown IS NULL) = (resolved IS NULL))
) STRICT;
CREATE UNIQUE INDEX first_judgement ON judgement (annotator, pair) WHERE supersedes IS NULL;
CREATE TABLE finish (
  annotator INTEGER PRIMARY KEY, received TEXT NOT NULL
) STRICT;
"""
TABLES = re.findall(r"CREATE TABLE (\w+)", SCHEMA)

#: File systems on which locks and shared memory between processes are not reliable.
_REMOTE = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "afs", "ceph", "gluster", "lustre")


def connect(path: Path, *, writing: bool) -> sqlite3.Connection:
    """A connection to a study; every commit is on the disk before it returns."""
    if not path.is_file():
        raise SetupError(f"there is no study {path}. Make one with: rangevote study new ... -o {path}")
    uri = f"{path.absolute().as_uri()}?mode={'rw' if writing else 'ro'}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY)
    with _closed_if_it_fails(db, path):
        if db.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
            raise DataError("is not a study; 'rangevote study new' makes them.", where=str(path))
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            other = "a newer" if version > VERSION else "an earlier"
            made = f"{path} was made by {other} rangevote"
            raise SetupError(f"{made} (file version {version}, here {VERSION}); use that one.")
        db.execute("PRAGMA foreign_keys = ON")
        if writing:
            remote = file_system(path).startswith(_REMOTE)  # where a write-ahead log is not safe
            db.execute(f"PRAGMA journal_mode = {'DELETE' if remote else 'WAL'}")
            db.execute("PRAGMA synchronous = FULL")
    return db


@contextmanager
def _closed_if_it_fails(db: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Close the file after an error; those of SQLite become ours."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        db.close()
        raise file_error(path, error) from None
    except BaseException:
        db.close()
        raise


def file_error(path: Path, error: sqlite3.Error | str) -> DataError | SetupError:
    """A `SetupError` for locks, permissions or the disk; otherwise the file is damaged."""
    if isinstance(error, sqlite3.OperationalError):
        return SetupError(f"cannot use {path}: {error}. Look at the disk, permissions and other programs.")
    backup, hint, problem = backup_of(path), "Restore a copy of it.", " ".join(str(error).split())
    if backup.exists():
        hint = f"Its last backup is {backup}: copy it over the file."
    return DataError(f"the study is damaged, or is not one ({problem}). {hint}", where=str(path))


def backup_of(path: Path) -> Path:
    """The path of the copy that `serve` makes."""
    return path.with_name(path.name + ".backup")


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


def create_file(path: Path, study: Study, images: Mapping[str, PageImage]) -> None:
    """Write a study; the file appears when it is complete."""
    if sqlite3.sqlite_version_info < _OLDEST:
        raise SetupError(
            f"studies need SQLite 3.37; this Python has {sqlite3.sqlite_version}. Use a newer one."
        )
    target = regular_file(path)
    with draft_of(path, sqlite3.OperationalError, mode=0o600) as draft:
        with closing(sqlite3.connect(draft, isolation_level=None)) as db:
            db.executescript("BEGIN IMMEDIATE;" + SCHEMA)
            for table in TABLES:
                for action in ("UPDATE", "DELETE"):
                    db.execute(
                        f"CREATE TRIGGER {table}_keeps_{action.lower()} BEFORE {action} ON {table} "
                        f"BEGIN SELECT RAISE(ABORT, 'a study is never changed, only added to'); END"
                    )
            document = study.document().decode()
            db.execute("INSERT INTO study VALUES (1, ?, ?)", (document, study.digest()))
            db.executemany("INSERT INTO image VALUES (?, ?, ?)", ((n, *image) for n, image in images.items()))
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {VERSION}")
            db.execute("COMMIT")
        for ending in ("-wal", "-shm"):  # of a study that is replaced
            target.with_name(target.name + ending).unlink(missing_ok=True)


def read_study(db: sqlite3.Connection, path: Path) -> tuple[Study, str]:
    """The study and its digest; one that was edited since it was made is refused."""
    document, digest = db.execute("SELECT document, digest FROM study").fetchone() or ("", "")
    contents = [(digest, document.encode()), *db.execute("SELECT sha256, content FROM image")]
    if any(hashlib.sha256(content).hexdigest() != name for name, content in contents):
        raise DataError(
            "was edited after it was made: its plan, texts or links are not those that its digest was taken "
            "of. A study is fixed beforehand; restore the file, or make a new one.",
            where=str(path),
        )
    return msgspec.json.decode(document, type=Study), str(digest)


#: What is said of an item: -2 (left much better) to 2 (right much better), or that one cannot judge.
Answer = int | Literal["cannot"]


class Judgement(msgspec.Struct, frozen=True):
    """One row. `shown` is the answer as it was seen, `resolved` what it means for the challenger; both None
    for an undo, and where the annotator `cannot` judge. Times are the server's except `client_time`."""

    id: int
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

    @property
    def answer(self) -> Answer | None:
        """As it was sent; None is an undo."""
        return "cannot" if self.cannot else self.shown


@dataclass(frozen=True)
class Snapshot:
    """A study and its judgements at one moment; `finished` are the annotators who closed their answers."""

    study: Study
    digest: str
    rows: Sequence[Judgement]
    finished: frozenset[int]

    def current(self) -> list[Judgement]:
        """The judgements that stand, also those that say "cannot judge"."""
        return standing(self.rows)

    def pair(self, row: Judgement) -> Pair:
        return self.study.pairs[row.pair]


def standing(rows: Sequence[Judgement]) -> list[Judgement]:
    """Those that are neither superseded nor undone."""
    gone = {row.supersedes for row in rows}
    return [row for row in rows if row.id not in gone and row.answer is not None]


def take_snapshot(path: Path) -> Snapshot:
    """Read the state of a study, possibly while people are judging."""
    db = connect(path, writing=False)
    with closing(db), _closed_if_it_fails(db, path):
        db.execute("BEGIN")
        study, digest = read_study(db, path)
        rows, finished = _judgements(db, "TRUE"), _finished(db)
    sides = {(one.annotator, one.pair): one.swapped for one in study.assignments}
    for row in rows:
        meaning = None if row.shown is None else resolved(row.shown, row.swapped)
        if (row.swapped, row.resolved) != (sides.get((row.annotator, row.pair)), meaning):
            problem = f"judgement {row.id}: its answer, sides and meaning contradict each other."
            raise DataError(f"{problem} The file was edited; restore a copy of it.", where=str(path))
    return Snapshot(study, digest, rows, finished)


def _judgements(db: sqlite3.Connection, where: str, *values: object) -> list[Judgement]:
    """The rows for which a condition holds, in the order in which they came. SQLite has no booleans."""
    fields = msgspec.structs.fields(Judgement)
    columns = ", ".join(field.name for field in fields)
    judgements = []
    for row in db.execute(f"SELECT {columns} FROM judgement WHERE {where} ORDER BY id", values):  # noqa: S608
        cells: list[Any] = [
            bool(cell) if f.type is bool else cell for f, cell in zip(fields, row, strict=True)
        ]
        judgements.append(Judgement(*cells))
    return judgements


def _answer(rows: Sequence[Judgement]) -> Answer | None:
    """The answer in the only row, None without a row."""
    return rows[0].answer if rows else None


def _finished(db: sqlite3.Connection) -> frozenset[int]:
    """The annotators that closed their answers."""
    return frozenset(number for (number,) in db.execute("SELECT annotator FROM finish"))


def has_judgements(path: Path) -> bool:
    """Whether a file is a study in which somebody has judged."""
    try:
        db = connect(path, writing=False)
    except DataError:
        return False
    with closing(db), _closed_if_it_fails(db, path):  # one that is damaged may have some
        return db.execute("SELECT 1 FROM judgement LIMIT 1").fetchone() is not None


class NotSaved(SetupError):
    """The judgement was not saved: the disk is full, or the file locked or read-only."""


class AnswerRefused(DataError):
    """A judgement that is not valid; `status` is its HTTP status."""

    def __init__(self, problem: str, status: int = 400) -> None:
        super().__init__(problem)
        self.status = status


_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z\Z"


class SentAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """What a browser sends: an item's handle, its own key and clock, and the answer as shown; None: undo.

    `duration` is in milliseconds, at most a day.
    """

    item: Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z")]
    key: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{16,64}\Z")]
    time: Annotated[str, Meta(pattern=_TIME)]
    value: Annotated[int, Meta(ge=-2, le=2)] | Literal["cannot"] | None
    duration: Annotated[int, Meta(ge=0, le=86_400_000)] | None = None
    image_missing: bool = False
    comment: Annotated[str, Meta(max_length=2000)] = ""


class SavedAnswer(msgspec.Struct, frozen=True):
    """The answer that counts now, and the one it replaces."""

    value: Answer | None
    replaced: Answer | None


class PersonProgress(msgspec.Struct):
    """How far an annotator is; times are of the server, None before the first visit or answer."""

    name: str
    assigned: int
    judged: int
    cannot: int
    comments: int
    seconds: float | None
    opened: str | None
    last: str | None
    finished: bool


def now() -> str:
    """The server's time, in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


class Store:
    """The open file of a study that people are judging; used by several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._db = connect(path, writing=True)
        with _closed_if_it_fails(self._db, path):
            (state,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                raise file_error(path, state)
            self.study, self.digest = read_study(self._db, path)
        self._file = os.stat(path).st_ino
        self._assignments = {assignment.handle: assignment for assignment in self.study.assignments}
        self._assigned = Counter(assignment.annotator for assignment in self.study.assignments)

    def close(self) -> None:
        """Close the file, and leave it without a log beside it, so that it can be copied alone."""
        with self._lock:
            with suppress(sqlite3.Error):  # another program has it open and keeps the log
                self._db.execute("PRAGMA busy_timeout = 0")
                self._db.execute("PRAGMA journal_mode = DELETE")
            self._db.close()

    def back_up(self) -> None:
        backup = backup_of(self.path)
        with draft_of(backup, sqlite3.OperationalError, mode=0o600) as draft, self._lock:
            self._db.execute("VACUUM INTO ?", (str(draft),))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: on the disk when it ends, or `NotSaved`."""
        same = False
        with self._lock:
            try:
                with suppress(OSError):
                    same = os.stat(self.path).st_ino == self._file
                if not same:  # what is written there would be lost without notice
                    raise NotSaved("not saved: the study's file was moved or replaced.")
                self._db.execute("BEGIN IMMEDIATE")
                with self._db:
                    yield self._db
            except sqlite3.IntegrityError:  # a bug; trying again would not help
                raise
            except sqlite3.DatabaseError as error:
                raise NotSaved(f"not saved: {error}.") from error

    def visit(self, annotator: int) -> str:
        """Record that an annotator opened the page, and return when."""
        opened = now()
        with self._writing() as db:
            db.execute("INSERT INTO visit (annotator, opened) VALUES (?, ?)", (annotator, opened))
        return opened

    def judged(self, annotator: int) -> list[tuple[str, Answer, str | None]]:
        """Handle, answer as shown and comment of what is judged; in the order in which it was."""
        handles = {(one.annotator, one.pair): one.handle for one in self.study.assignments}
        with self._reading() as db:
            rows = standing(_judgements(db, "annotator = ?", annotator))
        return [
            (handles[annotator, row.pair], row.answer, row.comment) for row in rows if row.answer is not None
        ]

    def progress(self) -> list[PersonProgress]:
        """How far each annotator is, without any result: those who run the study see it before its end."""
        with self._reading() as db:
            rows, finished = standing(_judgements(db, "TRUE")), _finished(db)
            visits = db.execute("SELECT annotator, max(opened) FROM visit GROUP BY annotator").fetchall()
        opened = dict(visits)
        people = []
        for number, who in enumerate(self.study.annotators):
            mine = [row for row in rows if row.annotator == number]
            spent = [row.duration_ms for row in mine if row.duration_ms is not None]
            people.append(
                PersonProgress(
                    name=who.name,
                    assigned=self._assigned[number],
                    judged=len(mine),
                    cannot=sum(row.cannot for row in mine),
                    comments=sum(row.comment is not None for row in mine),
                    seconds=median(spent) / 1000 if spent else None,
                    opened=opened.get(number),
                    last=max((row.received for row in mine), default=None),
                    finished=number in finished,
                )
            )
        return people

    def finished(self, annotator: int) -> bool:
        with self._reading() as db:
            return annotator in _finished(db)

    def image(self, sha256: str) -> PageImage | None:
        with self._reading() as db:
            row = db.execute("SELECT type, content FROM image WHERE sha256 = ?", (sha256,)).fetchone()
        return PageImage(*row) if row else None

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._db
            except sqlite3.OperationalError as error:
                raise file_error(self.path, error) from error

    def record(self, annotator: int, sent: SentAnswer) -> SavedAnswer:
        """Save an answer, or the undoing of one. The same key again changes nothing and says the same."""
        assignment = self._assignments.get(sent.item)
        if assignment is None or assignment.annotator != annotator:
            raise AnswerRefused("this item is not one of yours.", 403)
        with self._writing() as db:
            for row in _judgements(db, "annotator = ? AND key = ?", annotator, sent.key):
                if (row.pair, row.answer) != (assignment.pair, sent.value):
                    raise AnswerRefused("this key was used before, for another answer.")
                return SavedAnswer(row.answer, _answer(_judgements(db, "id = ?", row.supersedes)))
            if annotator in _finished(db):
                raise AnswerRefused("you have finished: your answers are closed.", 403)
            last = _judgements(db, "annotator = ? AND pair = ?", annotator, assignment.pair)[-1:]
            if sent.value is None and _answer(last) is None:
                raise AnswerRefused("there is no answer to undo.")
            shown = sent.value if isinstance(sent.value, int) else None
            visit = "SELECT max(opened) FROM visit WHERE annotator = ?"
            new = {
                "annotator": annotator,
                "pair": assignment.pair,
                "shown": shown,
                "resolved": None if shown is None else resolved(shown, assignment.swapped),
                "swapped": assignment.swapped,
                "supersedes": last[0].id if last else None,
                "key": sent.key,
                "opened": db.execute(visit, (annotator,)).fetchone()[0],
                "received": now(),
                "client_time": sent.time,
                "duration_ms": sent.duration,
                "image_missing": sent.image_missing,
                "cannot": sent.value == "cannot",
                "comment": sent.comment.strip() or None,
            }
            columns, values = ", ".join(new), ", ".join(f":{name}" for name in new)
            db.execute(f"INSERT INTO judgement ({columns}) VALUES ({values})", new)  # noqa: S608
        return SavedAnswer(sent.value, _answer(last))

    def finish(self, annotator: int) -> None:
        """Close an annotator's answers, if all are there."""
        with self._writing() as db:  # they are counted in it, since an undo may come at the same time
            judged = standing(_judgements(db, "annotator = ?", annotator))
            missing = self._assigned[annotator] - len(judged)
            if missing:
                raise AnswerRefused(f"{missing} items are not judged yet.")
            db.execute("INSERT OR IGNORE INTO finish VALUES (?, ?)", (annotator, now()))
