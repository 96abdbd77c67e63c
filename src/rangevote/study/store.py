"""The judgements in a study's file: only ever added to.

Every judgement is a row of its own, on the disk before the browser hears of it. A change of mind or an undo
is a further row that supersedes the last; the last row of an annotator and item counts.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple, TypeVar

from rangevote.errors import DataError, SetupError
from rangevote.study.images import StudyImage
from rangevote.study.plan import Assignment, resolved
from rangevote.study.study_file import (
    LATEST,
    backup_of,
    connect,
    file_error,
    quick_check,
    read_study,
    reason,
)
from rangevote.text import regular_file

T = TypeVar("T")

#: What is said of an item: -2 (left much better) to 2 (right much better), or that one cannot judge.
Answer = int | Literal["cannot"]
#: An answer in a row; NULL is an undo.
_ANSWER = "CASE WHEN cannot THEN 'cannot' ELSE shown END"


class NotSaved(SetupError):
    """The disk is full, the file locked or read-only: the judgement is not there."""


class AnswerRefused(DataError):
    """A judgement that is not valid; `status` is its HTTP status."""

    def __init__(self, problem: str, status: int = 400) -> None:
        super().__init__(problem)
        self.status = status


class SentAnswer(NamedTuple):
    """What a browser sends: an item's handle, the answer as shown (None: undo), and its own key and clock."""

    handle: str
    shown: Answer | None
    key: str
    client_time: str
    duration_ms: int | None = None
    image_missing: bool = False
    comment: str | None = None


class SavedAnswer(NamedTuple):
    """The answer that counts now, and the one it replaces."""

    shown: Answer | None
    replaced: Answer | None


class Progress(NamedTuple):
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
        try:
            quick_check(self._db, path)
            self.study, self.digest = read_study(self._db, path)
        except BaseException:
            self._db.close()
            raise
        self._file = os.stat(path).st_ino
        self._assignments = {assignment.handle: assignment for assignment in self.study.assignments}

    def close(self) -> None:
        """Let go of the file, and leave one that needs no log beside it, to be read from anywhere."""
        with self._lock:
            with suppress(sqlite3.Error):  # somebody else has it open: the log stays with them
                self._db.execute("PRAGMA busy_timeout = 0")
                self._db.execute("PRAGMA journal_mode = DELETE")
            self._db.close()

    def back_up(self) -> None:
        backup = regular_file(backup_of(self.path))
        draft = backup.with_name(backup.name + ".partial")
        try:
            draft.unlink(missing_ok=True)
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with self._lock:
                self._db.execute("VACUUM INTO ?", (str(draft),))
            os.replace(draft, backup)
        except (OSError, sqlite3.OperationalError) as error:
            draft.unlink(missing_ok=True)
            raise SetupError(f"cannot write the backup {backup}: {reason(error)}.") from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: on the disk when it ends, or `NotSaved`."""
        with self._lock:
            try:
                self._check_file()
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield self._db
                    self._db.execute("COMMIT")
                except BaseException:
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                    raise
            except sqlite3.IntegrityError:  # a mistake of ours, which no waiting mends
                raise
            except sqlite3.DatabaseError as error:
                raise NotSaved(f"not saved: {error}.") from error

    def _check_file(self) -> None:
        """Rows written to a file that was deleted or replaced would be lost without notice."""
        try:
            same = os.stat(self.path).st_ino == self._file
        except OSError:
            same = False
        if not same:
            raise NotSaved("not saved: the study's file was moved or replaced.")

    def visit(self, annotator: int) -> str:
        """The page was opened: remember when."""
        opened = now()
        with self._writing() as db:
            db.execute("INSERT INTO visit (annotator, opened) VALUES (?, ?)", (annotator, opened))
        return opened

    def judged(self, annotator: int) -> list[tuple[str, Answer, str | None]]:
        """Handle, answer as shown and comment of what is judged; in the order in which it was."""
        query = (
            f"SELECT handle, {_ANSWER} AS answer, comment "  # noqa: S608
            "FROM judgement JOIN assignment USING (annotator, pair) "
            f"WHERE annotator = ? AND answer IS NOT NULL AND {LATEST} ORDER BY judgement.id"
        )
        return self._read(lambda db: db.execute(query, (annotator,)).fetchall())

    def progress(self) -> list[Progress]:
        """How far each annotator is: what who runs the study may see before its end, and no result."""
        answers = (
            "SELECT annotator, cannot, comment IS NOT NULL, received, duration_ms FROM judgement "  # noqa: S608
            f"WHERE (shown IS NOT NULL OR cannot) AND {LATEST}"
        )
        visits = "SELECT annotator, max(opened) FROM visit GROUP BY annotator"
        rows, opened, finished = self._read(
            lambda db: (
                db.execute(answers).fetchall(),
                dict(db.execute(visits).fetchall()),
                {number for (number,) in db.execute("SELECT annotator FROM finish")},
            )
        )
        listed = []
        for number, who in enumerate(self.study.annotators):
            mine = [row for row in rows if row[0] == number]
            spent = [row[4] for row in mine if row[4] is not None]
            listed.append(
                Progress(
                    name=who.name,
                    assigned=sum(one.annotator == number for one in self.study.assignments),
                    judged=len(mine),
                    cannot=sum(row[1] for row in mine),
                    comments=sum(row[2] for row in mine),
                    seconds=median(spent) / 1000 if spent else None,
                    opened=opened.get(number),
                    last=max((row[3] for row in mine), default=None),
                    finished=number in finished,
                )
            )
        return listed

    def finished(self, annotator: int) -> bool:
        query = "SELECT 1 FROM finish WHERE annotator = ?"
        return self._read(lambda db: db.execute(query, (annotator,)).fetchone() is not None)

    def image(self, sha256: str) -> StudyImage | None:
        query = "SELECT type, content FROM image WHERE sha256 = ?"
        row = self._read(lambda db: db.execute(query, (sha256,)).fetchone())
        return StudyImage(*row) if row else None

    def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            try:
                return query(self._db)
            except sqlite3.OperationalError as error:
                raise file_error(self.path, error) from error

    def record(self, annotator: int, answer: SentAnswer) -> SavedAnswer:
        """Save an answer, or the undoing of one. The same key again changes nothing and says the same."""
        assignment = self._assignments.get(answer.handle)
        if assignment is None or assignment.annotator != annotator:
            raise AnswerRefused("this item is not one of yours.", 403)
        with self._writing() as db:
            before = _by_key(db, annotator, answer.key)
            if before is not None:
                return _repeated(db, before, assignment, answer)
            if db.execute("SELECT 1 FROM finish WHERE annotator = ?", (annotator,)).fetchone():
                raise AnswerRefused("you have finished: your answers are closed.", 403)
            last = db.execute(
                f"SELECT id, {_ANSWER} FROM judgement "  # noqa: S608
                f"WHERE annotator = ? AND pair = ? AND {LATEST}",
                (annotator, assignment.pair),
            ).fetchone()
            if answer.shown is None and (last is None or last[1] is None):
                raise AnswerRefused("there is no answer to undo.")
            _insert(db, assignment, answer, last[0] if last else None)
        return SavedAnswer(answer.shown, last[1] if last else None)

    def finish(self, annotator: int) -> None:
        """Close an annotator's answers, if all are there."""
        mine = sum(assignment.annotator == annotator for assignment in self.study.assignments)
        missing = mine - len(self.judged(annotator))
        if missing:
            raise AnswerRefused(f"{missing} items are not judged yet.")
        with self._writing() as db:
            db.execute("INSERT OR IGNORE INTO finish VALUES (?, ?)", (annotator, now()))


