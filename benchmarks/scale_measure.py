"""What a command and all its descendants take: memory at once, CPU, bytes read and written, wall time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_TICK = os.sysconf("SC_CLK_TCK")
#: The bit of SIGCHLD in a mask of signals.
_CHILD_ENDED = 1 << (signal.SIGCHLD - 1)


class Counted(NamedTuple):
    """CPU seconds, and bytes that went through `read` and `write`."""

    cpu: float = 0.0
    read: int = 0
    written: int = 0

    def and_(self, other: Counted) -> Counted:
        """The sum."""
        return Counted(self.cpu + other.cpu, self.read + other.read, self.written + other.written)


class Used(NamedTuple):
    """All of a run; `failed` says why it did not end well."""

    memory: int
    counted: Counted
    wall: float
    failed: str = ""


def measured(command: Sequence[str | Path], environment: Mapping[str, str], limit: float) -> Used:
    """Run a command, for `limit` seconds at most.

    Memory is the largest sum of proportional set sizes (shared pages counted once). CPU and bytes are what
    the system adds up for a process and those it waited for, and what was last seen of those that nobody
    waits for, as Ray's workers.
    """
    begun, before = time.perf_counter(), _own()
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=complaints, start_new_session=True
        )
        memory, alone, late = 0, dict[int, Counted](), False
        while process.poll() is None:
            began = time.perf_counter()
            late = began - begun > limit
            if late:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                break
            family = descendants(process.pid)
            memory = max(memory, sum(map(_memory, family)))
            alone |= {pid: _counted(pid) for pid in family if _nobody_waits(pid)}
            # so much less often that looking does not count
            time.sleep(min(2.0, max(0.05, 20 * (time.perf_counter() - began))))
        wall = time.perf_counter() - begun
        complaints.seek(0)
        told = " ".join(complaints.read().decode(errors="replace").split())[-300:]
    total = _own().and_(Counted(-before.cpu, -before.read, -before.written))
    for one in alone.values():
        total = total.and_(one)
    failed = f"not done after {limit:.0f} s" if late else f"exit code {process.returncode}: {told}"
    return Used(memory, total, wall, failed if late or process.returncode else "")


def descendants(pid: int) -> list[int]:
    """A process and those it started, directly or not."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            tasks = list(Path(f"/proc/{one}/task").iterdir())
            found += [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return found


def _own() -> Counted:
    """Of the children that this process has waited for, with all that they have waited for; not its own."""
    times = os.times()
    whole = _read("/proc/self/io")
    own = [_read(f"{task}/io") for task in Path("/proc/self/task").iterdir()]
    read, written = (
        _field(whole, name) - sum(_field(one, name) for one in own) for name in ("rchar", "wchar")
    )
    return Counted(times.children_user + times.children_system, read, written)


def _counted(pid: int) -> Counted:
    io = _read(f"/proc/{pid}/io")
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    cpu = sum(map(int, fields[11:15])) / _TICK if fields else 0.0
    return Counted(cpu, _field(io, "rchar"), _field(io, "wchar"))


def _nobody_waits(pid: int) -> bool:
    """Whether the parent has told the system to forget its children when they end."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    ignored = (
        re.search(r"^SigIgn:\s+([0-9a-f]+)", _read(f"/proc/{fields[1]}/status"), re.M) if fields else None
    )
    return ignored is not None and bool(int(ignored[1], 16) & _CHILD_ENDED)


def _memory(pid: int) -> int:
    return 1024 * _field(_read(f"/proc/{pid}/smaps_rollup"), "Pss")


def _field(text: str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
