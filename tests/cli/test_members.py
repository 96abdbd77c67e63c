"""Several files of ballots become one: members that stand, and members that only vote."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.cli.members import join
from rangevote.errors import DataError, RangevoteWarning
from rangevote.formats import Entry, ReadOptions, read
from tests.cli.conftest import lines


def entries(*records: Any) -> Iterator[Entry]:
    """Records as JSON lines, read."""
    return read(io.BytesIO(b"".join(r if isinstance(r, bytes) else lines(r) for r in records)))


def ballot(id: Any, *texts: str, **fields: Any) -> dict[str, Any]:
    return {"candidates": list(texts), **({} if id is None else {"id": id}), **fields}


def content(entry: Entry) -> tuple[Any, list[tuple[str | None, str | None]]]:
    """The id, and the member and text of each candidate."""
    found = entry.get()
    return found.id, [(one.member, one.text) for one in found.candidates]


@pytest.mark.parametrize(
    ("standing", "voting", "candidates", "voters"),
    [
        ({"a": "xy", "b": "z"}, {}, [("a", "x"), ("a", "y"), ("b", "z")], None),
        ({"a": "x"}, {"b": "yz"}, [(None, "x")], [(None, "y"), (None, "z")]),
        ({"a": "x"}, {"a": "y"}, [(None, "x")], [(None, "y")]),
        ({"a": "x", "b": "y"}, {"c": "y", "d": "z"}, [("a", "x"), ("b", "y")], [("c", "y"), ("d", "z")]),
    ],
    ids=["all stand", "one stands, one votes", "one file does both", "panels"],
)
def test_several_files_have_the_names_of_their_members(standing, voting, candidates, voters) -> None:
    [one] = join(
        *({name: entries(ballot(1, *texts)) for name, texts in f.items()} for f in (standing, voting))
    )
    assert content(one) == (1, candidates)
    found = one.get().voters
    assert (None if found is None else [(v.member, v.text) for v in found]) == voters


def test_voters_of_a_members_own_vote_with_its_share() -> None:
    files = {"a": entries(ballot(1, "x", voters=["v", "w"])), "b": entries(ballot(1, "y"))}
    [one] = join(files)
    assert [(v.member, v.text) for v in one.get().voters or ()] == [("a", "v"), ("a", "w"), ("b", "y")]


def test_source_references_and_carried_fields_come_from_the_first_file_that_has_them() -> None:
    carry = ReadOptions(carry=["topic"], warn=lambda message: None)
    a = read(io.BytesIO(lines(ballot(1, "x", source="s"))), carry)
    b = read(io.BytesIO(lines(ballot(1, "y", source="t", references=["r"], topic="art"))), carry)
    [one] = join({"a": a, "b": b})
    assert (one.get().source, one.get().references, one.get().carry) == ("s", ["r"], {"topic": "art"})


ids = st.lists(st.one_of(st.integers(0, 8), st.sampled_from("01234")), unique_by=repr, max_size=8)


@given(st.lists(ids, min_size=1, max_size=4), st.randoms())
def test_no_ballot_is_lost_and_none_is_joined_wrongly(files: list[list[Any]], chance: Any) -> None:
    files = [["shared", *listed] for listed in files]
    for listed in files:
        chance.shuffle(listed)
    named = {f"m{i}": entries(*(ballot(id, f"{id!r} of {i}") for id in f)) for i, f in enumerate(files)}
    found = [content(entry) for entry in join(named)]
    several = len(files) > 1
    order = {repr(id): id for listed in files for id in listed}  # of the first file, then what others add
    holders = {key: [i for i, f in enumerate(files) if key in map(repr, f)] for key in order}  # 1 is not "1"
    assert found == [
        (id, [(f"m{i}" if several else None, f"{key} of {i}") for i in holders[key]])
        for key, id in order.items()
    ]


def test_files_in_step_are_not_read_ahead() -> None:
    taken = {"a": 0, "b": 0}

    def counted(name: str) -> Iterator[Entry]:
        for entry in entries(*(ballot(i, name) for i in range(50))):
            taken[name] += 1
            yield entry

    for number, _ in enumerate(join({name: counted(name) for name in taken}), 1):
        assert set(taken.values()) == {number}


def test_without_ids_files_go_line_by_line_and_one_id_names_both() -> None:
    first, second = join(
        {"a": entries(ballot(None, "x"), ballot(7, "y")), "b": entries(*[ballot(None, "z")] * 2)}
    )
    assert content(first) == (None, [("a", "x"), ("b", "z")])
    assert content(second) == (7, [("a", "y"), ("b", "z")])
    [one] = join({"a": entries(ballot(None, "x")), "b": entries(ballot(3, "z"))})
    assert content(one) == (3, [("a", "x"), ("b", "z")])


@pytest.mark.parametrize("shorter", [0, 1])
@pytest.mark.parametrize("vote", [False, True])
def test_without_ids_files_of_different_length_are_bad_data(shorter: int, vote: bool) -> None:
    files = {
        "a": entries(*[ballot(None, "x")] * (2 - shorter)),
        "b": entries(*[ballot(None, "x")] * (1 + shorter)),
    }
    found = list(join({"a": files["a"]}, {"b": files["b"]}) if vote else join(files))
    assert found[0].ballot is not None
    assert f"has no counterpart in {'ab'[1 - shorter]!r}" in str(found[1].error)


def test_a_bad_record_spoils_its_ballot_only() -> None:
    good, bad = ballot(None, "a"), b'{"candidates": 5}\n'
    found = list(join({"a": entries(good, bad, good)}, {"b": entries(bad, good, good)}))
    assert [entry.ballot is not None for entry in found] == [False, False, True]
    named = b'{"id": 2, "candidates": 5}\n'
    found = list(join({"a": entries(ballot(1, "x"), ballot(2, "x")), "b": entries(named, ballot(1, "y"))}))
    assert [(entry.ballot is not None, entry.where) for entry in found] == [
        (True, "input:1"),
        (False, "input:1"),
    ]
    assert found[1].id == 2


def test_a_repeated_id_is_an_error_of_its_own_wherever_it_is_read() -> None:
    twice = [ballot(1, "x"), ballot(2, "x"), ballot(2, "again")]
    for others in ([1, 2], [3, 2, 1]):  # in step, and read ahead
        found = list(join({"a": entries(*(ballot(i, "y") for i in others)), "b": entries(*twice)}))
        assert content(next(entry for entry in found if entry.ballot and entry.ballot.id == 2)) == (
            2,
            [("a", "y"), ("b", "x")],
        )
        [error] = [entry.error for entry in found if entry.error]
        assert "the id 2 was used before" in str(error)


def test_voters_that_nobody_asks_for_are_counted() -> None:
    files = entries(ballot(1, "x"), ballot(2, "x"), ballot(3, "x"))
    with pytest.warns(RangevoteWarning, match="2 of the ballots of 'b' belong to no ballot"):
        assert len(list(join({"a": entries(ballot(3, "x"))}, {"b": files}))) == 1


def test_files_that_never_meet_are_refused_with_their_ids() -> None:
    files = {
        "a": [ballot(1, "x")],
        "b": [ballot(1, "x"), ballot(2, "y")],
        "c": [ballot("1", "z"), ballot("2", "z")],
    }
    with pytest.raises(DataError, match=r"^c: none of its ballots.* first id is '1', that of 'a' is 1\."):
        list(join({name: entries(*records) for name, records in files.items()}))
    files["c"][0]["id"] = 2  # it meets b, though not a
    assert len(list(join({name: entries(*records) for name, records in files.items()}))) == 3


def test_an_empty_file_is_named_unless_all_are() -> None:
    with pytest.raises(DataError, match=r"^b: there are no ballots in this file"):
        list(join({"a": entries(ballot(1, "x")), "b": entries()}))
    assert list(join({"a": entries(), "b": entries()})) == []


def test_a_candidate_of_another_member_than_its_file_is_refused() -> None:
    of_z = {"id": 1, "candidates": [{"text": "x", "member": "z"}]}
    [one] = join({"a": entries(of_z), "b": entries(ballot(1, "y"))})
    assert one.error is not None
    assert (one.error.field, one.error.where) == ("candidates[0].member", "input:1")
