"""The experiments train models: without torch there is nothing to try."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'rangevote[models]'")
