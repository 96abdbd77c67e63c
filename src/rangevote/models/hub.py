"""Models on the hub: whether one is downloaded or can be, and how to load it without messages."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from rangevote.errors import SetupError

#: Seconds to wait for a connection.
HUB_TIMEOUT = 3.0


def is_cached(model: str, revision: str | None = None) -> bool:
    """Whether the model was downloaded from the hub before."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        file = try_to_load_from_cache(model, "config.json", revision=revision)
    except HFValidationError as error:
        raise SetupError(f"{model!r} is neither a folder nor a valid name on the hub: {error}") from error
    return isinstance(file, (str, os.PathLike))


def refuse_unreachable(model: str, what: str) -> None:
    """Raise where the hub cannot be asked for a model: the libraries would try for half a minute."""
    from huggingface_hub import constants

    missing = f"{what}: no folder, package or downloaded model has the name {model!r}"
    remedy = "Check the name, or download the model where there is a network and give its folder."
    if constants.HF_HUB_OFFLINE:
        raise SetupError(f"{missing}, and HF_HUB_OFFLINE forbids to fetch it. {remedy}")
    if getproxies():  # then a direct call says nothing about the hub
        return
    address = urlsplit(constants.ENDPOINT)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname or "", port), timeout=HUB_TIMEOUT).close()
    except OSError as error:
        raise SetupError(f"{missing}, and the hub cannot be reached ({error}). {remedy}") from error


class WhileLoading:
    """`show(name)` is entered while a model loads; the command line shows a line on the terminal."""

    show: Callable[[str], AbstractContextManager[None]] = staticmethod(lambda name: nullcontext())


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' messages, warnings and progress bars; its settings are restored afterwards."""
    from transformers.utils import logging as library

    logging: Any = library
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="transformers")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