def _by_key(db: sqlite3.Connection, annotator: int, key: str) -> tuple[int, int, Answer | None] | None:
    query = f"SELECT id, pair, {_ANSWER} FROM judgement WHERE annotator = ? AND key = ?"  # noqa: S608
    row: tuple[int, int, Answer | None] | None = db.execute(query, (annotator, key)).fetchone()
    return row


def _repeated(
    db: sqlite3.Connection, before: tuple[int, int, Answer | None], assignment: Assignment, answer: SentAnswer
) -> SavedAnswer:
    """The browser did not hear our reply and sends the answer again."""
    number, pair, shown = before
    if (pair, shown) != (assignment.pair, answer.shown):
        raise AnswerRefused("this key was used before, for another answer.")
    query = f"SELECT {_ANSWER} FROM judgement WHERE id = (SELECT supersedes FROM judgement WHERE id = ?)"  # noqa: S608
    replaced = db.execute(query, (number,)).fetchone()
    return SavedAnswer(shown, replaced[0] if replaced else None)


def _insert(
    db: sqlite3.Connection, assignment: Assignment, answer: SentAnswer, supersedes: int | None
) -> None:
    cannot = answer.shown == "cannot"
    shown = answer.shown if isinstance(answer.shown, int) else None
    meaning = None if shown is None else resolved(shown, assignment.swapped)
    (opened,) = db.execute(
        "SELECT max(opened) FROM visit WHERE annotator = ?", (assignment.annotator,)
    ).fetchone()
    db.execute(
        "INSERT INTO judgement (annotator, pair, shown, resolved, swapped, supersedes, key, opened, "
        "received, client_time, duration_ms, image_missing, cannot, comment) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(
                assignment.annotator,
                assignment.pair,
                shown,
                meaning,
                int(assignment.swapped),
                supersedes,
                answer.key,
            ),
            *(opened, now(), answer.client_time, answer.duration_ms, int(answer.image_missing)),
            *(int(cannot), answer.comment),
        ),
    )
