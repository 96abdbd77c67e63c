"""What clients do wrong (cases 45 to 48, 53, 56 and 58), over real sockets."""

from __future__ import annotations

import json
import socket
import time
from contextlib import suppress

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

from tests.service.running import HEAD, error_of, read_all
from tests.service.saying import texts

pytestmark = pytest.mark.usefixtures("well")


def test_case_45_a_body_that_says_it_is_ten_gigabytes_is_refused_unread(service):
    answer = service.raw(HEAD + b"Content-Length: 10000000000\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_large"


def test_case_45_a_body_without_length_is_counted_as_it_comes(service):
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    sent = 0
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            while sent < 200 * 2**20:
                connection.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass
        answer = read_all(connection)
    assert sent < 20 * 2**20  # what the system's buffers hold, not what we were sent
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_case_45_a_body_shorter_than_it_says_is_not_waited_for(service):
    began = time.monotonic()
    answer = service.raw(HEAD + b"Content-Length: 1000\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - began < 9


def test_case_45_a_body_longer_than_it_says_is_no_second_request(service):
    answer = service.raw(HEAD + b"Content-Length: 2\r\n\r\n{}GET /metrics")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"rangevote_requests_total" not in answer


@pytest.mark.parametrize("begun", [b"", b"GE", HEAD, HEAD + b"X-Slow: "])
def test_case_46_headers_that_do_not_end_close_the_connection(service, begun):
    began = time.monotonic()
    assert service.raw(begun) == b""
    assert 0.3 < time.monotonic() - began < 9


def test_case_46_headers_of_a_second_request_that_drip_in_close_the_connection_too(service):
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
        began = time.monotonic()
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        connection.settimeout(0.2)
        closed = False
        for _ in range(20):  # a byte now and then does not buy more time
            try:
                connection.sendall(b"y")
                closed = connection.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                closed = True
            if closed:
                break
    assert closed
    assert time.monotonic() - began < 9


def test_case_46_a_body_that_drips_in_is_given_up(service):
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n")
        with suppress(OSError):  # it was closed meanwhile
            for _ in range(8):
                connection.sendall(b"{")
                time.sleep(0.1)
        assert read_all(connection).startswith(b"HTTP/1.1 408 ")
    assert service.http.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"7", b'"x"', b"\xff\xfe", b'{"n": 1, "n": 2}', b'{"a": NaN}',
     b"[" * 100_000, b'{"model": ' + b"[" * 500 + b"]" * 500 + b"}", b'{"seed": 1' + b"0" * 5000 + b"}"],
)  # fmt: skip
def test_case_47_what_is_no_json_object_is_400(service, upstream, content):
    answer = service.http.post(
        "/v1/chat/completions", content=content, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400
    assert error_of(answer)["type"] == "invalid_request_error"
    assert upstream.asked == []


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonp"])
def test_case_47_another_content_type_is_415(service, kind):
    answer = service.http.post("/v1/chat/completions", content=b"{}", headers={"content-type": kind})
    assert (answer.status_code, error_of(answer)["code"]) == (415, "not_json")


@pytest.mark.parametrize("n", [0, -1, 10**9, 1e9, "5", True, 2.5, [], {}])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_case_48_a_number_of_choices_that_cannot_be_is_400_and_named(service, upstream, n, path):
    answer = service.ask(path, n=n)
    assert (answer.status_code, error_of(answer)["param"]) == (400, "n")
    assert error_of(answer)["message"].startswith("n must be")
    assert upstream.asked == []


@pytest.mark.parametrize("name", ["api_base", "base_url", "extra_headers", "API_BASE"])
@pytest.mark.parametrize(
    "place",
    [
        lambda bad: bad,
        lambda bad: {"extra_body": bad},
        lambda bad: {"tools": [bad]},
        lambda bad: {"metadata": {"deep": [[bad]]}},
        lambda bad: {"rangevote": bad},
        lambda bad: {"messages": [{"role": "user", "content": "x", **bad}]},
        lambda bad: {"response_format": {"type": "json_schema", "x": bad}},
    ],
    ids=["body", "extra_body", "tools", "metadata", "rangevote", "messages", "response_format"],
)
def test_case_53_what_could_send_the_request_elsewhere_is_refused_and_nothing_is_sent(
    service, upstream, name, place
):
    answer = service.ask(**place({name: "http://169.254.169.254/"}))
    assert (answer.status_code, error_of(answer)["code"]) == (400, "forbidden_parameter")
    assert upstream.asked == []


@pytest.mark.parametrize("model", ["tiny\r\nX-Evil: 1", "tiny\n", "\x00", "", " \u2028", "x" * 300])
def test_case_56_a_model_with_a_line_end_is_400(service, upstream, model):
    answer = service.ask(model=model)
    assert (answer.status_code, error_of(answer)["param"]) == (400, "model")
    assert "x-evil" not in answer.headers
    assert upstream.asked == []


def test_case_56_nothing_that_clients_send_can_forge_a_line_of_the_log(service):
    service.log.clear()
    service.http.get('/v1/%0a{"event": "forged"}', headers={"user-agent": "x"})
    service.ask(model='other" \\ name')
    service.ask(user="sec\u2028ret")
    lines = list(service.log)
    assert lines
    for line in lines:
        assert line.isascii()
        assert len(line.splitlines()) == 1
        assert json.loads(line)["event"] in ("request", "election", "problem")
        for private in ("forged", "train", "2028", "unused"):
            assert private not in line


ODD = [
    "\U0001f600 ok",
    "שלום \u202eevil",
    "e\u0301" * 3,
    "\x00\x07\x1b[31m",
    "a\u2028b\u0085c",
    "\ufeffx",
    "</script>",
]


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("stream", [False, True])
def test_case_58_every_text_comes_through_as_it_is(service, upstream, text, stream):
    upstream.answer = texts(text)
    client = service.client().chat.completions
    question = [{"role": "user", "content": text}]
    if stream:
        chunks = client.create(model="tiny", messages=question, stream=True)
        got = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    else:
        got = client.create(model="tiny", messages=question).choices[0].message.content
    assert got == text
    assert upstream.asked[0].body["messages"] == question


def test_case_58_half_a_character_is_400_and_from_the_upstream_502(service, upstream):
    content = b'{"model": "tiny", "messages": [{"role": "user", "content": "\\ud800"}]}'
    headers = {"content-type": "application/json"}
    answer = service.http.post("/v1/chat/completions", content=content, headers=headers)
    assert (answer.status_code, error_of(answer)["code"]) == (400, "invalid_json")
    assert upstream.asked == []
    upstream.answer = texts("\ud800")
    answer = service.ask()
    assert (answer.status_code, error_of(answer)["code"]) == (502, "upstream_not_json")


def test_case_58_a_character_of_a_megabyte_comes_back_whole(service, upstream):
    long = "e" + "\u0301" * 300_000
    upstream.answer = texts(long)
    answer = service.ask(rangevote={"samples": 2})
    assert answer.json()["choices"][0]["message"]["content"] == long


def test_addresses_and_methods_that_do_not_exist_are_errors_in_the_same_shape(service):
    assert error_of(service.http.get("/nothing"))["code"] == "unknown_address"
    wrong = service.http.get("/v1/chat/completions")
    assert (wrong.status_code, error_of(wrong)["code"]) == (405, "unknown_address")
    assert service.http.get("/elections/x/").status_code == 404
