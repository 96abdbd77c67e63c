"""Pairs from files."""

from __future__ import annotations

import json

import pytest

from rangevote.errors import DataError, UsageError
from rangevote.study.create import StudyOptions, make_study, pairs_of_outputs, read_pairs
from tests.study.samples import png


@pytest.fixture
def files(tmp_path):
    """One file of texts, one as `rangevote vote` writes it."""
    (tmp_path / "beam.txt").write_text("a man\na dog\n\n")
    lines = [
        {"id": n, "winner": text, "signature": "x"} for n, text in enumerate(["a tall man", "a dog", "cat"])
    ]
    (tmp_path / "voted.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "source.txt").write_text("ein Mann\nein Hund\neine Katze\n")
    return tmp_path


def systems(folder):
    return {"beam": str(folder / "beam.txt"), "voted": str(folder / "voted.jsonl")}


def loaded(files):
    return files.load_images(make_study(files.systems, files.pairs, StudyOptions()))


def test_outputs_go_together_line_by_line_with_their_sources(files):
    found = pairs_of_outputs(systems(files), source=str(files / "source.txt"))
    assert found.systems == ("beam", "voted")
    assert [(p.key, p.first, p.second, p.source) for p in found.pairs] == [
        ("1", "a man", "a tall man", "ein Mann"),
        ("2", "a dog", "a dog", "ein Hund"),
        ("3", "", "cat", "eine Katze"),
    ]


def test_images_are_found_by_a_list_of_paths(files):
    (files / "images").mkdir()
    (files / "images" / "a.png").write_bytes(png())
    (files / "list.txt").write_text("images/a.png\nimages/a.png\n\n")
    study, images = loaded(pairs_of_outputs(systems(files), images=str(files / "list.txt")))
    [name] = images
    assert [pair.image for pair in study.pairs] == [name, name, None]


def test_images_are_found_in_a_folder_by_ids(files):
    for name in ("beam", "voted"):
        text = "".join(json.dumps({"id": id, "winner": f"{name} {id}"}) + "\n" for id in ("x", "y"))
        (files / f"{name}.jsonl").write_text(text)
    both = {name: str(files / f"{name}.jsonl") for name in ("beam", "voted")}
    (files / "x.png").write_bytes(png())
    with pytest.raises(DataError, match="there is no image for 'y'"):
        pairs_of_outputs(both, images=str(files))
    (files / "y.png").write_bytes(png(colour=(0, 0, 255)))
    assert len(loaded(pairs_of_outputs(both, images=str(files)))[1]) == 2
    with pytest.raises(UsageError, match="outputs need ids to find their images by"):
        pairs_of_outputs(
            {"beam": str(files / "beam.txt"), "same": str(files / "beam.txt")}, images=str(files)
        )


def write(folder, *lines):
    path = folder / "pairs.jsonl"
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return str(path)


GOOD = {"id": "a", "outputs": {"beam": "x", "voted": "y"}}


def test_pairs_are_read_from_json_lines_in_any_order_of_their_systems(tmp_path):
    path = write(
        tmp_path,
        "\ufeff",  # a byte order mark is let pass
        GOOD | {"source": "s"},
        {"id": 2, "outputs": {"voted": "w", "beam": "v"}},
        {"source": "t", "outputs": {"beam": "p", "voted": "q"}, "check": "voted"},
    )
    found = read_pairs(path)
    assert found.systems == ("beam", "voted")
    assert [(p.key, p.first, p.second, p.source, p.expected) for p in found.pairs] == [
        ("a", "x", "y", "s", None),
        ("2", "v", "w", None, None),
        ("3", "p", "q", "t", 1),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]\n", "pairs.jsonl:2: "),
        ("{\n", "pairs.jsonl:2: "),
        ('{"id": "\\ud800"}\n', "pairs.jsonl:2: "),
        ({"id": 1}, "pairs.jsonl:2: .*outputs"),
        ({"outputs": {"a": "x"}}, "pairs.jsonl:2: outputs: expected the outputs of two systems"),
        ({"outputs": {"a": "x", "b": "y"}}, r"outputs: has the systems \['a', 'b'\]"),
        ({"outputs": {"beam": "x", "voted": 3}}, "outputs.* expected a string"),
        (GOOD | {"id": True}, "id: expected a"),
        (GOOD | {"id": "b", "source": 3}, "source: expected a string"),
        (GOOD | {"id": "b", "check": "other"}, "check: is 'other'; it must name the system .*: beam"),
        (GOOD | {"id": "b", "practice": 1}, "practice: expected true or false"),
        (GOOD | {"id": "b", "practice": True, "check": "tie"}, "practice: .* not both"),
        (GOOD, "'a' was used before, at .*pairs.jsonl:1"),
        (GOOD | {"id": "b", "source": "x" * (2**22 + 1)}, "at most 4,194,304 can be shown"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    with pytest.raises(DataError, match=message):
        read_pairs(write(tmp_path, GOOD, line))


def test_files_without_pairs_are_refused(tmp_path):
    for first in ("a man on a bench\n", "[]\n", "\n\n  a man\n"):
        with pytest.raises(DataError, match=r"pairs.jsonl: has no pairs, .* goes with a second one"):
            read_pairs(write(tmp_path, first))
    with pytest.raises(DataError, match="is empty"):
        read_pairs(write(tmp_path))


def test_a_bad_image_is_named_with_its_line(tmp_path):
    with pytest.raises(DataError, match=r"pairs.jsonl:1: cannot read the image"):
        loaded(read_pairs(write(tmp_path, GOOD | {"image": "missing.png"})))
