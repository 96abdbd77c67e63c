"""Bytes in, entries out."""

from __future__ import annotations

import io
from typing import Any

import pytest

from rangevote.errors import DataError
from rangevote.formats import Entry, ReadOptions, read
from rangevote.hypothesis import Ballot
from tests.formats.ballots import Ballots, Entries, Fault


@pytest.fixture
def entries() -> Entries:
    def entries(data: bytes, **options: Any) -> list[Entry]:
        return list(read(io.BytesIO(data), ReadOptions(**options)))

    return entries


@pytest.fixture
def ballots(entries: Entries) -> Ballots:
    def ballots(data: bytes, **options: Any) -> list[Ballot]:
        return [entry.get() for entry in entries(data, **options)]

    return ballots


@pytest.fixture
def fault(entries: Entries) -> Fault:
    """The error of an input whose last record is bad."""

    def fault(data: bytes, **options: Any) -> DataError:
        found = entries(data, **options)[-1]
        assert found.ballot is None
        assert found.error is not None
        return found.error

    return fault
