"""Errors of a request in the shape of OpenAI's API.

    {"error": {"message": "...", "type": "...", "param": "..." or null, "code": "..."}}

Messages are fixed texts: they never contain an upstream's answer, a path or a traceback.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
from starlette.responses import Response

from rangevote.engines.openai.client import UpstreamError

#: `type` of an error by its status; others are "server_error".
TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
    502: "upstream_error",
    503: "overloaded_error",
    504: "timeout_error",
}
#: Statuses of requests that were not read to their end: their connection cannot be reused.
CLOSING = frozenset({408, 413})
#: Statuses of an upstream for errors that the client caused.
CLIENT_CAUSED = frozenset({400, 404, 413, 415, 422})
#: OpenAI's code for a prompt that is too long, and llama.cpp's own error type for it.
CONTEXT, LLAMA_CONTEXT = "context_length_exceeded", "exceed_context_size_error"
#: Error codes of an upstream that clients act on, with our messages; the upstream's own are not shown.
PASSED_ON = {
    CONTEXT: "the prompt and the answer are longer than the model's context",
    "string_above_max_length": "a text is longer than the model's server allows",
    "invalid_prompt": "the model's server refused the prompt",
    "content_filter": "the model's server refused the prompt for its content",
    "content_policy_violation": "the model's server refused the prompt for its content",
    "rate_limit_exceeded": "the rate limit of the model's server is exceeded",
    "insufficient_quota": "the service has used up its quota at the model's server",
}


class ApiError(Exception):
    """Why a request failed; `note` is only for the log."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        retry_after: float | None = None,
        note: str = "",
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param
        self.retry_after, self.note = retry_after, note

    def body(self) -> dict[str, Any]:
        kind = TYPES.get(self.status, "server_error")
        return {
            "error": {"message": self.message, "type": kind, "param": self.param, "code": self.code},
        }

    def response(self) -> Response:
        headers = {}
        if self.retry_after is not None:
            headers["retry-after"] = str(max(1, math.ceil(self.retry_after)))
        if self.status in CLOSING:
            headers["connection"] = "close"
        return json_response(self.body(), self.status, headers)


def json_response(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(body), status, headers, media_type="application/json")


def invalid(param: str, message: str, code: str = "invalid_value") -> ApiError:
    """The error for a parameter; the message begins with its name."""
    return ApiError(400, f"{param} {message}", code=code, param=param)


def internal_error() -> ApiError:
    return ApiError(
        500, "the service failed; the log has details under the request id", code="internal_error"
    )


def timeout() -> ApiError:
    return ApiError(504, "the model did not answer in time", code="timeout")


def upstream_failure(error: UpstreamError) -> ApiError:
    """What an upstream's failure means for the client.

    A 401 or 403 becomes 502, since the service's own key is wrong, not the client's.
    """
    if error.kind == "timeout":
        answer = timeout()
    elif error.kind == "rate":
        answer = ApiError(
            429,
            "the model's server is busy or its rate limit is exceeded",
            code="upstream_rate",
            retry_after=error.retry_after or 1,
        )
    elif error.kind == "status" and error.status in CLIENT_CAUSED:
        answer = ApiError(
            400, f"the model's server refused the request ({error.status})", code="upstream_refused"
        )
    else:
        answer = ApiError(502, "the model's server failed to answer", code=f"upstream_{error.kind}")
    described = error.answer if isinstance(error.answer, dict) else {}
    code = CONTEXT if described.get("type") == LLAMA_CONTEXT else described.get("code")
    if isinstance(code, str) and code in PASSED_ON and answer.status in (400, 429):
        answer.code, answer.message = code, PASSED_ON[code]
    answer.note = f"{error.kind} {error.status or ''} {error.detail or ''}".strip()
    return answer
