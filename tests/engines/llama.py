"""A real llama.cpp server in this process, with SmolLM2-135M-Instruct; import the fixture `llama`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rangevote.engines.llama_cpp import start_server
from rangevote.errors import SetupError


@pytest.fixture(scope="session")
def llama() -> Any:
    """The server; `llama.listening_address` is where it listens, on loopback."""
    from rangevote.models.load import smollm2

    try:
        return start_server(Path(smollm2()))
    except SetupError as error:
        if os.environ.get("RANGEVOTE_NEEDS_LLAMA"):  # in CI an engine that is missing is a failure
            raise
        pytest.skip(f"needs llama.cpp and a model for it (pip install xllamacpp): {error}")
