"""The study's file: durable, append-only, fixed."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from contextlib import suppress

import pytest

from rangevote.errors import DataError, SetupError
from rangevote.study.store import (
    TABLES,
    AnswerRefused,
    NotSaved,
    SavedAnswer,
    Store,
    backup_of,
    create_file,
    file_system,
    has_judgements,
    read_study,
    take_snapshot,
)
from tests.study.samples import TIME, answer, handles, judge, study_file, study_of


@pytest.fixture
def path(tmp_path):
    return study_file(tmp_path, 5, annotators=2)


@pytest.fixture
def store(path):
    found = Store(path)
    yield found
    found.close()


def edit(path, *statements):
    """What somebody does who is not us."""
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    db.close()


def count(path):
    return len(take_snapshot(path).rows)


def test_the_file_is_its_owners_alone_and_as_it_should_be(path, store):
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    settings = {
        name: store._db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "user_version")
    }
    assert settings == {
        "journal_mode": "wal",
        "synchronous": 2,  # FULL
        "foreign_keys": 1,
        "busy_timeout": 5000,
        "user_version": 3,
    }
    strict = {row[1]: row[5] for row in store._db.execute("PRAGMA table_list") if row[1] in TABLES}
    assert strict == dict.fromkeys(TABLES, 1)

    store.record(0, answer(handles(store)[0], 1))
    for ending in ("-wal", "-shm"):
        assert stat.S_IMODE(os.stat(f"{path}{ending}").st_mode) == 0o600


def test_the_same_key_twice_is_one_row(path, store):
    """The reply was lost, so the browser sends the message again."""
    once = answer(handles(store)[0], 2, "the-same-key-again")
    assert store.record(0, once) == store.record(0, once) == SavedAnswer(2, None)
    store.close()
    again = Store(path)
    assert again.record(0, once) == SavedAnswer(2, None)
    one, two = handles(again)[:2]
    for other in (answer(one, 1, "the-same-key-again"), answer(two, 2, "the-same-key-again")):
        with pytest.raises(AnswerRefused, match="this key was used before"):
            again.record(0, other)
    again.close()
    assert count(path) == 1


def test_a_later_judgement_supersedes_an_undo_is_a_further_row_and_all_are_kept(path, store):
    handle = handles(store)[0]
    with pytest.raises(AnswerRefused, match="no answer to undo"):
        store.record(0, answer(handle, None))
    for shown, replaced in ((-1, None), (2, -1), (None, 2), (1, None)):
        assert store.record(0, answer(handle, shown)) == SavedAnswer(shown, replaced)
        found = [] if shown is None else [shown]
        assert [row.shown for row in take_snapshot(path).current()] == found
        assert store.judged(0) == [(handle, shown, None) for shown in found]
    kept = [(row.shown, row.supersedes) for row in take_snapshot(path).rows]
    assert kept == [(-1, None), (2, 1), (None, 2), (1, 3)]


def at_once(*calls):
    """Run them in threads of their own; refused answers are let pass."""
    barrier = threading.Barrier(len(calls))

    def run(act, *given):
        barrier.wait()
        with suppress(AnswerRefused):
            act(*given)

    threads = [threading.Thread(target=run, args=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_many_threads_at_once_leave_one_judgement_an_item(path, store):
    handle = handles(store)[0]
    at_once(*((store.record, 0, answer(handle, value)) for value in [-2, -1, 0, 1, 2] * 4))
    found = take_snapshot(path)
    assert len(found.rows) == 20
    assert len(found.current()) == 1


def test_finishing_and_undoing_at_once_never_closes_incomplete_answers(tmp_path):
    path = study_file(tmp_path, 1, annotators=40)
    store = Store(path)
    for number in range(40):
        [handle] = handles(store, number)
        store.record(number, answer(handle, 1))
        at_once((store.finish, number), (store.record, number, answer(handle, None)))
    store.close()
    found = take_snapshot(path)
    assert {row.annotator for row in found.current()} >= found.finished


def test_sides_times_and_the_meaning_of_answers_are_recorded(path, store):
    opened = store.visit(0)
    for handle in handles(store):
        store.record(0, answer(handle, 2))
    found = take_snapshot(path)
    swapped = {(a.annotator, a.pair): a.swapped for a in found.study.assignments}
    assert {row.swapped for row in found.rows} == {True, False}
    for row in found.rows:
        assert row.swapped == swapped[row.annotator, row.pair]
        assert row.resolved == (-2 if row.swapped else 2)
        assert row.opened == opened <= row.received  # the server's times
        assert (row.client_time, row.duration_ms) == (TIME, 1500)


def test_who_has_finished_can_change_nothing(path, store):
    with pytest.raises(AnswerRefused, match="5 items are not judged yet"):
        store.finish(0)
    sent = [answer(handle, 1) for handle in handles(store)]
    for one in sent:
        store.record(0, one)
    store.finish(0)
    store.finish(0)
    for late in (answer(handles(store)[0], 2), answer(handles(store)[0], None)):
        with pytest.raises(AnswerRefused, match="you have finished") as refused:
            store.record(0, late)
        assert refused.value.status == 403
    assert store.record(0, sent[0]) == SavedAnswer(1, None)  # a lost reply is still answered
    assert count(path) == 5
    assert take_snapshot(path).finished == {0}


def test_nothing_is_ever_changed_or_taken_away(path, store):
    store.visit(0)
    for handle in handles(store):
        store.record(0, answer(handle, 1))
    store.finish(0)
    store._db.execute("INSERT INTO image VALUES ('x', 'image/png', x'00')")
    for table in TABLES:
        for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET rowid = rowid"):
            with pytest.raises(sqlite3.IntegrityError, match="only added to"):
                store._db.execute(statement)


def test_a_full_disk_is_not_saved(path, store):
    """A limit on the number of pages gives the same error as a disk without room."""
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    saved = []

    def fill():
        while True:
            saved.append(store.record(0, answer(handles(store)[0], len(saved) % 3)))

    with pytest.raises(NotSaved, match="not saved: database or disk is full"):
        fill()
    assert count(path) == len(saved)
    store._db.execute("PRAGMA max_page_count = 100000")
    store.record(0, answer(handles(store)[1], 1))
    assert count(path) == len(saved) + 1


def test_a_file_that_was_moved_away_is_not_written_to(path, store):
    """SQLite would go on writing to the file that no longer has a name."""
    path.rename(path.with_name("elsewhere.db"))
    with pytest.raises(NotSaved, match="moved or replaced"):
        store.record(0, answer(handles(store)[0], 1))


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("update", "UPDATE study SET document = replace(document, 'number 3', 'number 4')"),
        ("update", "UPDATE study SET document = '{}'"),
        ("delete", "DELETE FROM study"),
    ],
)
def test_a_study_that_was_edited_is_refused(path, kind, statement):
    edit(path, f"DROP TRIGGER study_keeps_{kind}", statement)
    for use in (Store, take_snapshot):
        with pytest.raises(DataError, match=r"study.db: was edited after it was made"):
            use(path)


def test_a_damaged_file_is_refused_with_its_backup_named(path):
    store = Store(path)
    store.back_up()
    store.close()
    with open(path, "r+b") as file:
        for page in range(2, 20):
            file.seek(page * 4096)
            file.write(os.urandom(2048))
    for use in (Store, take_snapshot, has_judgements):
        with pytest.raises(DataError, match=r"the study is damaged.*last backup is .*study.db.backup"):
            use(path)
    os.replace(backup_of(path), path)
    Store(path).close()
    os.truncate(path, 5000)
    with pytest.raises(DataError, match=r"damaged.*Restore a copy of it"):
        Store(path)


def test_a_backup_holds_all_and_is_its_owners_alone(path, store):
    store.record(0, answer(handles(store)[0], 2))
    store.back_up()
    store.back_up()
    assert stat.S_IMODE(os.stat(backup_of(path)).st_mode) == 0o600
    assert take_snapshot(backup_of(path)).rows == take_snapshot(path).rows


def test_what_is_saved_while_a_report_reads_is_not_in_it(path, store, monkeypatch):
    """Between the reading of the plan and that of the judgements somebody judges."""
    store.record(0, answer(handles(store)[0], 2))

    def read(db, place):
        found = read_study(db, place)
        store.record(0, answer(handles(store)[1], 1))
        return found

    monkeypatch.setattr("rangevote.study.store.read_study", read)
    assert len(take_snapshot(path).rows) == 1
    monkeypatch.undo()
    assert len(take_snapshot(path).rows) == 2


def test_a_closed_study_is_one_file(path):
    assert not has_judgements(path)
    judge(path, [1, 2])
    assert has_judgements(path)
    assert {found.name for found in path.parent.iterdir()} == {"study.db"}
    assert path.read_bytes()[18:20] == b"\x01\x01"  # SQLite's mark of a file without a write-ahead log


def test_what_is_no_study_is_refused(path, tmp_path):
    other = tmp_path / "other.db"
    for content in (b"", b"hello", b"x" * 10000):
        other.write_bytes(content)
        with pytest.raises(DataError, match=r"other.db: .*(is not a study|not one)"):
            Store(other)
        assert not has_judgements(other)
    edit(tmp_path / "sqlite.db", "CREATE TABLE x (y)")
    with pytest.raises(DataError, match="is not a study; 'rangevote study new' makes them"):
        take_snapshot(tmp_path / "sqlite.db")
    edit(path, "PRAGMA user_version = 2")
    with pytest.raises(SetupError, match=r"made by an earlier rangevote \(file version 2, here 3"):
        take_snapshot(path)
    edit(path, "PRAGMA user_version = 4")
    with pytest.raises(SetupError, match="made by a newer rangevote"):
        Store(path)


def test_a_file_that_is_not_there_is_named_as_it_was_given(tmp_path):
    path = tmp_path / "nowhere" / "study.db"
    with pytest.raises(SetupError, match=rf"cannot write {path}: no such file or directory\.$"):
        create_file(path, study_of(2), {})
    with pytest.raises(SetupError, match=r"there is no study .*Make one with: rangevote study new"):
        Store(tmp_path / "none.db")


def test_on_a_network_the_older_journal_is_used(path, tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/x / ext4 rw 0 0\nserver:/home {tmp_path} nfs4 rw 0 0\n")
    assert file_system(path, str(mounts)) == "nfs4"
    assert file_system(tmp_path.parent, str(mounts)) == "ext4"
    assert file_system(path, "/no/such/file") == ""
    monkeypatch.setattr("rangevote.study.store.file_system", lambda path: "nfs4")
    store = Store(path)
    store.record(0, answer(handles(store)[0], 2))
    assert store._db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    store.close()
    assert count(path) == 1


@pytest.mark.parametrize("edited", ["resolved = -resolved", "swapped = 1 - swapped", "shown = 0"])
def test_a_judgement_that_contradicts_its_sides_is_refused(path, edited):
    judge(path, [2, 2])
    edit(path, "DROP TRIGGER judgement_keeps_update", f"UPDATE judgement SET {edited} WHERE id = 2")
    with pytest.raises(DataError, match=r"study.db: judgement 2: .*sides"):
        take_snapshot(path)
