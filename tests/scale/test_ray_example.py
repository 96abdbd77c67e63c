"""The example pipeline: every prompt has one result, also after a run that got through half of them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

if importlib.util.find_spec("ray") is None:
    pytest.skip("ray is not installed: pip install 'rangevote[ray]'", allow_module_level=True)

EXAMPLE = Path(__file__).parents[2] / "examples" / "ray_pipeline.py"


@pytest.mark.slow
def test_the_example_runs_and_goes_on_by_id(tmp_path: Path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    def prompts(number: int) -> None:
        rows = [{"id": f"p{i}", "prompt": ("a man", "a dog")[i % 2]} for i in range(number)]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "prompts.parquet")

    command = [sys.executable, EXAMPLE, tmp_path / "prompts.parquet", tmp_path / "winners"]
    command += [tmp_path / "progress"]
    for number in (20, 45):  # the second run finds 20 results and makes 25
        prompts(number)
        done = subprocess.run(command, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stderr[-3000:]
    rows = pq.read_table(tmp_path / "winners").to_pylist()
    assert sorted(row["id"] for row in rows) == sorted(f"p{i}" for i in range(45))
    assert {row["winner"] is not None and row["error"] is None for row in rows} == {True}
