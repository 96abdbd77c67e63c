"""What the formats share."""

from __future__ import annotations

import struct
from typing import NamedTuple


class Torn(ValueError):
    """A picture that ends too early or is not built as its format says."""


class Stripped(NamedTuple):
    """A picture without its notes, and its size."""

    content: bytes
    width: int
    height: int


def whole(content: bytes, start: int, length: int) -> bytes:
    """So many bytes from a place, all of them."""
    part = content[start : start + length]
    if len(part) < length:
        raise Torn("it is cut off")
    return part


def orientation(tiff: bytes) -> int:
    """The orientation, 1 to 8, in Exif data that begin at their TIFF header; 1 where they have none."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    try:
        if order is None:
            return 1
        (start,) = struct.unpack_from(f"{order}I", tiff, 4)
        (entries,) = struct.unpack_from(f"{order}H", tiff, start)
        for number in range(entries):
            tag, _, _, value = struct.unpack_from(f"{order}HHIH", tiff, start + 2 + 12 * number)
            if tag == 0x0112 and 1 <= value <= 8:
                return int(value)
    except struct.error:
        return 1
    return 1


def only_orientation(value: int) -> bytes:
    """Exif data that tell the orientation and nothing else."""
    return b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, value, 0, 0)


def refuse_turned(tiff: bytes) -> None:
    """Formats in which browsers differ about the orientation."""
    if orientation(tiff) != 1:
        raise Torn("its Exif notes turn it, which not every browser does; turn the pixels instead")
