"""The engine on a real Ray: the bytes of the local engine, through faults too. Ray is started once."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.cli.conftest import run as run
from tests.cli.conftest import spawn
from tests.scale.samples import as_parquet, lines

# looked for, not imported: where it listens is settled before that
if importlib.util.find_spec("ray") is None:
    pytest.skip("ray is not installed: pip install 'rangevote[ray]'", allow_module_level=True)
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PATIENCE = 240  # seconds to wait for what must happen


@pytest.fixture(scope="module")
def ray():
    """One Ray for all tests here, with more CPUs than there are, so that nothing starves."""
    from rangevote.scale.ray.session import session

    with session(None, cpus=4) as started:
        yield started


@pytest.fixture
def small_units(monkeypatch):
    from rangevote.scale.ray import units

    monkeypatch.setattr(units.plan, "__defaults__", (20_000,))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_bytes(lines(600, faults=True))
    return path


SKIP = ("--scores", "--on-error", "skip")


def listening() -> set[str]:
    """The addresses on which Ray's processes listen, from the system's own table."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for row in Path(table).read_text().splitlines()[1:]:
            fields = row.split()
            if fields[3] == "0A":
                found.add((fields[1].split(":")[0], fields[9]))
    mine = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name = (process / "cmdline").read_bytes()
            if b"raylet" not in name and b"gcs_server" not in name:
                continue
            inodes = {
                os.readlink(fd)[8:-1] for fd in (process / "fd").iterdir() if "socket:" in os.readlink(fd)
            }
        except OSError:
            continue
        mine |= {address for address, inode in found if inode in inodes}
    return mine


def test_our_own_ray_listens_on_the_loopback_device_only_and_reports_to_nobody(ray):
    if not Path("/proc/net/tcp6").exists():
        pytest.skip("the system does not list its sockets in /proc")
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert listening()
    assert listening() <= loopback
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_one_file_is_that_of_the_local_engine_byte_for_byte(ray, run, data, tmp_path, small_units):
    out = tmp_path / "out.jsonl"
    done = run("vote", data, "-o", out, *SKIP, "--engine", "ray")
    local = run("vote", data, *SKIP)
    assert (done.code, local.code) == (4, 4)
    assert out.read_bytes() == local.out
    assert sorted(done.err.splitlines()) == sorted(local.err.splitlines())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_parquet_in_and_out_and_urls_give_the_same_bytes_too(ray, run, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_bytes(lines(1500))
    table = as_parquet(source, tmp_path / "in.parquet")
    local, out = tmp_path / "local.parquet", tmp_path / "out.parquet"
    assert run("vote", table, "-o", local).code == 0
    assert run("vote", f"file://{table}", "-o", f"file://{out}", "--engine", "ray").code == 0
    assert out.read_bytes() == local.read_bytes()


def test_a_folder_of_files_gives_a_folder_of_parts_that_can_be_gone_on_with(
    ray,
    run,
    tmp_path,
    small_units,
):
    source = tmp_path / "in"
    source.mkdir()
    whole = lines(400).splitlines(keepends=True)
    (source / "a.jsonl").write_bytes(b"".join(whole[:250]))
    (source / "b.jsonl").write_bytes(b"".join([*whole[250:300], b"broken\n", *whole[301:]]))
    out = tmp_path / "out"
    done = run("vote", source, "-o", f"{out}/", "--engine", "ray")
    assert done.code == 3
    assert f"{source}/b.jsonl:51: not valid JSON" in done.err
    assert f"Results so far are kept in {out}/; go on with --resume." in done.err
    assert run("vote", source, "-o", f"{out}/", "--engine", "ray").code == 5
    done = run("vote", source, "-o", f"{out}/", "--engine", "ray", "--resume", "-s", "overlap_1")
    assert done.code == 5
    assert "the fingerprint differs (similarity was 'overlap_2', now 'overlap_1')" in done.err
    kept = {p.name: p.stat().st_mtime_ns for p in out.glob("part-*")}
    (source / "b.jsonl").write_bytes(b"".join(whole[250:]))  # mended
    assert run("vote", source, "-o", f"{out}/", "--engine", "ray", "--resume").code == 0
    flat = tmp_path / "flat.jsonl"
    flat.write_bytes(b"".join(whole))
    assert b"".join(p.read_bytes() for p in sorted(out.glob("part-*"))) == run("vote", flat).out
    assert (out / "part-00000.jsonl").stat().st_mtime_ns == kept["part-00000.jsonl"]  # not done again
    notes = json.loads((out / "_rangevote/run.json").read_bytes())
    assert (notes["complete"], notes["ballots"]) == (True, 400)
    assert (
        "it is complete; nothing to resume"
        in run("vote", source, "-o", f"{out}/", "--engine", "ray", "--resume").err
    )


def test_a_driver_that_is_killed_and_one_by_address_lose_nothing(ray, run, tmp_path):
    address = ray.get_runtime_context().gcs_address
    data, out = tmp_path / "in", tmp_path / "out.jsonl"
    data.mkdir()
    whole = lines(3000).splitlines(keepends=True)
    for i in range(10):
        (data / f"{i}.jsonl").write_bytes(b"".join(whole[300 * i : 300 * i + 300]))
    command = ("vote", data, "-o", out, "--engine", "ray", "--ray-address", address)
    process = spawn(*command)
    parts = tmp_path / "out.jsonl.parts"
    deadline = time.monotonic() + PATIENCE
    while not list(parts.glob("part-*.jsonl")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    if not out.exists():
        again = spawn(*command, "--resume")
        _, err = again.communicate(timeout=PATIENCE)
        assert again.returncode == 0, err
    flat = tmp_path / "flat.jsonl"
    flat.write_bytes(b"".join(whole))
    assert out.read_bytes() == run("vote", flat).out
    assert not parts.exists()


def test_elect_serves_a_pipeline_of_ones_own(ray):
    import rangevote as rv
    from rangevote.scale.ray import Elect

    texts = ["i do not know", "the train leaves at ten", "the train leaves at ten o'clock"]
    rows = [{"id": i, "candidates": [{"text": t, "logprob": -1.0 - i % 3} for t in texts]} for i in range(40)]
    rows[7]["candidates"] = []
    data = ray.data.from_items(rows, override_num_blocks=4)
    for batches in ("pyarrow", "numpy"):
        found = data.map_batches(
            Elect,
            fn_constructor_kwargs={"similarity": "overlap_1"},
            batch_size=8,
            batch_format=batches,
            num_cpus=0.5,
            concurrency=1,
        ).take_all()
        assert sorted(row["id"] for row in found) == list(range(40))
        expected = rv.elect(texts, [-1.0] * 3, similarity="overlap_1")
        for row in found:
            if row["id"] == 7:
                assert "there are no candidates" in row["error"]
            else:
                assert (row["winner"], row["score"]) == (expected.winner, expected.score)
