"""Inputs for a model: every line, field and file arrives as it stands, or is named with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rangevote.errors import DataError, SetupError, UnknownName, UsageError
from rangevote.formats.prompts import ModelInput, format_of, read_inputs


def asked(path: Path, **options: Any) -> list[ModelInput]:
    """All inputs, none of them bad."""
    with read_inputs(str(path), **options) as entries:
        found = list(entries)
    for entry in found:
        assert isinstance(entry, ModelInput), entry.error
    return found  # type: ignore[return-value]


def error(path: Path, **options: Any) -> str:
    """The error of the only input."""
    with read_inputs(str(path), **options) as entries:
        [entry] = entries
    assert isinstance(entry.error, DataError)
    return str(entry.error)


def row(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value) + "\n")
    return path


def test_every_line_of_text_is_an_input_and_its_number_the_id(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes("\ufeffone\r\n\n  zwei \u2028 drei\nlast".encode())
    found = asked(path)
    assert [one.content for one in found] == ["one", "", "  zwei \u2028 drei", "last"]
    assert [one.get().id for one in found] == [1, 2, 3, 4]
    assert [one.get().source for one in found] == [one.content for one in found]
    assert found[2].where == f"{path}:3"


def test_the_file_name_decides_the_format_unless_it_is_given(tmp_path):
    assert [format_of(name) for name in ("A.JSONL", "b.ndjson", "c.json", "d.jsonl.zst")] == ["jsonl"] * 4
    assert [format_of(name) for name in ("a.txt", "b.jsonl.bak", "c", "-")] == ["text"] * 4
    assert asked(row(tmp_path / "in.txt", {"text": "a"}), format="jsonl")[0].content == "a"
    assert asked(row(tmp_path / "in.jsonl", {"text": "a"}), format="text")[0].content == '{"text": "a"}'


def test_a_json_line_is_read_from_the_first_field_that_is_there(tmp_path):
    for names in (["text", "prompt"], ["prompt", "source"], ["source", "messages"], ["messages", "input"]):
        value = {name: f"the {name}" for name in reversed(names)}
        assert asked(row(tmp_path / "in.jsonl", value))[0].content == f"the {names[0]}"
    assert asked(row(tmp_path / "in.jsonl", {"text": None, "input": "b"}))[0].content == "b"
    assert asked(row(tmp_path / "in.jsonl", {"text": "a", "q": "b"}), field="q")[0].content == "b"


def test_ids_and_references_are_carried_through(tmp_path):
    ballot = asked(row(tmp_path / "in.jsonl", {"id": "x", "text": "a", "references": ["b", "c"]}))[0].get()
    assert (ballot.id, ballot.source, ballot.references, ballot.candidates) == ("x", "a", ["b", "c"], ())
    assert asked(row(tmp_path / "in.jsonl", {"text": "a", "reference": "b"}))[0].get().references == ["b"]
    assert asked(row(tmp_path / "in.jsonl", {"text": "a", "reference": ["b"]}))[0].get().references == ["b"]
    assert asked(row(tmp_path / "in.jsonl", {"text": "a"}))[0].get().id is None


def test_token_ids_and_conversations_are_inputs_without_a_source(tmp_path):
    chat = [{"role": "system", "content": "be brief"}, {"role": "user", "content": [{"type": "text"}]}]
    for content in ([5, 7], chat, []):
        [one] = asked(row(tmp_path / "in.jsonl", {"input": content}))
        assert one.content == content
        assert one.get().source is None


def test_blank_lines_of_json_are_passed_over(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('\n{"text": "a"}\n  \n{"text": "b"}\n')
    assert [one.where for one in asked(path)] == [f"{path}:2", f"{path}:4"]


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        ({"id": 1}, {}, "has none of the fields text, prompt, source, messages, input; name the field"),
        ({"id": 1}, {}, r"(it has: id)"),
        ({"txt": "a"}, {"field": "text"}, "has no field 'text', which --field asks for. Did you mean 'txt'?"),
        ({"text": 5}, {}, "text: expected a text, a list of token ids, or a list of messages"),
        ({"text": [1, "a"]}, {}, "text: expected a text"),
        ({"text": [True]}, {}, "text: expected a text"),
        ({"messages": [{"content": "a"}]}, {}, "messages: expected a text"),
        ({"text": "a", "id": [1]}, {}, "id: expected"),
        ({"text": "a", "references": "b"}, {}, "references: expected"),
        ({"text": "a", "reference": "b", "references": ["c"]}, {}, "has both references and reference"),
        (["a"], {}, "expected an object, got an array"),
        (["a"], {}, "jq -c '.[]' makes lines of an array"),
        (b'{"text": "a"', {}, "not valid JSON"),
    ],
)
def test_a_line_that_is_no_input_is_named(tmp_path, value, options, message):
    path = tmp_path / "in.jsonl"
    path.write_bytes((value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n")
    problem = error(path, **options)
    assert problem.startswith(f"{path}:1: ")
    assert message in problem


def test_a_bad_line_does_not_end_the_reading(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes(b"a\n\xff\nd\n")
    with read_inputs(str(path)) as entries:
        found = list(entries)
    assert [entry.error is None for entry in found] == [True, False, True]
    assert str(found[1].error) == f"{path}:2: invalid UTF-8 at byte 1 of the line (0xff)"


def test_inputs_are_counted_where_they_can_be(tmp_path):
    text, lines = tmp_path / "in.txt", tmp_path / "in.jsonl"
    text.write_text("a\n\nb")
    lines.write_text('{"text": "a"}\n\nbroken\n')
    for path, number in ((text, 3), (lines, 2)):
        with read_inputs(str(path)) as entries:
            assert entries.total == number == len(list(entries))


def photos(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_bytes(b"x")
    return folder


def test_a_folder_is_its_images_by_name(tmp_path):
    found = asked(photos(tmp_path, "b.jpg", "a.PNG", "c.txt"), images=True)
    assert [one.content for one in found] == [str(tmp_path / "a.PNG"), str(tmp_path / "b.jpg")]
    assert [one.get().id for one in found] == ["a.PNG", "b.jpg"]
    assert asked(tmp_path / "b.jpg", images=True)[0].content == str(tmp_path / "b.jpg")


def test_paths_of_images_are_seen_from_here_or_from_their_list(tmp_path, monkeypatch):
    photos(tmp_path, "a.png")
    here = tmp_path / "here"
    here.mkdir()
    photos(here, "b.png")
    monkeypatch.chdir(here)
    path = tmp_path / "list.jsonl"
    path.write_text('{"image": "a.png"}\n{"path": "b.png"}\n{"file": "' + str(tmp_path / "a.png") + '"}\n')
    found = asked(path, images=True)
    assert [one.content for one in found] == [str(tmp_path / "a.png"), "b.png", str(tmp_path / "a.png")]
    assert [one.get().source for one in found] == ["a.png", "b.png", str(tmp_path / "a.png")]
    assert "there is no image file 'c.png'" in error(row(path, {"image": "c.png"}), images=True)
    path.write_text('{"image": ""}\n')
    assert "there is no image file ''" in error(path, images=True)


@pytest.mark.parametrize(
    ("name", "options", "kind", "message"),
    [
        ("", {}, UsageError, "is a folder, but the model reads text"),
        ("", {"images": True}, SetupError, "no images in the folder"),
        ("no.txt", {}, SetupError, r"cannot read .*no\.txt: no such file"),
        ("no.png", {"images": True}, SetupError, r"cannot read .*no\.png: there is no such file"),
        ("", {"format": "xml"}, UnknownName, "unknown input format 'xml'"),
        ("in.txt", {"field": "text"}, UsageError, "--field text is for JSON lines"),
    ],
)
def test_wrong_inputs_and_options_are_refused(tmp_path, name, options, kind, message):
    (tmp_path / "in.txt").write_text("a")
    with pytest.raises(kind, match=message):
        read_inputs(str(tmp_path / name), **options)
