"""Ballots as Parquet: the same ballots, the same faults as in the ballot file."""

from __future__ import annotations

import datetime
import io
import math
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rangevote.errors import DataError, MissingExtra, UsageError
from rangevote.formats import Entry, ReadOptions, read
from rangevote.formats.parquet import write_rows
from rangevote.hypothesis import Ballot, Hypothesis
from tests.formats.ballots import ballots

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'rangevote[parquet]'")
import pyarrow.parquet as pq  # noqa: E402

FULL = Ballot(
    [
        Hypothesis("a b", [1, 2], -1.5, [0.5, 1.0], finished=False),
        Hypothesis("c", [3], -math.inf, [0.25, 2.0], sampled=True, weight=0.5, ranked_by=-0.1, member="m"),
    ],
    [Hypothesis("v", logprob=-0.5)],
    id="42",
    source="the source",
    references=["one", "two"],
)


def rows(*values: dict[str, Any], schema: Any = None) -> io.BytesIO:
    """A file of these rows, with the types that Arrow finds for them."""
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(values), schema), file)
    file.seek(0)
    return file


def entries(file: Any, **options: Any) -> list[Entry]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with read(file, ReadOptions(**options)) as reading:
            assert reading.format == "parquet"
            return list(reading)


def written(*ballots: Ballot) -> io.BytesIO:
    return io.BytesIO(b"".join(write_rows(ballots)))


def holdable(ballot: Ballot) -> bool:
    """Whether a column of 64-bit token ids and one of texts can hold it."""
    everyone = [*ballot.candidates, *(ballot.voters or ())]
    return not isinstance(ballot.id, int) and all(
        -(2**63) <= token < 2**63 for h in everyone for token in h.tokens or ()
    )


@settings(max_examples=30)
@given(listed=st.lists(ballots().filter(holdable), max_size=3))
def test_any_ballots_are_read_back_as_they_were_written(listed):
    assert [entry.get() for entry in entries(written(*listed), unique_ids=False)] == listed


