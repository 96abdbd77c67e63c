"""What clients of OpenAI's API send and expect, beyond texts: tools, formats, log-probabilities, lists."""

from __future__ import annotations

import json

import openai
import pytest

from tests.engines.openai.upstream import message, saying
from tests.service.running import MESSAGES, Running, error_of, texts

TOOLS = [{"type": "function", "function": {"name": "trains", "parameters": {"type": "object"}}}]


@pytest.fixture
def service(upstream):
    with Running(upstream.url, allow_models=("tiny",), keep_elections=5) as service:
        yield service


def calling(*calls: tuple[str, str] | str):
    """An upstream whose samples are these calls of tools, or texts."""

    def sample(i: int, given: tuple[str, str] | str) -> dict[str, object]:
        if isinstance(given, str):
            return message(given)
        function = {"name": given[0], "arguments": given[1]}
        call = {"id": f"call_{i}", "type": "function", "function": function}
        return message(reason="tool_calls", tool_calls=[call])

    return saying(*(sample(i, given) for i, given in enumerate(calls)))


CALLS = (
    ("trains", '{"to": "Bonn", "from": "Ulm"}'),
    ("buses", '{"to": "Bonn"}'),
    ("trains", '{"from": "Ulm",  "to": "Bonn"}'),
    ("trains", '{"to": "Kiel"}'),
    ("trains", "no JSON"),
    "I do not know",
)


def test_calls_of_tools_are_elected_by_name_and_then_by_arguments(service, upstream):
    upstream.answer = calling(*CALLS)
    answer = service.client().chat.completions.create(
        model="tiny", messages=MESSAGES, tools=TOOLS, tool_choice="auto", parallel_tool_calls=False
    )
    [call] = answer.choices[0].message.tool_calls
    assert (call.id, call.function.name, call.function.arguments) == ("call_0", *CALLS[0])
    assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == ("tool_calls", None)
    assert "|calls:name,arguments|" in answer.rangevote["signature"]
    assert answer.rangevote["samples"] == {"asked": 6, "saved": 0, "usable": 6}
    sent = upstream.asked[0].body
    assert (sent["tools"], sent["tool_choice"], sent["parallel_tool_calls"]) == (TOOLS, "auto", False)


def test_calls_are_streamed_and_text_wins_where_most_answer(service, upstream):
    upstream.answer = calling(*CALLS)
    asked = {"model": "tiny", "messages": MESSAGES, "tools": TOOLS, "stream": True}
    deltas = [chunk.choices[0] for chunk in service.client().chat.completions.create(**asked)]
    [call] = [call for one in deltas for call in one.delta.tool_calls or ()]
    assert (call.index, call.function.name, call.function.arguments) == (0, *CALLS[0])
    assert deltas[-1].finish_reason == "tool_calls"
    upstream.answer = calling("at ten", "at ten", "at noon", CALLS[0])
    answer = service.client().chat.completions.create(model="tiny", messages=MESSAGES, tools=TOOLS)
    assert (answer.choices[0].message.content, answer.choices[0].message.tool_calls) == ("at ten", None)


@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
def test_what_is_no_json_abstains_where_json_is_asked_for_and_equal_json_is_one_answer(
    service, upstream, kind
):
    given = ['{"a": 1, "b": 2}', "no", "{", '{"b": 2.0, "a": 1}', '{"a": 3}', '{"a": 3, "b": 4}']
    upstream.answer = texts(*given)
    wanted = {"type": kind, **({"json_schema": {"name": "x", "schema": {}}} if kind != "json_object" else {})}
    answer = service.client().chat.completions.create(
        model="tiny", messages=MESSAGES, seed=0, response_format=wanted
    )
    assert json.loads(answer.choices[0].message.content) == {"a": 1, "b": 2}
    assert answer.rangevote["samples"] == {"asked": 6, "saved": 0, "usable": 4, "invalid_json": 2}
    assert "|on:json|" in answer.rangevote["signature"]
    assert upstream.asked[0].body["response_format"] == wanted
    upstream.answer = texts("no", "no", "not")
    fallen = service.ask(response_format=wanted).json()
    message = fallen["choices"][0]["message"]
    assert message["content"] is None
    assert "so that all abstain" in message["refusal"]


def test_json_is_merged_field_by_field_if_the_request_asks_for_it(service, upstream):
    upstream.answer = texts('{"a": 1, "b": 1}', "no", '{"a": 1, "b": 2}', '{"a": 2, "b": 2}', "no", "no")
    wanted = {"type": "json_object"}
    asked = {"response_format": wanted, "rangevote": {"rule": "merge"}}
    answer = service.ask(**asked).json()
    assert answer["choices"][0]["message"]["content"] == '{"a":1,"b":2}'
    merged = answer["rangevote"]["merged"]
    assert merged["shares"] == pytest.approx({"a": 2 / 3, "b": 2 / 3})
    assert (merged["left_out"], merged["abstained"]) == ([], 0)
    refused = service.ask(**asked, n=2)
    assert (refused.status_code, error_of(refused)["param"]) == (400, "n")


