"""CSV and TSV: what spreadsheets and pandas write is read, and what we write comes back."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings

from rangevote.errors import DataError
from rangevote.formats import ReadOptions, read, writer
from rangevote.hypothesis import Ballot, Hypothesis
from tests.formats.ballots import Ballots, Entries, Fault
from tests.formats.ballots import ballots as any_ballots


def texts(found: list[Ballot]) -> list[tuple[object, list[str | None]]]:
    return [(ballot.id, [h.text for h in ballot.candidates]) for ballot in found]


def test_a_sample_a_row_is_grouped_by_the_id(ballots: Ballots) -> None:
    found = ballots(b'id,prompt,text,logprob\n7,?,"a ""b"", c",-1.5\n8,!,d,\n7,?,"two\r\nlines",-2\n')
    assert texts(found) == [("7", ['a "b", c', "two\r\nlines"]), ("8", ["d"])]
    assert [h.logprob for h in found[0].candidates] == [-1.5, -2.0]
    assert (found[0].source, found[1].candidates[0].logprob) == ("?", None)


def test_semicolons_and_byte_order_marks_of_spreadsheets_are_read(ballots: Ballots) -> None:
    assert texts(ballots(b"\xef\xbb\xbfid;text\r\n1;a, b\r\n1;c\r\n")) == [("1", ["a, b", "c"])]


@pytest.mark.parametrize(
    ("cells", "first", "second"),
    [(b'"[""a"", ""b""]","[-1, -2]"', "a", "b"), (b"""\"['a', ""it's""]","[-1.0, -2.0]\"""", "a", "it's")],
    ids=["JSON", "as pandas writes it"],
)
def test_a_list_may_stand_in_a_cell(ballots: Ballots, cells: bytes, first: str, second: str) -> None:
    [ballot] = ballots(b"id,outputs,lp\n1," + cells + b"\n", logprob_field="lp")
    assert [(h.text, h.logprob) for h in ballot.candidates] == [(first, -1.0), (second, -2.0)]


def test_columns_may_have_a_candidate_each(ballots: Ballots, fault: Fault) -> None:
    data = b"id,output_1,output_2,note\n1,a,b,x\n2,c,,y\n"
    assert texts(ballots(data, columns="output_*")) == [("1", ["a", "b"]), ("2", ["c"])]
    line = b'{"id": 3, "a1": "x", "a2": "y"}\n'
    assert texts(ballots(line, columns="a?")) == [(3, ["x", "y"])]
    assert "has no 'b*', which --columns asks for" in str(fault(line, columns="b*"))


def test_a_cell_may_be_long(ballots: Ballots) -> None:
    text = "x" * 200_000  # more than Python's csv takes by default
    assert texts(ballots(f"id,text\n1,{text}\n".encode())) == [("1", [text])]


def test_a_table_of_other_names_is_recognised_by_the_file_name_or_an_option(tmp_path) -> None:
    path = tmp_path / "answers.csv"
    path.write_bytes(b"q,a\n1,yes\n1,no\n")
    with read(path, ReadOptions(group_by="q", text_field="a")) as entries:
        assert texts([entry.get() for entry in entries]) == [("1", ["yes", "no"])]
    with read(io.BytesIO(path.read_bytes()), ReadOptions(group_by="q", text_field="a")) as entries:
        assert entries.format == "csv"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"id,text\n1,a\n1,b,c\n", "input:3: has 3 cells where the first line names 2 columns"),
        (b'id,text\n1,a\n2,"b\n', r"input:3: cannot be read as CSV: .*\(is a quote missing\?\)"),
        (b'id,text\n1,"a" b\n', "input:2: cannot be read as CSV: "),
        (b"id,text,text\n1,a,b\n", "input:1: CSV with two columns 'text'"),
        (b"id,text,logprob\n1,a,much\n", "input:2: logprob: expected a number, got 'much'"),
        (b"id,text,sampled\n1,a,maybe\n", "input:2: sampled: expected true or false, got 'maybe'"),
        (b"id,text\n1,\xff\n", "input:2: invalid UTF-8"),
        (b"id,name\n1,a\n", "cannot tell where the candidates are among the fields id, name"),
    ],
)
def test_bad_rows_are_named(fault: Fault, data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        raise fault(data, format="csv")


def test_what_was_read_before_the_damage_is_not_lost(entries: Entries) -> None:
    first, last = entries(b'id,text\n1,a\n2,"b\n')
    assert (first.get().id, last.ballot) == ("1", None)


@pytest.mark.parametrize("format", ["csv", "tsv"])
@settings(max_examples=40)
@given(ballot=any_ballots())
def test_ballots_come_back_as_they_were_written(format: str, ballot: Ballot) -> None:
    write = writer(format)
    no_text = not ballot.candidates or any(h.text is None for h in ballot.candidates)
    if ballot.voters is not None or no_text or ballot.id == "":
        with pytest.raises(DataError):
            list(write([ballot]))
        return
    data = b"".join(write([ballot]))
    options = ReadOptions(format=format, group_by="id", warn=lambda message: None)
    [entry] = read(io.BytesIO(data), options)
    found = entry.get()
    assert found.id == ("0" if ballot.id is None else str(ballot.id))
    assert (found.source or "", list(found.references)) == (ballot.source or "", list(ballot.references))
    assert list(map(comparable, found.candidates)) == list(map(comparable, ballot.candidates))


def comparable(h: Hypothesis) -> object:
    tokens, state = (None if values is None else list(values) for values in (h.tokens, h.state))
    return h.text, tokens, h.logprob, state, h.finished, h.sampled, h.weight, list(h.tool_calls or ())


def test_a_file_without_ballots_has_its_header() -> None:
    [header] = writer("csv")([])
    assert header.startswith(b"id,source,references,text,tokens,logprob")


@pytest.mark.parametrize("row", [b"1,b,much", b"1,b", b"1,b,-2,more"])
def test_a_bad_row_spoils_its_ballot_under_its_id(entries: Entries, row: bytes) -> None:
    spoiled, good = entries(b"id,text,logprob\n1,a,-1\n2,c,-1\n" + row + b"\n1,d,-3\n")
    assert (spoiled.id, spoiled.ballot, spoiled.where) == ("1", None, "input:4")
    assert texts([good.get()]) == [("2", ["c"])]
