"""Tiny models, made once. Nothing here may reach for the hub."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"

import functools
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'rangevote[models]'")
pytest.importorskip("transformers", reason="needs transformers: pip install 'rangevote[models]'")

from tests.model.huggingface import tiny


@pytest.fixture(scope="session")
def tiny_model() -> Callable[[str], Any]:
    """Makes the tiny model of a kind; the same one every time, so it must be left as it was."""
    return functools.cache(tiny.make)


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return tiny.make_tokenizer()
