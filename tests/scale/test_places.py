"""Places to write to: a file is there as a whole or not at all, whatever kind of storage it is on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rangevote.scale.ray.places import Place, place_of

fs = pytest.importorskip("pyarrow.fs", reason="pyarrow is not installed: pip install 'rangevote[ray]'")


def place(path: Path, kind: str = "local") -> Place:
    """On this machine's disk, by way of Arrow itself, or of fsspec under the name of another system."""
    if kind == "local":
        return place_of(str(path))
    fsspec = pytest.importorskip("fsspec")

    class Handler(fs.FSSpecHandler):  # type: ignore[misc, name-defined]
        def get_type_name(self) -> str:
            return f"fsspec+{kind}"

    return Place(fs.PyFileSystem(Handler(fsspec.filesystem("file"))), str(path), str(path))


KINDS = ["local", "sftp", "('file', 'local')"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_has_its_name_when_it_is_complete_and_not_before(tmp_path, kind):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with place(path, kind).create() as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("why", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_file_that_could_not_be_completed_leaves_nothing_behind(tmp_path, kind, why):
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def write() -> None:
        with place(path, kind).create() as file:
            file.write(b"half")
            raise why

    with pytest.raises(type(why)):
        write()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"x": b"old"}


def test_two_who_write_the_same_file_do_not_mix(tmp_path):
    """As two workers on two machines may, of which one was thought dead; process numbers do not tell them."""
    one = place(tmp_path / "x")
    with one.create() as first:
        first.write(b"aa")
        with one.create() as second:
            second.write(b"bb")
            first.write(b"aa")
            second.write(b"bb")
        assert (tmp_path / "x").read_bytes() == b"bbbb"
    assert (tmp_path / "x").read_bytes() == b"aaaa"


@pytest.mark.parametrize("kind", ["s3", "('s3', 's3a')", "gcs", "abfs"])
def test_object_stores_need_no_second_name(tmp_path, kind, monkeypatch):
    """They show a file when it is complete, and giving it another name would copy it."""
    target = place(tmp_path / "x", kind)
    seen: list[str] = []
    with target.create() as file:
        file.write(b"1")
        seen += [p.name for p in tmp_path.iterdir()]
    assert seen == ["x"]
    assert (tmp_path / "x").read_bytes() == b"1"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_there_can_be_taken_away(tmp_path, kind):
    missing: Any = place(tmp_path / "none" / "x", kind)
    missing.remove()
    missing.remove_folder()
    missing.make_folder()
    missing.inside("y").write(b"1")
    missing.remove_folder()
    assert not (tmp_path / "none" / "x").exists()
