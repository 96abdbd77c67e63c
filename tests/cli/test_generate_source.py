"""rangevote generate --source: a server samples, the election is held here."""

from __future__ import annotations

import json

import pytest

import rangevote as rv
from rangevote.formats import read
from tests.cli.asking import PROMPTS, ask, prompt_of, prompts, short_pauses
from tests.sources.llama import llama
from tests.sources.openai.upstream import LOGPROBS, SENTENCES, Asked, Reply, Upstream, completion, text_of

__all__ = ["ask", "llama", "prompts", "short_pauses"]


def test_every_line_is_asked_and_elected_in_order(ask, tmp_path):
    with Upstream(delay=0.01) as upstream:
        done = ask(upstream, "--candidates", "sample:6", "--scores", "--ballots", tmp_path / "nbest.jsonl")
    assert (done.code, done.err) == (0, "")
    assert [line["id"] for line in done.results()] == list(range(1, 10))
    ballots = list(read(str(tmp_path / "nbest.jsonl")))
    for line, entry, prompt in zip(done.results(), ballots, PROMPTS, strict=True):
        ballot = entry.get()
        assert ballot.source == prompt
        [asked] = [asked for asked in upstream.asked if prompt_of(asked) == prompt]
        assert [one.text for one in ballot.candidates] == [text_of(asked.body["seed"] + i) for i in range(6)]
        result = rv.elect(ballot.candidates)
        assert (line["winner"], line["scores"]) == (result.winner, result.scores.tolist())
        assert "w:count" in line["signature"]
    assert upstream.most_open > 1


def test_the_first_samples_are_ten_and_carry_a_seed_for_every_input(ask):
    with Upstream() as upstream:
        assert ask(upstream).code == 0
    assert {asked.n for asked in upstream.asked} == {10}
    assert len({asked.body["seed"] for asked in upstream.asked}) == len(PROMPTS)
    assert all(asked.body["temperature"] == 1.0 and "logprobs" not in asked.body for asked in upstream.asked)


@pytest.mark.parametrize("mode", ["ignores_n", "refuses_n", "one_fewer", "at_most_two"])
def test_servers_that_do_not_understand_n_give_the_same_ballots(ask, mode, tmp_path):
    options = (
        "--candidates",
        "sample:5",
        "--voters",
        "sample:7",
        "--seed",
        "3",
        "--scores",
        "--concurrency",
        4,
    )
    with Upstream() as good, Upstream(mode) as bad:
        one, other = ask(good, *options), ask(bad, *options)
    assert one.code == other.code == 0
    assert one.out == other.out


def test_candidates_and_voters_are_different_draws(ask):
    with Upstream() as upstream:
        assert ask(upstream, "--candidates", "sample:5", "--voters", "sample:5").code == 0
    seeds = [asked.body["seed"] for asked in upstream.asked if prompt_of(asked) == PROMPTS[0]]
    assert len(seeds) == 2
    assert abs(seeds[0] - seeds[1]) > 5


def test_probabilities_are_asked_for_where_they_weigh(ask, tmp_path):
    with Upstream() as upstream:
        done = ask(upstream, "--weights", "probability", "--ballots", tmp_path / "nbest.jsonl")
    assert done.code == 0
    assert all(asked.body["logprobs"] is True for asked in upstream.asked)
    for entry in read(str(tmp_path / "nbest.jsonl")):
        assert {one.logprob for one in entry.get().candidates} == {sum(LOGPROBS)}


def test_voters_are_drawn_only_until_the_election_is_decided(ask):
    def agreed(asked: Asked) -> Reply:
        """All voters say one thing; candidates are two, drawn at the temperature of 0.5."""
        texts = ["x", SENTENCES[0]] if asked.body["temperature"] == 0.5 else [SENTENCES[0]] * asked.n
        return completion(asked, [{"index": i, "message": {"content": text}} for i, text in enumerate(texts)])

    options = (
        "--candidates",
        "sample:2,temperature=0.5",
        "--voters",
        "sample:400",
        "--adaptive",
        "0.999999999",
    )
    with Upstream(answer=agreed) as upstream:
        done = ask(upstream, *options, "--text")
    assert done.code == 0
    assert done.out.decode().splitlines() == [SENTENCES[0]] * len(PROMPTS)
    rounds = [asked.n for asked in upstream.asked if prompt_of(asked) == PROMPTS[0]]
    assert rounds[:2] == [2, 16]
    assert sum(rounds) < 200
    seeds = [asked.body["seed"] for asked in upstream.asked if prompt_of(asked) == PROMPTS[0]]
    assert seeds[2] == seeds[1] + 16


