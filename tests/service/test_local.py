"""A model in the service's own process, and such a service as the upstream of another."""

from __future__ import annotations

import json
import socket
import threading
import time

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

from rangevote import elect, generate, search
from rangevote.models.ngram import NgramModel
from rangevote.models.protocol import ModelWrapper
from rangevote.service.local import RequestModel
from tests.service.running import HEAD, Running, error_of, until

KNOWN = [
    "the train leaves at ten",
    "a train leaves at ten",
    "the train leaves at noon",
    "the bus leaves at ten",
    "i know",
]
CHAT = [{"role": "user", "content": "the train"}]


@pytest.fixture(scope="module")
def model():
    return NgramModel.train(3 * KNOWN, order=3)


@pytest.fixture(scope="module")
def service(model):
    with Running(model=model, options={"samples": 20}) as running:
        yield running


def test_beams_stand_and_samples_vote_as_in_generate(service, model):
    expected = generate(
        model,
        ["the train"],
        candidates="beam:10,max_new_tokens=12",
        voters="sample:20,seed=5,temperature=0.8,max_new_tokens=12",
    )[0]
    answer = service.client().chat.completions.create(
        model="tiny", messages=CHAT, seed=5, temperature=0.8, max_tokens=12
    )
    assert answer.choices[0].message.content == expected.winner
    assert answer.rangevote["signature"] == expected.signature
    assert answer.rangevote["votes"] == 20
    assert answer.rangevote["score"] == expected.score
    written = sum(len(one.tokens) + one.finished for one in (*expected.candidates, *expected.voters))
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (2, written)


def test_a_prompt_is_continued_and_a_chat_streamed(service):
    client = service.client()
    answer = client.completions.create(model="tiny", prompt="the train leaves at", seed=1)
    assert (answer.choices[0].text in ("ten", "noon"), answer.choices[0].finish_reason) == (True, "stop")
    chunks = client.chat.completions.create(model="tiny", messages=CHAT, seed=2, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks).startswith("leaves at")
    cut = service.ask("/v1/completions", prompt="the", max_tokens=1).json()
    assert cut["choices"][0]["finish_reason"] == "length"


def test_the_one_model_is_listed_and_ready(service):
    assert [one.id for one in service.client().models.list()] == ["tiny"]
    assert service.http.get("/readyz").json() == {"status": "ready"}
    assert service.ask(model="other").status_code == 404


def test_a_seed_fixes_everything_and_without_one_samples_differ(service):
    ask = {"messages": CHAT, "rangevote": {"candidates": "sample:1", "samples": 1}}
    fixed = {service.ask(seed=3, **ask).json()["choices"][0]["message"]["content"] for _ in range(2)}
    free = {service.ask(**ask).json()["choices"][0]["message"]["content"] for _ in range(20)}
    assert len(fixed) == 1
    assert len(free) > 1


def test_at_temperature_0_the_voter_is_the_greedy_answer_and_candidates_can_vote(service, model):
    greedy = generate(model, ["the train"], candidates="greedy")[0].winner
    answer = service.ask(messages=CHAT, temperature=0).json()
    assert answer["choices"][0]["message"]["content"] == greedy
    assert "|vot:1|" in answer["rangevote"]["signature"]
    expected = generate(model, ["the train"], candidates="beam:10,max_new_tokens=256")[0]
    answer = service.ask(messages=CHAT, rangevote={"voters": "candidates"}).json()
    assert answer["rangevote"]["signature"] == expected.signature
    assert answer["choices"][0]["message"]["content"] == expected.winner


def test_voters_are_drawn_until_the_winner_is_certain(service):
    options = {"samples": 64, "adaptive": 0.99, "similarity": "exact"}
    election = service.ask(messages=CHAT, seed=1, temperature=0.05, rangevote=options).json()["rangevote"]
    assert election["certain"] is True
    assert election["votes"] + election["samples"]["saved"] == 64
    assert election["samples"]["saved"] > 0


def test_an_answer_ends_before_a_stop_text(service, model):
    whole = service.ask(messages=CHAT, seed=5).json()["choices"][0]
    assert whole["message"]["content"] == "leaves at ten"
    for stop, expected in ((" ten", "leaves at"), (["noon", "at"], "leaves "), ("zebra", "leaves at ten")):
        answer = service.ask(messages=CHAT, seed=5, stop=stop).json()
        assert answer["choices"][0]["message"]["content"] == expected
        assert answer["choices"][0]["finish_reason"] == "stop"
    shorter = service.ask(messages=CHAT, seed=5, stop="leaves").json()["usage"]["completion_tokens"]
    assert (
        shorter < service.ask(messages=CHAT, seed=5).json()["usage"]["completion_tokens"]
    )  # and costs no more


