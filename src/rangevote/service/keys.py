"""Keys of clients: kept as digests, compared in constant time."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable

from rangevote.errors import DataError

#: Shorter keys can be guessed.
SHORTEST = 16


class Keys:
    """The keys that open the service; none: it is open to whoever reaches it."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._digests = [hashlib.sha256(key.encode()).digest() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def __repr__(self) -> str:
        return f"Keys({len(self._digests)})"

    def open(self, key: bytes) -> bool:
        """Whether this is one of them; all are compared, whichever fits."""
        digest, found = hashlib.sha256(key).digest(), False
        for known in self._digests:
            found |= hmac.compare_digest(known, digest)
        return found

    def admit(self, authorization: bytes) -> bool:
        """Whether a header opens the service: `Bearer KEY`, or from browsers `Basic` with it as password."""
        if not self._digests:
            return True
        scheme, _, given = authorization.partition(b" ")
        if scheme.lower() == b"basic":
            try:
                given = base64.b64decode(given.strip(), validate=True).partition(b":")[2]
            except (binascii.Error, ValueError):
                return False
        elif scheme.lower() != b"bearer":
            return False
        return self.open(given.strip())


def keys_of(text: str, where: str) -> list[str]:
    """Keys, one a line or with commas between; lines that begin with # are left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    keys = [key.strip() for line in lines for key in line.split(",") if key.strip()]
    if not keys:
        raise DataError("holds no key.", where=where)
    for number, key in enumerate(keys, 1):
        if len(key) < SHORTEST or any(character.isspace() for character in key):
            raise DataError(
                f"key {number} is shorter than {SHORTEST} characters or holds a space; make one with: "
                f"openssl rand -hex 32",
                where=where,
            )
    return keys
