"""The process that serves."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")

from rangevote.service import server as serving
from rangevote.service.config import Limits
from rangevote.web.serving import bound


def test_threads_hand_over_sooner_while_it_serves_and_as_before_afterwards(monkeypatch):
    seen, before = [], sys.getswitchinterval()

    class Stub:
        def run(self, sockets):
            seen.append(sys.getswitchinterval())

    monkeypatch.setattr(serving, "server", lambda *given: Stub())
    serving.serve(None, bound("127.0.0.1", 0), Limits())
    assert seen == [pytest.approx(serving.SWITCH_INTERVAL)]
    assert sys.getswitchinterval() == before
    assert before > serving.SWITCH_INTERVAL
