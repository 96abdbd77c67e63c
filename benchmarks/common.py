"""What all benchmarks share: measured processes, the machine, Markdown tables, the chapters of RESULTS.md."""

from __future__ import annotations

import http.client
import importlib.metadata
import json
import os
import platform
import re
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SCRATCH = ROOT / ".benchmarks"
PEERS = ROOT / ".venv-peers" / "bin" / "python"
#: Real n-best lists beside the repository.
REAL = ROOT.parent / "shared" / "data" / "nbest"

#: One thread for every library that asks the environment.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONWARNINGS": "ignore",
}
#: Blocks of 64 kB and more come from and go back to the system at once, so that resident memory
#: follows what is in use.
EXACT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
#: Every Python object is an allocation of its own.
COUNTED_MEMORY = {"PYTHONMALLOC": "malloc"}


class Worker:
    """A `worker.py` in one of the environments; starts on first use and again after a failure."""

    def __init__(self, python: Path, extra: dict[str, str] | None = None) -> None:
        self.python = python
        self.environment = environment() | (extra or {})
        if python == PEERS:
            self.environment.pop("PYTHONPATH", None)
        self.process: subprocess.Popen[str] | None = None

    def ask(self, timeout: float = 400.0, **request: Any) -> dict[str, Any]:
        """Send a request; the answer has an "error" where it could not be met."""
        if not self.python.exists():
            return {"error": f"{self.python.parent.parent.name} is missing: run setup.sh peers"}
        if self.process is None:
            self.process = subprocess.Popen(
                [self.python, HERE / "worker.py"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=self.environment,
                start_new_session=True,
            )
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps(request), file=self.process.stdin, flush=True)
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            ready = selector.select(timeout)
        line = self.process.stdout.readline() if ready else ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.close()
        return {"error": "the worker ended" if ready else f"not done after {timeout:.0f} s"}

    def close(self) -> None:
        """End the process and the children it started."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Run(NamedTuple):
    """What a command took, from start to exit, in seconds."""

    cpu: float
    wall: float


def run(command: Sequence[str | Path]) -> Run:
    """Run a command that must succeed and measure it and its children."""
    wall = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    assert process.stderr
    complaint = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - wall
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command}: {complaint.decode(errors='replace')[-500:]}")
    return Run(usage.ru_utime + usage.ru_stime, wall)


def cpu_seconds(pid: int) -> float:
    """What a running process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


#: From a port to what serves there.
Command = Callable[[int], Sequence[str | Path | int]]
#: Seconds in which a server must answer for the first time.
PATIENCE = 120.0


class Server(NamedTuple):
    """A server that answers: its log, and the seconds to its first answer. Memory is in megabytes, processor
    time in seconds of all its threads."""

    port: int
    pid: int
    log: Path
    seconds: float

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def memory(self) -> float:
        return self._status("VmRSS")

    @property
    def peak(self) -> float:
        return self._status("VmHWM")

    @property
    def cpu(self) -> float:
        return cpu_seconds(self.pid)

    def _status(self, name: str) -> float:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


@contextmanager
def serving(command: Command, folder: Path, path: str = "/", **variables: str) -> Iterator[Server]:
    """Start a server in a folder, where its log is too, and wait for its first answer at `path`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log, variables = folder / f"{port}.log", environment() | variables
    with log.open("w") as file:
        words, began = list(map(str, command(port))), time.perf_counter()
        process = subprocess.Popen(words, stdout=file, stderr=file, cwd=folder, env=variables)
    try:
        while not _answers(port, path):
            if process.poll() is not None or time.perf_counter() - began > PATIENCE:
                raise RuntimeError(f"the server did not answer: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.005)
        yield Server(port, process.pid, log, time.perf_counter() - began)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def environment() -> dict[str, str]:
    """What measured processes see: one thread each, and byte code kept between starts.

    Installed packages have their byte code beside them; a source tree may not be written to, so
    here it is kept apart, for all alike.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | ONE_THREAD | {"PYTHONPYCACHEPREFIX": str(SCRATCH / "bytecode")}


def command_line() -> list[str | Path]:
    """How `rangevote` is started here: its script, or where it is not installed its `main`."""
    script = Path(sys.executable).parent / "rangevote"
    call = "from rangevote.cli import main; main()"
    return [script] if script.exists() else [sys.executable, "-c", call]