@pytest.mark.parametrize(
    ("ballots", "message"),
    [
        ([Ballot([Hypothesis(tokens=[2**63])])], "cannot be written as Parquet"),
        ([Ballot([], id=1), Ballot([], id="x")], "'x' is not a number, unlike earlier ids"),
    ],
)
def test_what_no_column_can_hold_is_refused(ballots, message):
    with pytest.raises(DataError, match=message):
        written(*ballots)


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many hypotheses are in a row group."""
    monkeypatch.setattr("rangevote.formats.parquet.GROUP", 1024)
    return 1024


def test_a_file_of_many_row_groups_keeps_the_order_and_counts_rows(tmp_path: Path, small_groups: int):
    path = tmp_path / "many.parquet"
    number = 2 * small_groups + 7
    path.write_bytes(written(*(Ballot([Hypothesis(f"t {i}")], id=i) for i in range(number))).getvalue())
    assert pq.ParquetFile(path).num_row_groups == 3
    found = entries(path)
    assert [entry.get().id for entry in found] == list(range(number))
    assert [found[0].where, found[-1].where] == [f"{path}:1", f"{path}:{number}"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["many.parquet"]


@pytest.mark.parametrize(("k", "rows"), [(0, 1024), (1, 1024), (10, 103), (300, 4)])
def test_groups_have_about_as_many_hypotheses_however_long_the_ballots_are(small_groups, k, rows):
    file = written(*(Ballot([Hypothesis("t")] * k) for _ in range(1100)))
    assert pq.ParquetFile(file).metadata.row_group(0).num_rows == rows


def test_lists_of_plain_texts_and_the_name_hypotheses_will_do():
    found = entries(rows({"id": 7, "hypotheses": ["a", "b"]}, {"id": 8, "hypotheses": ["c"]}))
    assert [entry.get() for entry in found] == [
        Ballot([Hypothesis("a"), Hypothesis("b")], id=7),
        Ballot([Hypothesis("c")], id=8),
    ]


def test_other_widths_of_numbers_and_texts_are_read_as_well():
    kind = pa.struct(
        [
            ("text", pa.large_string()),
            ("logprob", pa.float32()),
            ("tokens", pa.large_list(pa.int32())),
            ("state", pa.list_(pa.float16())),
        ]
    )
    schema = pa.schema([("id", pa.int32()), ("candidates", pa.large_list(kind))])
    row = {"id": 1, "candidates": [{"text": "a", "logprob": -0.5, "tokens": [4], "state": [0.5]}]}
    assert entries(rows(row, schema=schema))[0].get() == Ballot([Hypothesis("a", [4], -0.5, [0.5])], id=1)


PAIRS = pytest.param(
    lambda kind: pa.list_(kind, 2),
    id="list of two",
    marks=pytest.mark.skipif(
        int(pa.__version__.partition(".")[0]) < 26,
        reason="pyarrow before 26 reads no null fixed-size list",
    ),
)


@pytest.mark.parametrize("listed", [pa.list_, pa.large_list, PAIRS])
def test_null_fields_and_lists_are_absent_in_every_kind_of_list(listed):
    kind = pa.struct(
        [("text", pa.string()), ("logprob", pa.float64()), ("scores", pa.map_(pa.string(), pa.float64()))]
    )
    schema = pa.schema([("id", pa.int64()), ("candidates", listed(kind)), ("voters", listed(kind))])
    some = [{"text": "a", "scores": {}}, {"text": "b", "logprob": -1.0}]
    file = rows({"id": 1, "candidates": some}, {"candidates": some[::-1], "voters": some}, schema=schema)
    a, b = Hypothesis("a", scores={}), Hypothesis("b", logprob=-1.0)
    assert [entry.get() for entry in entries(file)] == [Ballot([a, b], id=1), Ballot([b, a], [a, b])]


def test_an_unknown_column_is_reported_once():
    warned: list[str] = []
    file = rows({"candidates": [{"text": "a", "lenght": 2}], "idx": 1})
    assert len(list(read(file, ReadOptions(warn=warned.append)))) == 1
    assert len(warned) == 2
    assert "unknown field 'idx' is ignored. Did you mean 'id'?" in warned[0]
    assert "unknown field 'candidates[].lenght' is ignored" in warned[1]


ROW: dict[str, Any] = {"id": "x", "candidates": [{"text": "a", "logprob": -1.0}]}


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        ({"text": "a", "logprob": math.nan}, r"input:2: candidates\[0\].logprob: nan is not a log-prob"),
        ({"text": "a", "logprob": 0.5}, r"input:2: candidates\[0\].logprob: 0.5 is not a log-prob"),
        ({"text": "a", "tokens": [1, None]}, r"input:2: candidates\[0\].tokens\[1\]: expected an integer"),
        (None, r"input:2: candidates\[0\]: expected a string or an object, got null"),
    ],
)
def test_a_bad_row_is_named_and_the_others_are_read(candidate, message):
    good, bad = ROW, {"id": "y", "candidates": [candidate]}
    first, second, third = entries(rows(good, bad, good | {"id": "z"}))
    assert (first.get().id, third.get().id) == ("x", "z")
    assert third.get().candidates == [Hypothesis("a", logprob=-1.0)]
    with pytest.raises(DataError, match=message):
        second.get()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": 1.5, "candidates": ["a"]}, "input:1: id: expected an integer or a string"),
        ({"id": 1, "candidates": "a"}, "input:1: candidates: expected an array, got a string"),
        ({"candidates": None}, "input:1: has no candidates; expected"),
        ({"text": "a"}, "input: cannot tell where the candidates are among the fields text:"),
    ],
)
def test_columns_of_another_kind_are_named(row, message):
    with pytest.raises(DataError, match=message):
        entries(rows(row))[0].get()


def test_a_timestamp_as_id_is_kept_as_text():
    (entry,) = entries(rows({"id": datetime.datetime(2026, 1, 2, 3, 4), "candidates": ["a"]}))
    assert str(entry.get().id).startswith("2026-01-02 03:04:00")


def test_scores_are_rescaled_as_the_options_say():
    row = {"candidates": [{"text": "a", "logprob": -1.0}]}
    assert entries(rows(row), log_base="2")[0].get().candidates[0].logprob == pytest.approx(-math.log(2))
    assert entries(rows(row), score_scale="count")[0].get().candidates[0].logprob is None
    with pytest.raises(UsageError, match="--sign - does not apply to the format 'parquet'"):
        entries(rows(row), sign=-1)


@pytest.mark.parametrize("cut", [6, 100, -1])
def test_a_file_that_is_cut_off_is_named(cut):
    file = written(*(Ballot([Hypothesis("a b c")], id=i) for i in range(50)))
    (only,) = entries(io.BytesIO(file.getvalue()[:cut]))
    with pytest.raises(DataError, match="input: is not a Parquet file that can be read: "):
        only.get()


def test_a_damaged_page_is_named_after_what_stands_before_it(small_groups: int):
    whole = written(*(Ballot([Hypothesis(f"a {i}")], id=i) for i in range(3 * small_groups))).getvalue()
    middle = pq.ParquetFile(io.BytesIO(whole)).metadata.row_group(1).column(3).data_page_offset + 30
    found = entries(io.BytesIO(whole[:middle] + bytes(40) + whole[middle + 40 :]))
    assert len(found) >= small_groups
    with pytest.raises(DataError, match="input: is not a Parquet file that can be read"):
        found[-1].get()


def test_a_pipe_is_no_place_for_parquet():
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    (only,) = entries(Pipe(written(FULL).getvalue()))
    with pytest.raises(DataError, match="cannot be read from a pipe in this format; give the file's name"):
        only.get()


def test_without_pyarrow_the_error_names_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtra, match=r'reading Parquet files needs .* "rangevote\[parquet\]"'):
        list(read(io.BytesIO(b"PAR1" + bytes(20))))


def test_a_text_that_is_not_utf8_spoils_its_row_only():
    column = pa.array([[b"a b"], [b"\xff"]], pa.list_(pa.binary())).cast(pa.list_(pa.string()), safe=False)
    file = io.BytesIO()
    pq.write_table(pa.table({"candidates": column}), file)
    good, bad = entries(io.BytesIO(file.getvalue()))
    assert good.get().candidates[0].text == "a b"
    with pytest.raises(DataError, match="input:2: has a text that is not UTF-8"):
        bad.get()


def test_a_score_of_each_candidate_is_read_back_as_a_map_and_beside_texts_as_a_list():
    ballot = Ballot(
        [Hypothesis("a", scores={"reward": 0.5}), Hypothesis("b", scores={"reward": 2.0})], id="x"
    )
    assert [entry.get() for entry in entries(written(ballot))] == [ballot]
    [entry] = entries(rows({"id": "x", "outputs": ["a", "b"], "scores": [0.5, 2.0]}), score_field=["scores"])
    assert [one.scores for one in entry.get().candidates] == [{"scores": 0.5}, {"scores": 2.0}]
