"""What is passed on, and what is refused by its name."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

from tests.service.running import Running, error_of
from tests.service.saying import texts
from tests.sources.openai.upstream import Upstream

pytestmark = pytest.mark.usefixtures("well")


@pytest.fixture(scope="module")
def strict():
    """A service whose upstream is to be left alone."""
    with Upstream() as upstream, Running(upstream.url) as service:
        yield service
        assert upstream.asked == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tools", [{"type": "function"}]),
        ("tool_choice", "auto"),
        ("functions", [{}]),
        ("modalities", ["audio"]),
        ("audio", {"voice": "x"}),
        ("logprobs", True),
        ("best_of", 4),
        ("temprature", 1),
        ("temperature", "1"),
        ("temperature", -1),
        ("top_p", 0),
        ("max_tokens", 0),
        ("max_tokens", 1.5),
        ("stop", [1]),
        ("seed", "x"),
        ("stream", "yes"),
        ("stream_options", {"include_usage": True}),
        ("messages", []),
        ("messages", "hello"),
        ("prompt", "hello"),
        ("model", 7),
        ("rangevote", "blend"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name_and_never_dropped(strict, field, value):
    refused = strict.ask(**{field: value})
    assert refused.status_code == 400
    assert error_of(refused)["param"] == field


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"samples": 0}, "rangevote.samples"),
        ({"samples": 65}, "rangevote.samples"),
        ({"samples": True}, "rangevote.samples"),
        ({"similarity": "overlap2"}, "rangevote.similarity"),
        ({"weights": "heavy"}, "rangevote.weights"),
        ({"min_votes": 7}, "rangevote.min_votes"),
        ({"adaptive": 1.5}, "rangevote.adaptive"),
        ({"candidates": "beam:4"}, "rangevote.candidates"),
        ({"voters": "candidates"}, "rangevote.candidates"),
        ({"winners": 2}, "rangevote"),
        ({"sample": 2}, "rangevote"),
        ({"adaptive": True, "weights": "probability"}, "rangevote.adaptive"),
        ({"similarity": "overlap_1-999"}, "rangevote.similarity"),
        ({"similarity": "0.5*overlap_1-6+0.5*precision_1-6"}, "rangevote.similarity"),
    ],
)
def test_options_that_cannot_be_meant_are_refused_by_name(strict, options, param):
    refused = strict.ask(rangevote=options)
    assert refused.status_code == 400
    assert error_of(refused)["param"] == param


def test_pictures_come_along_or_from_allowed_hosts(upstream):
    def asked(url: str) -> list[dict[str, object]]:
        parts = [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": url}}]
        return [{"role": "user", "content": parts}]

    with Running(upstream.url, image_hosts=frozenset({"images.example"})) as service:
        for url in ("data:image/png;base64,AAAA", "https://images.example/a.png"):
            assert service.ask(messages=asked(url)).status_code == 200
            assert upstream.asked[-1].body["messages"] == asked(url)
        count = len(upstream.asked)
        for url in (
            "http://images.example/a.png",
            "https://evil.example/a.png",
            "https://images.example@evil.example/a.png",
            "https://images.example\\@evil.example/",
            "file:///etc/passwd",
            "data:text/html;base64,AAAA",
            "http://169.254.169.254/",
        ):
            refused = service.ask(messages=asked(url))
            assert refused.status_code == 400
            assert error_of(refused)["param"] == "messages[0].content[1].image_url.url"
    assert len(upstream.asked) == count


def test_further_parameters_go_through_where_the_operator_says_so(upstream):
    given = {"chat_template_kwargs": {"enable_thinking": False}}
    with Running(upstream.url) as service:
        assert service.ask(**given).status_code == 400
    with Running(upstream.url, forward=frozenset(given)) as service:
        assert service.ask(**given).status_code == 200
    assert upstream.asked[0].body["chat_template_kwargs"] == {"enable_thinking": False}


def test_a_measure_that_needs_what_samples_do_not_have_is_the_requests_fault(upstream):
    with Running(upstream.url) as service:
        refused = service.ask(rangevote={"similarity": "states"})
    assert (refused.status_code, error_of(refused)["code"]) == (400, "election_impossible")


def test_samples_too_long_to_compare_every_pair_are_voted_on_by_their_ngrams_alone(upstream):
    upstream.answer = texts("a b " * 100, "a c " * 100)
    with Running(upstream.url, limits={"pairwise_chars": 1000}) as service:
        for similarity in ("chrf", "edit", "0.5*overlap_1+0.5*bleu_4"):
            refused = service.ask(rangevote={"similarity": similarity})
            assert (refused.status_code, error_of(refused)["param"]) == (400, "rangevote.similarity")
            assert error_of(refused)["code"] == "too_long"
        assert service.ask(rangevote={"similarity": "overlap_1-4"}).status_code == 200
        assert service.ask(rangevote={"similarity": "chrf", "samples": 2}).status_code == 200