def write_lists(path: Path, ballots: Iterable[tuple[list[str], list[float]]]) -> Path:
    """Write ballots for the workers: one [texts, logprobs] per line."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps([texts, logprobs]) + "\n" for texts, logprobs in ballots)
    return path


def say(message: str) -> None:
    """Progress, on stderr."""
    print(message, file=sys.stderr, flush=True)


def machine() -> dict[str, Any]:
    """The processor and the system."""
    known = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", known.read_text() if known.exists() else "")
    return {
        "cpu": model[1] if model else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions(*packages: str) -> dict[str, str]:
    """The versions of installed packages."""
    return {name: importlib.metadata.version(name) for name in packages}


MARKS = {True: "yes", False: "**no**", None: "-"}


class Row(NamedTuple):
    """One line of a chapter; `why` says what a target that is not reached was missed by."""

    what: str
    must: str
    measured: str
    reached: bool | None = None
    why: str = ""


def compared(what: str, values: Sequence[float], limit: float, *, least: bool = False, why: str = "") -> Row:
    """A ratio that must be at most (or at least) `limit`, measured in several rounds."""
    middle = median(values)
    reached = middle >= limit if least else middle <= limit
    return Row(what, f"{'>=' if least else '<='} {limit:g} x", spread(values, ".2f", " x"), reached, why)


def spread(values: Sequence[float], format: str, unit: str = "") -> str:
    """The median, with the lowest and the highest in brackets."""
    low_to_high = f" ({min(values):{format}} to {max(values):{format}})" if len(values) > 1 else ""
    return f"{median(values):{format}}{unit}{low_to_high}"


def chapter(title: str, about: str, data: Mapping[str, Any], tables: Mapping[str, Iterable[Row]]) -> str:
    """A chapter: what was measured, when and on what, and one table for each heading ("" has none)."""
    machine = data["machine"]
    load = " and ".join(f"{value:.1f}" for value in machine["load"])
    versions = ", ".join(f"{name} {number}" for name, number in data["versions"].items())
    when = (
        f"{data['date']}, {machine['cpu']}, {machine['cores']} cores, {machine['system']}; load average "
        f"{load} before and after, {data['seconds'] / 60:.0f} minutes; {versions}."
    )
    parts = [f"# {title}", f"{' '.join(about.split())} {when}"]
    for heading, rows in tables.items():
        cells = [(r.what, r.must, r.measured, MARKS[r.reached], "" if r.reached else r.why) for r in rows]
        parts += [f"## {heading}"] * bool(heading)
        parts.append(table(("what", "must", "measured", "reached", "why not"), cells).rstrip())
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


RESULTS = HERE / "RESULTS.md"
#: The order of the chapters.
CHAPTERS = [
    "elections",
    "small",
    "panels",
    "search",
    "engines",
    "comet",
    "evaluation",
    "pages",
    "service",
    "scale",
    "stopping",
    "saving",
]
HEAD = """# What was measured

Each chapter is written by `make bench NAME=...`; do not edit. What is measured and how to read it:
[README.md](README.md). Chapters come from runs of their own: ratios compare within a chapter only. Of values
with a range in brackets, the first is the median of the rounds.
"""


def write_chapter(name: str, page: str, path: Path = RESULTS) -> None:
    """Put a page, from its `# title` on, instead of the chapter `name`."""
    kept = {**read_chapters(path), name: _deeper(page)}
    known = [chapter for chapter in CHAPTERS if chapter in kept]
    contents = "Chapters: " + ", ".join(f"[{chapter}](#{chapter})" for chapter in known) + ".\n"
    parts = [HEAD, contents]
    parts += [f'<a id="{chapter}"></a>\n\n{kept[chapter].strip()}\n' for chapter in known]
    path.write_text("\n".join(parts), encoding="utf-8")


def read_chapters(path: Path = RESULTS) -> dict[str, str]:
    """The chapters that are there: name -> Markdown with its title at the second level."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = re.split(r'^<a id="([a-z]+)"></a>\n', text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _deeper(page: str) -> str:
    return re.sub(r"^#(?=#* )", "##", page, flags=re.MULTILINE)
