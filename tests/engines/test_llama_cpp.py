"""Outputs of llama.cpp: by a real one, and in the shapes of llama-cpp-python, which has no wheel."""

from __future__ import annotations

import asyncio
import math

import pytest

import rangevote as rv
from rangevote.engines.llama_cpp import SLOTS, hypotheses_of
from rangevote.engines.openai.client import Client
from rangevote.engines.openai.sampling import Samples, sample
from rangevote.formats.choices import CHAT, COMPLETIONS
from tests.engines.llama import llama

__all__ = ["llama"]

PROMPT = "The capital of France is"
#: What transformers says of " Paris, and the capital of" behind it, with the same weights in float32.
SAID = [-0.258, -1.658, -1.242, -1.048, -0.516, -1.103]
#: The text is forced by a grammar, its division into tokens by taking the best that the grammar lets pass.
FORCED = {
    "prompt": PROMPT,
    "max_tokens": 6,
    "logprobs": 1,
    "top_k": 1,
    "grammar": 'root ::= " Paris, and the capital of" .*',
}
GREEDY = {"max_tokens": 6, "logprobs": True, "temperature": 1.0, "top_k": 1}
YES = [{"role": "user", "content": "Say only the word yes."}]


def test_the_sum_is_the_models_log_probability(llama):
    [[hypothesis]] = hypotheses_of([[llama.handle_completions(FORCED)]])
    assert hypothesis.text == " Paris, and the capital of"
    assert not hypothesis.finished
    assert hypothesis.logprob == pytest.approx(math.fsum(SAID), abs=0.25)  # it computes with 8-bit integers


def test_temperature_does_not_change_what_is_said_of_a_text(llama):
    cool, hot = (llama.handle_completions({**FORCED, "temperature": t}) for t in (0.1, 2.0))
    [[first, second]] = hypotheses_of([[cool, hot]])
    assert first.logprob == pytest.approx(second.logprob, abs=1e-3)


def test_chat_has_the_end_of_the_sequence_in_its_sum(llama):
    asked = {"messages": YES, "max_tokens": 20, "logprobs": True, "temperature": 0.0}
    answer = llama.handle_chat_completions(asked)
    [[hypothesis]] = hypotheses_of([[answer]])
    listed = answer["choices"][0]["logprobs"]["content"]
    assert hypothesis.finished
    assert hypothesis.sampled
    assert "".join(token["token"] for token in listed[:-1]) == hypothesis.text
    assert hypothesis.logprob == pytest.approx(sum(token["logprob"] for token in listed))


def drawn(llama, n: int, path: str, body: dict[str, object]) -> Samples:
    async def run() -> Samples:
        # one call at a time and no cache: what is computed together is rounded together
        body["cache_prompt"] = False
        async with Client(f"{llama.listening_address}/v1", concurrency=1) as client:
            return await sample(client, path, {"model": "smollm2", **body}, n, seed=1)

    return asyncio.run(run())


def test_its_server_gives_as_many_samples_as_it_has_slots_in_one_call(llama):
    samples = drawn(llama, SLOTS, COMPLETIONS, {"prompt": PROMPT, "max_tokens": 5, "logprobs": 1})
    assert (samples.calls, len(samples.choices)) == (1, SLOTS)
    assert all(choice.tokens == 5 and choice.logprob < 0 for choice in samples.choices)


def test_its_server_refuses_more_and_is_asked_again_with_a_seed_each(llama):
    body = {"messages": YES, "max_tokens": 4, "logprobs": True, "temperature": 1.5, "top_k": 0, "min_p": 0.0}
    samples = drawn(llama, 6, CHAT, body)
    # of six at once, of one, of three, and of the last two
    assert (samples.calls, len(samples.choices), samples.failed) == (4, 6, [])
    assert len({choice.text for choice in samples.choices}) > 1
    assert [choice.text for choice in drawn(llama, 6, CHAT, body).choices] == [
        choice.text for choice in samples.choices
    ]


@pytest.fixture(scope="module")
def engine(llama):
    """The file again, behind our own interface; `llama` says that there is one."""
    return rv.load("llama_cpp:smollm2")


def test_a_file_is_sampled_by_llama_cpp_itself(llama, engine):
    search = f"sample:{SLOTS + 3},max_new_tokens=6,seed=1"
    [found] = rv.search(engine, ["Say something."], search)
    assert len(found) == SLOTS + 3
    assert len({hypothesis.text for hypothesis in found}) > 2
    assert all(hypothesis.sampled and hypothesis.logprob < 0 for hypothesis in found)
    [[forced]] = rv.search(engine, ["Say only the word yes."], "top_k:1,top=1,max_new_tokens=6")
    [[said]] = hypotheses_of([[llama.handle_chat_completions({**GREEDY, "messages": YES})]])
    assert (forced.text, forced.finished) == (said.text, said.finished)
    assert forced.logprob == pytest.approx(said.logprob, abs=1e-3)
    [result] = rv.generate(engine, ["Say only the word yes."], candidates="sample:3,max_new_tokens=4")
    assert "w:count|cand:3" in result.signature


def test_llama_cpp_has_no_beams(engine):
    with pytest.raises(rv.UsageError, match="cannot search by 'beam:2', only by: min_p, nucleus"):
        rv.search(engine, ["a"], "beam:2")
    with pytest.raises(rv.UsageError, match=r"leave dtype out: llama\.cpp takes all from the file"):
        rv.load("llama_cpp:smollm2", dtype="float32")
