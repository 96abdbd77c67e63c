"""A real llama.cpp server in this process, with SmolLM2-135M-Instruct; import the fixture `llama`."""

from __future__ import annotations

import os
from typing import Any

import pytest

from rangevote.errors import SetupError

#: What the server has room for at once, which is also the greatest `n` that it takes.
SLOTS = 2


@pytest.fixture(scope="session")
def llama() -> Any:
    """The server; `llama.listening_address` is where it listens, on loopback."""
    from rangevote.models.load import smollm2

    try:
        import xllamacpp

        path = smollm2()
    except (ImportError, SetupError) as error:
        if os.environ.get("RANGEVOTE_NEEDS_LLAMA"):  # in CI an engine that is missing is a failure
            raise
        pytest.skip(f"needs llama.cpp and a model for it (pip install xllamacpp): {error}")
    settings = xllamacpp.CommonParams()
    settings.model.path = path
    settings.n_ctx, settings.n_parallel, settings.warmup, settings.verbosity = 1024, SLOTS, False, -1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    return xllamacpp.Server(settings)
