"""Runs that end early, run twice, or run in odd surroundings: nothing is lost and nothing half-written."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rangevote.cli import output
from tests.cli.conftest import ballot, lines, spawn
from tests.waiting import until

posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes as on Unix")


def many(path: Path, number: int = 400) -> Path:
    path.write_bytes(lines(*(ballot(i, f"a b {i % 7} é", "a b c", f"c b {i}") for i in range(number))))
    return path


def waits_for_more(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has read all of its input so far, worked on it, and sleeps."""
    import fcntl
    import termios

    unread = int.from_bytes(fcntl.ioctl(process.stdin, termios.FIONREAD, b"\0" * 4), sys.byteorder)
    state = subprocess.check_output(["ps", "-o", "stat=", "-p", str(process.pid)])
    return not unread and state.startswith(b"S")


def interrupted_run(data: Path, out: Path, *, stop_after: int) -> None:
    """Feed some ballots through a pipe, then press Ctrl-C."""
    listed = data.read_bytes().splitlines(keepends=True)
    process = spawn("vote", "-", "-o", out)
    process.stdin.write(b"".join(listed[:stop_after]))
    process.stdin.flush()
    partial = out.with_name(out.name + ".partial")
    until(lambda: partial.exists() and waits_for_more(process))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(b"".join(listed[stop_after:]), timeout=120)
    assert process.returncode == 130, err
    assert b"interrupted. Results so far are kept in" in err
    assert b"--resume" in err
    assert b"Traceback" not in err


@posix
def test_ctrl_c_finishes_the_line_and_resume_gives_the_same_bytes(run, tmp_path):
    data, out = many(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"
    interrupted_run(data, out, stop_after=100)
    assert not out.exists()
    kept = (tmp_path / "out.jsonl.partial").read_bytes()
    assert kept.endswith(b"\n")
    done = run("vote", data, "-o", out, "--resume")
    assert done.code == 0
    assert out.read_bytes() == run("vote", data).out
    assert out.read_bytes().startswith(kept)
    assert not (tmp_path / "out.jsonl.partial.json").exists()


def unfinished(run, tmp_path: Path, *options: str) -> tuple[Path, Path]:
    """An output whose run stopped at the third line; the input is mended then."""
    data, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    good = lines(*(ballot(i, f"a {i}", f"a b {i}") for i in range(4)))
    data.write_bytes(good + b"broken\n" + lines(ballot(5, "z")))
    assert run("vote", data, "-o", out, *options).code == 3
    data.write_bytes(good + lines(ballot(4, "y"), ballot(5, "z")))
    return data, out


def test_an_unfinished_output_asks_for_resume_or_force(run, tmp_path):
    data, out = unfinished(run, tmp_path)
    done = run("vote", data, "-o", out)
    assert done.code == 5
    assert "exists from an unfinished run. Use --resume to continue it, or --force" in done.err
    assert run("vote", data, "-o", out, "--force").code == 0
    assert out.read_bytes() == run("vote", data).out


def test_other_options_cannot_resume(run, tmp_path):
    data, out = unfinished(run, tmp_path, "-s", "overlap_2")
    done = run("vote", data, "-o", out, "--resume", "-s", "overlap_1")
    assert done.code == 5
    assert "other options decided its content (similarity was 'overlap_2', now 'overlap_1')" in done.err
    # the number of workers changes nothing that is written
    assert run("vote", data, "-o", out, "--resume", "-s", "overlap_2", "--workers", 2).code == 0
    assert out.read_bytes() == run("vote", data, "-s", "overlap_2").out


@pytest.mark.parametrize(("options", "torn"), [((), 30), (("--text",), 0)])
def test_a_torn_tail_is_done_again_and_text_is_resumed_by_its_lines(run, tmp_path, options, torn):
    data, out = unfinished(run, tmp_path, *options)
    partial = tmp_path / "out.jsonl.partial"
    partial.write_bytes(partial.read_bytes()[: len(partial.read_bytes()) - torn])
    assert run("vote", data, "-o", out, *options, "--resume").code == 0
    assert out.read_bytes() == run("vote", data, *options).out


def test_an_input_that_changed_cannot_be_resumed(run, tmp_path):
    data, out = unfinished(run, tmp_path)
    data.write_bytes(lines(*(ballot(f"other {i}", "x") for i in range(9))))
    done = run("vote", data, "-o", out, "--resume")
    assert done.code == 5
    assert "line 4 of the output has id 3, the input 'other 3'; the input changed" in done.err
    data.write_bytes(lines(ballot(0, "x")))
    assert "the output has 4 lines, the input only 1" in run("vote", data, "-o", out, "--resume").err


@posix
def test_a_second_run_on_the_same_output_is_refused(tmp_path):
    out = tmp_path / "out.jsonl"
    first = spawn("vote", "-", "-o", out)
    until((tmp_path / "out.jsonl.partial.json").exists)
    second = spawn("vote", "-", "-o", out, "--force")
    _, err = second.communicate(lines(ballot(1, "a")), timeout=120)
    assert second.returncode == 5
    assert f"another run is writing {out}".encode() in err
    first.communicate(lines(ballot(1, "a")), timeout=120)
    assert first.returncode == 0
    assert len(out.read_bytes().splitlines()) == 1


@posix
def test_a_reader_that_goes_away_ends_the_run_quietly(tmp_path):
    data = many(tmp_path / "in.jsonl", 5000)
    with spawn("vote", data) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=120) in (0, 141)


