"""`Elect` in `datasets.Dataset.map`, as the page has it."""

from __future__ import annotations

import pytest

from tests.integrations.page import block

datasets = pytest.importorskip("datasets", reason="make .venv/.tools installs it")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_page_maps_a_dataset_and_nothing_is_dropped(capsys):
    names: dict[str, object] = {}
    exec(block("py", "from datasets"), names)
    assert capsys.readouterr().out.splitlines()[-1] == "a dog runs"
    assert {"prompt", "outputs", "winner", "score"} <= set(names["elected"].column_names)  # type: ignore[attr-defined]
