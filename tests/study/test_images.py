"""Pictures: only four kinds, without notes, the pixels as they were."""

from __future__ import annotations

import hashlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.errors import DataError
from rangevote.study import images
from rangevote.study.images import import_picture, load_picture

PIL = pytest.importorskip("PIL.Image", reason="pip install pillow")
FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
SECRET = b"made by system voted"


def drawn():
    picture = PIL.new("RGB", (31, 17))
    picture.putdata([(x * 8, y * 15, (x * y) % 256) for y in range(17) for x in range(31)])
    return picture


def exif(orientation=1):
    notes = PIL.Exif()
    notes[0x010E] = SECRET.decode()
    notes[0x0112] = orientation
    notes.get_ifd(0x8825)[2] = (52.0, 12.0, 0.0)
    return notes


def saved(format, **options):
    out = io.BytesIO()
    drawn().save(out, format, **options)
    return out.getvalue()


def noted(format, orientation=1):
    """A picture with notes of every kind its format has."""
    if format == "PNG":
        info = pytest.importorskip("PIL.PngImagePlugin").PngInfo()
        info.add_text("Comment", SECRET.decode())
        return saved(format, pnginfo=info, exif=exif(orientation))
    if format == "GIF":
        return saved(format, comment=SECRET)
    options = {"xmp": b"<x>" + SECRET + b"</x>"} | ({"comment": SECRET} if format == "JPEG" else {})
    return saved(format, exif=exif(orientation), **options)


def opened(content):
    picture = PIL.open(io.BytesIO(content))
    picture.load()
    return picture


@pytest.mark.parametrize("format", FORMATS)
def test_notes_are_cut_out_and_pixels_stay(format):
    before = noted(format)
    assert SECRET in before
    name, picture = import_picture(before + b"hidden after the end " + SECRET * (format != "WEBP"), "x")
    assert picture.type == FORMATS[format]
    assert SECRET not in picture.content
    assert b"hidden" not in picture.content
    assert name == hashlib.sha256(picture.content).hexdigest()
    after = opened(picture.content)
    assert after.tobytes() == opened(before).tobytes()
    assert dict(after.getexif()) == {}


@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_a_photo_keeps_its_orientation_and_nothing_else(orientation):
    _, picture = import_picture(noted("JPEG", orientation), "x")
    assert SECRET not in picture.content
    assert dict(opened(picture.content).getexif()) == {0x0112: orientation}


@pytest.mark.parametrize("format", ["PNG", "WEBP"])
def test_a_picture_that_its_notes_turn_is_refused_where_browsers_differ(format):
    with pytest.raises(DataError, match="turn the pixels instead"):
        import_picture(noted(format, 6), "x")


@pytest.mark.parametrize("options", [{"progressive": True}, {"optimize": True}, {"restart_marker_rows": 1}])
def test_jpegs_of_all_kinds_stay_whole(options):
    before = saved("JPEG", **options)
    assert opened(import_picture(before, "x")[1].content).tobytes() == opened(before).tobytes()


def test_colour_profiles_and_animations_stay():
    profile = pytest.importorskip("PIL.ImageCms").ImageCmsProfile(
        pytest.importorskip("PIL.ImageCms").createProfile("sRGB")
    )
    for format in ("PNG", "JPEG", "WEBP"):
        before = saved(format, icc_profile=profile.tobytes())
        assert opened(import_picture(before, "x")[1].content).info["icc_profile"] == profile.tobytes()
    frames = [PIL.new("RGB", (5, 5), colour) for colour in ("red", "green", "blue")]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], loop=0)
    after = opened(import_picture(out.getvalue(), "x")[1].content)
    assert (after.n_frames, after.info["loop"]) == (3, 0)


@pytest.mark.parametrize("format", FORMATS)
def test_case_64_a_picture_that_is_cut_off_is_refused(format):
    whole = saved(format)
    for length in range(12, len(whole) - 3, max(1, len(whole) // 60)):
        with pytest.raises(DataError, match="damaged picture"):
            import_picture(whole[:length], "here")


@pytest.mark.parametrize(
    "content",
    [
        b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        b"<!doctype html><script>alert(1)</script>",
        b"",
        b"RIFF\x04\x00\x00\x00WAVE",
        b"\x00\x00\x01\x00",
    ],
)
def test_case_64_what_is_no_picture_is_refused_whatever_its_name(tmp_path, content):
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(DataError, match="is not a PNG, JPEG, WebP or GIF picture"):
        load_picture((tmp_path / "a.png").relative_to(tmp_path), tmp_path, "pairs:1")


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
def test_case_64_broken_bytes_are_refused_or_harmless_and_never_crash(format, data):
    whole = bytearray(noted(format))
    for _ in range(data.draw(st.integers(1, 5))):
        whole[data.draw(st.integers(8, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        _, picture = import_picture(bytes(whole), "x")
    except DataError:
        return
    assert len(picture.content) <= len(whole) + 64


def test_a_png_with_a_wrong_checksum_is_refused():
    whole = bytearray(saved("PNG"))
    whole[20] ^= 1
    with pytest.raises(DataError, match="checksum"):
        import_picture(bytes(whole), "x")


def test_case_64_a_file_of_200_megabytes_is_refused_unread(tmp_path):
    with open(tmp_path / "big.png", "wb") as file:
        file.truncate(200 * 10**6)
    with pytest.raises(DataError, match="has 200,000,000 bytes; at most 20,971,520"):
        load_picture((tmp_path / "big.png").relative_to(tmp_path), tmp_path, "pairs:1")


@pytest.mark.parametrize("format", FORMATS)
def test_a_picture_of_too_many_pixels_is_refused(monkeypatch, format):
    monkeypatch.setattr(images, "MOST_PIXELS", 31 * 17 - 1)
    with pytest.raises(DataError, match="31 x 17 pixels; at most 526 are shown"):
        import_picture(saved(format), "x")
    monkeypatch.setattr(images, "MOST_PIXELS", 31 * 17)
    import_picture(saved(format), "x")
