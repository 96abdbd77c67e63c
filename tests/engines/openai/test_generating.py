"""Searches as requests: what each kind of server is asked for, and what it cannot be asked."""

from __future__ import annotations

from typing import Any

import pytest

from rangevote.decoding import get_search
from rangevote.election.settings import Settings
from rangevote.engines.openai.client import Client
from rangevote.engines.openai.generating import InputElection, RequestBuilder, ServerElector
from rangevote.engines.openai.sample_and_elect import Query, SamplePool
from rangevote.engines.openai.sampling import Samples
from rangevote.errors import DataError, UsageError
from rangevote.formats.choices import CHAT, COMPLETIONS, ServerChoice, Usage
from rangevote.generation.generate import Request
from rangevote.generation.plan import GenerationPlan
from tests.engines.openai.upstream import Upstream
from tests.similarity.samples import Sourced


def builder(
    kind: str = "openai",
    candidates: str = "sample:4",
    *,
    chat: bool = True,
    extra: dict[str, Any] | None = None,
    voters: str | None = None,
    states: bool = False,
    **settings: Any,
) -> RequestBuilder:
    plan = GenerationPlan.of(Settings(**settings), candidates, voters, states=states or None)
    return RequestBuilder.of(kind, ("tiny",), plan, chat=chat, extra=extra or {})


def body(kind: str, search: str, input: Any = "hi", **options: Any) -> dict[str, Any]:
    return dict(query(builder(kind, search, **options), search, input).body)


def query(builder: RequestBuilder, search: str, input: Any) -> Query:
    return builder.query(get_search(search), Request.of(0, input), "candidates")


HI = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 64}


@pytest.mark.parametrize(
    ("kind", "search", "fields"),
    [
        ("openai", "sample:4", {"temperature": 1.0, "top_p": 1.0}),
        ("openai", "nucleus:4,p=0.8,temperature=0.5", {"temperature": 0.5, "top_p": 0.8}),
        ("openai", "sample:4,max_new_tokens=9", {"temperature": 1.0, "top_p": 1.0, "max_tokens": 9}),
        (
            "llama_cpp",
            "min_p:4,p=0.2",
            {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.2, "repeat_penalty": 1.0},
        ),
        (
            "vllm",
            "top_k:4,top=7,min_new_tokens=3",
            {
                "temperature": 1.0,
                "top_p": 1.0,
                "top_k": 7,
                "min_p": 0.0,
                "repetition_penalty": 1.0,
                "min_tokens": 3,
            },
        ),
        (
            "vllm",
            "beam:4",
            {
                "temperature": 0.0,
                "use_beam_search": True,
                "length_penalty": 0.0,
                "include_stop_str_in_output": True,
                "logprobs": True,
            },
        ),
    ],
)
def test_a_search_is_a_request_in_which_no_truncation_is_left_to_the_server(kind, search, fields):
    assert body(kind, search) == {**HI, **fields}


def test_inputs_are_messages_prompts_or_token_ids():
    ask = builder()
    chat = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    search = "sample:4"
    for given, path, name, sent in [
        ("hi", CHAT, "messages", [{"role": "user", "content": "hi"}]),
        (chat, CHAT, "messages", chat),
        ([5, 6], COMPLETIONS, "prompt", [5, 6]),
    ]:
        asked = query(ask, search, given)
        assert (asked.path, asked.body[name]) == (path, sent)
    assert body("openai", search, "hi", chat=False)["prompt"] == "hi"
    with pytest.raises(DataError, match="a conversation cannot be asked with --no-chat"):
        body("openai", search, chat, chat=False)
    with pytest.raises(DataError, match="the prompt is empty"):
        body("openai", search, [])


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, False),
        ({"weights": "count"}, False),
        ({"weights": "probability"}, True),
        ({"rule": "most_likely"}, True),
    ],
)
def test_log_probabilities_are_asked_for_where_they_decide(options, asked):
    assert ("logprobs" in body("openai", "sample:4", **options)) == asked
    assert body("openai", "sample:4", chat=False, **options).get("logprobs") == (1 if asked else None)


