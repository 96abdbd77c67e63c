"""Outputs of llama.cpp: from llama-cpp-python (`create_completion`, `create_chat_completion`), through
xllamacpp (`handle_completions`, `handle_chat_completions`), or from its server.

    calls = [[llm.create_completion(prompt, logprobs=1, seed=s) for s in range(20)] for prompt in prompts]
    hypotheses_of(calls)

All return OpenAI's shapes. Log-probabilities are natural and the model's own, before temperature and
truncation. llama-cpp-python needs `Llama(..., logits_all=True)` for them, omits the end of the sequence and
ignores `n`, and with `echo=True` its sums belong to other tokens. llama.cpp itself includes the end and
accepts `n` up to its number of slots.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rangevote.decoding.base import Search
from rangevote.decoding.sample import Sampling
from rangevote.engines.openai import hypotheses_of as hypotheses_of
from rangevote.errors import DataError, MissingExtra, SetupError
from rangevote.hypothesis import Hypothesis

#: Samples that are drawn in parallel, and the most that one call returns; tokens of each with its prompt.
SLOTS, CONTEXT = 4, 4096


def start_server(path: Path, *, key: str = "") -> Any:
    """llama.cpp's own server, in threads of this process; its `listening_address` is on loopback.

    Weights and chat template are those of the file. With a `key`, requests over HTTP need it.
    """
    try:
        xllamacpp = importlib.import_module("xllamacpp")
    except ImportError as error:
        raise MissingExtra(
            "running llama.cpp needs the package 'xllamacpp', which is not installed. "
            "Install it with: pip install xllamacpp"
        ) from error
    settings = xllamacpp.CommonParams()
    settings.model.path, settings.model_alias = os.fspath(path), {path.stem}
    settings.n_ctx, settings.n_parallel = CONTEXT * SLOTS, SLOTS
    settings.warmup, settings.verbosity = False, -1
    if key:
        settings.api_keys = [key]
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdecimal() and int(threads) > 0:
        settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = int(threads)
    try:
        return xllamacpp.Server(settings)
    except (RuntimeError, ValueError) as error:
        raise SetupError(f"llama.cpp cannot load {path}: {error}.") from None


class LlamaCppEngine:
    """A GGUF file in llama.cpp in this process, through xllamacpp; it samples, since it has no beam search.

    Samples follow the seed in the order of the inputs: the same run draws the same.
    """

    def __init__(self, path: Path, *, chat: bool = True) -> None:
        self._server = start_server(path)
        self._name, self._chat, self._asked = path.name, chat, 0

    def hypotheses(self, inputs: Sequence[Any], search: Search) -> list[list[Hypothesis]]:
        """The hypotheses of a search for each input, best first, with the model's own log-probabilities."""
        from rangevote.engines.openai.generating import RequestBuilder, check_search
        from rangevote.generation.generate import Request
        from rangevote.generation.plan import derived_seed

        check_search(search, "llama_cpp")
        assert isinstance(search, Sampling)
        builder = RequestBuilder("llama_cpp", (self._name,), self._chat, logprobs=True)
        lists = []
        for i, input in enumerate(inputs):
            query = builder.query(search, Request.of(i, input), "voters")
            seed = derived_seed(search.seed, 0, self._asked)  # of the first sample; the others count from it
            self._asked += 1
            responses = [
                self._call(query.path, {**query.body, "n": n, "seed": seed + drawn}, i)
                for drawn in range(0, search.size, SLOTS)
                if (n := min(SLOTS, search.size - drawn))
            ]
            [samples] = hypotheses_of([responses])
            lists.append(sorted(samples, key=lambda one: -(one.logprob or 0.0)))
        return lists

    def _call(self, path: str, body: dict[str, Any], number: int) -> Any:
        from rangevote.formats.choices import CHAT

        handle = self._server.handle_chat_completions if path == CHAT else self._server.handle_completions
        try:
            return handle(body)
        except (RuntimeError, ValueError) as error:
            raise DataError(f"llama.cpp refused the request: {error}.", field=f"inputs[{number}]") from None
