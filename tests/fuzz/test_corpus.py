"""Every target of fuzz/ on its samples, on every case that was found, and on hundreds of changes of them."""

from __future__ import annotations

import traceback

import pytest

from fuzz.mutate import Mutations
from fuzz.targets import CORPUS, TARGETS, attempt, seeds, tokens

CASES = [(name, path) for name in TARGETS for path in seeds(name)]


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """No backtraces of Rust's panics, no models from the network."""
    monkeypatch.setenv("RUST_BACKTRACE", "0")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def function_of(name):
    target = TARGETS[name]
    if target.missing:
        pytest.skip(f"{target.needs} is not installed")
    return target.load()


def shown(error, data):
    return f"{data!r}\n{''.join(traceback.format_exception(error))}"


@pytest.mark.parametrize(
    ("name", "path"), CASES, ids=[f"{path.parent.name}-{path.name}" for _, path in CASES]
)
def test_a_case_of_the_corpus_is_read_or_refused(name, path):
    data = path.read_bytes()
    error = attempt(function_of(name), data)
    assert error is None, shown(error, data)


@pytest.mark.parametrize("name", TARGETS)
def test_changed_samples_are_read_or_refused(name):
    function = function_of(name)
    inputs = Mutations([path.read_bytes() for path in seeds(name)], tokens(name), seed=1)
    for _ in range(TARGETS[name].quick):
        data = inputs.next()
        error = attempt(function, data)
        assert error is None, shown(error, data)


def test_every_target_has_samples_and_every_sample_a_target():
    assert {name for name, _ in CASES} == set(TARGETS)
    assert {path.name for path in CORPUS.iterdir()} == {name.replace(" ", "-") for name in TARGETS}


def test_the_corpus_is_small():
    assert sum(path.stat().st_size for _, path in CASES) < 200_000
