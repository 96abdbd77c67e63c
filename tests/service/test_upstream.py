"""One POST becomes samples, an election and one ordinary completion."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import openai
import pytest

from rangevote import Hypothesis, elect
from rangevote.service.upstream import Upstream as ServiceUpstream
from tests.engines.openai.upstream import LOGPROBS, SENTENCES, Asked, Reply, message, saying, well
from tests.service.running import MESSAGES, Running, error_of, texts

ADAPTIVE = {"samples": 64, "adaptive": 0.99}


def test_a_chat_is_answered_with_the_elected_sample(service):
    answer = service.client().chat.completions.create(model="tiny", messages=MESSAGES, seed=0)
    expected = elect(SENTENCES, weights="count")
    assert (answer.object, answer.model, len(answer.choices)) == ("chat.completion", "tiny", 1)
    assert answer.id.startswith("chatcmpl-")
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == expected.winner == "the train leaves at ten"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.rangevote["votes"] == 6
    assert answer.rangevote["signature"] == expected.signature
    assert answer.rangevote["margin"] == pytest.approx(expected.margin)


def test_parameters_go_to_the_model_untouched(service, upstream):
    fields = {"temperature": 0.7, "top_p": 0.9, "max_tokens": 33, "stop": ["\n", "END"], "user": "u"}
    fields |= {"presence_penalty": 0.1, "response_format": {"type": "json_object"}}
    service.client().chat.completions.create(model="tiny", messages=MESSAGES, seed=11, **fields)
    assert upstream.asked[0].body == {**fields, "model": "tiny", "messages": MESSAGES, "seed": 11, "n": 6}
    more = {"chat_template_kwargs": {"enable_thinking": False}}  # in the configuration's `forward`
    assert service.ask(**more).status_code == 200
    assert upstream.asked[1].body["chat_template_kwargs"] == more["chat_template_kwargs"]


def test_at_temperature_0_one_sample_is_asked_for_and_others_are_not_affected(service, upstream):
    upstream.mode = "greedy_once"
    client = service.client()
    for temperature in (0, 0.0, 1e-6):
        answer = client.chat.completions.create(model="tiny", messages=MESSAGES, temperature=temperature)
        assert (answer.rangevote["votes"], answer.rangevote["samples"]["asked"]) == (1, 1)
    adaptive = service.ask(temperature=0, rangevote={**ADAPTIVE, "min_votes": 4}).json()["rangevote"]
    assert (adaptive["votes"], adaptive["samples"]["saved"]) == (1, 0)
    client.chat.completions.create(model="tiny", messages=MESSAGES, temperature=0.7)
    assert [asked.body.get("n") for asked in upstream.asked] == [None, None, None, None, 6]
    refused = service.ask(temperature=0, n=2)
    assert (refused.status_code, error_of(refused)["param"]) == (400, "n")


def test_options_come_in_the_object_rangevote_by_extra_body(service, upstream):
    answer = service.client().chat.completions.create(
        model="tiny",
        messages=MESSAGES,
        seed=0,
        extra_body={"rangevote": {"samples": 3, "similarity": "exact", "explain": True}},
    )
    assert upstream.asked[0].n == 3
    assert "rangevote" not in upstream.asked[0].body
    assert "sim:exact" in answer.rangevote["signature"]
    assert [row["text"] for row in answer.rangevote["scores"]] == list(SENTENCES[:3])
    assert [row["score"] for row in answer.rangevote["scores"]] == pytest.approx([1 / 3] * 3)
    assert answer.rangevote["near_tie"] is True


def test_a_profile_is_chosen_by_the_base_url_or_by_an_alias(service, upstream):
    client = service.client("many")
    answer = client.chat.completions.create(model="tiny", messages=MESSAGES)
    assert (answer.rangevote["votes"], "sim:overlap_1|" in answer.rangevote["signature"]) == (12, True)
    assert client.completions.create(model="tiny", prompt="p").rangevote["votes"] == 12
    assert client.models.list().data[-1].id == "elected"
    aliased = service.client().chat.completions.create(model="elected", messages=MESSAGES)
    assert (aliased.model, aliased.rangevote["votes"]) == ("elected", 12)
    assert {asked.body["model"] for asked in upstream.asked} == {"tiny"}
    assert error_of(service.ask("/v1/few/chat/completions"))["code"] == "profile_not_found"


def test_models_are_those_of_the_list_or_of_the_upstream(service, upstream, monkeypatch):
    refused = service.ask(model="large")
    assert (refused.status_code, error_of(refused)["param"]) == (404, "model")
    with pytest.raises(openai.NotFoundError):
        service.client().chat.completions.create(model="large", messages=MESSAGES)
    monkeypatch.setattr(ServiceUpstream, "models_kept", 0.0)
    upstream.models = (7,)  # no names
    with Running(upstream.url) as listing:
        assert error_of(listing.http.get("/v1/models"))["code"] == "upstream_shape"
        upstream.models = ("tiny", "large")
        assert [model.id for model in listing.client().models.list()] == ["tiny", "large"]
        upstream.models = (7,)  # the last list will do
        assert listing.ask(model="large").status_code == 200
        assert listing.http.get("/readyz").status_code == 503


def test_several_choices_are_elected_to_represent_different_voters(service):
    answer = service.client().chat.completions.create(model="tiny", messages=MESSAGES, seed=0, n=2)
    expected = elect(SENTENCES, weights="count", rule="reweighted", winners=2)
    assert [one.index for one in answer.choices] == [0, 1]
    assert [one.message.content for one in answer.choices] == list(expected.winners)
    assert "rule:reweighted" in answer.rangevote["signature"]


def test_probabilities_are_asked_for_and_weigh_only_if_every_token_has_one(service, upstream):
    by_probability = {"rangevote": {"weights": "probability"}}
    weighed = service.ask(**by_probability).json()
    upstream.mode = "nan_logprob"
    unknown = service.ask(**by_probability).json()
    upstream.mode = "well"
    service.ask()
    assert upstream.asked[0].body["logprobs"] is True
    assert "|w:probability|" in weighed["rangevote"]["signature"]
    assert "|w:count|" in unknown["rangevote"]["signature"]
    assert "logprobs" not in upstream.asked[-1].body


@pytest.mark.parametrize("adaptive", [False, 0.99])
def test_own_likelihood_counts_and_is_asked_for(service, upstream, adaptive):
    options = {"likelihood": 0.5, "similarity": "overlap_2", "adaptive": adaptive}
    answer = service.ask(seed=0, rangevote=options).json()
    hypotheses = [Hypothesis(text, logprob=sum(LOGPROBS), sampled=True) for text in SENTENCES]
    expected = elect(hypotheses, similarity="overlap_2", likelihood=0.5)
    assert upstream.asked[0].body["logprobs"] is True
    assert answer["rangevote"]["signature"] == expected.signature
    assert "|L:0.5|" in expected.signature
    assert answer["choices"][0]["message"]["content"] == expected.winner
    assert answer["rangevote"]["score"] == pytest.approx(expected.score)


REFUSED = message(refusal="I cannot help with that.")
WITHOUT_THE_FIRST = elect(SENTENCES[1:], weights="count").winner


@pytest.mark.parametrize(
    ("samples", "content", "reason", "counts"),
    [
        ([message(), *[{}] * 5], WITHOUT_THE_FIRST, "stop", {"null": 1, "usable": 5}),
        ([message("The tr", "content_filter")], "The tr", "content_filter", {"filtered": 6}),
        ([message("a b", "length")], "a b", "length", {"length": 6}),
    ],
)
def test_what_became_of_the_samples_is_counted(service, upstream, samples, content, reason, counts):
    upstream.answer = saying(*samples)
    answer = service.ask(seed=0).json()
    [elected] = answer["choices"]
    assert (elected["message"]["content"], elected["finish_reason"]) == (content, reason)
    assert answer["rangevote"]["votes"] == counts.get("usable", 6)
    assert answer["rangevote"]["samples"] == {"asked": 6, "saved": 0, **counts}
    metrics = service.http.get("/metrics").text
    assert all(f'rangevote_samples_total{{outcome="{outcome}"}} ' in metrics for outcome in counts)


@pytest.mark.parametrize("options", [{}, {"min_votes": 6}, ADAPTIVE])
def test_where_all_samples_refuse_the_answer_is_a_refusal(service, upstream, options):
    upstream.answer = saying(REFUSED, REFUSED, message(refusal="No."))
    client = service.client()
    asked = {"model": "tiny", "messages": MESSAGES, "extra_body": {"rangevote": options}}
    answer = client.chat.completions.create(**asked)
    reply, words = answer.choices[0].message, REFUSED["message"]["refusal"]
    assert (reply.content, reply.refusal, answer.choices[0].finish_reason) == (None, words, "stop")
    assert answer.rangevote["samples"]["refusal"] == answer.rangevote["votes"] >= 6
    deltas = [chunk.choices[0].delta for chunk in client.chat.completions.create(**asked, stream=True)]
    assert "".join(delta.refusal or "" for delta in deltas) == words
    assert "".join(delta.content or "" for delta in deltas) == ""


def test_empty_texts_alone_elect_nobody(service, upstream):
    upstream.answer = texts("")
    empty = service.ask().json()
    assert (empty["choices"][0]["message"]["content"], empty["rangevote"]["no_support"]) == (None, True)
    assert "so that all abstain" in empty["rangevote"]["no_winner"]


def test_min_votes_are_needed_and_one_sample_is_an_answer(service, upstream):
    upstream.answer = saying(*5 * [message()], {})
    one, refused = service.ask(), service.ask(rangevote={"min_votes": 2})
    assert (one.status_code, one.json()["rangevote"]["votes"]) == (200, 1)
    assert (refused.status_code, error_of(refused)["code"]) == (502, "insufficient_votes")
    assert "1 of 6 samples" in error_of(refused)["message"]


MOSTLY = ["the train leaves at ten"] * 5 + ["i do not know"] + ["the train leaves at ten"] * 14


@pytest.mark.parametrize(
    ("samples", "options", "rounds", "candidates", "certain"),
    [
        (["42"], {}, [4, 4, 8], 16, True),
        (MOSTLY, {}, [4, 4, 8, 16], 16, True),
        (["a b", "c d"], {}, [4, 4, 8, 16, 32], 16, False),
        (["a b", "c d"], {"samples": 12, "candidates": 4}, [4, 4, 4], 4, False),
        (["42"], {"min_votes": 20}, [4, 4, 8, 16], 16, True),
        (["a b", "c d", "c e"], {"samples": 9, "candidates": 2, "adaptive": False}, [9], 2, False),
        (["42", "so 42", *["42"] * 8], {"similarity": "exact:last_number"}, [4, 4, 8], 16, True),
        (["a b c", "a b c", "a b d"], {"within": 0.6, "similarity": "overlap_1"}, [4, 4, 8, 16], 16, True),
    ],
)
def test_samples_are_drawn_in_rounds_until_the_winner_is_certain(
    service, upstream, samples, options, rounds, candidates, certain
):
    """Decided by those who vote after the candidates were fixed; here all of them agree or none leads."""
    upstream.answer = texts(*samples)
    options = {**ADAPTIVE, **options}
    answer = service.ask(seed=0, rangevote=options).json()
    drawn = sum(rounds)
    assert [asked.n for asked in upstream.asked] == rounds
    assert [asked.body["seed"] for asked in upstream.asked] == [sum(rounds[:i]) for i in range(len(rounds))]
    election = answer["rangevote"]
    assert (election["certain"], election["candidates"], election["votes"]) == (certain, candidates, drawn)
    saved = options["samples"] - drawn
    assert election["samples"] == {"asked": drawn, "saved": saved, "usable": drawn}
    assert answer["usage"]["total_tokens"] == 7 * len(rounds) + 3 * drawn


def test_a_round_that_fails_after_others_came_does_not_fail_the_request(service, upstream):
    upstream.mode = ["well", "broken"]
    answer = service.ask(seed=0, rangevote={**ADAPTIVE, "samples": 12, "candidates": 6})
    assert answer.status_code == 200
    assert answer.json()["rangevote"]["samples"] == {"asked": 8, "saved": 0, "usable": 4, "failed": 4}


BEAMS = {"the train": -0.5, "the train leaves at ten": -1.5, "a train leaves at ten": -2.0}


def searching(asked: Asked) -> Reply:
    """As vLLM answers: beams where they are asked for, with the log-probabilities of their tokens."""
    if not asked.body.get("use_beam_search"):
        return well(asked)
    parts = ([{"logprob": -0.25}, {"logprob": total + 0.25}] for total in BEAMS.values())
    return saying(
        *({**message(text), "logprobs": {"content": c}} for text, c in zip(BEAMS, parts, strict=True))
    )(asked)


def test_beams_stand_and_samples_or_the_beams_vote(service, upstream):
    """The paper's two settings over HTTP."""
    upstream.answer = searching
    answer = service.ask(seed=0, temperature=0.7, rangevote={"candidates": "beam:3"}).json()
    beams = [Hypothesis(text, logprob=logprob) for text, logprob in BEAMS.items()]
    expected = elect(beams, voters=[Hypothesis(text, sampled=True) for text in SENTENCES])
    assert answer["choices"][0]["message"]["content"] == expected.winner == "the train leaves at ten"
    assert answer["rangevote"]["signature"] == expected.signature
    assert answer["usage"]["completion_tokens"] == 3 * 3 + 6 * 3
    search, samples = upstream.asked
    assert (search.n, search.body["use_beam_search"], search.body["temperature"]) == (3, True, 0.0)
    assert "seed" not in search.body
    assert (samples.n, samples.body["temperature"], samples.body["seed"]) == (6, 0.7, 0)
    beams_alone = service.ask(rangevote={"candidates": "beam:3", "voters": "candidates"}).json()
    assert beams_alone["choices"][0]["message"]["content"] == elect(beams).winner
    assert beams_alone["rangevote"]["signature"] == elect(beams).signature
    assert beams_alone["rangevote"]["samples"] == {"asked": 3, "saved": 0, "usable": 3}
    assert "|w:probability|" in elect(beams).signature
    assert len(upstream.asked) == 3