def test_a_full_disk_leaves_nothing_behind_and_the_old_output_intact(run, tmp_path, monkeypatch):
    data, out = many(tmp_path / "in.jsonl", 20), tmp_path / "out.jsonl"
    out.write_text("old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(output.os, "fsync", full)
    done = run("vote", data, "-o", out, "--force")
    assert done.code == 5
    assert f"cannot write {out}: the disk is full. Nothing was left behind." in done.err
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_control_characters_are_shown_on_a_terminal_not_obeyed():
    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    output.StreamOutput(screen, "screen", line_by_line=True, table=None).write(
        "a\x1b]0;title\x07b\x00\x9b \u202e é\n".encode()
    )
    assert screen.getvalue() == "a\\x1b]0;title\\x07b\\x00\\x9b \\u202e é\n".encode()


NO_RESULT = "line 1 of the output is not the result of an election; the file was changed. Use --force"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *[
            ("out.jsonl.partial", last + b"\n", NO_RESULT)
            for last in (b"", b"[1]", b"text", b'{"id": \xff}', b"[" * 10_000)
        ],
        *[
            ("out.jsonl.partial.json", notes, "cannot be read. Use --force to start again.")
            for notes in (b'{"options": [[1, 2]]}', b"[" * 10_000, b"[]", b"{")
        ],
        ("out.jsonl.partial.json", None, "out.jsonl.partial.json, which has its options, is missing"),
    ],
    ids=lambda value: repr(value)[:12],
)
def test_what_an_unfinished_run_left_must_be_whole_to_be_resumed(run, tmp_path, name, content, message):
    data, out = unfinished(run, tmp_path)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    kept = (tmp_path / "out.jsonl.partial").read_bytes()
    done = run("vote", data, "-o", out, "--resume")
    assert (done.code, message in done.err) == (5, True)
    assert (tmp_path / "out.jsonl.partial").read_bytes() == kept


