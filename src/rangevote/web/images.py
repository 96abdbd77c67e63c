"""Images that pages show: their type is recognised by their first bytes, and they are served as they are.

Notes in a file, such as Exif, stay in it: remove them beforehand where they name a person or a system.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from rangevote.errors import DataError

#: Largest file, in bytes.
MOST_BYTES = 20 * 2**20
#: (first bytes, media type)
SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class PageImage(NamedTuple):
    """An image as it is served: its media type and its bytes."""

    type: str
    content: bytes


def load_image(path: Path, root: Path, where: str) -> tuple[str, PageImage]:
    """Read an image below `root`; its SHA-256, and itself."""
    content = _content(path, root, where)
    media_type = image_type(content)
    if media_type is None:
        raise DataError("is not a PNG, JPEG, WebP or GIF image; convert it first.", where=f"{where}: {path}")
    return hashlib.sha256(content).hexdigest(), PageImage(media_type, content)


def image_type(content: bytes) -> str | None:
    """The media type, None for anything but the four that every browser shows."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in SIGNATURES if content.startswith(start)), None)


def _content(path: Path, root: Path, where: str) -> bytes:
    """The bytes of a file that lies, links followed, below `root`."""
    try:
        if "\0" in str(path):
            raise OSError(None, "a NUL byte in its name")
        real = (root / path).resolve(strict=True)
        if not real.is_relative_to(root.resolve()):
            raise DataError(
                f"the image {path} lies outside the folder {root}; images are only taken from there "
                f"(see --image-root).",
                where=where,
            )
        if real.stat().st_size > MOST_BYTES:
            raise DataError(
                f"the image {path} has {real.stat().st_size:,} bytes; at most {MOST_BYTES:,} are allowed.",
                where=where,
            )
        return real.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"cannot read the image {str(path)!r}: {reason}.", where=where) from None