def test_plain_prompts_conversations_and_token_ids_are_asked_as_what_they_are(ask, tmp_path):
    path = tmp_path / "in.jsonl"
    chat = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    path.write_text("\n".join(json.dumps({"id": i, "input": v}) for i, v in enumerate(["a", chat, [5, 6]])))
    with Upstream() as upstream:
        assert ask(upstream, input=path).code == 0
        assert ask(upstream, "--no-chat").code == 0
    sent = {asked.path: asked.body for asked in upstream.asked[:3]}
    assert sent["/v1/completions"]["prompt"] == [5, 6]
    talks = [asked.body["messages"] for asked in upstream.asked[:3] if asked.chat]  # in any order
    assert sorted(talks, key=len) == [[{"role": "user", "content": "a"}], chat]
    assert {asked.body["prompt"] for asked in upstream.asked[3:]} == set(PROMPTS)


def test_beams_of_a_vllm_server_are_weighed_by_their_probability(ask, tmp_path):
    with Upstream() as upstream:
        done = ask(upstream, "--candidates", "beam:3", "--ballots", tmp_path / "nbest.jsonl", source="vllm")
    assert done.code == 0
    assert {(asked.n, asked.body["use_beam_search"]) for asked in upstream.asked} == {(3, True)}
    assert not any("seed" in asked.body for asked in upstream.asked)
    assert all("w:probability" in line["signature"] for line in done.results())
    ballot = next(iter(read(str(tmp_path / "nbest.jsonl")))).get()
    assert [one.sampled for one in ballot.candidates] == [False] * 3


@pytest.mark.parametrize(
    ("mode", "told"),
    [("nan_logprob", "beams without their log-probabilities"), ("greedy", "the same beam more than once")],
)
def test_a_server_that_gives_no_beams_is_found_out(ask, mode, told):
    with Upstream(mode) as upstream:
        done = ask(upstream, "--candidates", "beam:3", source="vllm")
    assert (done.code, done.out) == (3, b"")
    assert f"prompts.txt:1: the server answered 'beam:3' with {told}" in done.err
    assert "must be a vLLM server, started with --max-logprobs 6 or more" in done.err


def test_fewer_beams_than_asked_for_are_told(ask):
    with Upstream("at_most_two") as upstream:
        done = ask(upstream, "--candidates", "beam:3", source="vllm")
    assert done.code == 0
    assert "warning: inputs[0]: only 2 of 3 candidates came." in done.err


def test_a_server_without_log_probabilities_is_told_of_where_they_are_wanted(ask):
    with Upstream("without_logprobs") as upstream:
        done = ask(upstream, "--weights", "probability")
        assert (done.code, done.out) == (3, b"")
        assert "prompts.txt:1: candidates[0].logprob: is not known, which weights='probability'" in done.err
        assert ask(upstream).code == 0


def test_no_more_calls_are_under_way_than_allowed(ask):
    with Upstream("ignores_n", delay=0.02) as upstream:
        assert ask(upstream, "--candidates", "sample:4", "--concurrency", 2).code == 0
    assert upstream.most_open == 2


def test_further_fields_are_sent_and_the_seed_can_be_left_out(ask):
    with Upstream() as upstream:
        assert ask(upstream, "--body", '{"stop": ["."], "seed": null, "max_tokens": null}').code == 0
    body = upstream.asked[0].body
    assert body["stop"] == ["."]
    assert {"seed", "max_tokens"}.isdisjoint(body)


# a real server


def test_a_real_llama_cpp_server_is_asked_and_elected_from(run, llama, tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("Name a colour.\nSay yes or no.\n")
    server = ("--source", "llama_cpp", "--base-url", f"{llama.listening_address}/v1", "--model", "smollm2")
    # one call at a time and no cache: what is computed together is rounded together
    options = ("--candidates", "sample:3", "--max-new-tokens", "6", "--concurrency", "1")
    options += ("--body", '{"cache_prompt": false}')
    arguments = (
        *server,
        *options,
        "--weights",
        "probability",
        "--ballots",
        tmp_path / "nbest.jsonl",
        "--force",
    )
    first = run("generate", *arguments, "-i", path)
    assert first.code == 0, first.err
    assert [line["id"] for line in first.results()] == [1, 2]
    for entry in read(str(tmp_path / "nbest.jsonl")):
        candidates = entry.get().candidates
        assert len(candidates) == 3
        assert all(one.text and one.logprob < 0 and one.sampled for one in candidates)
        assert len({one.text for one in candidates}) > 1
    again = run("generate", *arguments, "-i", path)
    assert [line["winner"] for line in again.results()] == [line["winner"] for line in first.results()]
