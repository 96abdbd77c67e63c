"""`rangevote study`: new, serve, report, export."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys

import httpx
import pytest

from rangevote.study.store import take_snapshot
from tests.cli.conftest import lines, spawn
from tests.study.samples import judge, png, study_file


@pytest.fixture
def outputs(tmp_path):
    """Two systems: plain text, and what `rangevote vote` writes."""
    (tmp_path / "beam.txt").write_text("a man\na dog runs\nthe cat\n")
    winners = [
        {"id": n, "winner": text} for n, text in enumerate(["a tall man", "a dog runs", "a black cat"])
    ]
    (tmp_path / "voted.jsonl").write_bytes(lines(*winners))
    (tmp_path / "source.txt").write_text("ein Mann\nein Hund\neine Katze\n")
    return tmp_path


def new(run, folder, *options):
    files = (folder / "beam.txt", f"range voting={folder / 'voted.jsonl'}")
    return run("study", "new", *files, "-o", folder / "study.db", *options)


def test_a_study_is_made_of_two_files_and_described_on_standard_error(run, outputs):
    done = new(run, outputs, "--source", outputs / "source.txt", "--annotators", 2, "--seed", 7)
    assert (done.code, done.out) == (0, b"")
    assert "3 items, all there are (asked for 500)." in done.err
    assert "pairs with identical outputs: 1;" in done.err
    assert "2 to judge, 0 attention checks; 2 of 2 annotators judge each." in done.err
    snapshot = take_snapshot(outputs / "study.db")
    assert f"the study's digest is {snapshot.digest}" in done.err
    assert snapshot.study.plan.systems == ("beam", "range voting")
    assert snapshot.study.plan.seed == 7
    assert [pair.source for pair in snapshot.study.pairs] == ["ein Mann", "ein Hund", "eine Katze"]
    assert stat.S_IMODE(os.stat(outputs / "study.db").st_mode) == 0o600
    assert {path.name for path in outputs.iterdir()} == {"beam.txt", "voted.jsonl", "source.txt", "study.db"}


def test_a_study_is_made_of_pairs_on_standard_input(run, tmp_path):
    text = lines({"id": "a", "outputs": {"beam": "x", "voted": "y"}})
    done = run("study", "new", "-", "-o", tmp_path / "s.db", "-q", stdin=text)
    assert (done.code, done.err, done.out) == (0, "", b"")
    assert take_snapshot(tmp_path / "s.db").study.plan.systems == ("beam", "voted")
    done = run("study", "new", "-", "-o", tmp_path / "t.db", "--images", tmp_path, stdin=text)
    assert (done.code, "pairs have their own fields" in done.err) == (2, True)


def test_a_study_is_made_with_pictures_and_wording(run, outputs):
    (outputs / "a.png").write_bytes(png())
    (outputs / "list.txt").write_text("a.png\n" * 3)
    (outputs / "task.txt").write_text("Look at the picture.\n")
    options = ("--images", outputs / "list.txt", "--instructions", outputs / "task.txt")
    done = new(run, outputs, *options, "--title", "Captions")
    assert (done.code, "Exif" in done.err) == (0, False)
    study = take_snapshot(outputs / "study.db").study
    assert all(pair.image for pair in study.pairs)
    assert (study.plan.title, study.plan.instructions) == ("Captions", "Look at the picture.")
    (outputs / "a.png").write_bytes(png() + b"\0\0\0\4eXIfMM\0*")
    done = new(run, outputs, *options, "--force")
    assert "warning: 1 of 1 images have Exif or XMP data, which annotators can read." in done.err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--items", "0"], 2, "0 is not in the range x>=1"),
        (["--sides", "coins"], 2, "'coins' is not one of 'coin', 'balanced'"),
        (["--pass-share", "0.5"], 2, "--pass-share needs attention checks"),
        (["--source", "none.txt"], 5, "none.txt"),
        (["third=beam.txt"], 2, "a study compares two systems, got 3."),
        (["--instructions", "none.txt"], 5, "cannot read none.txt: no such file or directory."),
    ],
)
def test_a_bad_option_is_refused_and_leaves_no_file(run, outputs, monkeypatch, options, code, message):
    monkeypatch.chdir(outputs)
    done = new(run, outputs, *options)
    assert (done.code, message in done.err) == (code, True), done.err
    assert not (outputs / "study.db").exists()


def test_an_existing_study_is_kept_and_judgements_are_never_thrown_away(run, outputs):
    assert new(run, outputs).code == 0
    before = take_snapshot(outputs / "study.db").digest
    done = new(run, outputs)
    assert (done.code, "already exists; use --force" in done.err) == (5, True)
    assert new(run, outputs, "--force").code == 0
    assert take_snapshot(outputs / "study.db").digest != before  # new links
    judge(outputs / "study.db", [1])
    done = new(run, outputs, "--force")
    assert (done.code, "has judgements, which --force does not delete" in done.err) == (5, True)
    assert len(take_snapshot(outputs / "study.db").rows) == 1


def test_the_report_is_text_and_json_and_a_page(run, tmp_path):
    path = study_file(tmp_path, 10)
    judge(path, [2, 2, 1, 1, 1, 1, 1, 0, -1, 0])
    shown = run("study", "report", path).out.decode()
    assert "all answers but ties       7      1  0.0703" in shown
    data = json.loads(run("study", "report", path, "--to", "json").out)
    assert data["counts"]["sign_test"]["p"] == pytest.approx(18 / 256)
    assert data["counts"]["sign_test_much"] == {
        **{"better": 2, "worse": 0, "p": 0.5, "share": 1.0},
        "interval": [pytest.approx(0.1581, abs=1e-4), 1.0],
    }
    page = tmp_path / "report.html"
    assert run("study", "report", path, "--to", "html", "-o", page).code == 0
    assert page.read_text().startswith("<!doctype html>")


def test_exports_go_to_standard_output(run, tmp_path):
    path = study_file(tmp_path, 3)
    judge(path, [2, 0, -1])
    assert len(run("study", "export", path).results()) == 3
    assert run("study", "export", path, "--to", "csv").out.count(b"\r\n") == 4
    assert run("study", "export", path, "--to", "csv", "--bom").out.startswith(b"\xef\xbb\xbf")
    assert len(run("study", "export", path, "--history").results()) == 3
    assert json.loads(run("study", "export", path, "--to", "record").out)["seed"] == 12345
    table = tmp_path / "judgements.csv"
    assert run("study", "export", path, "-o", table, "--bom").code == 0  # the name says the format
    assert table.read_bytes() == run("study", "export", path, "--to", "csv", "--bom").out
    for options in (("--to", "record", "--history"), ("--bom",)):
        assert run("study", "export", path, *options).code == 2


@pytest.mark.parametrize("command", ["report", "export", "serve"])
def test_a_file_that_is_not_a_study_is_refused_without_a_traceback(run, tmp_path, command):
    (tmp_path / "x.db").write_text("hello, this is no database")
    assert run("study", command, tmp_path / "x.db").code == 3
    done = run("study", command, tmp_path / "none.db")
    assert (done.code, "there is no study" in done.err) == (5, True)


def test_an_address_that_others_reach_must_be_meant_and_have_a_name(run, tmp_path):
    path = study_file(tmp_path, 2)
    for options, message in (
        (["--host", "192.0.2.1"], "add --public"),
        (["--host", "0.0.0.0", "--public"], "add --allow-host NAME"),
    ):
        done = run("study", "serve", path, *options)
        assert (done.code, message in done.err) == (2, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("study", "serve", path, "--port", taken.getsockname()[1])
    assert (done.code, "cannot listen on 127.0.0.1 port" in done.err) == (5, True)


def links_of(process):
    links = []
    for line in process.stderr:
        links += [word for word in line.decode().split() if word.startswith("http://")]
        if b"Ctrl-C" in line:
            break
    assert "/progress#" in links[-1]
    return links[:-1]


def ask(link, path, body=None, **headers):
    """The status and the JSON of a request with the link's token."""
    base, _, token = link.partition("#")
    headers["authorization"] = f"Bearer {token}"
    method = "GET" if body is None else "POST"
    answer = httpx.request(method, f"{base}{path}", json=body, headers=headers, trust_env=False)
    return answer.status_code, answer.json() if answer.is_success else None


