"""So many samples of one server, whatever it makes of `n`."""

from __future__ import annotations

import pytest

from rangevote.engines.openai.client import CallLimits, Client, UpstreamError
from rangevote.engines.openai.sampling import sample
from rangevote.formats.choices import CHAT, Usage
from tests.engines.openai.drawing import ASK, asked, drawn, fault, texts
from tests.engines.openai.upstream import LOGPROBS, Upstream, text_of


def test_one_call_gives_all_samples_where_the_server_can():
    with Upstream() as upstream:
        samples = drawn(upstream, 5)
    assert [choice.logprob for choice in samples.choices] == [sum(LOGPROBS)] * 5
    assert (samples.calls, samples.usage, samples.failed) == (1, Usage(7, 15, 22), [])
    [request] = upstream.asked
    assert request.body == {**ASK, "n": 5, "seed": 100}
    assert request.path == "/v1/chat/completions"


SINGLE = [(101, 1), (102, 1), (103, 1), (104, 1)]


@pytest.mark.parametrize(
    ("mode", "n", "first", "later"),
    [
        ("ignores_n", 5, [(100, 5)], SINGLE),
        ("refuses_n", 5, [(100, 5), (100, 1), (101, 3)], SINGLE),
        ("one_fewer", 4, [(100, 4)], [(103, 1)]),
        ("at_most_two", 7, [(100, 7)], [(102, 2), (104, 2), (106, 1)]),
        ("refuses_more_than_four", 16, [(100, 16), (100, 1), (101, 8), (101, 4)],
         [(105, 4), (109, 4), (113, 3)]),
    ],
)  # fmt: skip
def test_missing_samples_are_asked_for_in_lots_that_the_server_gives_each_with_its_own_seed(
    mode, n, first, later
):
    with Upstream(mode) as upstream:
        samples = drawn(upstream, n)
    assert texts(samples) == [text_of(100 + i) for i in range(n)]
    requests = [(request.body["seed"], request.n) for request in upstream.asked]
    assert (requests[: len(first)], sorted(requests[len(first) :])) == (first, later)
    assert samples.calls == len(requests)
    refused = 2 if mode.startswith("refuses") else 0
    assert samples.usage.prompt == 7 * (len(requests) - refused)


def test_what_a_server_can_do_is_remembered_for_each_model():
    async def use(client: Client) -> None:
        for model in ("tiny", "tiny", "other"):
            await sample(client, CHAT, {**ASK, "model": model}, 2)

    with Upstream("ignores_n") as upstream:
        asked(upstream, use)
    assert [request.n for request in upstream.asked] == [2, 1, 1, 1, 2, 1]


def test_what_a_server_gives_is_remembered_and_forgotten_after_a_while():
    with Upstream("one_fewer") as upstream:
        drawn(upstream, 4, times=2)
    again = sorted((request.body["seed"], request.n) for request in upstream.asked[2:])
    assert again == [(100, 3), (102, 1), (103, 1)]  # in threes, of which it gives two
    with Upstream("refuses_more_than_four") as upstream:
        drawn(upstream, 16, times=2)
        assert sorted(request.n for request in upstream.asked[7:]) == [4] * 4
        forgetful = CallLimits(most_kept=0.0)
        upstream.asked.clear()
        drawn(upstream, 3, times=2, limits=forgetful)
        assert [request.n for request in upstream.asked] == [3, 3]
        drawn(upstream, 16, times=2, limits=forgetful)
    assert [request.n for request in upstream.asked].count(16) == 2


def test_no_call_is_refused_where_it_is_known_how_many_choices_one_gives():
    with Upstream("refuses_more_than_four") as upstream:
        samples = drawn(upstream, 10, most_choices=4)
        drawn(upstream, 3, most_choices=4)
    assert texts(samples) == [text_of(100 + i) for i in range(10)]
    assert (samples.calls, sorted(request.n for request in upstream.asked)) == (3, [2, 3, 4, 4])


def test_halving_ends_with_what_came_where_the_server_breaks():
    with Upstream(["refuses", "well", "broken"]) as upstream:
        samples = drawn(upstream, 8, limits=CallLimits(retries=0))
    sizes = [request.n for request in upstream.asked]
    assert (sizes[:3], sorted(sizes[3:])) == ([8, 1, 4], [3, 4])  # the last two are asked together
    assert (len(samples.choices), [error.status for error in samples.failed]) == (1, [500] * 3)


def test_greedy_requests_that_get_one_choice_do_not_change_how_others_are_sent():
    async def use(client: Client) -> None:
        for temperature in (0, 1e-6, 0.7):
            await sample(client, CHAT, {**ASK, "temperature": temperature}, 4)

    with Upstream("greedy_once") as upstream:
        asked(upstream, use)
    assert [request.n for request in upstream.asked] == [4, 1, 2, 1, 1, 1, 1, 1, 1, 1, 4]


def test_a_seed_in_the_body_is_where_seeds_begin_and_without_one_there_is_none():
    async def use(client: Client) -> None:
        await sample(client, CHAT, {**ASK, "seed": 7}, 2)
        await sample(client, CHAT, ASK, 2)

    with Upstream("ignores_n") as upstream:
        asked(upstream, use)
    assert sorted(request.body["seed"] for request in upstream.asked[:2]) == [7, 8]
    assert not any("seed" in request.body for request in upstream.asked[2:])


def test_a_refusal_that_is_not_about_n_is_told_after_a_try_without_n():
    with Upstream("refuses") as upstream, pytest.raises(UpstreamError, match="400 Bad Request"):
        drawn(upstream, 4)
    assert [request.n for request in upstream.asked] == [4, 1]


def test_what_came_is_kept_when_further_calls_fail():
    with Upstream(["ignores_n", "ignores_n", "refuses"]) as upstream:
        samples = drawn(upstream, 5)
    assert len(samples.choices) == 2
    assert [error.status for error in samples.failed] == [400] * 3
    assert samples.calls == 5


def test_an_error_with_status_200_is_kept_for_the_log():
    error = fault("error_with_200")
    assert (error.kind, error.status) == ("shape", 200)
    assert "provider is down" in error.detail
    assert "provider is down" not in str(error)
