"""WebP: chunks of a RIFF file; Exif and XMP go, and the flags that announce them."""

from __future__ import annotations

import struct

from rangevote.study.pictures.parts import Stripped, Torn, refuse_turned, whole

_KEPT = {b"VP8 ", b"VP8L", b"VP8X", b"ICCP", b"ALPH", b"ANIM", b"ANMF"}
_ANNOUNCED = 0x08 | 0x04  # Exif, XMP


def stripped(content: bytes) -> Stripped:
    """Without Exif, XMP and unknown chunks."""
    (length,) = struct.unpack("<I", whole(content, 4, 4))
    end, place = 8 + length, 12
    whole(content, 0, end)
    chunks, size = [], (0, 0)
    while place + 8 <= end:
        name = content[place : place + 4]
        (length,) = struct.unpack("<I", whole(content, place + 4, 4))
        data = whole(content, place + 8, length)
        if name == b"EXIF":
            refuse_turned(data.removeprefix(b"Exif\0\0"))
        if name == b"VP8X":
            data = bytes([data[0] & ~_ANNOUNCED]) + data[1:]
        if name in _KEPT:
            size = _size(name, data) or size if 0 in size else size
            chunks.append(name + struct.pack("<I", length) + data + b"\0" * (length % 2))
        place += 8 + length + length % 2
    if 0 in size:
        raise Torn("it has no size")
    body = b"WEBP" + b"".join(chunks)
    return Stripped(b"RIFF" + struct.pack("<I", len(body)) + body, *size)


def _size(name: bytes, data: bytes) -> tuple[int, int] | None:
    if name == b"VP8X":
        width, height = (int.from_bytes(whole(data, place, 3), "little") + 1 for place in (4, 7))
        return width, height
    if name == b"VP8L":
        bits = int.from_bytes(whole(data, 1, 4), "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if name == b"VP8 ":
        width, height = struct.unpack("<HH", whole(data, 6, 4))
        return width & 0x3FFF, height & 0x3FFF
    return None
