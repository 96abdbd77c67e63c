"""Runs on a Ray that is pretended, stopped and gone on with, and what their results must be."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from rangevote.cli import run as run_command
from tests.scale.pretend import PretendRay, in_place_of_ray
from tests.scale.samples import lines

UNIT = 900  # bytes, about six ballots
ROWS = lines(30).splitlines(keepends=True)
UNITS = 5


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANGEVOTE_UNIT_BYTES", str(UNIT))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"".join(ROWS))
    return path


def vote(data: Path, out: Path, *options: str, ray: PretendRay | None = None) -> PretendRay:
    """A run; its exit code is checked to be that of success, or of Ctrl-C where that is pressed."""
    ray = ray or PretendRay()
    name = f"{out}/" if out.suffix == "" else str(out)
    with in_place_of_ray(ray):
        code = run_command(["vote", str(data), "-o", name, "-q", "--engine", "ray", *options])
    assert code == (0 if ray.stop_before is None else 130)
    return ray


def results(out: Path) -> bytes:
    return b"".join(p.read_bytes() for p in sorted(out.glob("part-*"))) if out.is_dir() else out.read_bytes()


def expected(data: Path, *options: str) -> bytes:
    """Of the local engine."""
    out = data.parent / "expected.jsonl"
    files = sorted(data.iterdir()) if data.is_dir() else [data]
    made = b""
    for file in files:
        assert run_command(["vote", str(file), "-o", str(out), "-q", "--force", *options]) == 0
        made += out.read_bytes()
    out.unlink()
    return made


def check(data: Path, out: Path, *options: str, whole: bytes | None = None) -> None:
    """The results are those of the local engine, every id once, and nothing else is there."""
    assert results(out) == (whole or expected(data, *options))
    found = Counter(json.loads(row)["id"] for row in results(out).splitlines())
    assert set(found.values()) == {1}
    assert not [p.name for p in out.parent.rglob("*tmp-*")]
    assert not out.with_name(f"{out.name}.parts").exists()


def stopped(data: Path, out: Path, *options: str, after: int = 3) -> None:
    """A run that was stopped when it had done so many units."""
    vote(data, out, *options, ray=PretendRay(stop_before=after))


def ended(data: Path, out: Path, *options: str, code: int) -> None:
    """A run that ends with this code."""
    with in_place_of_ray(PretendRay()):
        assert run_command(["vote", str(data), "-o", str(out), "-q", "--engine", "ray", *options]) == code
