"""Wait for what another thread or process does, for as long as a busy machine needs."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds after which a test fails that waits in vain. A test that passes never waits for them.
PATIENCE = 120.0


def until(true: Callable[[], object], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "never came true"
        time.sleep(0.01)
