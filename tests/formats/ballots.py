"""Ballots of any kind that can be written and read back, and what is looked at in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from rangevote.errors import DataError
from rangevote.formats import Entry
from rangevote.hypothesis import Ballot, Hypothesis, ToolCall

# the fixtures of conftest.py
Entries = Callable[..., list[Entry]]
Ballots = Callable[..., list[Ballot]]
Fault = Callable[..., DataError]


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def texts(ballot: Ballot) -> list[str | None]:
    return [hypothesis.text for hypothesis in ballot.candidates]


def logprobs(ballot: Ballot) -> list[float | None]:
    return [hypothesis.logprob for hypothesis in ballot.candidates]


some_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def ballots(draw: st.DrawFn) -> Ballot:
    size = draw(st.integers(0, 3))
    fields = {
        "logprob": st.none() | st.floats(max_value=0.0, allow_nan=False),
        "state": st.none() | st.lists(finite, min_size=size, max_size=size),
        "finished": st.booleans(),
        "sampled": st.booleans(),
        "weight": st.none() | st.floats(0, allow_infinity=False),
        "token_logprobs": st.none() | st.lists(st.floats(-1e300, 0.0), max_size=3),
    }
    tokens = st.lists(st.integers(), max_size=4)
    calls = st.lists(st.builds(ToolCall, some_text.filter(bool), some_text), min_size=1, max_size=2)
    hypotheses = st.lists(
        st.builds(Hypothesis, text=some_text, tokens=st.none() | tokens, **fields)
        | st.builds(Hypothesis, text=st.none(), tokens=tokens, **fields)
        | st.builds(Hypothesis, text=st.none() | some_text, tool_calls=calls, **fields),
        max_size=4,
    )
    return Ballot(
        draw(hypotheses),
        draw(st.none() | hypotheses),
        draw(st.none() | some_text | st.integers()),
        draw(st.none() | some_text),
        draw(st.just(()) | st.lists(some_text, min_size=1, max_size=3)),
    )