def test_servers_that_ignore_beam_search_are_found_out_and_other_searches_refused(service, upstream):
    upstream.answer = saying({"logprobs": None})
    refused = service.ask(rangevote={"candidates": "beam:3"})
    assert (refused.status_code, error_of(refused)["code"]) == (502, "upstream_beams")
    upstream.asked.clear()
    for candidates in ("beam:65", "sample:3", "beam:3,copy_filter=0.5", "diverse_beam:4"):
        refused = service.ask(rangevote={"candidates": candidates})
        assert (refused.status_code, error_of(refused)["param"]) == (400, "rangevote.candidates")
    refused = service.ask(n=4, rangevote={"candidates": "beam:3"})
    assert (refused.status_code, error_of(refused)["param"]) == (400, "n")
    assert upstream.asked == []


def test_samples_that_cannot_be_voted_on_as_asked_are_the_requests_fault(upstream):
    upstream.answer = texts("a b " * 100, "a c " * 100)
    with Running(upstream.url, limits={"pairwise_chars": 1000}) as service:
        impossible = service.ask(rangevote={"similarity": "states"})
        for similarity in ("chrf", "0.5*overlap_1+0.5*bleu_4"):  # compare every pair
            refused = service.ask(rangevote={"similarity": similarity})
            assert (refused.status_code, error_of(refused)["code"]) == (400, "too_long")
        assert service.ask(rangevote={"similarity": "overlap_1-4"}).status_code == 200
        assert service.ask(rangevote={"similarity": "chrf", "samples": 2}).status_code == 200
    assert (impossible.status_code, error_of(impossible)["code"]) == (400, "election_impossible")


