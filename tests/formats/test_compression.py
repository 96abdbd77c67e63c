from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import types
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from rangevote.errors import DataError, MissingExtra
from rangevote.formats import stream
from rangevote.formats.stream import open_stream

TEXT = b"".join(b"line %d of some text\n" % i for i in range(20_000))


def zstd(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    return bytes(zstandard.ZstdCompressor().compress(data))


PACKERS = pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
Pack = Callable[[bytes], bytes]


def lines_of(data: bytes, **options: float) -> list[bytes]:
    return list(open_stream(io.BytesIO(data), **options).lines())


@PACKERS
def test_compressed_files_are_known_by_their_bytes(pack: Pack, tmp_path: Path) -> None:
    path = tmp_path / "no_telling_name"
    path.write_bytes(pack(TEXT))
    with open_stream(path) as stream:
        assert b"\n".join([*stream.lines(), b""]) == TEXT
        assert stream.position == stream.size == path.stat().st_size


@PACKERS
def test_compressed_files_put_on_end_are_one(pack: Pack) -> None:
    assert lines_of(pack(b"a\nb") + pack(b"") + pack(b"c\n")) == [b"a", b"bc"]


@PACKERS
def test_zeros_after_the_end_are_padding(pack: Pack) -> None:
    assert lines_of(pack(b"a\n") + b"\0" * 512) == [b"a"]


@PACKERS
def test_a_byte_order_mark_inside_is_skipped(pack: Pack) -> None:
    assert lines_of(pack(b"\xef\xbb\xbfa\n")) == [b"a"]


@PACKERS
def test_what_stands_before_the_cut_is_read(pack: Pack) -> None:
    packed = pack(TEXT)
    lines = open_stream(io.BytesIO(packed[: len(packed) * 3 // 4])).lines()
    seen: list[bytes] = []
    with pytest.raises(DataError, match=r"input: the (gzip|zstd) data is cut off"):
        seen.extend(lines)
    assert len(seen) > 1000
    assert seen == TEXT.split(b"\n")[: len(seen)]


def test_a_checksum_that_is_missing_is_a_cut() -> None:
    packed = gzip.compress(b"a\nb\n")
    stream = open_stream(io.BytesIO(packed[:-4]))
    lines = stream.lines()
    assert [next(lines), next(lines)] == [b"a", b"b"]
    with pytest.raises(DataError, match="cut off"):
        next(lines)


@PACKERS
def test_damage_is_named(pack: Pack) -> None:
    packed = bytearray(pack(TEXT))
    packed[-6:] = b"\xff" * 6
    with pytest.raises(DataError, match=r"(gzip|zstd) data is damaged near byte [\d,]+ \("):
        lines_of(bytes(packed) + b"\xff" * 6)


def test_rubbish_after_the_end_is_damage() -> None:
    with pytest.raises(DataError, match=r"damaged near byte .* everything before that was read"):
        lines_of(gzip.compress(b"a\n") + b"rubbish that follows")


@PACKERS
def test_a_bomb_is_stopped(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "EXPANSION_FLOOR", 2**20)
    packed = pack(b"\n" * 2**22)
    with pytest.raises(DataError, match=r"expand to [\d,]+, more than 500 times .* unpack the file"):
        lines_of(packed)


def test_what_expands_much_is_read_if_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "EXPANSION_FLOOR", 2**20)
    packed = gzip.compress(b"\n" * 2**21)
    assert len(lines_of(packed, max_expansion=1e9)) == 2**21


@PACKERS
def test_a_bomb_of_one_line_is_stopped_by_the_limit_on_lines(pack: Pack) -> None:
    stream = open_stream(io.BytesIO(pack(b"x" * 2**24)))
    with pytest.raises(DataError, match="line exceeds --max-line-bytes"):
        list(stream.lines(2**20))


def test_no_single_step_gives_much() -> None:
    """The worst input there is for zlib: one byte over and over."""
    codec = stream.codec_of(gzip.compress(b""))
    assert codec is not None
    packed = zlib.compress(b"\0" * 2**25, 9)[: codec.feed]
    assert len(zlib.decompressobj().decompress(packed)) < 2**25


@pytest.mark.parametrize(
    ("packed", "name"),
    [
        (bz2.compress(b"a"), "bzip2"),
        (lzma.compress(b"a"), "xz"),
        (b"PK\x03\x04" + bytes(20), "zip"),
    ],
)
def test_other_kinds_are_named(packed: bytes, name: str) -> None:
    with pytest.raises(DataError, match=f"input: is a {name} file, which is not supported"):
        open_stream(io.BytesIO(packed))


def test_zstd_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = zstd(b"a\n")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    with pytest.raises(MissingExtra, match=r'reading zstd files needs .* "rangevote\[zstd\]"'):
        open_stream(io.BytesIO(packed))


def test_zstd_of_the_standard_library_is_taken_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    zstandard = pytest.importorskip("zstandard")
    packed = zstd(b"a\nb\n")
    # stands for Python 3.14's module, which has the same names
    standard = types.ModuleType("compression.zstd")
    standard.ZstdDecompressor = lambda: zstandard.ZstdDecompressor().decompressobj()  # type: ignore[attr-defined]
    standard.ZstdError = zstandard.ZstdError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "compression.zstd", standard)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert lines_of(packed) == [b"a", b"b"]
