"""The same bytes, whatever surrounds a run: processes, hash seed, locale, kernels."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.conftest import spawn

PATIENCE = 240  # seconds that a run may take
#: N-grams of words and of characters, sets and bags, in one measure: all kernels.
MEASURE = "0.4*overlap_1-4@0.25+0.2*precision_2+0.2*chrf+0.2*smoothed_bleu_4"
OPTIONS = ("-s", MEASURE, "--scores", "--explain", "--temperature", "1.5", "--on-error", "skip")
WORDS = "a the dog cat runs sits over on green café Straße 東京 пёс e\u0301té 7".split()  # noqa: SIM905


def hypotheses(draw: random.Random, number: int, *, scored: bool) -> list[dict[str, Any]]:
    """Of few words, so that they share n-grams; one is there twice, some are empty."""
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(0, 9))) for _ in range(number)]
    texts[-1] = texts[0]
    return [{"text": t, "logprob": -draw.uniform(1, 30)} if scored else {"text": t} for t in texts]


def ballots() -> list[dict[str, Any]]:
    """With and without log-probabilities, with voters of their own or without."""
    draw = random.Random(7)
    made = []
    for i in range(90):
        made.append({"id": f"é{i}", "candidates": hypotheses(draw, draw.randint(2, 9), scored=i % 3 > 0)})
        if i % 2:
            made[-1]["voters"] = hypotheses(draw, draw.randint(2, 30), scored=i % 5 > 0)
    return made


class Surroundings(NamedTuple):
    environment: dict[str, str]
    options: tuple[object, ...] = ()


def elected(data: Path, around: Surroundings) -> bytes:
    process = spawn(
        "vote", data.name, *OPTIONS, "-q", *around.options, cwd=data.parent, env=around.environment
    )
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 4, err
    assert b"1 of 90 ballots were skipped" in err
    return out


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("determinism") / "in.jsonl"
    rows = [json.dumps(ballot, ensure_ascii=False).encode() + b"\n" for ballot in ballots()]
    rows[40] = b"broken \xff\n"  # and the message about a bad one
    path.write_bytes(b"".join(rows))
    return path


@pytest.fixture(scope="module")
def expected(data: Path) -> bytes:
    """Of one process, with checks that there is something to compare."""
    out = elected(data, Surroundings({"PYTHONHASHSEED": "0"}))
    rows = [json.loads(row) for row in out.splitlines()]
    assert len(rows) == 90
    assert sum("error" in row for row in rows) == 1
    assert len({row["winner"] for row in rows if "error" not in row}) > 50
    assert len({score for row in rows for score in row.get("scores", ())}) > 200
    return out


AROUND = {
    "2 workers, hash seed 4242": Surroundings({"PYTHONHASHSEED": "4242"}, ("--workers", 2)),
    "5 workers": Surroundings({}, ("--workers", 5)),
    "LANG=C without UTF-8": Surroundings(
        {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, ("--workers", 2)
    ),
    "Turkish, in Tokyo": Surroundings({"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Tokyo"}),
    "plain kernels, hash seed 1, LANG=C": Surroundings(
        {"RANGEVOTE_PURE": "1", "PYTHONHASHSEED": "1", "LC_ALL": "C"}
    ),
}


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_surroundings_change_no_byte(data, expected, around):
    assert elected(data, around) == expected
