"""PNG: chunks of length, name, data, checksum. What is drawn stays, texts and dates go."""

from __future__ import annotations

import struct
import zlib

from rangevote.study.pictures.parts import Stripped, Torn, refuse_turned, whole

_KEPT = {
    *(b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"sBIT", b"pHYs"),
    *(b"bKGD", b"cICP", b"acTL", b"fcTL", b"fdAT"),
}


def stripped(content: bytes) -> Stripped:
    """Without texts, dates, Exif and anything after the end."""
    out, place, size = [content[:8]], 8, (0, 0)
    while True:
        (length,) = struct.unpack(">I", whole(content, place, 4))
        name = whole(content, place + 4, 4)
        data = whole(content, place + 8, length)
        (checksum,) = struct.unpack(">I", whole(content, place + 8 + length, 4))
        if zlib.crc32(name + data) != checksum:
            raise Torn(f"the checksum of {name!r} is wrong")
        if name == b"IHDR":
            size = struct.unpack(">II", whole(data, 0, 8))
        if name == b"eXIf":
            refuse_turned(data)
        if name in _KEPT:
            out.append(content[place : place + 12 + length])
        place += 12 + length
        if name == b"IEND":
            return Stripped(b"".join(out), *size)
