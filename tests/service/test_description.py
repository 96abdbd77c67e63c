"""openapi.json says what there is: its addresses, parameters, options, limits and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

from starlette.routing import Mount, Route

from rangevote import __version__
from rangevote.election.settings import NORMAL_FORMS
from rangevote.election.settings import OPTION_TYPES as ELECTION
from rangevote.election.weights import WEIGHTS
from rangevote.service.app import Desk
from rangevote.service.content import ROLES
from rangevote.service.description import openapi
from rangevote.service.limits import Limits
from rangevote.service.log import nowhere
from rangevote.service.metrics import Metrics
from rangevote.service.options import CHECKS
from rangevote.service.options import OWN as OPERATORS
from rangevote.service.problem import TYPES, internal
from rangevote.service.request import CHAT, COMPLETIONS, OWN, PASSED, TOOLS
from rangevote.service.settings import NAME, ServiceSettings
from rangevote.service.upstream import Upstream
from tests.service.running import Running, error_of

DESCRIPTION: dict[str, Any] = json.loads(openapi())
SCHEMAS: dict[str, Any] = DESCRIPTION["components"]["schemas"]
pytestmark = pytest.mark.usefixtures("well")


def test_every_address_and_method_is_described_and_no_other():
    settings = ServiceSettings(upstream="http://127.0.0.1:1/v1", kept=1)
    desk = Desk(Upstream(settings, Metrics()), settings, Metrics(), nowhere, False)
    there, mounted = set(), set()
    for route in desk.routes():
        if isinstance(route, Mount):
            mounted.add(route.path)
        elif isinstance(route, Route):
            there |= {(route.path, "post" if route.methods == {"POST"} else "get")}
    there -= {("/favicon.ico", "get"), ("/static/{name}", "get")}  # parts of pages
    assert "/elections" in mounted
    told = {
        (path, method)
        for path, found in DESCRIPTION["paths"].items()
        for method in found
        if method != "parameters"
    }
    assert told == {*there, ("/elections/{id}/", "get")}


@pytest.mark.parametrize(
    ("name", "own", "others"),
    [("ChatRequest", CHAT, {"prompt"}), ("CompletionRequest", COMPLETIONS, {"messages"})],
)
def test_a_request_has_the_parameters_that_are_known_and_no_other(name, own, others):
    found = SCHEMAS[name]
    assert found["additionalProperties"] is False
    assert set(found["properties"]) == {*PASSED, *own, *OWN, *TOOLS} - others


def test_the_options_of_an_election_are_all_there():
    found = SCHEMAS["Options"]
    assert found["additionalProperties"] is False
    assert set(found["properties"]) == {*CHECKS, *ELECTION} - OPERATORS
    assert set(found["properties"]["weights"]["enum"]) == {*WEIGHTS, None}
    assert set(found["properties"]["normalize"]["enum"]) == {*NORMAL_FORMS, None}


def test_numbers_names_and_kinds_are_those_of_the_code():
    limits, schemas = Limits(), SCHEMAS
    assert schemas["ChatRequest"]["properties"]["messages"]["maxItems"] == limits.messages
    assert (
        schemas["CompletionRequest"]["properties"]["prompt"]["anyOf"][0]["maxLength"] == limits.prompt_chars
    )
    assert schemas["N"]["maximum"] == limits.samples
    assert set(schemas["Message"]["properties"]["role"]["enum"]) == set(ROLES)
    kinds = schemas["Error"]["properties"]["error"]["properties"]["type"]["enum"]
    assert set(kinds) == {*TYPES.values(), internal().body()["error"]["type"]}
    pattern = DESCRIPTION["components"]["parameters"]["profile"]["schema"]["pattern"]
    assert pattern == f"^{NAME.pattern}$"
    assert DESCRIPTION["info"]["version"] == ".".join(__version__.split(".")[:2])


def test_everything_that_is_referred_to_is_there():
    def named(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(named, value.values()))
        return set().union(*map(named, value)) if isinstance(value, list) else set()

    parts = DESCRIPTION["components"]
    there = {f"#/components/{kind}/{name}" for kind in parts for name in parts[kind]}
    unused = {f"#/components/securitySchemes/{name}" for name in parts["securitySchemes"]}
    assert named(DESCRIPTION) == there - unused


def test_it_is_served_to_those_who_have_a_key(upstream):
    key = "a-key-of-more-than-16-letters"
    with Running(upstream.url, keys=(key,)) as service:
        answer = service.http.get("/openapi.json")
        locked = service.http.get("/openapi.json", headers={"authorization": "Bearer other"})
    assert answer.json() == DESCRIPTION
    assert answer.headers["content-type"] == "application/json"
    assert error_of(locked)["code"] == "invalid_api_key"


def test_an_answer_has_the_fields_that_are_described(upstream):
    with Running(upstream.url, kept=1) as service:
        chat = service.ask(rangevote={"explain": True}).json()
        plain = service.ask("/v1/completions", prompt="q", rangevote={"explain": True}).json()
        models = service.http.get("/v1/models").json()
    for name, answer in (("ChatCompletion", chat), ("Completion", plain)):
        assert set(answer) == set(SCHEMAS[name]["properties"])
        choice = SCHEMAS[name]["properties"]["choices"]["items"]["properties"]
        assert set(answer["choices"][0]) == set(choice)
        assert set(answer["usage"]) == set(SCHEMAS["Usage"]["properties"])
        assert set(answer["rangevote"]) == set(SCHEMAS["Election"]["properties"])
    assert set(models["data"][0]) == set(SCHEMAS["Models"]["properties"]["data"]["items"]["properties"])
