"""How the tests run: Hypothesis draws the same examples every time, without a clock and without files."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "rangevote",
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("rangevote")
