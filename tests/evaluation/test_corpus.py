"""Files of outputs, references and sources, and how they go together."""

from __future__ import annotations

import io
import json

import pytest

from rangevote.errors import DataError, UsageError
from rangevote.evaluation.corpus import align, read_beam, read_outputs, read_references, read_sources
from rangevote.formats import read


def stream(text):
    return io.BytesIO(text if isinstance(text, bytes) else text.encode())


def json_lines(*records):
    return stream("".join(json.dumps(record) + "\n" for record in records))


def references_of(by_id):
    return read_references([json_lines(*({"id": i, "references": [text]} for i, text in by_id.items()))])[0]


def test_plain_text_is_one_output_a_line_and_empty_lines_count():
    found = read_outputs(stream("a b\n\nc\u2028d\r\ne"))
    assert found.values == ["a b", "", "c\u2028d", "e"]
    assert found.ids is None
    assert found.where[2] == "input:3"


def test_results_of_a_vote_bring_ids():
    lines = {"id": 7, "winner": "a b", "signature": "s"}, {"id": "8", "winner": None, "score": None}
    found = read_outputs(json_lines(*lines))
    assert (found.values, found.ids) == (["a b", ""], [7, "8"])


def test_results_in_csv_go_with_ids_of_json(tmp_path):
    path = tmp_path / "winners.csv"
    path.write_text('id,winner,signature,error\n8,"a\nb",s,\n7,,s,\n', encoding="utf-8")
    found = read_outputs(path)
    assert (found.values, found.ids) == (["a\nb", ""], ["8", "7"])
    assert align(references_of({7: "c", 8: "d"}), found) == [["d"], ["c"]]
    assert read_outputs(stream(path.read_bytes())).values == found.values
    path.write_text("id,winner,error\n8,,is bad\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"winners\.csv:2: there is no winner, .* is bad \(is bad\)"):
        read_outputs(path)
    assert read_outputs(path, plain=True).values == ["id,winner,error", "8,,is bad"]


def test_lines_with_text_are_outputs_too_and_blank_lines_between_them_are_not():
    assert read_outputs(stream('{"text": "a"}\n\n{"text": ""}\n')).values == ["a", ""]


def test_a_text_that_looks_like_json_stays_a_text():
    assert read_outputs(stream('{"answer": 42}\n{x\n')).values == ['{"answer": 42}', "{x"]
    assert read_outputs(stream('{"text": "a"}\n'), plain=True).values == ['{"text": "a"}']


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", r"input: is empty: there are no outputs in it"),
        (b"a\n\xff\n", r"input:2: invalid UTF-8 at byte 1 of the line \(0xff\)"),
        (b'{"winner": "a"}\n{"winner": \n', r"input:2: not valid JSON"),
        (b'{"winner": "a"}\n{"x": 1}\n', r"input:2: expected an output"),
        (b'{"winner": [3, 4]}\n', r"input:1: winner: holds token ids"),
        (b'{"winner": 3}\n', r"input:1: winner: expected a string"),
        (b'{"winner": "a"}\n{"id": 4, "error": "bad"}\n', r"input:2: there is no winner, .*\(bad\)"),
        (b'{"id": 1, "candidates": ["a"]}\n', r"input:1: is a ballot, not an output; .*rangevote vote"),
        (
            b'{"id": 1, "winner": "a"}\n{"id": 1, "winner": "b"}\n',
            r"input:2: id: 1 was used before, at input:1",
        ),
    ],
)
def test_bad_outputs_are_named_with_their_place(text, message):
    with pytest.raises(DataError, match=message):
        read_outputs(stream(text))


def test_several_files_are_several_references():
    found, sources = read_references([stream("a\nb\n"), stream("c\nd\n")])
    assert (found.values, sources) == ([["a", "c"], ["b", "d"]], None)


def test_ballots_carry_references_along_and_sources_if_every_item_has_one():
    first = {"id": 1, "references": ["a", "b"], "source": "x", "candidates": ["q"]}
    found, sources = read_references([json_lines(first, {"id": 2, "references": "c", "source": "y"})])
    assert (found.values, found.ids, sources.values) == ([["a", "b"], ["c"]], [1, 2], ["x", "y"])
    _, sources = read_references([json_lines(first, {"references": ["b"]})])
    assert sources is None


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [
        (["a\nb\n", "c\n"], DataError, r"input has 1 lines and input 2; without ids in both, line n"),
        (['{"references": ["a"]}\n', "c\n"], UsageError, r"several files of references must be plain text"),
        (['{"id": 9, "references": []}\n'], DataError, r"input:1: references: is missing for the id 9"),
        (['{"references": ["a"]}\n{"id": 9}\n'], DataError, r"input:2: references: is missing"),
        (['{"references": ["a", 3]}\n'], DataError, r"input:1: references"),
        ([""], DataError, r"there are no references in it"),
    ],
)
def test_bad_references_are_named(files, error, message):
    with pytest.raises(error, match=message):
        read_references([stream(text) for text in files])


def test_a_source_that_is_missing_is_named():
    with pytest.raises(DataError, match=r"input:2: source: is missing for the id 2"):
        read_sources(json_lines({"id": 1, "source": "x"}, {"id": 2}))


def test_ids_bring_files_of_another_order_into_step():
    outputs = read_outputs(json_lines({"id": "b", "winner": "B"}, {"id": "a", "winner": "A"}))
    assert align(outputs, references_of({"a": "1", "b": "2"})) == ["A", "B"]


def test_without_ids_on_one_side_lines_go_in_step():
    references = references_of({"b": "1", "a": "2"})
    assert align(read_outputs(stream("x\ny\n")), references) == ["x", "y"]
    with pytest.raises(DataError, match=r"input has 1 lines and input 2; without ids"):
        align(read_outputs(stream("x\n")), references)


def test_an_id_without_partner_is_named_on_either_side():
    one = read_outputs(json_lines({"id": 1, "winner": "a"}, {"id": 3, "winner": "b"}))
    two = references_of({1: "x"})
    for values, order in ((one, two), (two, one)):
        with pytest.raises(DataError, match=r"input:2: id: input has nothing for 3"):
            align(values, order)


def test_a_beam_is_read_from_any_n_best_format(tmp_path):
    path = tmp_path / "out.moses"
    path.write_bytes(
        b"0 ||| a b ||| F0= -1.5 ||| -1.5\n0 ||| a c ||| F0= -2 ||| -2\n1 ||| d ||| F0= -2 ||| -2\n"
    )
    found = read_beam(str(path), read(path))
    assert [[c.text for c in ballot.candidates] for ballot in found.values] == [["a b", "a c"], ["d"]]
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(DataError, match=r"is empty: there are no ballots in it"):
        read_beam(str(empty), [])