def test_what_came_to_a_stop_text_has_the_probability_of_all_up_to_there(model):
    request = RequestModel(model, threading.Event(), {"stop": "at"})
    state = request.select(request.start(["the train"]), np.array([0, 0]))
    step = request.step(state, None)
    known = {
        model.text([token]): token for token in range(step.log_probs.shape[1]) if token not in model.ends
    }
    step = request.step(step.state, np.array([known["leaves"], known["leaves"]]))
    assert np.isfinite(step.log_probs).sum() > 2
    step = request.step(step.state, np.array([known["at"], known["leaves"]]))
    end = model.ends[0]
    assert step.log_probs[0, end] == 0.0
    assert np.isneginf(np.delete(step.log_probs[0], end)).all()
    assert np.logaddexp.reduce(step.log_probs[1]) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("presence", "frequency"), [(1.5, 0.0), (0.0, 0.7), (0.5, 0.5)])
def test_penalties_bend_the_distribution_of_tokens_that_were_written(model, presence, frequency):
    body = {"presence_penalty": presence, "frequency_penalty": frequency}
    request = RequestModel(model, threading.Event(), body)
    plain = model.step(model.select(model.start(["the train"]), np.array([0])), None)
    ours = request.step(request.select(request.start(["the train"]), np.array([0])), None)
    assert ours.log_probs.tolist() == plain.log_probs.tolist()  # nothing is written yet
    token = int(plain.log_probs[0].argmax())
    for times in (1, 2):
        plain = model.step(plain.state, np.array([token]))
        ours = request.step(ours.state, np.array([token]))
        bent = plain.log_probs[0].copy()
        bent[token] -= presence + times * frequency
        assert ours.log_probs[0] == pytest.approx(bent - np.logaddexp.reduce(bent))


def test_of_a_local_model_answers_that_are_no_json_abstain():
    lines = 20 * ['{"at": 10}'] + 6 * ["at ten o'clock"] + ['{"at": 12}']
    with Running(model=NgramModel.train(lines, order=3), options={"samples": 20}) as service:
        answer = service.ask(
            prompt="", path="/v1/completions", seed=1, response_format={"type": "json_object"}
        )
        election = answer.json()["rangevote"]
        assert json.loads(answer.json()["choices"][0]["text"]) == {"at": 10}
        assert election["samples"]["invalid_json"] > 0
        assert election["votes"] == 20 - election["samples"]["invalid_json"]


def test_voters_that_were_cut_off_do_not_count_for_min_votes(service):
    asked = {"messages": CHAT, "seed": 1, "max_tokens": 3}
    votes = service.ask(**asked).json()["rangevote"]["votes"]
    assert 0 < votes < 20
    refused = service.ask(**asked, rangevote={"min_votes": votes + 1})
    assert (refused.status_code, error_of(refused)["code"]) == (502, "insufficient_votes")
    assert service.ask(**asked, rangevote={"min_votes": votes}).status_code == 200


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"logprobs": True}, "logprobs"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"messages": [{"role": "system", "content": "a"}, *CHAT]}, "messages"),
        ({"rangevote": {"candidates": 4}}, "rangevote.candidates"),
        ({"rangevote": {"candidates": "beam:65"}}, "rangevote.candidates"),
        ({"rangevote": {"candidates": "bean:4"}}, "rangevote"),
        ({"n": 11}, "n"),
        ({"max_tokens": 4097}, "max_tokens"),
        ({"max_tokens": 5, "max_completion_tokens": 4097}, "max_completion_tokens"),
        ({"rangevote": {"candidates": "beam:4,max_new_tokens=4097"}}, "rangevote.candidates"),
    ],
)
def test_what_a_local_model_cannot_do_is_refused_by_name(service, given, param):
    refused = service.ask(**{"messages": CHAT, **given})
    assert refused.status_code == 400
    assert error_of(refused)["param"] == param


def test_only_those_who_were_asked_to_vote_are_counted(service):
    samples = service.ask(messages=CHAT, seed=1).json()["rangevote"]["samples"]
    assert samples == {"asked": 20, "saved": 0, "usable": 20}
    cut = service.ask(messages=CHAT, seed=1, max_tokens=3).json()["rangevote"]["samples"]
    assert cut["usable"] + cut["length"] == cut["asked"] == 20
    beams = service.ask(messages=CHAT, rangevote={"voters": "candidates", "candidates": "beam:4"})
    assert beams.json()["rangevote"]["samples"] == {"asked": 4, "saved": 0, "usable": 4}


def test_an_input_that_the_model_refuses_is_400_without_its_words(service):
    refused = service.ask(messages=[{"role": "user", "content": "<s> secret"}])
    assert (refused.status_code, error_of(refused)["code"]) == (400, "unreadable_input")
    assert "secret" not in refused.text


class Slow:
    """A model that takes its time, and knows how often it was asked."""

    def __init__(self, model: NgramModel, seconds: float = 0.05) -> None:
        self._model, self._seconds, self.steps = model, seconds, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    def step(self, state: object, tokens: object) -> object:
        self.steps += 1
        time.sleep(self._seconds)
        step = self._model.step(state, tokens)
        step.log_probs[:, list(self._model.ends)] = -1e9  # and never comes to an end
        return step


