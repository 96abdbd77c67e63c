"""Keep transformers from writing to the terminal; what matters, we say in errors and warnings of our own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def quiet() -> Iterator[None]:
    """No log messages and no progress bars of transformers; the settings come back afterwards."""
    from transformers.utils import logging as library

    logging: Any = library
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
