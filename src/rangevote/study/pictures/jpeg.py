"""JPEG: segments of a mark, a length and data, then the scans."""

from __future__ import annotations

import struct

from rangevote.study.pictures.parts import Stripped, Torn, only_orientation, orientation, whole

_EXIF = b"Exif\0\0"
#: Frames tell the size; of the marks in this range these three are something else.
_FRAMES = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def stripped(content: bytes) -> Stripped:
    """Without comments, Exif but for the orientation, and the notes of makers."""
    place, kept, size, turn = 2, [], (0, 0), 1
    while True:
        if whole(content, place, 1) != b"\xff":
            raise Torn("a segment is missing")
        mark = whole(content, place + 1, 1)[0]
        if mark == 0xFF:  # filling
            place += 1
            continue
        (length,) = struct.unpack(">H", whole(content, place + 2, 2))
        data = whole(content, place + 4, length - 2)
        if mark in _FRAMES:
            height, width = struct.unpack(">HH", whole(data, 1, 4))
            size = (width, height)
        if mark == 0xE1 and data.startswith(_EXIF):
            turn = orientation(data[len(_EXIF) :])
        if mark == 0xDA:
            break
        if _stays(mark, data):
            kept.append(content[place : place + 2 + length])
        place += 2 + length
    if 0 in size:
        raise Torn("it has no size")
    turned = [_segment(0xE1, _EXIF + only_orientation(turn))] if turn != 1 else []
    return Stripped(b"".join([b"\xff\xd8", *turned, *kept, _scans(content[place:])]), *size)


def _stays(mark: int, data: bytes) -> bool:
    """What is needed to draw: all but comments and applications, of which JFIF, colours and Adobe's."""
    if mark == 0xFE or 0xE0 <= mark <= 0xEF:
        return (
            (mark == 0xE0 and data.startswith(b"JFIF\0"))
            or (mark == 0xE2 and data.startswith(b"ICC_PROFILE\0"))
            or (mark == 0xEE and data.startswith(b"Adobe"))
        )
    return True


def _scans(rest: bytes) -> bytes:
    """To the end of the image; what hides behind it goes, and notes between the scans."""
    kept: list[bytes] = []
    begin = place = 0
    while True:
        place = rest.find(b"\xff", place)
        if place < 0:
            raise Torn("it is cut off")
        mark = whole(rest, place, 2)[1]
        if mark == 0xD9:
            return b"".join([*kept, rest[begin : place + 2]])
        if mark == 0 or mark == 0xFF or 0xD0 <= mark <= 0xD7:  # a byte of the scan, filling, a restart
            place += 1 if mark == 0xFF else 2
            continue
        (length,) = struct.unpack(">H", whole(rest, place + 2, 2))
        past = place + 2 + max(length, 2)
        if not _stays(mark, rest[place + 4 : past]):
            kept.append(rest[begin:place])
            begin = past
        place = past


def _segment(mark: int, data: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, mark, len(data) + 2) + data
