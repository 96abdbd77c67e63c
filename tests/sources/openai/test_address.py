"""Where a server is and what it is shown, checked before anything is sent."""

from __future__ import annotations

import pytest

from rangevote.errors import UsageError
from rangevote.sources.openai.client import Client


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8000", "ftp://host/v1", "http://", "http://a b/v1", "http://[::1/v1"]
)
def test_a_base_url_must_be_one(url):
    with pytest.raises(UsageError, match="the base URL must be as http"):
        Client(url)


def test_a_base_url_contains_no_secrets_and_no_query():
    with pytest.raises(UsageError, match="contains a user name or password") as caught:
        Client("https://user:hunter2@host/v1")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UsageError, match="must end with its path") as caught:
        Client("https://host/v1?key=hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "a b", "a\r\nx: y", "schlüssel"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key):
    with pytest.raises(UsageError, match="the API key is empty or contains") as caught:
        Client("http://127.0.0.1/v1", key=key)
    assert not key or key not in str(caught.value)
