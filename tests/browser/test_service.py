"""The election page of an answer of the service, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

from tests.browser.conftest import FAILED, screenshot, violations
from tests.engines.openai.upstream import SENTENCES, Upstream
from tests.service.running import Running

KEY = "a-key-of-more-than-16-letters"


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


def test_the_address_in_an_answer_opens_the_page_of_its_election_with_the_key_as_a_password(
    new_page, upstream
):
    page = new_page(http_credentials={"username": "anyone", "password": KEY})
    with Running(upstream.url, keep_elections=2, keys=(KEY,)) as service:
        answer = service.ask(seed=0).json()
        page.goto(service.url + answer["rangevote"]["election"])
        page.wait_for_selector("html[data-complete]")
        assert page.inner_text("#winner") == answer["choices"][0]["message"]["content"]
        rows = page.locator("#candidate-list > li").all_inner_texts()
        assert len(rows) == answer["rangevote"]["candidates"] == len(SENTENCES)
        assert answer["rangevote"]["signature"] in page.inner_text("body")
        screenshot(page, "service-election")
        assert violations(page) == []


def test_an_election_that_is_not_kept_any_more_is_told(page, watch, upstream):
    with Running(upstream.url, keep_elections=1) as service:
        first = service.ask().json()["rangevote"]["election"]
        service.ask()
        answer = page.goto(service.url + first)
        assert answer.status == 404
        assert "no longer kept" in page.inner_text("body")
    watch.provoked = FAILED
