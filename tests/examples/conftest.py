"""The folder with tiny models that the documentation's tests use."""

from __future__ import annotations

from tests.docs.conftest import furnished, models, place

__all__ = ["furnished", "models", "place"]
