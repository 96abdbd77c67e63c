from __future__ import annotations

import io

from rangevote.formats import Entry, pair, read


def entries(*lines: bytes) -> list[Entry]:
    return list(read(io.BytesIO(b"\n".join(lines))))


def test_the_second_files_candidates_vote_on_the_first() -> None:
    (entry,) = pair(
        entries(b'{"id": 1, "candidates": ["a"]}'), entries(b'{"id": 1, "candidates": ["b", "c"]}')
    )
    ballot = entry.get()
    assert [h.text for h in ballot.candidates] == ["a"]
    assert [h.text for h in ballot.voters or ()] == ["b", "c"]


def test_ids_that_differ_are_refused_and_missing_ones_pass() -> None:
    ours = entries(b'{"id": 1, "candidates": ["a"]}', b'{"candidates": ["a"]}')
    theirs = entries(b'{"id": 2, "candidates": ["a"]}', b'{"id": 3, "candidates": ["a"]}')
    first, second = pair(ours, theirs)
    assert str(first.error).startswith("input:1: id: is 1, but the voters' ballot at input:1 has 2")
    assert second.ballot is not None


def test_a_bad_entry_on_either_side_spoils_its_pair_only() -> None:
    good, bad = b'{"candidates": ["a"]}', b'{"candidates": 5}'
    found = list(pair(entries(good, bad, good), entries(bad, good, good)))
    assert [entry.ballot is not None for entry in found] == [False, False, True]


def test_a_shorter_file_leaves_ballots_without_partner() -> None:
    one, two = entries(b'{"candidates": ["a"]}'), entries(*[b'{"candidates": ["a"]}'] * 2)
    assert "has no partner: the file of voters has fewer ballots" in str([*pair(two, one)][1].error)
    assert "has no partner: the file of candidates has fewer" in str([*pair(one, two)][1].error)
