"""HTTP/1.1 without what servers read differently: a request that one takes for two is refused, never guessed.

h11 follows the older rules, by which a line may end in a bare LF, a header go on in the next line, and
`Transfer-Encoding` outweigh `Content-Length`. A proxy before us may see the end of a request elsewhere.
"""

from __future__ import annotations

from typing import Any

import h11
from h11._receivebuffer import ReceiveBuffer  # where heads and trailers are still bytes
from uvicorn.protocols.http.h11_impl import H11Protocol

#: Two headers for the length of one body.
LENGTHS = frozenset({b"content-length", b"transfer-encoding"})


class StrictBuffer(ReceiveBuffer):
    """What a client sent; a head, or trailers after a body, that can be misread is an error."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        sent = bytes(self)
        head = b"" if sent.startswith(b"\r\n") else sent.partition(b"\r\n\r\n")[0]
        if head.count(b"\n") != head.count(b"\r\n"):
            raise h11.LocalProtocolError("a line ends without CR")
        if b"\r\n " in head or b"\r\n\t" in head:
            raise h11.LocalProtocolError("a header is folded")
        lines = super().maybe_extract_lines()
        if {bytes(line.partition(b":")[0]).lower() for line in lines or ()} >= LENGTHS:
            raise h11.LocalProtocolError("Content-Length beside Transfer-Encoding")
        return lines


class StrictProtocol(H11Protocol):
    """A request that can be misread is answered with 400, and its connection closed."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.conn._receive_buffer = StrictBuffer()

    def send_400_response(self, msg: str) -> None:
        self.abandon()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # an answer has begun
            self.transport.close()

    def abandon(self) -> None:
        """Nothing more is sent by whoever works on the request."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