@pytest.fixture
def encoders(monkeypatch, tmp_path):
    """The folders that were loaded as models of sentence-transformers."""
    loaded: list[str] = []

    class Encoder:
        def __init__(self, folder: str, **options: object) -> None:
            loaded.append(folder)

        def encode(self, texts: list[str], **options: object) -> np.ndarray:
            return np.array([[len(text), text.count(" ") + 1.0] for text in texts])

    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = Encoder
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "modules.json").touch()
    monkeypatch.chdir(tmp_path)
    return loaded


@pytest.mark.parametrize(
    "similarity", ["embedding:org/model", "embedding:/etc", "0.50*embedding:/etc", "comet:x", "bertscore_1"]
)
@pytest.mark.parametrize("adaptive", [False, True])
def test_a_client_cannot_choose_a_model_that_is_loaded(service, upstream, encoders, similarity, adaptive):
    refused = service.ask(rangevote={"similarity": similarity, "adaptive": adaptive})
    assert (refused.status_code, error_of(refused)["param"]) == (400, "rangevote.similarity")
    assert "only those that the service's options and profiles name: none" in error_of(refused)["message"]
    assert upstream.asked == encoders == []


@pytest.mark.parametrize("key", ["regex:(a+)+$", "command=touch made", "math"])
def test_a_client_cannot_name_a_key_that_runs_code_or_may_take_forever(upstream, tmp_path, monkeypatch, key):
    monkeypatch.chdir(tmp_path)
    profiles = {"a": {"similarity": r"exact:regex:\d+"}, "b": {"similarity": "exact:last_number"}}
    with Running(upstream.url, profiles=profiles) as service:
        for similarity in (f"exact:{key}", f"0.5*exact:{key}", f"Majority:{key}", f"EXACT:{key}"):
            refused = service.ask(rangevote={"similarity": similarity})
            assert (refused.status_code, error_of(refused)["param"]) == (400, "rangevote.similarity")
            assert f"requests may use exact:{key[:4]}" in error_of(refused)["message"]
        assert service.ask(rangevote={"similarity": r"exact:regex:\d+"}).status_code == 200
        assert service.ask("/v1/a/chat/completions").status_code == 200
    assert not list(tmp_path.iterdir())


def test_models_that_the_operator_named_are_loaded_once_however_they_are_spelt(upstream, encoders, tmp_path):
    pytest.importorskip("torch", reason="sentence encoders load with torch")
    named, other = "embedding:./m", "embedding:../" + tmp_path.name + "/m"
    with Running(upstream.url, profiles={"a": {"similarity": named}, "b": {"similarity": other}}) as service:
        for share in ("0.5", "0.50", "0.51"):
            answer = service.ask(rangevote={"similarity": f"{share}*{named}+0.1*overlap_1"})
            assert (answer.status_code, named in answer.json()["rangevote"]["signature"]) == (200, True)
        for profile in "ab":
            assert service.ask(f"/v1/{profile}/chat/completions").status_code == 200
        assert service.ask(rangevote={"similarity": f"{named}/"}).status_code == 400
    assert encoders == ["m"]


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_model_of_the_operators_that_cannot_be_loaded_is_503(upstream, encoders, adaptive):
    options = {"similarity": "embedding:./none", "adaptive": adaptive, "samples": 32}
    with Running(upstream.url, options=options) as service:
        failed = service.ask()
    assert (failed.status_code, error_of(failed)["code"]) == (503, "similarity_failed")
    assert "./none" not in failed.text
