"""Compressed bytes to plain ones, chunk by chunk, known by their first bytes.

What is damaged or cut off is said after everything before the damage has been handed on.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from rangevote.errors import DataError, need

#: Plain bytes are gathered up to about this many before they are handed on.
GATHER = 2**18
#: Below this many plain bytes, any rate of expansion is let pass.
EXPANSION_FLOOR = 2**28
#: Plain bytes per compressed byte above which a file is taken for a decompression bomb.
MAX_EXPANSION = 500.0

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_UNSUPPORTED = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
    b"\x04\x22\x4d\x18": "lz4",
}


class Engine(Protocol):
    """What zlib and both zstd packages offer for decoding one stream."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


@dataclass(frozen=True)
class Codec:
    """A way to decode; `feed` bytes at a time, so that no single step can fill the memory."""

    name: str
    start: Callable[[], Engine]
    feed: int
    errors: tuple[type[Exception], ...]


def codec_of(head: bytes) -> Codec | None:
    """The codec that a file beginning with `head` needs, None for plain bytes."""
    if head.startswith(_GZIP):
        # 1 byte of deflate gives at most 1,032: 16 MiB a step
        return Codec("gzip", lambda: zlib.decompressobj(31), 2**14, (zlib.error,))
    # a zstd file may begin with a skippable frame, numbered 0x184D2A50 to 5F
    if head.startswith(_ZSTD) or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        return _zstd()
    for magic, name in _UNSUPPORTED.items():
        if head.startswith(magic):
            raise DataError(f"is a {name} file, which is not supported; unpack it first")
    return None


def _zstd() -> Codec:
    feed = 2**11  # 4 bytes of zstd give at most 128 KiB: 64 MiB a step
    try:
        module = importlib.import_module("compression.zstd")  # Python 3.14
    except ImportError:
        module = need("zstandard", "zstd", "reading zstd files")
        return Codec("zstd", lambda: module.ZstdDecompressor().decompressobj(), feed, (module.ZstdError,))
    return Codec("zstd", module.ZstdDecompressor, feed, (module.ZstdError,))


def expand(chunks: Iterable[bytes], codec: Codec, max_expansion: float = MAX_EXPANSION) -> Iterator[bytes]:
    """The plain bytes of one or more compressed streams on end (as `cat a.gz b.gz` gives)."""
    gathered: list[bytes] = []
    size = 0
    try:
        for plain in _steps(chunks, codec, max_expansion):
            gathered.append(plain)
            size += len(plain)
            if size >= GATHER:
                yield b"".join(gathered)
                gathered, size = [], 0
    except DataError:
        yield b"".join(gathered)
        raise
    yield b"".join(gathered)


def _steps(chunks: Iterable[bytes], codec: Codec, max_expansion: float) -> Iterator[bytes]:
    """What each feed of the decoder gives, until the end, the damage or the limit."""
    engine = codec.start()
    taken = given = 0
    for piece in _feeds(chunks, codec.feed):
        taken += len(piece)
        while piece:
            if engine.eof:
                piece = piece.lstrip(b"\0")  # tapes and disks pad with zeros
                if not piece:
                    break
                engine = codec.start()
            try:
                plain = engine.decompress(piece)
            except codec.errors as error:
                raise DataError(
                    f"the {codec.name} data is damaged near byte {taken:,} ({error}); "
                    f"everything before that was read"
                ) from error
            piece = engine.unused_data if engine.eof else b""
            given += len(plain)
            yield plain
        _refuse_bomb(codec, taken, given, max_expansion)
    if not engine.eof:
        raise DataError(f"the {codec.name} data is cut off: the file ends in the middle of it")


def _feeds(chunks: Iterable[bytes], feed: int) -> Iterator[bytes]:
    for data in chunks:
        for start in range(0, len(data), feed):
            yield data[start : start + feed]


def _refuse_bomb(codec: Codec, taken: int, given: int, max_expansion: float) -> None:
    if given > EXPANSION_FLOOR and given > max_expansion * taken:
        raise DataError(
            f"{taken:,} bytes of {codec.name} data expand to {given:,}, more than "
            f"{max_expansion:g} times as many; if this is no decompression bomb, unpack the file first"
        )
