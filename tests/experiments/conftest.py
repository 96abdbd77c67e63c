"""Tests of training run on one thread: tiny networks gain nothing from more, and sums keep their order."""

from __future__ import annotations

import importlib.util

import pytest

#: What experiments are made of: the extras 'models' and 'evaluate'.
NEEDED = ("torch", "tokenizers", "safetensors", "sacrebleu", "scipy", "matplotlib")
if any(importlib.util.find_spec(name) is None for name in NEEDED):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def one_thread():
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
