"""Units of work: together they are the input, ballot by ballot, wherever it is cut."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rangevote.errors import SetupError, UsageError
from rangevote.formats import Entry, ReadOptions, read
from tests.scale.samples import as_parquet, lines

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'rangevote[ray]'")

from rangevote.scale.ray.places import inputs_of, place_of
from rangevote.scale.ray.units import Unit, count_lines, plan

OPTIONS = ReadOptions(unique_ids=False)


def planned(text: object, unit: int) -> list[Unit]:
    def counted(ranges):
        return [count_lines(*one) for one in ranges]

    return plan(inputs_of(str(text)), OPTIONS, counted, unit)


def entries(units: list[Unit]) -> list[Entry]:
    found: list[Entry] = []
    for unit in units:
        with unit.chunks(OPTIONS) as chunks:
            found += [entry for chunk in chunks for entry in chunk.entries(OPTIONS)]
    return found


def told(found: list[Entry]) -> list[object]:
    return [(entry.where, entry.ballot, str(entry.error)) for entry in found]


@pytest.mark.parametrize("unit", [1, 100, 1000, 10**9])
def test_units_are_the_lines_of_the_file_once_each_with_their_numbers(tmp_path: Path, unit: int):
    path = tmp_path / "in.jsonl"
    path.write_bytes(lines(60, faults=True).rstrip(b"\n"))
    units = planned(path, unit)
    assert [u.number for u in units] == list(range(len(units)))
    assert sum(u.weight for u in units) == path.stat().st_size
    assert len(units) > 50 if unit == 1 else len(units) <= 1 + path.stat().st_size // unit
    with read(path, OPTIONS) as whole:
        assert told(entries(units)) == told(list(whole))


#: Among them what tells a file by its beginning: a mark of byte order, UTF-16, gzip, Zstandard, Parquet.
PIECES = [b"\n", b"x", b"\r\n", b" ", b'{"candidates":["a"]}\n']
PIECES += [b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PAR1"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.lists(st.sampled_from(PIECES), max_size=30))
@pytest.mark.parametrize("unit", [1, 7])
def test_any_bytes_are_cut_between_lines(tmp_path: Path, unit: int, data: list[bytes]):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"candidates":["first"]}\n' + b"".join(data))
    with read(path, OPTIONS) as whole:
        assert told(entries(planned(path, unit))) == told(list(whole))


def test_a_file_that_is_packed_is_one_unit(tmp_path: Path):
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress(lines(60)))
    (only,) = planned(path, 10)
    assert len(entries([only])) == 60


@pytest.mark.parametrize("unit", [1, 10**9])
def test_row_groups_of_parquet_are_units(tmp_path: Path, unit: int):
    source = tmp_path / "in.jsonl"
    source.write_bytes(lines(2500))
    path = as_parquet(source, tmp_path / "in.parquet")
    units = planned(path, unit)
    assert [u.groups for u in units] == ([(0,), (1,), (2,)] if unit == 1 else [(0, 1, 2)])
    with read(path, OPTIONS) as whole:
        assert told(entries(units)) == told(list(whole))


def test_a_damaged_parquet_file_is_a_unit_that_says_so(tmp_path: Path):
    path = tmp_path / "in.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    (only,) = entries(planned(path, 100))
    assert "is no Parquet file that can be read" in str(only.error)


def test_a_folder_and_a_pattern_are_their_files_in_order(tmp_path: Path):
    for name in ("b.jsonl", "a.jsonl", "_hidden.jsonl", "other.txt"):
        (tmp_path / name).write_bytes(lines(2))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.jsonl").write_bytes(lines(1))
    assert [place.name for place in inputs_of(str(tmp_path / "*.jsonl"))] == [
        f"{tmp_path}/{name}" for name in ("a.jsonl", "b.jsonl", "sub/c.jsonl")
    ]
    assert [place.name[len(str(tmp_path)) + 1 :] for place in inputs_of(f"{tmp_path}/")] == [
        *("a.jsonl", "b.jsonl", "other.txt", "sub/c.jsonl")
    ]


def test_urls_of_arrow_and_of_fsspec_are_places(tmp_path: Path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(lines(3))
    for url in (f"file://{path}", f"local://{path}", str(path)):
        assert place_of(url).read() == path.read_bytes()
        assert len(entries(planned(url, 100))) == 3
    target = place_of(f"local://{tmp_path}/new/folder")
    target.make_folder()
    target.inside("x").write(b"1")
    assert (tmp_path / "new/folder/x").read_bytes() == b"1"
    target.inside("x").remove()
    assert not target.inside("x").exists()


def test_what_is_not_there_or_not_of_a_known_kind_is_named(tmp_path: Path):
    with pytest.raises(SetupError, match="nowhere: no such file or directory"):
        inputs_of(str(tmp_path / "nowhere"))
    with pytest.raises(SetupError, match=r"\*.jsonl: there are no files"):
        inputs_of(str(tmp_path / "*.jsonl"))
    flat = tmp_path / "flat"
    flat.write_text("0 ||| a ||| F0= -1 ||| -1\n")
    with pytest.raises(UsageError, match=r"has the format 'moses'; --engine ray reads jsonl and parquet"):
        planned(flat, 100)


def test_an_address_of_a_kind_that_nothing_knows_is_named():
    pytest.importorskip("fsspec", reason="needs fsspec, which comes with ray: pip install 'rangevote[ray]'")
    with pytest.raises(SetupError, match="cannot use nosuch://x"):
        place_of("nosuch://x")


def test_an_empty_file_has_no_units(tmp_path: Path):
    (tmp_path / "empty").write_bytes(b"")
    assert planned(tmp_path / "empty", 100) == []
