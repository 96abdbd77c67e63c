"""rangevote show: the page on an address of this machine, or in a file."""

from __future__ import annotations

import json
import re
import signal
import sys
import urllib.request
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

import rangevote as rv
from rangevote.web import serving
from tests.cli.conftest import ballot, lines, spawn
from tests.figure1 import WINNER


class Served:
    """What the command would have served, and to which address."""

    client: TestClient
    address: str
    opened: list[str]

    def get(self, path: str) -> Any:
        return self.client.get(path).json()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    """The command stops where it would wait for requests, after it has said that it is ready."""
    found = Served()
    found.opened = []

    def serve(app: Any, listening: Any, *, drain: float) -> None:
        found.address = serving.address(listening)
        found.client = TestClient(app, base_url=found.address)
        listening.close()

    monkeypatch.setattr(serving, "serve", serve)
    monkeypatch.setattr("rangevote.cli.show._open", found.opened.append)
    return found


def data_of(path: Path) -> dict[str, Any]:
    block = re.search(r'id="answers">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    found: dict[str, Any] = {}
    for packed in json.loads(block[1]).values():
        found |= json.loads(zlib.decompress(b64decode(packed)))
    return found


def test_without_a_file_figure_1_is_shown_on_an_address_of_this_machine(run, served):
    done = run("show")
    assert (done.code, done.out) == (0, b"")
    assert served.get("/api/ballots/0")["candidates"]["rows"][0]["text"] == WINNER
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", served.address)
    assert done.err == f"rangevote: the election page is at {served.address} (Ctrl-C ends it)\n"
    assert served.opened == [served.address]
    run("show", "--no-browser", "--host", "localhost")
    assert len(served.opened) == 1


def elected(three: Path, **options: Any) -> rv.Result:
    """The election of the first ballot of the file."""
    listed = json.loads(three.read_text().splitlines()[0])["candidates"]
    return rv.elect([c["text"] for c in listed], [c["logprob"] for c in listed], **options)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--preset", "blend"], {"preset": "blend"}),
        (["--profile", "profile.toml"], {"similarity": "chrf", "temperature": 2.0}),
    ],
)
def test_the_options_of_an_election_hold_on_the_page(run, served, three, monkeypatch, options, wanted):
    monkeypatch.chdir(three.parent)
    Path("profile.toml").write_text('[election]\nsimilarity = "chrf"\ntemperature = 2.0\n')
    assert run("show", three, *options).code == 0
    shown, expected = served.get("/api/ballots/0"), elected(three, **wanted)
    assert (shown["winner"], shown["signature"]) == (expected.index, expected.signature)


def test_several_files_are_lists_of_the_same_ballots(run, served, tmp_path):
    small, large = tmp_path / "k2.jsonl", tmp_path / "k3.jsonl"
    small.write_bytes(lines(ballot("x", "a b", "a c"), ballot("y", "d", "e")))
    large.write_bytes(lines(ballot("y", "d", "e", "f"), ballot("z", "g"), ballot("x", "a b", "a c", "a d")))
    done = run("show", small, large)
    assert "not shown, since k2 does not have them: 1 of the ballots in k3." in done.err
    assert [one["name"] for one in served.get("/api/election")["lists"]] == ["k2", "k3"]
    assert served.get("/api/ballots/0?list=1")["candidates"]["total"] == 3
    assert served.get("/api/ballots/1/winners?list=1")["candidates"] == 3
    assert run("show", "--panel", small, large).code == 0
    about, election = served.get("/api/election"), served.get("/api/ballots/0")
    assert (about["lists"], about["members"]) == ([{"name": "k2, k3", "ballots": 3}], ["k2", "k3"])
    assert sorted(row["member"] for row in election["candidates"]["rows"]) == ["k2"] * 2 + ["k3"] * 3
    assert election["shares"] == {"k2": 0.5, "k3": 0.5}


def test_an_export_is_one_file_with_everything_in_it(run, tmp_path, three):
    out = tmp_path / "election.html"
    done = run("show", three, "--export", out)
    assert (done.code, done.out) == (0, b"")
    found = data_of(out)
    assert found["api/ballots/0?list=0"]["winner"] == elected(three).index
    assert found["api/election"]["kept"] == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["election.html", "nbest.jsonl"]
    done = run("show", three, "--export", "-", "--limit", 2)
    assert "rangevote: - has the first 2 of 3 ballots; --limit sets how many.\n" in done.err
    assert done.out.startswith(b"<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["empty.jsonl"], 3, "empty: holds no ballots, so there is nothing to show."),
        (["nbest.jsonl", "--image-root", "no"], 2, "is not a folder"),
        (["--panel", "nbest.jsonl"], 2, "--panel needs several files, one for each member."),
    ],
)
def test_mistakes_on_the_command_line_are_reported(run, three, monkeypatch, arguments, code, message):
    monkeypatch.chdir(three.parent)
    Path("empty.jsonl").touch()
    done = run("show", *arguments)
    assert (done.code, message in done.err) == (code, True), done.err


def test_listening_beyond_this_machine_is_warned_of(run, served, three):
    done = run("show", three, "--host", "0.0.0.0", "--allow-host", "box.example")
    assert "everyone who can reach 0.0.0.0 can read these ballots; there is no password" in done.err
    assert served.client.get("/", headers={"host": "box.example:8000"}).status_code == 200
    assert served.client.get("/", headers={"host": "other.example"}).status_code == 400


def test_a_missing_web_server_names_its_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette", None)
    done = run("show")
    assert done.code == 5
    assert 'pip install "rangevote[web]"' in done.err


def test_the_command_serves_until_it_is_interrupted(three):
    process = spawn("show", three, "--no-browser")
    try:
        line = process.stderr.readline().decode()
        address = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert address is not None, line
        with urllib.request.urlopen(f"{address[0]}/api/ballots/0", timeout=120) as answer:
            assert json.load(answer)["candidates"]["total"] == 4
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        assert (process.returncode, out, err) == (0, b"", b"")
    finally:
        process.kill()
        process.communicate()
