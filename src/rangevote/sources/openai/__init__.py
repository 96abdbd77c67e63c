"""Servers that speak as OpenAI's does: `responses` reads what they gave others, `endpoint` asks them."""

from __future__ import annotations

from rangevote.sources.openai.responses import hypotheses_of as hypotheses_of
