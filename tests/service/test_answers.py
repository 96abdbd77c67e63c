"""One POST becomes samples, an election and one ordinary completion: with the official client."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

import openai

from rangevote import elect
from rangevote.service.config import Alias
from tests.service.running import MESSAGES, Running, error_of
from tests.service.saying import ending, texts
from tests.sources.openai.upstream import SENTENCES, Upstream, choice, completion

pytestmark = pytest.mark.usefixtures("well")


def test_a_chat_is_answered_with_the_elected_sample(upstream):
    with Running(upstream.url) as service:
        answer = service.client().chat.completions.create(model="tiny", messages=MESSAGES, seed=0)
    assert answer.object == "chat.completion"
    assert answer.id.startswith("chatcmpl-")
    assert answer.model == "tiny"
    assert len(answer.choices) == 1
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == elect(SENTENCES).winner == "the train leaves at ten"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.rangevote["votes"] == 6
    assert answer.rangevote["signature"] == elect(SENTENCES, weights="count").signature
    assert answer.rangevote["margin"] == pytest.approx(elect(SENTENCES, weights="count").margin)


def test_a_completion_is_answered_likewise(upstream):
    with Running(upstream.url) as service:
        answer = service.client().completions.create(model="tiny", prompt="When does the train", seed=0)
    assert answer.object == "text_completion"
    assert answer.id.startswith("cmpl-")
    assert answer.choices[0].text == "the train leaves at ten"
    assert upstream.asked[0].path == "/v1/completions"


def test_what_the_client_says_goes_to_the_model_untouched(upstream):
    said = {
        "temperature": 0.7,
        "top_p": 0.9,
        "max_tokens": 33,
        "stop": ["\n", "END"],
        "presence_penalty": 0.1,
        "response_format": {"type": "json_object"},
        "user": "u",
    }
    with Running(upstream.url) as service:
        service.client().chat.completions.create(model="tiny", messages=MESSAGES, seed=11, **said)
    body = upstream.asked[0].body
    assert body == {**said, "model": "tiny", "messages": MESSAGES, "seed": 11, "n": 6}


def test_every_call_has_a_seed_of_its_own(upstream):
    upstream.mode = "ignores_n"
    with Running(upstream.url) as service:
        service.client().chat.completions.create(model="tiny", messages=MESSAGES, seed=40)
    assert sorted(asked.body["seed"] for asked in upstream.asked) == [40, 41, 42, 43, 44, 45]


@pytest.mark.parametrize("mode", ["ignores_n", "refuses_n", "one_fewer", "at_most_two"])
def test_servers_that_cannot_do_n_are_asked_until_all_samples_are_there(upstream, mode):
    upstream.mode = mode
    with Running(upstream.url) as service:
        answer = service.ask(seed=0).json()
    assert answer["rangevote"]["votes"] == 6
    assert answer["choices"][0]["message"]["content"] == "the train leaves at ten"


def test_usage_is_the_sum_over_all_calls(upstream):
    upstream.mode = "ignores_n"
    with Running(upstream.url) as service:
        answer = service.client().chat.completions.create(model="tiny", messages=MESSAGES)
    assert answer.usage.prompt_tokens == 6 * 7
    assert answer.usage.completion_tokens == 6 * 3
    assert answer.usage.total_tokens == 60


def test_options_come_in_the_object_rangevote_by_extra_body(upstream):
    with Running(upstream.url) as service:
        answer = service.client().chat.completions.create(
            model="tiny",
            messages=MESSAGES,
            seed=0,
            extra_body={"rangevote": {"samples": 3, "similarity": "exact", "explain": True}},
        )
    assert upstream.asked[0].n == 3
    assert "sim:exact" in answer.rangevote["signature"]
    scores = answer.rangevote["scores"]
    assert [row["text"] for row in scores] == list(SENTENCES[:3])
    assert [row["score"] for row in scores] == pytest.approx([1 / 3] * 3)
    assert answer.rangevote["near_tie"] is True
    assert "rangevote" not in upstream.asked[0].body


def test_a_profile_is_chosen_by_the_base_url_alone(upstream):
    profiles = {"many": {"samples": 12, "similarity": "overlap_1"}}
    with Running(upstream.url, profiles=profiles) as service:
        client = service.client("many")
        answer = client.chat.completions.create(model="tiny", messages=MESSAGES)
        assert [model.id for model in client.models.list()] == ["tiny"]
        assert client.completions.create(model="tiny", prompt="p").rangevote["votes"] == 12
        assert error_of(service.ask("/v1/few/chat/completions"))["code"] == "profile_not_found"
    assert "sim:overlap_1|" in answer.rangevote["signature"]
    assert answer.rangevote["votes"] == 12


def test_an_alias_is_a_model_with_a_profile(upstream):
    aliases = {"elected": Alias("tiny", "many"), "plain": Alias("tiny")}
    with Running(upstream.url, profiles={"many": {"samples": 9}}, aliases=aliases) as service:
        client = service.client()
        assert [model.id for model in client.models.list()] == ["tiny", "elected", "plain"]
        answer = client.chat.completions.create(model="elected", messages=MESSAGES)
        assert (answer.model, answer.rangevote["votes"]) == ("elected", 9)
        assert client.chat.completions.create(model="plain", messages=MESSAGES).rangevote["votes"] == 6
    assert {asked.body["model"] for asked in upstream.asked} == {"tiny"}


def test_models_are_those_of_the_upstream_or_of_the_list(upstream):
    upstream.models = ("tiny", "large")
    with Running(upstream.url) as service:
        assert [model.id for model in service.client().models.list()] == ["tiny", "large"]
    with Running(upstream.url, models=("tiny",)) as service:
        assert [model.id for model in service.client().models.list()] == ["tiny"]
        refused = service.ask(model="large")
        assert (refused.status_code, error_of(refused)["param"]) == (404, "model")
        with pytest.raises(openai.NotFoundError):
            service.client().chat.completions.create(model="large", messages=MESSAGES)
    assert upstream.asked == []


def test_several_choices_are_elected_to_speak_for_different_voters(upstream):
    with Running(upstream.url) as service:
        answer = service.client().chat.completions.create(model="tiny", messages=MESSAGES, seed=0, n=2)
    expected = elect(SENTENCES, weights="count", rule="reweighted", winners=2)
    assert [one.index for one in answer.choices] == [0, 1]
    assert [one.message.content for one in answer.choices] == list(expected.winners)
    assert "rule:reweighted" in answer.rangevote["signature"]


def test_probabilities_are_asked_for_and_weigh_only_if_every_token_has_one(upstream):
    asked = {"rangevote": {"weights": "probability"}}
    with Running(upstream.url) as service:
        known = service.ask(**asked).json()
        upstream.mode = "nan_logprob"
        unknown = service.ask(**asked).json()
        upstream.mode = "well"
        plain = service.ask().json()
    assert upstream.asked[0].body["logprobs"] is True
    assert "|w:probability|" in known["rangevote"]["signature"]
    assert "|w:count|" in unknown["rangevote"]["signature"]
    assert "|w:count|" in plain["rangevote"]["signature"]
    assert "logprobs" not in upstream.asked[-1].body


@pytest.mark.parametrize(
    ("mode", "outcome"), [("null_content", "null"), ("declines", "refusal"), ("calls_tools", "tool_calls")]
)
def test_what_is_no_text_neither_stands_nor_votes_and_is_counted(upstream, mode, outcome):
    upstream.mode = mode
    with Running(upstream.url) as service:
        answer = service.ask().json()["rangevote"]
        assert f'rangevote_samples_total{{outcome="{outcome}"}} 1' in service.http.get("/metrics").text
    assert (answer["votes"], answer["samples"]["usable"], answer["samples"][outcome]) == (5, 5, 1)


def test_samples_that_were_cut_off_stand_only_where_all_were():
    with (
        Upstream(answer=ending("length", "stop", "stop", "content_filter")) as up,
        Running(up.url) as service,
    ):
        some = service.ask(rangevote={"samples": 4, "explain": True}).json()
    assert {row["text"] for row in some["rangevote"]["scores"]} == {SENTENCES[1], SENTENCES[2]}
    assert some["rangevote"]["samples"] == {"asked": 4, "saved": 0, "length": 1, "usable": 2, "filtered": 1}
    with Upstream("cuts_short") as up, Running(up.url) as service:
        every = service.ask(seed=0).json()
    assert every["choices"][0]["finish_reason"] == "length"
    assert every["choices"][0]["message"]["content"] == "the train leaves at ten"


def test_the_empty_text_is_a_legal_candidate():
    with Upstream(answer=texts("")) as up, Running(up.url) as service:
        answer = service.client().chat.completions.create(model="tiny", messages=MESSAGES)
    assert answer.choices[0].message.content == ""
    assert answer.rangevote["no_support"] is True


def test_a_candidate_of_too_many_tokens_is_left_out():
    long = "word " * 60
    limits = {"candidate_tokens": 50}
    with Upstream(answer=texts(long, "a b", "a c")) as up, Running(up.url, limits=limits) as service:
        answer = service.ask(seed=0).json()
    assert answer["rangevote"]["samples"]["too_long"] == 2
    assert answer["choices"][0]["message"]["content"] in ("a b", "a c")


def test_a_quorum_is_kept_and_one_sample_is_flagged(upstream):
    upstream.answer = lambda asked: completion(
        asked,
        [{"index": i, "message": {"content": None}, "finish_reason": "stop"} for i in range(asked.n - 1)]
        + [choice(asked, asked.n - 1)],
    )
    with Running(upstream.url) as service:
        one = service.ask()
        refused = service.ask(rangevote={"min_votes": 2})
    assert (one.status_code, one.json()["rangevote"]["votes"]) == (200, 1)
    assert (refused.status_code, error_of(refused)["code"]) == (502, "insufficient_votes")
    assert "1 of 6 samples" in error_of(refused)["message"]
