"""Images that pages show: their type is recognised by their first bytes, and they are served as they are.

Notes in a file, such as Exif, stay in it; `rangevote study new` warns of them.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from rangevote.errors import DataError

#: Largest file, in bytes.
MOST_BYTES = 20 * 2**20
#: Media type -> how files of it begin: the four that every browser shows.
BEGINNINGS = {
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/gif": rb"GIF8[79]a",
    "image/webp": rb"(?s:RIFF.{4}WEBP)",
}
#: How Exif and XMP begin, in any of the four, and how far from either end of a file they are looked for.
NOTES, REACH = re.compile(rb"Exif\0\0|eXIf|EXIF|XMP |ns\.adobe\.com/xap|XML:com\.adobe\.xmp"), 64 * 1024


class PageImage(NamedTuple):
    """An image as it is served: its media type and its bytes."""

    type: str
    content: bytes

    @property
    def has_notes(self) -> bool:
        """Whether the file seems to have Exif or XMP, which may name a place, a person or a program."""
        return bool(NOTES.search(self.content[:REACH] + self.content[-REACH:]))


def load_image(path: Path, root: Path, where: str) -> tuple[str, PageImage]:
    """Read an image that lies, links followed, below `root`; its SHA-256, and itself."""
    try:
        if "\0" in str(path):
            raise OSError(None, "a NUL byte in its name")
        real = (root / path).resolve(strict=True)
        if not real.is_relative_to(root.resolve()):
            problem = f"lies outside the folder {root}; images are only taken from there (see --image-root)"
            raise DataError(f"the image {path} {problem}.", where=where)
        if real.stat().st_size > MOST_BYTES:
            problem = f"has {real.stat().st_size:,} bytes; at most {MOST_BYTES:,} are allowed"
            raise DataError(f"the image {path} {problem}.", where=where)
        content = real.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"cannot read the image {str(path)!r}: {reason}.", where=where) from None
    for media_type, beginning in BEGINNINGS.items():
        if re.match(beginning, content):
            return hashlib.sha256(content).hexdigest(), PageImage(media_type, content)
    raise DataError("is not a PNG, JPEG, WebP or GIF image; convert it first.", where=f"{where}: {path}")
