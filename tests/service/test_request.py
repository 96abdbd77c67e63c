"""Requests of any shape: a checked order or a problem that names a field, never a mistake of ours."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")

from hypothesis import given
from hypothesis import strategies as st

from rangevote.service.config import CHECKS, ServiceConfig
from rangevote.service.errors import ApiError
from rangevote.service.requests import CHAT, COMPLETIONS, OWN, PASSED, TOOLS, read_request

SETTINGS = ServiceConfig(upstream="http://127.0.0.1:1/v1", forward=frozenset({"more"}))
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
NAMES = sorted({*PASSED, *CHAT, *COMPLETIONS, *OWN, *TOOLS, "more", "other", "api_base"})
ELECTION = sorted({*CHECKS, "similarity", "preset", "weights", "temperature", "rule", "tokenize", "merge"})
messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "system", "x"]) | values, "content": values}),
    max_size=3,
)
bodies = st.fixed_dictionaries(
    {"model": st.just("tiny") | values, "messages": messages | values},
    optional={
        **{name: values for name in NAMES if name not in ("model", "messages", "rangevote")},
        "rangevote": st.dictionaries(st.sampled_from(ELECTION), values, max_size=3) | values,
    },
)


def read(content, kind, profile):
    try:
        return read_request(content, kind, profile, SETTINGS)
    except ApiError as problem:
        return problem


@given(bodies, st.sampled_from(["chat", "completions"]), st.sampled_from([None, "p"]))
def test_every_object_is_an_order_or_a_problem(body, kind, profile):
    found = read(json.dumps(body).encode(), kind, profile)
    if isinstance(found, ApiError):
        assert found.status in (400, 404)
        assert len(found.message) <= 400
    else:
        assert found.body["model"] == "tiny"
        assert set(found.body) <= set(body)
        assert 1 <= found.n <= found.options.samples <= 64


@given(st.binary(max_size=200))
def test_every_other_body_is_a_problem(content):
    with pytest.raises(ApiError):
        read_request(content, "chat", None, SETTINGS)


def test_what_is_null_was_not_said():
    body = {
        "model": "tiny",
        "prompt": "a",
        "temperature": None,
        "tools": None,
        "rangevote": {"samples": None},
    }
    order = read_request(json.dumps(body).encode(), "completions", None, SETTINGS)
    assert order.body == {"model": "tiny", "prompt": "a"}
    assert order.options.samples == 16


@pytest.mark.parametrize(("prompt", "expected"), [(["a"], "a"), ([[1, 2]], [1, 2]), ([3], [3]), ("", "")])
def test_a_list_of_one_prompt_is_that_prompt(prompt, expected):
    body = json.dumps({"model": "tiny", "prompt": prompt}).encode()
    assert read_request(body, "completions", None, SETTINGS).body["prompt"] == expected


@pytest.mark.parametrize("prompt", [["a", "b"], [], [[1], [2]], [1, "a"], {}, 7, [True]])
def test_several_prompts_are_several_elections(prompt):
    body = json.dumps({"model": "tiny", "prompt": prompt}).encode()
    with pytest.raises(ApiError, match="prompt must be one text"):
        read_request(body, "completions", None, SETTINGS)


@pytest.mark.parametrize("role", [{}, [], ["user"], 7, True, "User", ""])
def test_a_role_that_is_none_is_named(role):
    body = json.dumps({"model": "tiny", "messages": [{"role": role, "content": "a"}]}).encode()
    with pytest.raises(ApiError, match=r"messages\[0\]\.role must be one of assistant, "):
        read_request(body, "chat", None, SETTINGS)


@pytest.mark.parametrize(
    ("value", "taken"), [([], True), ("none", True), (False, True), (0, False), ("", False)]
)
def test_only_what_asks_for_no_tools_is_taken(value, taken):
    body = {"model": "tiny", "messages": [{"role": "user", "content": "a"}], "tools": value}
    found = read(json.dumps(body).encode(), "chat", None)
    assert isinstance(found, ApiError) is not taken
