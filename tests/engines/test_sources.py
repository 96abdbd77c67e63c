"""The table of engines, and what reading their outputs must not load."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from rangevote.engines import SOURCES, get_source
from rangevote.errors import UnknownName, UsageError


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_every_engine_has_its_function_in_a_module_of_its_name(name):
    assert get_source(name) is importlib.import_module(f"rangevote.engines.{name}").hypotheses_of


def test_an_unknown_engine_is_told_with_the_nearest():
    with pytest.raises(UnknownName, match=r"unknown source 'ctranslate'\. Did you mean 'ctranslate2'"):
        get_source("ctranslate")


@pytest.mark.parametrize("name", sorted(set(SOURCES) - {"transformers"}))  # whose output is of a whole batch
@pytest.mark.parametrize("output", [None, 7, {"choices": []}, "the text"])
def test_a_single_output_is_told_to_go_into_a_list(name, output):
    ends = {"ends": [2]} if name == "vllm" else {}
    with pytest.raises(
        UsageError, match=r"one output for each input, got \w+; a single one goes into a list"
    ):
        get_source(name)(output, **ends)


def test_outputs_are_read_without_their_engine_and_without_a_client_for_servers():
    code = (
        "import sys; from rangevote.engines import SOURCES, get_source; [get_source(n) for n in SOURCES]; "
        "print(sorted({'torch', 'transformers', 'ctranslate2', 'vllm', 'httpx', 'anyio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
