"""Batches can be sent to another process and give there what reading gives here."""

from __future__ import annotations

import gzip
import io
import pickle
from pathlib import Path

import pytest

from rangevote.errors import UsageError
from rangevote.formats import ReadOptions, read, read_batches
from rangevote.formats.batches import RECORDS

LINES = b"".join(b'{"id": %d, "candidates": ["a %d"]}\n\n' % (i, i) for i in range(RECORDS + 5))
OPTIONS = ReadOptions()


def outcomes(entries: object) -> list[tuple[str, str, str]]:
    return [(e.where, repr(e.ballot), str(e.error)) for e in entries]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "moses"])
def test_batches_are_what_reading_gives(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        from rangevote.formats.parquet import write_parquet

        write_parquet(path, (entry.get() for entry in read(io.BytesIO(LINES))))
    elif kind == "moses":
        path.write_bytes(b"".join(b"%d ||| a ||| F0= -1 ||| -1\n" % i for i in range(RECORDS + 5)))
    else:
        path.write_bytes(LINES.replace(b'["a 3"]', b"5") + b'{"candidates": [')
    expected = outcomes(read(path))
    with read_batches(path, OPTIONS) as batches:
        listed = [pickle.loads(pickle.dumps(batch)) for batch in batches]
        assert batches.position == batches.size
    assert len(listed) == 2
    assert outcomes(e for batch in listed for e in batch.entries(OPTIONS)) == expected
    assert [batch.where(i) for batch in listed for i in range(len(batch))] == [one[0] for one in expected]
    first, last = listed
    parts = [first.part(0, 7), first.part(7), last.part(0, 2), last.part(2)]
    assert outcomes(e for part in parts for e in part.entries(OPTIONS)) == expected


def test_a_fault_that_ends_the_reading_is_the_last_record() -> None:
    whole = gzip.compress(LINES)
    listed = list(read_batches(io.BytesIO(whole[: len(whole) // 2]), OPTIONS))
    (last,) = listed[-1].entries(OPTIONS)
    assert "the gzip data is cut off" in str(last.error)


def test_options_that_do_not_apply_are_refused_at_once() -> None:
    with pytest.raises(UsageError, match="--sign -"):
        read_batches(io.BytesIO(LINES), ReadOptions(sign=-1))
    assert list(read_batches(io.BytesIO(b""), OPTIONS)) == []
