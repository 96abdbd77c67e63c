"""Pairs from files."""

from __future__ import annotations

import io
import json
import os

import pytest

from rangevote.errors import DataError, UsageError
from rangevote.study.making import Wishes, make_study
from rangevote.study.pairs import pairs_of_outputs, read_pairs
from rangevote.study.plan import Pair

PIL = pytest.importorskip("PIL.Image", reason="pip install pillow")


def png(colour="red"):
    out = io.BytesIO()
    PIL.new("RGB", (4, 3), colour).save(out, "PNG")
    return out.getvalue()


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


def imported(found):
    return found.library.imported(make_study(found.systems, found.pairs, Wishes()))


def test_outputs_go_together_line_by_line_with_their_sources(files):
    found = pairs_of_outputs(systems(files), source=str(files / "source.txt"))
    assert found.systems == ("beam", "voted")
    assert [(p.key, p.first, p.second, p.source) for p in found.pairs] == [
        ("1", "a man", "a tall man", "ein Mann"),
        ("2", "a dog", "a dog", "ein Hund"),
        ("3", "", "cat", "eine Katze"),
    ]


def test_outputs_of_different_number_are_refused(files):
    (files / "beam.txt").write_text("only one\n")
    with pytest.raises(DataError, match=r"voted.jsonl has 3 lines and .*beam.txt 1"):
        pairs_of_outputs(systems(files))


def test_pictures_are_found_by_a_list_of_paths(files):
    (files / "pictures").mkdir()
    (files / "pictures" / "a.png").write_bytes(png())
    (files / "list.txt").write_text("pictures/a.png\npictures/a.png\n\n")
    study, pictures = imported(pairs_of_outputs(systems(files), images=str(files / "list.txt")))
    assert len(pictures) == 1
    [name] = pictures
    assert [pair.image for pair in study.pairs] == [name, name, None]


def test_pictures_are_found_in_a_folder_by_ids(tmp_path):
    for name in ("beam", "voted"):
        text = "".join(json.dumps({"id": id, "winner": f"{name} {id}"}) + "\n" for id in ("x", "y"))
        (tmp_path / f"{name}.jsonl").write_text(text)
    both = {name: str(tmp_path / f"{name}.jsonl") for name in ("beam", "voted")}
    (tmp_path / "x.png").write_bytes(png())
    with pytest.raises(DataError, match="there is no picture for 'y'"):
        pairs_of_outputs(both, images=str(tmp_path))
    (tmp_path / "y.png").write_bytes(png("blue"))
    assert len(imported(pairs_of_outputs(both, images=str(tmp_path)))[1]) == 2


def test_a_folder_of_pictures_needs_ids(files):
    with pytest.raises(UsageError, match="outputs need ids to find their pictures by"):
        pairs_of_outputs(systems(files), images=str(files))


def write(folder, *lines):
    path = folder / "pairs.jsonl"
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return str(path)


GOOD = {"id": "a", "outputs": {"beam": "x", "voted": "y"}}


