"""Devices, pipes and links as outputs: they are written through and stay what they are."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from tests.cli.conftest import spawn
from tests.study.samples import study_file

pytestmark = pytest.mark.skipif(os.name != "posix", reason="devices, pipes and links as on Unix")


def device(path: Path, kind: int, *numbers: int) -> Path:
    """A device like those in /dev, which a fault may replace without harm."""
    try:
        os.mknod(path, kind | 0o666, os.makedev(*numbers))
        if kind == stat.S_IFCHR:
            path.open("wb").close()
    except OSError:
        pytest.skip("may not make a device here")
    return path


@pytest.fixture
def null(tmp_path: Path) -> Path:
    return device(tmp_path / "null", stat.S_IFCHR, 1, 3)


@pytest.fixture
def fifo(tmp_path: Path):
    """A named pipe, and a function that waits for what was written into it."""
    path, read = tmp_path / "fifo", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    reader.start()

    def content() -> bytes:
        reader.join(timeout=120)
        return read[0]

    return path, content


def arguments(command: str, three: Path, out: object) -> list[object]:
    """A run of each command that takes -o."""
    texts = three.with_name("texts.txt")
    texts.write_text("a b\nx y\none\n")
    given: dict[str, list[object]] = {
        "vote": [three],
        "convert": [three],
        "evaluate": [texts, "-r", texts],
        "compare": [texts, f"other={texts}", "-r", texts],
        "tune": [three, "-r", texts, "-s", "overlap_1", "--exponents", 0, "--temperatures", 1],
        "show": [three],
        "study report": [three],
    }
    return [*command.split(), *given[command], "--export" if command == "show" else "-o", out]


@pytest.mark.parametrize(
    "command", ["vote", "convert", "evaluate", "compare", "tune", "show", "study report"]
)
def test_a_file_is_replaced_only_by_force_and_an_input_never(run, three, tmp_path, command):
    if command == "study report":
        study_file(tmp_path, 2).rename(three)
    out = tmp_path / "out"
    out.write_text("precious")
    done = run(*arguments(command, three, out))
    assert (done.code, "already exists" in done.err, out.read_text()) == (5, True, "precious")
    assert run(*arguments(command, three, out), "--force").code == 0
    assert out.read_bytes() not in (b"precious", b"")
    input = Path(arguments(command, three, out)[len(command.split())])
    before = input.read_bytes()
    done = run(*arguments(command, three, input), "--force")
    assert (done.code, "is one of the inputs" in done.err, input.read_bytes()) == (2, True, before)


@pytest.mark.parametrize("command", ["vote", "evaluate"])  # line by line, and whole
def test_files_and_folders_that_are_not_there_or_none_are_named(run, three, tmp_path, command):
    out = tmp_path / "no" / "out"
    done = run(*arguments(command, three, out))
    assert (done.code, f"cannot write {out}: no such file or directory" in done.err) == (5, True)
    done = run(*arguments(command, three, tmp_path))
    assert (done.code, f"cannot write {tmp_path}: is a directory" in done.err) == (5, True)
    for path, problem in ((tmp_path / "none.jsonl", "no such file"), (tmp_path, "is a directory")):
        words = [
            path if word in (three, three.with_name("texts.txt")) else word
            for word in arguments(command, three, "-")
        ]
        done = run(*words)
        assert (done.code, f"cannot read {path}: {problem}" in done.err) == (5, True), done.err


@pytest.mark.parametrize("command", ["vote", "evaluate"])
def test_a_device_takes_the_output_and_stays_a_device(run, three, null, command):
    for force in ([], ["--force"]):
        assert run(*arguments(command, three, null), *force).code == 0
    assert stat.S_ISCHR(os.lstat(null).st_mode)
    assert not list(null.parent.glob("null.*"))


def test_a_pipe_takes_the_output_and_stays_a_pipe(run, three, fifo):
    path, content = fifo
    expected = run("vote", three)
    assert run("vote", three, "-o", path, "--force").code == 0
    assert content() == expected.out
    assert stat.S_ISFIFO(os.lstat(path).st_mode)


@pytest.mark.parametrize("command", ["vote", "evaluate"])
def test_a_link_stays_and_its_target_gets_the_output(run, three, tmp_path, command):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    link, target = tmp_path / "link", folder / "target"
    link.symlink_to("elsewhere/target")
    assert run(*arguments(command, three, link)).code == 0  # the target is not there yet
    expected = run(*arguments(command, three, "-")).out
    assert target.read_bytes() == expected
    target.write_text("old")
    assert run(*arguments(command, three, link)).code == 5
    assert run(*arguments(command, three, link), "--force").code == 0
    assert target.read_bytes() == expected
    assert os.readlink(link) == "elsewhere/target"
    assert [path.name for path in folder.iterdir()] == ["target"]


def test_links_in_a_circle_are_named_and_left(run, three, tmp_path):
    link = tmp_path / "link"
    link.symlink_to("link")
    done = run("vote", three, "-o", link, "--force")
    assert done.code == 5
    assert f"cannot write {link}: too many levels of symbolic links." in done.err
    assert link.is_symlink()


def test_standard_output_by_its_name_goes_on_behind_what_is_there(run, three, tmp_path):
    out = tmp_path / "out.txt"
    with out.open("wb") as file:
        file.write(b"before\n")
        file.flush()
        process = spawn("vote", three, "-o", "/dev/stdout", "--text", stdout=file)
        assert process.communicate()[1] == b""
    assert out.read_bytes() == b"before\n" + run("vote", three, "--text").out


def test_what_was_written_through_cannot_be_resumed_or_be_a_table(run, three, null):
    done = run("vote", three, "-o", null, "--resume")
    assert done.code == 2
    assert f"--resume needs -o FILE; {null} cannot be resumed." in done.err
    assert run("vote", three, "-o", null, "--to", "parquet").code == 2


def test_a_full_device_is_named(run, three, tmp_path):
    full = device(tmp_path / "full", stat.S_IFCHR, 1, 7)
    done = run("vote", three, "-o", full)
    assert (done.code, done.err) == (5, f"rangevote: cannot write {full}: the disk is full.\n")
    assert run("vote", three, "-o", "/dev/fd/987").err.endswith("/dev/fd/987: bad file descriptor.\n")


def test_a_disk_is_written_only_by_force(run, three, tmp_path):
    disk = device(tmp_path / "disk", stat.S_IFBLK, 0, 0)  # of no driver
    done = run("vote", three, "-o", disk)
    assert (done.code, "is a disk device. Use --force" in done.err) == (5, True)
    done = run("vote", three, "-o", disk, "--force")
    assert (done.code, f"cannot write {disk}: " in done.err) == (5, True)
    assert stat.S_ISBLK(os.lstat(disk).st_mode)


def test_the_reader_of_a_pipe_may_leave(three, tmp_path):
    three.write_bytes(three.read_bytes().splitlines(keepends=True)[0] * 5000)
    path = tmp_path / "fifo"
    os.mkfifo(path)
    process = spawn("vote", three, "--trust-ids", "-o", path)
    with path.open("rb") as reader:
        reader.readline()
    assert (process.wait(timeout=120), process.communicate()[1]) == (141, b"")


def test_a_study_is_a_file(run, three, null, fifo, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("a\nb\n")
    other = tmp_path / "other.txt"
    other.write_text("c\nd\n")
    for path in (null, fifo[0]):
        done = run("study", "new", texts, other, "-o", path, "--force")
        assert done.err == f"rangevote: cannot write {path}: it is a device or a pipe; name a file.\n"
        assert done.code == 5
        assert not path.is_file()
    fifo[0].write_bytes(b"")  # lets its reader go
    link = tmp_path / "link.db"
    link.symlink_to("study.db")
    assert run("study", "new", texts, other, "-o", link).code == 0
    assert link.is_symlink()
