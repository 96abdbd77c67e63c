"""Images: of four types, recognised by their bytes, of a limited size, from one folder."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from rangevote.errors import DataError
from rangevote.web.images import PageImage, load_image
from tests.study.samples import png

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
#: Contents of files and their types, None where they are no images.
CONTENTS = {
    png(): "image/png",
    b"\xff\xd8\xff\xe0 a photograph": "image/jpeg",
    b"GIF89a and more": "image/gif",
    b"RIFF\x04\x00\x00\x00WEBPVP8 ": "image/webp",
    **dict.fromkeys((SVG, b"<!doctype html>", b"", b"RIFF\x04\x00\x00\x00WAVE", b"\x00\x00\x01\x00")),
}


@pytest.mark.parametrize("content", CONTENTS)
def test_the_type_is_that_of_the_bytes_whatever_the_name_and_the_file_stays_as_it_is(tmp_path, content):
    (tmp_path / "a.png").write_bytes(content)
    if CONTENTS[content] is None:
        with pytest.raises(DataError, match=r"pairs:1: a.png: is not a PNG, JPEG, WebP or GIF image"):
            load_image(Path("a.png"), tmp_path, "pairs:1")
    else:
        found = hashlib.sha256(content).hexdigest(), PageImage(CONTENTS[content], content)
        assert load_image(Path("a.png"), tmp_path, "pairs:1") == found


def test_a_file_of_200_megabytes_is_refused_unread(tmp_path):
    with open(tmp_path / "big.png", "wb") as file:
        file.truncate(200 * 10**6)
    with pytest.raises(DataError, match="has 200,000,000 bytes; at most 20,971,520"):
        load_image(Path("big.png"), tmp_path, "pairs:1")


def test_an_image_must_lie_below_its_folder_and_be_there(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.png").write_bytes(png())
    os.symlink(tmp_path / "secret.png", inside / "link.png")
    for path in ("../secret.png", str(tmp_path / "secret.png"), "link.png", "/etc/passwd"):
        with pytest.raises(DataError, match=r"pairs:1: the image .* lies outside the folder"):
            load_image(Path(path), inside, "pairs:1")
    assert load_image(Path("inside/link.png"), tmp_path, "pairs:1")[1].type == "image/png"
    for path in ("missing.png", "a\0b.png", "%2e%2e/secret.png"):
        with pytest.raises(DataError, match=r"pairs:1: cannot read the image"):
            load_image(Path(path), inside, "pairs:1")
