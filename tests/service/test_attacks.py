"""schemathesis attacks the service along its own description, with what is allowed and with what is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")
pytest.importorskip("schemathesis", reason="schemathesis is not installed")

import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from rangevote.service.description import openapi
from tests.service.running import Running
from tests.sources.openai.upstream import Upstream


def described() -> dict[str, Any]:
    """The description, with names that there are here: else nearly all that is tried would be unknown."""
    found: dict[str, Any] = json.loads(openapi())
    found["components"]["schemas"]["Model"] = {"enum": ["tiny", "large"]}
    found["components"]["parameters"]["profile"]["schema"] = {"enum": ["many", "few"]}
    options = found["components"]["schemas"]["Options"]["properties"]
    options["similarity"] = {
        "enum": ["overlap_2", "overlap_1-4@0.25", "exact", "chrf", "states", "none", None]
    }
    options["rule"] = {"enum": ["range", "reweighted", "none", None]}
    options["tokenize"] = {"enum": ["words", "13a", "none", None]}
    options["preset"] = {"enum": ["blend", "none", None]}
    return found


@pytest.fixture(scope="module")
def attacked() -> Iterator[Running]:
    with (
        Upstream() as upstream,
        Running(upstream.url, profiles={"many": {"samples": 12}}, kept=2) as service,
    ):
        yield service


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as found:
        found.trust_env = False
        yield found


pytestmark = pytest.mark.slow
schema = schemathesis.openapi.from_dict(described())


@schema.parametrize()
@settings(
    max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
def test_whatever_is_sent_the_answer_is_one_that_is_described(case, attacked, session):
    """No failure of ours, no status, header or field that openapi.json does not tell of, and nothing taken
    that it forbids. What may be refused although it has the right shape (a model that is not there, more
    votes than samples) no schema can tell, so that alone is not asked."""
    attacked.log.clear()
    case.call_and_validate(
        base_url=attacked.url, session=session, timeout=60, excluded_checks=[positive_data_acceptance]
    )
    assert not [line for line in attacked.log if '"event": "failure"' in line]
