"""The set of ids met so far: as exact as Python's, in less memory."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.formats import ids
from rangevote.formats.ids import Ids

NUMBERED = st.integers(-5, 30) | st.integers(0, 12).map(str) | st.integers(0, 12).map("d{:02}".format)
OTHERS = st.text(max_size=3) | st.integers()


@pytest.mark.parametrize("most_runs", [0, 2, 4096])
@given(listed=st.lists(NUMBERED | OTHERS, max_size=60))
def test_the_same_ids_are_new_as_with_a_set(most_runs, listed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids, "MOST_RUNS", most_runs)  # the runs overflow into the table
        seen: set[object] = set()
        mine = Ids()
        for id in listed:
            assert mine.add(id) == (id not in seen)
            seen.add(id)


def test_one_and_the_text_of_one_and_that_with_zeros_are_three_ids():
    mine = Ids()
    assert [mine.add(id) for id in (1, "1", "01", "001", 1, "1", "01")] == [True] * 4 + [False] * 3


def memory(number: int, name: str) -> float:
    """Bytes for each id."""
    tracemalloc.start()
    mine = Ids()
    for i in range(number):
        assert mine.add(name.format(i, (i * 2654435761) % 2**32))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / number


def test_numbered_ids_take_no_memory_to_speak_of_and_others_little():
    assert memory(20_000, "doc-{0:08}") < 0.1
    assert memory(20_000, "{1:08x}-x") < 45
