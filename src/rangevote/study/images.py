"""Pictures for a study: recognised by their bytes, freed of what else they tell, known by their content.

A picture's notes may name the place, the camera or the system that made it, so all of them are cut out,
without touching a pixel. Only a JPEG's orientation stays, since it changes what is seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from rangevote.errors import DataError
from rangevote.study.archive import Picture
from rangevote.study.pictures import gif, jpeg, png, webp
from rangevote.study.pictures.parts import Stripped, Torn

#: Largest file, in bytes, and largest picture, in pixels.
MOST_BYTES = 20 * 2**20
MOST_PIXELS = 50_000_000

Strip = Callable[[bytes], Stripped]

#: (first bytes, media type, how to strip it)
KINDS: tuple[tuple[bytes, str, Strip], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png", png.stripped),
    (b"\xff\xd8\xff", "image/jpeg", jpeg.stripped),
    (b"GIF87a", "image/gif", gif.stripped),
    (b"GIF89a", "image/gif", gif.stripped),
    (b"RIFF", "image/webp", webp.stripped),
)


def load_picture(path: Path, root: Path, where: str) -> tuple[str, Picture]:
    """Read a picture below `root`; its SHA-256 and itself, without notes."""
    return import_picture(_content(path, root, where), f"{where}: {path}")


def import_picture(content: bytes, where: str) -> tuple[str, Picture]:
    """The same of bytes."""
    kind, strip = _kind(content)
    if strip is None:
        raise DataError("is not a PNG, JPEG, WebP or GIF picture; convert it first.", where=where)
    try:
        found = strip(content)
    except (Torn, IndexError) as error:
        raise DataError(f"is a damaged picture ({error}).", where=where) from None
    if found.width * found.height > MOST_PIXELS:
        raise DataError(
            f"has {found.width:,} x {found.height:,} pixels; at most {MOST_PIXELS:,} are shown. "
            f"Make it smaller.",
            where=where,
        )
    return hashlib.sha256(found.content).hexdigest(), Picture(kind, found.content)


def _kind(content: bytes) -> tuple[str, Strip | None]:
    for magic, kind, strip in KINDS:
        if content.startswith(magic) and (kind != "image/webp" or content[8:12] == b"WEBP"):
            return kind, strip
    return "", None


def _content(path: Path, root: Path, where: str) -> bytes:
    """The bytes of a file that lies, links followed, below `root`."""
    try:
        if "\0" in str(path):
            raise OSError(None, "a NUL byte in its name")
        real = (root / path).resolve(strict=True)
        if not real.is_relative_to(root.resolve()):
            raise DataError(
                f"the picture {path} lies outside the folder {root}; pictures are only taken from there "
                f"(see --image-root).",
                where=where,
            )
        if real.stat().st_size > MOST_BYTES:
            raise DataError(
                f"the picture {path} has {real.stat().st_size:,} bytes; at most {MOST_BYTES:,} are allowed.",
                where=where,
            )
        return real.read_bytes()
    except OSError as error:
        told = (error.strerror or str(error)).lower()
        raise DataError(f"cannot read the picture {str(path)!r}: {told}.", where=where) from None
