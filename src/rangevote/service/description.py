"""The service as OpenAPI tells it: `openapi.json` beside this file, written by hand, served as it is.

A test compares it with the addresses, parameters and options that there are.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files


@lru_cache(maxsize=1)
def openapi() -> bytes:
    """The file."""
    return files("rangevote.service").joinpath("openapi.json").read_bytes()
