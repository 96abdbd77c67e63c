"""Requests whose end, or whose headers, two servers may read differently."""

from __future__ import annotations

_START = b"POST /v1/chat/completions HTTP/1.1\r\n"
_HEADERS = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\n"
_CHUNKED = _START + _HEADERS + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"

AMBIGUOUS = {
    "length, then chunked": _START
    + _HEADERS
    + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "chunked, then length": _START
    + _HEADERS
    + b"transfer-encoding: chunked\r\nX: y\r\ncontent-length: 12\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "lines end in LF": _START.replace(b"\r", b"") + _HEADERS.replace(b"\r", b"") + b"Content-Length: 2\n\n{}",
    "one line ends in LF": _START + b"X: y\n" + _HEADERS + b"Content-Length: 2\r\n\r\n{}",
    "the empty line ends in LF": _START + _HEADERS + b"Content-Length: 2\r\n\n{}",
    "folded by a space": _START + _HEADERS + b"X: y\r\n Content-Length: 20\r\nContent-Length: 2\r\n\r\n{}",
    "folded by a tab": _START + _HEADERS + b"Content-Length:\r\n\t2\r\n\r\n{}",
    "chunks end in LF": _CHUNKED + b"\n",
    "trailers end in LF": _CHUNKED + b"X: y\n\n",
    "folded trailers": _CHUNKED + b"X: y\r\n z\r\n\r\n",
}