def test_pairs_are_read_from_json_lines_in_any_order_of_their_systems(tmp_path):
    found = read_pairs(
        write(
            tmp_path,
            GOOD | {"source": "s"},
            {"id": 2, "outputs": {"voted": "w", "beam": "v"}},
            {"src": "t", "tgt": {"beam": "p", "voted": "q"}, "check": "voted"},
        )
    )
    assert found.systems == ("beam", "voted")
    assert [(p.key, p.first, p.second, p.source, p.expected) for p in found.pairs] == [
        ("a", "x", "y", "s", None),
        ("2", "v", "w", None, None),
        ("3", "p", "q", "t", 1),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]\n", r"pairs.jsonl:2: expected \{\"id\""),
        ("{\n", r"pairs.jsonl:2: not valid JSON"),
        ({"id": 1}, r"pairs.jsonl:2: outputs: expected the outputs of two systems"),
        ({"outputs": {"a": "x", "b": "y", "c": "z"}}, "outputs of two systems"),
        ({"outputs": {"a": "x", "b": "y"}}, r"has the systems \['a', 'b'\]"),
        ({"outputs": {"beam": "x", "voted": 3}}, "outputs.voted: expected a text"),
        (GOOD | {"id": True}, "id: expected a string or a whole number"),
        (GOOD | {"id": "b", "source": 3}, "source: expected a text"),
        (GOOD | {"id": "b", "check": "other"}, "check: is 'other'; it names who must be judged better: beam"),
        (GOOD, "'a' was used before, at .*pairs.jsonl:1"),
        (GOOD | {"id": "b", "source": "x" * (2**22 + 1)}, "at most 4,194,304 can be shown"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    with pytest.raises(DataError, match=message):
        read_pairs(write(tmp_path, GOOD, line))


ITEM = {"item_id": "en-es-0", "src": "a", "tgt": {"beam": "x", "voted": "y"}, "instructions": "Evaluate."}
OTHER = {"item_id": "en-es-1", "src": "b", "tgt": {"voted": "w", "beam": "v"}}
CHECK = {
    "item_id": "check",
    "src": "c",
    "tgt": {"beam": "", "voted": "z"},
    "validation": {"beam": {"score": [0, 9]}},
}


@pytest.mark.parametrize("indent", [None, 4])
@pytest.mark.parametrize(
    "data",
    [
        [ITEM, CHECK, OTHER],
        [[ITEM, CHECK], [OTHER]],
        [[[ITEM], [OTHER]], [[CHECK], [OTHER, ITEM]]],  # two tasks with the same items
    ],
    ids=["items", "documents", "tasks"],
)
def test_a_campaign_of_pearmut_is_read(tmp_path, data, indent):
    path = tmp_path / "campaign.json"
    campaign = {"info": {"assignment": "task-based", "protocol": "cESA"}, "campaign_id": "x", "data": data}
    path.write_text(json.dumps(campaign, indent=indent))
    found = read_pairs(str(path))
    assert found.systems == ("beam", "voted")
    assert found.pairs == [Pair("en-es-0", "x", "y", "a"), Pair("en-es-1", "v", "w", "b")]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (
            ITEM | {"tgt": {"beam": "x"}},
            r"campaign.json: data\[0\]\[0\]: outputs: expected the outputs of two",
        ),
        ({"text": "What is your native language?", "form": "string"}, r"data\[0\]\[0\]: outputs: expected"),
        ([[ITEM]], r"data\[0\]\[0\]\[0\]: expected \{"),  # lists within lists within lists within lists
        ("text", r"data\[0\]\[0\]: expected \{"),
    ],
)
def test_an_item_of_a_campaign_that_is_no_pair_is_named(tmp_path, item, message):
    path = tmp_path / "campaign.json"
    path.write_text(json.dumps({"data": [[item]]}, indent=1))
    with pytest.raises(DataError, match=message):
        read_pairs(str(path))


def test_two_items_of_a_campaign_with_one_name_are_refused(tmp_path):
    path = tmp_path / "campaign.json"
    path.write_text(json.dumps({"data": [ITEM, ITEM | {"src": "another"}]}))
    with pytest.raises(DataError, match=r"data\[1\]: id: 'en-es-0' was used before, at .*data\[0\]"):
        read_pairs(str(path))


def test_an_empty_campaign_is_refused(tmp_path):
    path = tmp_path / "campaign.json"
    path.write_text('{"data": []}')
    with pytest.raises(DataError, match="is empty"):
        read_pairs(str(path))


@pytest.mark.parametrize("first", ["a man on a bench\n", "[]\n", "\n\n  a man\n"])
def test_a_file_of_one_systems_outputs_is_told_from_pairs(tmp_path, first):
    with pytest.raises(
        DataError, match=r"pairs.jsonl: has no pairs, which look like .* goes with a second one"
    ):
        read_pairs(write(tmp_path, first))


def test_a_byte_order_mark_before_pairs_is_let_pass(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(GOOD) + "\n", encoding="utf-8-sig")
    assert [pair.key for pair in read_pairs(str(path)).pairs] == ["a"]


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="is empty"):
        read_pairs(write(tmp_path))


def test_case_64_a_picture_must_lie_below_its_folder(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.png").write_bytes(png())
    os.symlink(tmp_path / "secret.png", inside / "link.png")
    for path in ("../secret.png", str(tmp_path / "secret.png"), "link.png", "/etc/passwd"):
        with pytest.raises(DataError, match=r"pairs.jsonl:1: the picture .* lies outside the folder"):
            imported(read_pairs(write(inside, GOOD | {"image": path})))
    study, pictures = imported(read_pairs(write(tmp_path, GOOD | {"image": "inside/link.png"})))
    assert study.pairs[0].image in pictures


@pytest.mark.parametrize("path", ["missing.png", "a\0b.png", "%2e%2e/secret.png"])
def test_case_64_a_missing_picture_is_named(tmp_path, path):
    with pytest.raises(DataError, match=r"pairs.jsonl:1: cannot read the picture"):
        imported(read_pairs(write(tmp_path, GOOD | {"image": path})))
