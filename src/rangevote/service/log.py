"""The log: one JSON object a line on standard error, ASCII alone, so that nothing in it can forge a line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from threading import Lock
from typing import Any

#: Characters of one value.
LONGEST = 500
_lock = Lock()

Log = Callable[..., None]


def to_stderr(event: str, **fields: Any) -> None:
    """Write what happened; prompts, answers and keys are never among the fields."""
    line = written(event, fields) + "\n"
    with _lock:
        try:
            sys.stderr.write(line)
            sys.stderr.flush()
        except (OSError, ValueError):  # nobody reads the log: no reason to stop serving
            pass


def nowhere(event: str, **fields: Any) -> None:
    """Keep nothing."""


def written(event: str, fields: dict[str, Any]) -> str:
    """The line, without its end."""
    time = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return json.dumps({"time": time, "event": event, **{name: _short(v) for name, v in fields.items()}})


def _short(value: Any) -> Any:
    return value[:LONGEST] + "..." if isinstance(value, str) and len(value) > LONGEST else value
