"""Requests of any shape: a checked request or an error that names a parameter (cases 47, 48, 53, 56, 58)."""

from __future__ import annotations

import json

import msgspec
import pytest

from rangevote.service.config import ServiceConfig
from rangevote.service.errors import ApiError
from rangevote.service.requests import CompletionRequest, Endpoint, read_object, read_request

CONFIG = ServiceConfig(
    upstream="http://127.0.0.1:1/v1",
    allow_image_hosts=("images.example",),
    forward=("chat_template_kwargs",),
)
MESSAGES = [{"role": "user", "content": "a"}]


def read(body: object, endpoint: Endpoint = "chat", content: bytes | None = None) -> CompletionRequest:
    content = json.dumps(body).encode() if content is None else content
    return read_request(read_object(content), None, CONFIG, endpoint)


def refusal(endpoint: Endpoint = "chat", content: bytes | None = None, **body: object) -> ApiError:
    with pytest.raises(ApiError) as caught:
        read({"model": "tiny", "messages": MESSAGES, **body}, endpoint, content)
    assert caught.value.status == 400
    assert len(caught.value.message) <= 400
    return caught.value


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"a": NaN}', b"[" * 100_000,
     b'{"model": ' + b"[" * 500 + b"]" * 500 + b"}", b'{"seed": 1' + b"0" * 5000 + b"}",
     b'{"model": "tiny", "messages": [{"role": "user", "content": "\\ud800"}]}'],
)  # fmt: skip
def test_what_is_not_a_json_object_is_400(content):
    assert refusal(content=content).code in ("invalid_json", "invalid_value")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("n", [0, -1, 10**9, 1e9, "5", True, 2.5, [], {}]),
        ("model", ["tiny\r\nX-Evil: 1", "tiny\n", "\x00", "", " \u2028", "x" * 300, 7]),
        ("messages", [[], "hello"]),
        ("tools", [0, "", [7]]),
        ("modalities", [["audio"]]),
        ("audio", [{"voice": "x"}]),
        ("logprobs", [7, "yes"]),
        ("best_of", [4]),
        ("use_beam_search", [True]),
        ("temperature", ["1", -1]),
        ("top_p", [0]),
        ("max_tokens", [0, 1.5]),
        ("stop", [[1]]),
        ("seed", ["x"]),
        ("stream", ["yes"]),
        ("stream_options", [{"include_usage": True}]),
        ("prompt", ["hello"]),
        ("rangevote", ["blend", {"winners": 2}, {"sample": 2}]),
        ("rangevote.samples", [{"samples": 0}, {"samples": 65}, {"samples": True}]),
        ("rangevote.similarity", [{"similarity": "overlaps_2"}, {"similarity": "overlap_1-999"}]),
        ("rangevote.weights", [{"weights": "heavy"}]),
        ("rangevote.min_votes", [{"samples": 6, "min_votes": 7}]),
        ("rangevote.adaptive", [{"adaptive": 1.5}, {"adaptive": True, "weights": "probability"}]),
    ],
)
def test_what_cannot_be_done_is_refused_by_name_and_never_dropped(name, values):
    for value in values:
        assert refusal(**{name.partition(".")[0]: value}).param.partition("[")[0] == name, value


@pytest.mark.parametrize("name", ["api_base", "base_url", "extra_headers", "API_BASE"])
def test_names_that_could_send_the_request_elsewhere_are_refused_anywhere(name):
    bad = {name: "http://169.254.169.254/"}
    for body in (
        bad,
        {"extra_body": bad},
        {"tools": [bad]},
        {"metadata": {"deep": [[bad]]}},
        {"rangevote": bad},
        {"messages": [{**MESSAGES[0], **bad}]},
        {"response_format": {"type": "json_schema", "x": bad}},
    ):
        assert refusal(**body).code == "forbidden_parameter"


def test_null_is_as_if_not_given():
    body = {
        "model": "tiny",
        "prompt": "a",
        "temperature": None,
        "tools": None,
        "rangevote": {"samples": None},
    }
    request = read(body, "completions")
    assert request.body == {"model": "tiny", "prompt": "a"}
    assert request.options.samples == 16


def test_prompts_come_alone_or_in_a_list():
    for prompt, expected in [
        (["a"], ["a"]),
        ([[1, 2]], [[1, 2]]),
        ([3], [[3]]),
        ("", [""]),
        (["a", "b"], ["a", "b"]),
        ([[1], [2]], [[1], [2]]),
    ]:
        requests = read({"model": "tiny", "prompt": prompt}, "completions").each()
        assert [request.body["prompt"] for request in requests] == expected
    for prompt in ([], [1, "a"], {}, 7, [True], [[]]):
        error = refusal("completions", messages=None, prompt=prompt)
        assert error.param.startswith("prompt")
    assert refusal("completions", messages=None, prompt=["a"] * 33).code == "too_many"


@pytest.mark.parametrize(
    "name",
    [
        "user_config",
        "aws_bedrock_runtime_endpoint",
        "logits_processors",
        "temprature",
        "guided_grammar",
        "prompt",
    ],
)
def test_only_parameters_that_the_service_or_its_operator_names_go_to_the_model(name):
    refused = refusal(**{name: {"a": "b"}})
    assert (refused.code, refused.param) == ("unsupported_parameter", name)


def test_a_forwarded_field_may_have_any_type():
    body = {"model": "tiny", "prompt": "a", "rangevote": {"rule": "merge"}, "response_format": "json"}
    config = msgspec.structs.replace(CONFIG, forward=("response_format",))
    assert read_request(body, None, config, "completions").body["response_format"] == "json"


def test_roles_are_named_and_what_asks_for_no_tools_is_allowed():
    for role in ({}, ["user"], 7, "User"):
        assert refusal(messages=[{"role": role, "content": "a"}]).param == "messages[0].role"
    assert read({"model": "tiny", "messages": MESSAGES, "tools": []}).body["messages"] == MESSAGES


def test_pictures_come_in_the_request_or_from_allowed_hosts():
    def asked(url: str) -> list[dict[str, object]]:
        parts = [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": url}}]
        return [{"role": "user", "content": parts}]

    for url in ("data:image/png;base64,AAAA", "https://images.example/a.png"):
        assert read({"model": "tiny", "messages": asked(url)}).body["messages"] == asked(url)
    for url in (
        "http://images.example/a.png",
        "https://evil.example/a.png",
        "https://images.example@evil.example/a.png",
        "https://images.example\\@evil.example/",
        "file:///etc/passwd",
        "data:text/html;base64,AAAA",
    ):
        assert refusal(messages=asked(url)).param == "messages[0].content[1].image_url.url"
