"""What reading the outputs of engines must not load, and what is not a list of outputs."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from rangevote.errors import UsageError

ENGINES = ["ctranslate2", "llama_cpp", "openai", "transformers", "vllm"]


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "transformers"])  # a whole batch
@pytest.mark.parametrize("output", [None, {"choices": []}, "the text"])
def test_a_single_output_is_told_to_go_into_a_list(name, output):
    hypotheses_of = importlib.import_module(f"rangevote.engines.{name}").hypotheses_of
    ends = {"ends": [2]} if name == "vllm" else {}
    with pytest.raises(
        UsageError, match=r"one output for each input, got \w+; put a single output into a list"
    ):
        hypotheses_of(output, **ends)


def test_outputs_are_read_without_their_engine_and_without_a_client_for_servers():
    modules = ", ".join(f"rangevote.engines.{name}" for name in ENGINES)
    heavy = {"torch", "transformers", "ctranslate2", "vllm", "httpx", "anyio"}
    code = f"import sys, {modules}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
