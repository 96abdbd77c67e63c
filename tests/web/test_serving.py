"""An application on a port of this machine."""

from __future__ import annotations

import asyncio
import socket

import pytest

pytest.importorskip("uvicorn", reason="the extra 'web' is not installed")

from rangevote.errors import SetupError
from rangevote.web.serving import address, bound, is_local


def test_port_0_takes_a_free_one():
    with bound("127.0.0.1", 0) as one, bound("127.0.0.1", 0) as other:
        assert address(one) != address(other)
        assert address(one).startswith("http://127.0.0.1:")


def test_an_address_that_cannot_be_is_told_with_what_to_do():
    with bound("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        for host, number, option in (
            ("127.0.0.1", port, "--port"),
            ("127.0.0.1", 70_000, "--port"),
            ("no such host", 0, "--host"),
        ):
            with pytest.raises(SetupError, match=f"cannot listen on .* Choose another {option}"):
                bound(host, number)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_addresses_of_ipv6_get_brackets():
    try:
        listening = bound("::1", 0)
    except SetupError:
        pytest.skip("no IPv6 loopback here")
    with listening:
        assert address(listening).startswith("http://[::1]:")


def test_loopback_is_told_from_the_rest():
    assert all(map(is_local, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_local, ("0.0.0.0", "x.y")))


def test_answers_are_not_held_back_until_the_client_has_confirmed_their_head():
    """Else every answer on a connection that is kept open comes some 40 ms late."""

    async def connection_made() -> int:
        found = asyncio.get_running_loop().create_future()

        class Noted(asyncio.Protocol):
            def connection_made(self, transport):
                connection = transport.get_extra_info("socket")
                found.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

        listening = bound("127.0.0.1", 0)
        async with await asyncio.get_running_loop().create_server(Noted, sock=listening):
            with socket.create_connection(listening.getsockname()):
                return await found

    assert asyncio.run(connection_made())
