"""The election page of recent answers."""

from __future__ import annotations

import base64

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

from tests.service.running import Running, error_of
from tests.sources.openai.upstream import SENTENCES, Upstream

KEY = "a-key-of-more-than-16-letters"


@pytest.fixture(scope="module")
def upstream():
    with Upstream() as running:
        yield running


def test_nothing_is_kept_unless_asked_for(upstream):
    with Running(upstream.url) as service:
        answer = service.ask().json()
        assert "election" not in answer["rangevote"]
        assert error_of(service.http.get(f"/elections/{answer['id']}/"))["code"] == "unknown_address"


def test_an_answer_has_the_page_of_its_election(upstream):
    with Running(upstream.url, kept=2) as service:
        answer = service.ask(seed=0, rangevote={"candidates": 3}).json()
        place = answer["rangevote"]["election"]
        assert place == f"/elections/{answer['id']}/"
        page = service.http.get(place)
        moved = service.http.get(place.rstrip("/"))
        told = service.http.get(f"{place}api/ballots/0?list=0").json()
        about = service.http.get(f"{place}api/election").json()
        script = service.http.get("/static/election.js")
    assert "text/html" in page.headers["content-type"]
    assert "require-trusted-types-for" in page.headers["content-security-policy"]
    assert (moved.status_code, moved.headers["location"]) == (307, place)
    assert about["ballots"] == 1
    assert told["signature"] == answer["rangevote"]["signature"]
    assert told["candidates"]["rows"][0]["text"] == answer["choices"][0]["message"]["content"]
    assert {row["text"] for row in told["voters"]["rows"]} == set(SENTENCES)
    assert script.status_code == 200


def test_the_oldest_is_forgotten(upstream):
    with Running(upstream.url, kept=2) as service:
        places = [service.ask().json()["rangevote"]["election"] for _ in range(3)]
        statuses = [service.http.get(place).status_code for place in places]
    assert statuses == [404, 200, 200]


def test_a_page_needs_the_key_which_a_browser_gives_as_a_password(upstream):
    with Running(upstream.url, kept=2, keys=(KEY,)) as service:
        place = service.ask().json()["rangevote"]["election"]
        service.http.headers.pop("authorization")
        locked = service.http.get(place, headers={"accept": "text/html"})
        part = service.http.get("/static/election.js", headers={"sec-fetch-site": "same-origin"})
        client = service.http.get("/static/election.js")
        given = base64.b64encode(b"anyone:" + KEY.encode()).decode()
        opened = service.http.get(place, headers={"authorization": f"Basic {given}"})
    assert locked.status_code == 401
    assert locked.headers["www-authenticate"].startswith("Basic ")
    assert part.headers["www-authenticate"].startswith("Basic ")
    assert client.headers["www-authenticate"] == "Bearer"
    assert opened.status_code == 200


@pytest.mark.parametrize("id", ["x", "..%2f..%2fetc", "%00", "chatcmpl-" + "0" * 32])
def test_no_other_address_shows_anything(upstream, id):
    with Running(upstream.url, kept=2) as service:
        assert service.http.get(f"/elections/{id}/").status_code == 404
