"""A cluster by its address: one that is not there is told at once, one within this machine is found."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from rangevote.errors import SetupError
from rangevote.scale.ray import session
from tests.cli.conftest import run as run


@contextmanager
def listener(host: str) -> Iterator[int]:
    with closing(socket.create_server((host, 0))) as server:
        yield server.getsockname()[1]


@pytest.fixture
def nobody() -> int:
    """A port at which nobody listens."""
    with listener("127.0.0.1") as port:
        return port


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://localhost:{}"])
def test_an_address_at_which_nobody_listens_is_refused_before_ray_is_asked(form, nobody, monkeypatch):
    monkeypatch.setattr(session, "need", lambda *_: pytest.fail("Ray was asked for"))
    address = form.format(nobody)
    with (
        pytest.raises(SetupError, match=f"cannot use Ray at {address}: .*refused. Is it running"),
        session.session(address),
    ):
        pass


def test_the_command_says_so_and_leaves_nothing_behind(run, tmp_path, nobody, monkeypatch):
    monkeypatch.setattr(session, "check_installed", lambda: None)
    pytest.importorskip("pyarrow")
    data = tmp_path / "in.jsonl"
    data.write_text('{"candidates": ["a"]}\n')
    command = ("vote", data, "-o", tmp_path / "out.jsonl", "--engine", "ray")
    done = run(*command, "--ray-address", f"127.0.0.1:{nobody}")
    assert done.code == 5
    assert "connection refused" in done.err
    assert [p.name for p in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_cluster_on_the_loopback_device_is_told_from_one_on_all():
    with listener("127.0.0.1") as port:
        own = session._own_address()
        assert session._within_this_machine(f"127.0.0.1:{port}") == (own != "127.0.0.1")
    with listener("0.0.0.0") as port:
        assert not session._within_this_machine(f"localhost:{port}")
    assert not session._within_this_machine("auto")
    assert not session._within_this_machine("no address: at all")
