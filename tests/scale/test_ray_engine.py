"""The engine on a real Ray: the bytes of the local engine, through faults too. Ray is started once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from faults.cluster import Cluster, family
from faults.runs import working
from tests.cli.conftest import run as run
from tests.cli.conftest import spawn
from tests.scale.conftest import PATIENCE
from tests.scale.samples import as_parquet, ballot, line, lines

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
EXAMPLE = Path(__file__).parents[2] / "examples" / "ray_pipeline.py"


@pytest.fixture
def small_units(monkeypatch):
    monkeypatch.setenv("RANGEVOTE_UNIT_BYTES", "20000")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_bytes(lines(600, faults=True))
    return path


SKIP = ("--scores", "--on-error", "skip")


def listening(processes: list[int]) -> set[str]:
    """The addresses on which processes listen, from the system's own table."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for row in Path(table).read_text().splitlines()[1:]:
            fields = row.split()
            if fields[3] == "0A":
                found.add((fields[1].split(":")[0], fields[9]))
    mine = set()
    for process in processes:
        try:
            links = [os.readlink(fd) for fd in Path(f"/proc/{process}/fd").iterdir()]
        except OSError:
            continue
        inodes = {link[8:-1] for link in links if link.startswith("socket:")}
        mine |= {address for address, inode in found if inode in inodes}
    return mine


def test_our_own_ray_listens_on_the_loopback_device_only_and_reports_to_nobody(ray, cluster):
    if not Path("/proc/net/tcp6").exists():
        pytest.skip("the system does not list its sockets in /proc")
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert ray.get(ray.remote(lambda: os.getpid()).remote()) in family(cluster.pid)  # workers, too
    assert listening(family(cluster.pid))
    assert listening(family(cluster.pid)) <= loopback
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


def test_a_driver_that_is_killed_and_one_by_address_lose_nothing(ray, cluster, run, tmp_path):
    data, out = tmp_path / "in", tmp_path / "out.jsonl"
    data.mkdir()
    whole = lines(3000).splitlines(keepends=True)
    for i in range(10):
        (data / f"{i}.jsonl").write_bytes(b"".join(whole[300 * i : 300 * i + 300]))
    command = ("vote", data, "-o", out, "--engine", "ray", "--ray-address", cluster.address)
    process = spawn(*command)
    parts = tmp_path / "out.jsonl.parts"
    deadline = time.monotonic() + PATIENCE
    while not list(parts.glob("part-*.jsonl")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    if not out.exists():
        again = spawn(*command, "--resume")
        _, err = again.communicate(timeout=PATIENCE)
        assert again.returncode == 0, err
    flat = tmp_path / "flat.jsonl"
    flat.write_bytes(b"".join(whole))
    assert out.read_bytes() == run("vote", flat).out
    assert not parts.exists()


@contextmanager
def killing(number: int, cluster: Cluster) -> Iterator[list[int]]:
    """Meanwhile, so many of the workers that have a task of ours are killed, each in its turn."""
    killed: list[int] = []
    ended = threading.Event()

    def kill() -> None:
        while len(killed) < number and not ended.wait(0.02):
            for pid in working(cluster.pid):
                if pid not in killed:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                    break

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def test_workers_that_are_killed_in_the_middle_of_their_units_lose_nothing(
    ray, cluster, run, tmp_path, monkeypatch
):
    monkeypatch.setenv("RANGEVOTE_UNIT_BYTES", "150000")
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    texts = [f"a dog number {i} runs over the green meadow {i * 7 % 10}" for i in range(60)]
    data.write_bytes(b"".join(line(ballot(i, *(f"{text} {i}" for text in texts))) for i in range(300)))
    options = ("-s", "chrf", "--scores", "-q")
    with killing(3, cluster) as killed:
        done = run("vote", data, "-o", out, *options, "--engine", "ray")
    assert (done.code, done.err) == (0, "")
    assert len(killed) == 3
    assert out.read_bytes() == run("vote", data, *options).out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


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


def test_the_example_runs_and_goes_on_by_id(ray, cluster, tmp_path: Path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    def prompts(number: int) -> None:
        rows = [{"id": f"p{i}", "prompt": ("a man", "a dog")[i % 2]} for i in range(number)]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "prompts.parquet")

    command = [sys.executable, EXAMPLE, *(tmp_path / n for n in ("prompts.parquet", "winners", "progress"))]
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    for number in (20, 45):  # the second run finds 20 results and makes 25
        prompts(number)
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)
        assert done.returncode == 0, done.stderr[-3000:]
    rows = pq.read_table(tmp_path / "winners").to_pylist()
    assert sorted(row["id"] for row in rows) == sorted(f"p{i}" for i in range(45))
    assert {row["winner"] is not None and row["error"] is None for row in rows} == {True}
