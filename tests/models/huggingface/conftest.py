"""Tiny models, made once. Nothing here may reach for the hub."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
torch = pytest.importorskip("torch", reason="needs torch: pip install 'rangevote[models]'")
pytest.importorskip("transformers", reason="needs transformers: pip install 'rangevote[models]'")

from tests.models.huggingface import tiny  # noqa: E402


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Threads only wait for each other over models this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny_model() -> Callable[[str], Any]:
    """Makes the tiny model of a kind; the same one every time, so it must be left as it was."""
    return functools.cache(tiny.make)


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """Words apart at spaces, no chat template."""
    return tiny.make_tokenizer()
