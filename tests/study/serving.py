"""A study on the page: the server in a process of its own, and an annotator at the keyboard."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


class Serving:
    """`rangevote study serve` on a port that stays the same over restarts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "rangevote", "study", "serve", self.path, "--port", self.port]
        self.process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
        self.links = []
        for line in self.process.stderr:  # type: ignore[union-attr]
            self.links += re.findall(r"http://\S+", line)
            if "Ctrl-C" in line:
                return
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self._gone()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self._gone()

    def _gone(self) -> None:
        self.process.wait(30)
        self.process.stderr.close()  # type: ignore[union-attr]


def place(page: Any) -> str:
    return page.inner_text("#place")


def wait_for_place(page: Any, text: str) -> None:
    page.wait_for_function("text => document.getElementById('place').textContent === text", arg=text)


def judge(page: Any, key: str) -> None:
    """Answer by keyboard and wait for the next item, or for the end."""
    before = place(page)
    page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.wait_for_function(
        "text => place.textContent !== text || work.hidden",
        arg=before,
    )


def until(condition: Any, seconds: float = 10) -> None:
    """Wait for something on the server's side."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
