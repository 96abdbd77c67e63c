"""Ballots of any kind that can be written and read back."""

from __future__ import annotations

from hypothesis import strategies as st

from rangevote.hypothesis import Ballot, Hypothesis, ToolCall

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
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
    calls = st.lists(st.builds(ToolCall, texts.filter(bool), texts), min_size=1, max_size=2)
    hypotheses = st.lists(
        st.builds(Hypothesis, text=texts, tokens=st.none() | tokens, **fields)
        | st.builds(Hypothesis, text=st.none(), tokens=tokens, **fields)
        | st.builds(Hypothesis, text=st.none() | texts, tool_calls=calls, **fields),
        max_size=4,
    )
    return Ballot(
        draw(hypotheses),
        draw(st.none() | hypotheses),
        draw(st.none() | texts | st.integers()),
        draw(st.none() | texts),
        draw(st.just(()) | st.lists(texts, min_size=1, max_size=3)),
    )