def test_a_length_is_used_as_it_was_asked_for(model):
    with Running(model=Slow(model, 0), limits={"max_tokens": 300}) as service:
        for given, search, length in (
            ({}, "beam:2", 256),
            ({"max_tokens": 300}, "beam:2", 300),
            ({"max_completion_tokens": 3}, "beam:2", 3),
            ({}, "beam:2,max_new_tokens=299", 299),
            ({"max_tokens": 2}, "beam:2,max_new_tokens=299", 2),
        ):
            answer = service.ask(
                messages=CHAT, **given, rangevote={"samples": 2, "candidates": search}
            ).json()
            assert answer["usage"]["completion_tokens"] == 4 * length


def test_the_answers_of_a_model_that_reasons_vote_and_the_winners_reasoning_is_returned():
    thoughts = ["early train </think> at ten", "late bus </think> at ten", "late bus </think> at noon"]
    reasoner = NgramModel.train(100 * [f"when <think> {thought}" for thought in thoughts], order=4)
    with Running(model=reasoner, options={"samples": 20, "candidates": "beam:3"}) as running:
        answer = running.client().chat.completions.create(
            model="tiny", messages=[{"role": "user", "content": "when"}], seed=1
        )
    message = answer.choices[0].message
    assert message.content == "at ten"
    assert message.reasoning_content in ("early train", "late bus")


def test_tags_without_reasoning_are_no_part_of_a_local_models_answer():
    quick = NgramModel.train(100 * ["when <think> </think> at ten"], order=4)
    with Running(model=quick, options={"samples": 5, "candidates": "beam:1"}) as running:
        answer = running.client().chat.completions.create(
            model="tiny", messages=[{"role": "user", "content": "when"}], seed=1
        )
    assert answer.choices[0].message.content == "at ten"


def test_a_client_that_goes_away_stops_the_model(model):
    slow = Slow(model)
    with Running(model=slow) as service:
        body = json.dumps({"model": "tiny", "messages": CHAT, "max_tokens": 2000}).encode()
        with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
            connection.sendall(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            until(lambda: slow.steps > 2)
            assert service.http.get("/healthz").status_code == 200
        until(lambda: service.metric("rangevote_in_flight") == 0, 2)
        time.sleep(0.2)
        steps = slow.steps
        time.sleep(0.3)
        assert slow.steps == steps


def test_a_service_is_the_upstream_of_another(model):
    """The inner one answers with single samples of its model, the outer one elects among them."""
    with (
        Running(model=model, options={"candidates": "sample:1", "samples": 1}) as inner,
        Running(f"{inner.url}/v1", options={"samples": 8, "similarity": "overlap_1"}) as outer,
    ):
        answer = outer.client().chat.completions.create(model="tiny", messages=CHAT, seed=7)
    seeds = range(7, 15)
    drawn = [search(model, ["the train"], f"sample:1,max_new_tokens=256,seed={s}")[0][0] for s in seeds]
    expected = elect([one.text for one in drawn], similarity="overlap_1")
    assert answer.choices[0].message.content == expected.winner
    assert (answer.rangevote["votes"], answer.usage.prompt_tokens) == (8, 16)


class Tokenizer:
    """A chat template over words, in the shape of transformers' tokenizers."""

    chat_template = "a template"

    def __init__(self, model: NgramModel) -> None:
        self._model = model

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": list(self._model.source(text))}

    def apply_chat_template(self, chat: list[dict[str, str]], **options: object) -> str:
        return " ".join(message["content"] for message in chat)


class Chatting(ModelWrapper):
    """A model that reads conversations by its template."""

    def __init__(self, model: NgramModel) -> None:
        super().__init__(model)
        self.tokenizer = Tokenizer(model)

    def start(self, inputs):
        texts = [
            self.tokenizer.apply_chat_template(one) if isinstance(one[0], dict) else one for one in inputs
        ]
        return super().start(texts)


def test_a_model_with_a_chat_template_takes_conversations_and_plain_prompts(model):
    chat = [
        {"role": "user", "content": [{"type": "text", "text": "the "}, {"type": "text", "text": "bus"}]},
        {"role": "assistant", "content": "leaves"},
        {"role": "user", "content": "at"},
    ]
    options = {"max_tokens": 12, "rangevote": {"voters": "candidates", "candidates": "beam:4"}}
    with Running(model=Chatting(model)) as service:
        talked = service.ask(messages=chat, **options).json()
        continued = service.ask("/v1/completions", prompt="the train", **options).json()
        picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
        refused = service.ask(messages=[{"role": "user", "content": picture}])
    expected = generate(model, ["the bus leaves at"], candidates="beam:4,max_new_tokens=12")[0]
    assert talked["choices"][0]["message"]["content"] == expected.winner
    assert talked["usage"]["prompt_tokens"] == 4
    ids = list(model.source("the train"))
    expected = generate(model, [ids], candidates="beam:4,max_new_tokens=12")[0]
    assert continued["choices"][0]["text"] == expected.winner
    assert (refused.status_code, error_of(refused)["param"]) == (400, "messages[0]")