def test_a_disk_that_is_full_at_the_start_leaves_nothing_behind(run, tmp_path, monkeypatch):
    data, out = many(tmp_path / "in.jsonl", 5), tmp_path / "out.jsonl"

    def full(self: Path, *_: object, **__: object) -> None:
        self.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    done = run("vote", data, "-o", out)
    assert done.code == 5
    assert "the disk is full" in done.err
    assert [p.name for p in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_file_whose_name_is_no_text_is_voted_on_and_resumed(run, tmp_path):
    data, out = many(tmp_path / "in.jsonl", 5), tmp_path / "out.jsonl"
    voters = tmp_path / os.fsdecode(b"v\xff.jsonl")
    voters.write_bytes(data.read_bytes())
    assert run("vote", data, "--voters", voters, "-o", out).code == 0
    assert out.read_bytes() == run("vote", data, "--voters", voters).out


@pytest.mark.parametrize("what", ["ballots", "voters", "first ballot", "workers"])
def test_a_run_that_fails_before_its_first_line_leaves_nothing(run, three, tmp_path, what):
    missing, bad, out = tmp_path / "missing.jsonl", tmp_path / "bad.jsonl", tmp_path / "out" / "out.jsonl"
    bad.write_bytes(b'{"candidates": [3]}\n' + three.read_bytes())
    out.parent.mkdir()
    asked = {
        "ballots": [missing],
        "voters": [three, "--voters", missing],
        "first ballot": [bad],
        "workers": [bad, "--workers", 2],
    }
    assert run("vote", *asked[what], "-o", out).code in (3, 5)
    assert list(out.parent.iterdir()) == []
    assert run("vote", three, "-o", out).code == 0


@posix
def test_a_run_that_is_killed_before_its_first_line_does_not_block_the_next(run, three, tmp_path):
    out, notes = tmp_path / "out.jsonl", tmp_path / "out.jsonl.partial.json"
    process = spawn("vote", "-", "-o", out, "--scores")
    until(notes.exists)
    process.kill()
    process.communicate()
    assert notes.exists()
    assert run("vote", three, "-o", out).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nbest.jsonl", "out.jsonl"]


def killed_run(patch: str, *arguments: object) -> None:
    """A run of the command that kills itself where `patch` calls `kill()`."""
    kill = "import os, signal\ndef kill(): os.kill(os.getpid(), signal.SIGKILL)\n"
    code = f"{kill}{patch}from rangevote.cli import main\nmain()\n"
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)])
    assert done.returncode == -signal.SIGKILL


@posix
def test_a_run_that_is_killed_while_it_writes_the_table_leaves_nothing_once_it_is_resumed(
    run, three, tmp_path
):
    out = tmp_path / "out.csv"
    killed_run(
        "from rangevote.formats import result_writer\nresult_writer.write_table = lambda *_: kill()\n",
        *("vote", three, "-o", out),
    )
    assert run("vote", three, "-o", out, "--resume").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nbest.jsonl", "out.csv"]


@posix
@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
def test_a_run_that_is_killed_when_its_output_is_complete_leaves_nothing_once_it_is_resumed(
    run, three, tmp_path, name
):
    out = tmp_path / name
    killed_run(
        "from pathlib import Path\n"
        "unlink = Path.unlink\n"
        "def unlink_or_kill(path, missing_ok=False):\n"
        f"    kill() if path.name == '{name}.partial' else unlink(path, missing_ok=missing_ok)\n"
        "Path.unlink = unlink_or_kill\n",
        *("vote", three, "-o", out),
    )
    assert out.exists()
    assert len(list(tmp_path.iterdir())) > 2
    assert run("vote", three, "-o", out, "--resume").code == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nbest.jsonl", name]


def test_resuming_a_complete_output_keeps_what_a_later_run_began(run, three, tmp_path):
    out, partial = tmp_path / "out.jsonl", tmp_path / "out.jsonl.partial"
    assert run("vote", three, "-o", out).code == 0
    partial.write_bytes(b"{}\n")
    os.utime(partial, ns=(2 * out.stat().st_mtime_ns,) * 2)
    assert run("vote", three, "-o", out, "--resume").code == 5
    assert partial.read_bytes() == b"{}\n"


def test_results_are_written_as_they_come_from_a_pipe():
    with spawn("vote") as process:
        process.stdin.write(lines(ballot("first", "a b")))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == "first"  # before the input ends
        process.stdin.close()
        assert process.wait(timeout=120) == 0
