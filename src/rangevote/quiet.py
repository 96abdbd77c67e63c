"""What is said while a model loads: nothing by transformers, and by us what the command line asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any


class WhileLoading:
    """`show(name)` is entered while a model loads; the command line sets it to a line on the terminal."""

    show: Callable[[str], AbstractContextManager[None]] = staticmethod(lambda name: nullcontext())


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
