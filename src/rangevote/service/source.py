"""Where answers come from: the seam between the web application and `Upstream` or `Local`."""

from __future__ import annotations

from typing import Any, Protocol

from rangevote.service.outcome import Outcome
from rangevote.service.request import Order


class Source(Protocol):
    """Where answers come from: `Upstream` or `Local`."""

    async def __aenter__(self) -> Any: ...
    async def __aexit__(self, *error: Any) -> None: ...

    async def models(self) -> tuple[str, ...]:
        """The models that clients may ask for."""

    async def check_ready(self) -> None:
        """A `Problem` where there will be no answers."""

    def check(self, order: Order) -> None:
        """A `Problem` where this source cannot do what is asked."""

    async def elect(self, order: Order, deadline: float) -> Outcome:
        """The election; `deadline` is a time of `time.monotonic()`."""
