"""Files that are written whole: what is behind their name decides how."""

from __future__ import annotations

import errno
import gzip
import math
import os
import stat
import threading

import pytest

from rangevote.errors import SetupError
from rangevote.text import draft_of, escape_controls, finite, is_stream, regular_file, write_atomically

pytestmark = pytest.mark.skipif(os.name != "posix", reason="devices, pipes and links as on Unix")


def test_a_file_is_replaced_at_the_end_and_a_link_stays(tmp_path):
    link, target = tmp_path / "link.gz", tmp_path / "target"
    target.write_bytes(b"old")
    link.symlink_to("target")
    with write_atomically(link) as file:
        file.write(b"new")
        assert target.read_bytes() == b"old"
    assert gzip.decompress(target.read_bytes()) == b"new"  # packed, as the name that was given says
    assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link.gz", "target"]


def test_a_pipe_is_written_through(tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    with write_atomically(path) as file:
        file.write(b"text")
    reader.join(timeout=120)
    assert read == [b"text"]
    assert stat.S_ISFIFO(os.lstat(path).st_mode)
    with pytest.raises(SetupError, match="it is a device or a pipe; name a file"):
        regular_file(path)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/{pid}/fd/1"])
def test_an_open_descriptor_is_a_stream_whatever_it_leads_to(name, tmp_path):
    name = name.format(pid=os.getpid())
    assert is_stream(name)
    link = tmp_path / "link"
    link.symlink_to(name)
    assert is_stream(link)
    assert not is_stream(tmp_path)
    assert not is_stream(tmp_path / "free")


def test_control_characters_are_escaped_and_other_spaces_stay():
    assert escape_controls("a\u3000b\u00a0c") == "a\u3000b\u00a0c"
    assert escape_controls("\x1b[2J\u202e\x85\t\n\ud800", keep="\n\t") == "\\x1b[2J\\u202e\\x85\t\n\\ud800"


def test_numbers_that_json_cannot_express_become_none():
    assert [finite(x) for x in (1.5, None, math.inf, -math.inf, math.nan)] == [1.5, None, None, None, None]


def test_a_draft_is_deleted_when_writing_fails(tmp_path):
    with pytest.raises(SetupError, match=r"cannot write .*out: the disk is full"), draft_of(tmp_path / "out"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert os.listdir(tmp_path) == []
