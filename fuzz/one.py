"""One target in this process: led by coverage where atheris is installed, otherwise at random.

.venv/bin/python fuzz/one.py ballots --seconds 20 --findings FOLDER

Of each kind of error the first input is shortened and written into the folder, and fuzzing goes on; an input
that takes too long or too much memory ends the process, and libFuzzer writes it.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import signal
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if not __package__:  # a script: the repository is searched, not this folder
    sys.path[0] = str(ROOT)
PACKAGE = ROOT / "src"

from fuzz.mutate import Mutations, smallest  # noqa: E402
from fuzz.targets import MEMORY, SECONDS, TARGETS, attempt, location_of, seeds, tokens  # noqa: E402

#: Exit codes: findings after which fuzzing went on, and a hang where there is no libFuzzer.
FOUND, HANG = 1, 70
#: Bytes of addresses: an input that wants them all fails by itself, and the machine goes on.
ADDRESS_SPACE = 8 * 2**30
#: Bytes of a word in a dictionary of libFuzzer.
LONGEST_WORD = 64


class Findings:
    """Errors that a target must not raise: the first of each kind, shortened, as a file."""

    def __init__(self, function: Callable[[bytes], None], folder: Path) -> None:
        self._function, self._folder, self._known = function, folder, set[str]()

    def __len__(self) -> int:
        return len(self._known)

    def attempt(self, data: bytes) -> None:
        """Run the target on one input."""
        error = attempt(self._function, data)
        if error is None or location_of(error) in self._known:
            return
        location = location_of(error)
        self._known.add(location)
        shortest = smallest(data, lambda less: self._same(less, location), tries=200)
        name = f"error-{zlib.crc32(location.encode()):08x}"
        (self._folder / name).write_bytes(shortest)
        text = f"{location}\n{shortest!r}\n{''.join(traceback.format_exception(error))}"
        (self._folder / f"{name}.txt").write_text(text, encoding="utf-8", errors="backslashreplace")
        sys.stderr.write(f"{name} {location}: {str(error)[:200]!r} {shortest[:200]!r}\n")

    def _same(self, data: bytes, location: str) -> bool:
        error = attempt(self._function, data)
        return error is not None and location_of(error) == location


class PlainFinder(importlib.abc.MetaPathFinder):
    """Finds our modules as plain files: atheris does not see into the loader of an editable install."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.split(".")[0] != "rangevote":
            return None
        base = PACKAGE.joinpath(*fullname.split("."))
        if (base / "__init__.py").is_file():
            return importlib.util.spec_from_file_location(
                fullname, base / "__init__.py", submodule_search_locations=[str(base)]
            )
        file = base.with_suffix(".py")  # None below: the compiled kernels
        return importlib.util.spec_from_file_location(fullname, file) if file.is_file() else None


def led_by_coverage(name: str, options: argparse.Namespace) -> int:
    """Does not return, for libFuzzer ends the process."""
    atheris: Any = importlib.import_module("atheris")
    sys.meta_path.insert(0, PlainFinder())
    with atheris.instrument_imports(include=["rangevote", "click", "tomllib"]):
        findings = Findings(TARGETS[name].load(), options.findings)
        for path in seeds(name):  # what is imported on use is instrumented too
            findings.attempt(path.read_bytes())
    folder = options.findings / "corpus"
    folder.mkdir(exist_ok=True)
    words = options.findings / "words.dict"
    listed = {token for token in tokens(name) if len(token) <= LONGEST_WORD}
    spelled = sorted("".join(f"\\x{byte:02x}" for byte in token) for token in listed)
    words.write_text("".join(f'"{token}"\n' for token in spelled), encoding="ascii")
    arguments = [
        *(f"-max_total_time={options.seconds}", f"-timeout={SECONDS}", f"-rss_limit_mb={MEMORY}"),
        *(f"-seed={options.seed}", f"-dict={words}", f"-artifact_prefix={options.findings}/"),
        *("-print_final_stats=1", f"-error_exitcode={FOUND}", f"-timeout_exitcode={HANG}", "-max_len=4096"),
        *(str(folder), *({str(path.parent) for path in seeds(name)})),
    ]
    atheris.Setup([sys.argv[0], *arguments], findings.attempt)
    atheris.Fuzz()
    return 0


def at_random(name: str, options: argparse.Namespace) -> int:
    """The same findings without coverage: samples with a few changes. The log is written as libFuzzer's."""
    findings = Findings(TARGETS[name].load(), options.findings)
    current = b""

    def too_late(*_: object) -> None:
        (options.findings / "timeout-1").write_bytes(current)
        os._exit(HANG)

    signal.signal(signal.SIGPROF, too_late)
    samples = [path.read_bytes() for path in seeds(name)]
    inputs = Mutations(samples, tokens(name), options.seed)
    began, runs = time.monotonic(), 0
    while (passed := time.monotonic() - began) < options.seconds:
        current = samples[runs] if runs < len(samples) else inputs.next()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # CPU time: the machine may be busy
        findings.attempt(current)
        signal.setitimer(signal.ITIMER_PROF, 0)
        runs += 1
    stats = {"number_of_executed_units": runs, "average_exec_per_sec": runs / passed, "peak_rss_mb": _peak()}
    sys.stderr.write("".join(f"stat::{key}: {value:.0f}\n" for key, value in stats.items()))
    return 0


def _peak() -> int:
    """The most memory this process had, in MB; `ru_maxrss` begins with that of its parent."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) // 1024


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--findings", type=Path, required=True, help="a folder for what is found")
    parser.add_argument("--at-random", action="store_true", help="without atheris, even if it is installed")
    options = parser.parse_args()
    options.findings = options.findings.resolve()
    options.findings.mkdir(parents=True, exist_ok=True)
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", OMP_NUM_THREADS="1", RUST_BACKTRACE="0")
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    if options.at_random or importlib.util.find_spec("atheris") is None:
        return at_random(options.target, options)
    return led_by_coverage(options.target, options)


if __name__ == "__main__":
    sys.exit(main())