@pytest.mark.parametrize("required", [["a"], ["a", "c"]])
def test_merged_json_fits_the_schema_of_the_request(service, upstream, required):
    given = ['{"a": 1, "c": 1}', '{"a": 1, "c": 2}', '{"a": 1, "c": 3}']
    upstream.answer = texts(*given, *given)
    schema = {"type": "object", "required": required}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    asked = {"response_format": wanted, "rangevote": {"rule": "merge", "min_share": 0.6}}
    answer = service.ask(**asked).json()
    content = answer["choices"][0]["message"]["content"]
    assert content == ('{"a":1}' if required == ["a"] else given[0])
    assert ("whole" in answer["rangevote"]["merged"]) == (required != ["a"])


def test_a_schema_of_a_request_that_is_none_is_refused_and_one_without_bounds_not_checked(service, upstream):
    upstream.answer = texts(*['{"a": 1}'] * 6)

    def ask(schema):
        wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        return service.ask(response_format=wanted, rangevote={"rule": "merge"})

    refused = ask({"type": "nonsense"})
    assert (refused.status_code, error_of(refused)["param"]) == (400, "response_format.json_schema")
    for schema in ({"$ref": "http://localhost:1/x.json"}, {"properties": {"a": {"pattern": "(a+)+$"}}}):
        answer = ask(schema).json()
        assert answer["choices"][0]["message"]["content"] == '{"a":1}'
        assert "|schema:" not in answer["rangevote"]["signature"]


def test_log_probabilities_of_the_winners_tokens_come_back_if_they_are_asked_for(service, upstream):
    client = service.client()
    answer = client.chat.completions.create(
        model="tiny", messages=MESSAGES, seed=0, logprobs=True, top_logprobs=0
    )
    assert [token.logprob for token in answer.choices[0].logprobs.content] == [-0.25, -0.5, -1.25]
    assert upstream.asked[0].body["logprobs"] is True
    chunks = client.chat.completions.create(
        model="tiny", messages=MESSAGES, seed=0, logprobs=True, stream=True
    )
    known = [chunk.choices[0].logprobs for chunk in chunks if chunk.choices[0].logprobs]
    assert [token.logprob for token in known[0].content] == [-0.25, -0.5, -1.25]
    unasked = service.ask(rangevote={"weights": "probability"}).json()
    assert unasked["choices"][0]["logprobs"] is None
    plain = client.completions.create(model="tiny", prompt="q", logprobs=1, seed=0)
    assert plain.choices[0].logprobs is not None


def test_of_a_list_of_prompts_each_has_its_election(service, upstream):
    answer = service.client().completions.create(model="tiny", prompt=["a", "b", "c"], seed=0, n=2)
    assert [one.index for one in answer.choices] == list(range(6))
    assert sorted(asked.body["prompt"] for asked in upstream.asked) == ["a", "b", "c"]
    elections = answer.rangevote["elections"]
    assert [election["votes"] for election in elections] == [6, 6, 6]
    assert answer.usage.total_tokens == 3 * (7 + 6 * 3)
    assert len({election["election"] for election in elections}) == 3


def test_one_model_can_be_looked_up(service):
    client = service.client()
    assert client.models.retrieve("tiny").id == "tiny"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("large/one")


def test_pictures_may_be_as_large_as_the_limit_of_a_request(upstream):
    url = "data:image/png;base64," + "A" * 300_000
    parts = [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": url}}]
    with Running(upstream.url, limits={"body_bytes": 400_000}) as service:
        assert service.ask(messages=[{"role": "user", "content": parts}]).status_code == 200
        large = [{"role": "user", "content": [*parts, parts[1]]}]
        assert service.ask(messages=large).status_code == 413
    assert upstream.asked[0].body["messages"][0]["content"] == parts


def test_the_list_of_elections_shows_questions_models_margins_and_samples(service, upstream):
    assert "none yet" in service.http.get("/elections/").text
    for question in ("<b>first</b>", "second"):
        service.ask(messages=[{"role": "user", "content": question}], seed=0)
    page = service.http.get("/elections/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert (page.headers["cache-control"], page.headers["referrer-policy"]) == ("no-store", "no-referrer")
    assert page.text.index("second") < page.text.index("&lt;b&gt;first&lt;/b&gt;")
    assert "<b>" not in page.text
    assert page.text.count("6 of 6") == page.text.count(">tiny<") == 2
    link = page.text.partition('href="')[2].partition('"')[0]
    assert service.http.get(link).status_code == 200
