"""GIF: blocks; comments, plain texts and programs' notes go, but for the one that repeats an animation."""

from __future__ import annotations

import struct

from rangevote.study.pictures.parts import Stripped, Torn, whole

_REPEAT = (b"NETSCAPE2.0", b"ANIMEXTS1.0")


def stripped(content: bytes) -> Stripped:
    """Without comments and other notes."""
    width, height, flags = struct.unpack("<HHB", whole(content, 6, 5))
    place = 13 + _colours(flags)
    out = [whole(content, 0, place)]
    while True:
        kind, start = whole(content, place, 1)[0], place
        if kind == 0x3B:
            return Stripped(b"".join([*out, b";"]), width, height)
        if kind == 0x2C:
            place += 10 + _colours(whole(content, place + 9, 1)[0]) + 1
            stays = True
        elif kind == 0x21:
            label = whole(content, place + 1, 1)[0]
            stays = label == 0xF9 or (label == 0xFF and content[place + 3 : place + 14] in _REPEAT)
            place += 2
        else:
            raise Torn("a block is of no known kind")
        place = _past_blocks(content, place)
        if stays:
            out.append(content[start:place])


def _colours(flags: int) -> int:
    """The bytes of a colour table."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _past_blocks(content: bytes, place: int) -> int:
    while length := whole(content, place, 1)[0]:
        whole(content, place + 1, length)
        place += 1 + length
    return place + 1