def test_further_fields_go_over_ours_and_null_takes_one_out():
    extra = {"max_tokens": None, "max_completion_tokens": 20, "seed": None, "top_p": 0.5}
    sent = body("openai", "sample:4", extra=extra)
    assert (sent["max_completion_tokens"], sent["top_p"]) == (20, 0.5)
    assert "max_tokens" not in sent
    assert "seed" not in sent
    assert query(builder(extra=extra), "sample:4", "hi").seed is None
    assert query(builder(), "sample:4", "hi").seed is not None


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("openai", {"candidates": "beam:4"}, "cannot search by 'beam:4', only by: nucleus, sample.*vllm can"),
        (
            "openai",
            {"candidates": "top_k:4"},
            "only by: nucleus, sample. --engine llama_cpp or vllm can",
        ),
        ("vllm", {"candidates": "diverse_beam:4,groups=2"}, "cannot search by 'diverse_beam:4"),
        ("openai", {"voters": "epsilon:4"}, "cannot search by 'epsilon:4', only by: nucleus, sample.$"),
        ("openai", {"candidates": "sample:4,copy_filter=0.5"}, "leave the copy filter out"),
        ("openai", {"candidates": "sample:4,min_new_tokens=2"}, "leave min_new_tokens out"),
        (
            "vllm",
            {"candidates": "beam:4,finish=transformers,early_stopping=true"},
            "leave early_stopping out",
        ),
        ("openai", {"states": True}, "servers do not give hidden states"),
        ("openai", {"extra": {"n": 4}}, "the field 'n' of a request is set by the command"),
        ("opneai", {}, "unknown engine 'opneai'. Did you mean 'openai'"),
    ],
)
def test_what_a_server_cannot_do_is_said_before_it_is_asked(kind, options, message):
    with pytest.raises(UsageError, match=message):
        builder(kind, **options)


def test_a_measure_that_looks_at_the_source_gets_that_of_the_input():
    plan = GenerationPlan.of(Settings(similarity=Sourced()), "sample:4", "sample:32", adaptive=0.9)
    requests = RequestBuilder.of("openai", ("tiny",), plan, chat=True, extra={})
    client = Client("http://127.0.0.1:1/v1")
    election = InputElection(client, requests, plan, Request.of(0, "ein Hund"))
    assert election.settings.measure.source == "ein Hund"


def test_the_first_result_comes_while_most_inputs_still_wait():
    plan = GenerationPlan.of(Settings(), "sample:6")
    requests = RequestBuilder.of("openai", ("tiny",), plan, chat=True, extra={})
    with Upstream("ignores_n", delay=0.02) as upstream:
        elector = ServerElector(Client(upstream.url, concurrency=3), requests, plan)
        elected = elector(Request.of(number, "hi") for number in range(20))
        next(elected)
        assert len(upstream.asked) < 30  # calls; all inputs need 120
        assert len(list(elected)) == 19


TEXT = ServerChoice("a b", finish_reason="stop")
NULL, REFUSAL = ServerChoice(None, kind="null"), ServerChoice("No.", kind="refusal")
CUT = ServerChoice("a b", finish_reason="length")
FILTERED = [ServerChoice(text, finish_reason="content_filter", kind=kind) for text, kind in
            (("The tr", "text"), ("", "text"), (None, "null"))]  # fmt: skip
LONG, LONG_BY_TOKENS = ServerChoice("word " * 11), ServerChoice("a b", tokens=11)


@pytest.mark.parametrize(
    ("choices", "usable", "counts"),
    [
        ([NULL, TEXT, TEXT], [1, 2], {"null": 1, "usable": 2}),
        ([TEXT, REFUSAL, REFUSAL], [0], {"refusal": 2, "usable": 1}),
        ([NULL, REFUSAL, REFUSAL], [1, 2], {"null": 1, "refusal": 2}),
        (FILTERED, [0, 1, 2], {"filtered": 3}),
        ([CUT, TEXT, TEXT, FILTERED[0]], [1, 2], {"length": 1, "usable": 2, "filtered": 1}),
        ([CUT, TEXT, TEXT, CUT], [0, 1, 2, 3], {"length": 2, "usable": 2}),
        ([CUT, CUT], [0, 1], {"length": 2}),
        ([CUT._replace(member="a"), *2 * [TEXT._replace(member="b")]], [0, 1, 2], {"length": 1, "usable": 2}),
        ([TEXT, LONG, LONG_BY_TOKENS], [0], {"too_long": 2, "usable": 1}),
    ],
)
def test_which_samples_stand_and_vote(choices, usable, counts):
    pool = SamplePool(longest=10)
    pool.add(Samples(choices, Usage(), 1, []), len(choices) + 1)
    assert pool.usable == [choices[i]._replace(text=choices[i].text or "") for i in usable]
    assert pool.counts == {**counts, "failed": 1}
    unlimited = SamplePool()
    unlimited.add(Samples([CUT, LONG], Usage(), 1, []), 2)
    assert unlimited.usable == [CUT, LONG]


def test_samples_that_are_no_json_are_left_out_where_others_are():
    choices = [TEXT, ServerChoice('{"a": 1}'), ServerChoice("```json\n[1]\n```")]
    pool = SamplePool(longest=10, json=True)
    pool.add(Samples(choices[:1], Usage(), 1, []), 1)
    assert (pool.usable, pool.ends) == (choices[:1], [1])
    pool.add(Samples(choices[1:], Usage(), 1, []), 2)
    assert (pool.usable, pool.ends) == (choices[1:], [2])
    assert pool.counts == {"invalid_json": 1, "usable": 2, "failed": 0}
