"""count_keys: how many keys a JSON text has, by which repeated keys are found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.kernel import plain
from tests.kernel.both import compiled, each_kernel, needs_compiled

strings = st.text(st.one_of(st.sampled_from('":\\{},'), st.characters(exclude_categories=["Cs"])), max_size=6)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), strings),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(strings, inner, max_size=4)),
    max_leaves=12,
)


def keys_in(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(keys_in, value.values()))
    return sum(map(keys_in, value)) if isinstance(value, list) else 0


@each_kernel
@given(value=values, ascii_only=st.booleans())
def test_every_key_is_counted_and_no_colon_inside_a_string(kernel, value, ascii_only):
    line = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert kernel.count_keys(line) == keys_in(value)


@each_kernel
@pytest.mark.parametrize(
    ("line", "keys"),
    [
        (b"", 0),
        (b'{"a": 1, "a": 2}', 2),
        (rb'{"a\"": ":"}', 1),
        (rb'{"a\\": ":"}', 1),
        (rb'{"\\\"": {"b": "\\"}}', 2),
        (b'{"a:b": "c:d", "\xc3\xa9:": []}', 2),
        (b'["a:", {"b" : 1}]', 1),
    ],
)
def test_worked_examples(kernel, line, keys):
    assert kernel.count_keys(line) == keys


@needs_compiled
@given(st.lists(st.sampled_from([b'"', b":", b"\\", b"a", b"{", b"\n", b"\xff"]), max_size=12).map(b"".join))
def test_both_kernels_count_alike_even_in_what_is_no_json(line):
    assert compiled.count_keys(line) == plain.count_keys(line)