def test_serve_prints_a_link_for_each_annotator_and_logs_nothing(tmp_path):
    path = study_file(tmp_path, 2, annotators=2)
    process = spawn("study", "serve", path, "--port", 0, "--allow-host", "judge.example")
    links = links_of(process)
    assert len(links) == 2
    for link in links:
        assert len(ask(link, "api/session")[1]["items"]) == 2
    assert ask(links[0], "api/session", host="judge.example")[0] == 200
    assert ask(links[0], "api/session", host="evil.example")[0] == 400
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (0, b"", b"")
    assert (tmp_path / "study.db.backup").exists()
    assert not (tmp_path / "study.db-wal").exists()


def answer_all(link):
    for number, item in enumerate(ask(link, "api/session")[1]["items"]):
        body = {"item": item["id"], "value": number % 5 - 2, "key": f"{number:032}", "duration": 5}
        body |= {"image_missing": False, "time": "2026-01-31T12:00:00Z"}
        assert ask(link, "api/judgement", body)[0] == 200


@pytest.mark.parametrize("stop", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_a_server_that_is_ended_leaves_one_complete_file_and_a_backup(tmp_path, stop):
    path = study_file(tmp_path, 3)
    process = spawn("study", "serve", path, "--port", 0)
    [link] = links_of(process)
    answer_all(link)
    process.send_signal(getattr(signal, stop))
    process.communicate(timeout=30)
    alone = tmp_path / "copy" / "study.db"
    alone.parent.mkdir()
    alone.write_bytes(path.read_bytes())
    if stop == "SIGKILL":  # every judgement that was confirmed is on the disk
        assert sorted(row.shown for row in take_snapshot(path).current()) == [-2, -1, 0]
        return
    for file in (alone, tmp_path / "study.db.backup"):
        assert len(take_snapshot(file).rows) == 3
    assert not (tmp_path / "study.db-wal").exists()


def test_addresses_in_x_forwarded_for_are_believed_only_where_the_operator_says_so(tmp_path):
    path = study_file(tmp_path, 1)
    for options, last in (((), 429), (("--proxy", "127.0.0.1"), 404)):
        process = spawn("study", "serve", path, "--port", 0, *options)
        [link] = links_of(process)
        wrong = link.partition("#")[0] + "#wrong"
        statuses = [ask(wrong, "api/session", **{"X-Forwarded-For": f"192.0.2.{n}"})[0] for n in range(25)]
        process.terminate()
        process.communicate(timeout=30)
        assert (statuses[0], statuses[-1]) == (404, last)


def test_the_commands_load_no_web_server_unless_they_serve(tmp_path):
    path = study_file(tmp_path, 2)
    code = (
        "import sys\nfrom rangevote.cli import run\n"
        f"assert run(['study', 'report', {str(path)!r}]) == 0\n"
        "assert not {'starlette', 'uvicorn'} & set(sys.modules), sorted(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
