"""Elections on Ray Data: `Elect` for your own pipeline, and the engine of `rangevote vote --engine ray`.

Nothing here imports Ray before it is used, so `Elect` serves `datasets.Dataset.map(batched=True)` as well.
"""

from __future__ import annotations

from rangevote.scale.ray.elect import Elect

__all__ = ["Elect"]
