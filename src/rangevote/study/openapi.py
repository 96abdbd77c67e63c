"""What the application answers, in OpenAPI's terms: for tools that test it. A test holds it to the routes."""

from __future__ import annotations

from typing import Any

from rangevote import __version__

_KEY = {
    "type": "string",
    "pattern": "^[A-Za-z0-9_-]{16,64}$",
    "description": "the same for a repeated message",
}
_UNDO = {
    "item": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    "key": _KEY,
    "time": {
        "type": "string",
        "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$",
        "description": "by the browser's clock, in UTC",
    },
}
_JUDGEMENT = _UNDO | {
    "value": {"type": "integer", "minimum": -2, "maximum": 2, "description": "-2: left is much better"},
    "duration": {"type": "integer", "minimum": 0, "maximum": 86_400_000, "description": "milliseconds"},
    "image_missing": {"type": "boolean"},
}
_PROBLEMS = {
    "400": "what was sent cannot be meant",
    "403": "not yours, or finished",
    "404": "this link is not known",
    "413": "longer than any message is",
    "415": "not JSON",
    "429": "too many wrong links",
    "503": "not saved",
}


def description() -> dict[str, Any]:
    """The document, version 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "rangevote study", "version": __version__},
        "components": {"securitySchemes": {"link": {"type": "http", "scheme": "bearer"}}},
        "paths": {
            "/": _plain("The page.", "text/html"),
            "/static/{name}": _plain("A file of the page.", "text/css", "name"),
            "/favicon.ico": _plain("The icon.", "image/svg+xml"),
            "/openapi.json": _plain("This document.", "application/json"),
            "/img/{sha256}": _plain("A picture of the study.", "image/png", "sha256"),
            "/api/session": {"get": _operation("Wording, items in order, and what was judged before.")},
            "/api/judgement": {"post": _operation("Save one answer.", _JUDGEMENT)},
            "/api/undo": {"post": _operation("Take one answer back.", _UNDO)},
            "/api/finish": {"post": _operation("Close one's answers.", {})},
        },
    }


def _plain(summary: str, kind: str, parameter: str | None = None) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": {"description": "found", "content": {kind: {}}}}
    if parameter is None:
        return {"get": {"summary": summary, "responses": responses}}
    named = {"name": parameter, "in": "path", "required": True, "schema": {"type": "string"}}
    responses["404"] = {"description": "there is none"}
    return {"get": {"summary": summary, "parameters": [named], "responses": responses}}


def _operation(summary: str, fields: dict[str, Any] | None = None) -> dict[str, Any]:
    answers = {"200": {"description": "done", "content": {"application/json": {}}}}
    answers |= {code: {"description": told} for code, told in _PROBLEMS.items()}
    found: dict[str, Any] = {"summary": summary, "security": [{"link": []}], "responses": answers}
    if fields is not None:
        schema = {
            "type": "object",
            "properties": fields,
            "additionalProperties": False,
        }
        schema |= {"required": list(fields)} if fields else {}
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return found
