"""One target in this process for so many seconds: led by coverage where atheris is there, else by chance.

.venv/bin/python fuzz/one.py ballots --seconds 20 --findings FOLDER

Findings that are errors are shortened, written into the folder and gone on from, one of each kind; an input
that takes too long or too much memory ends the process, and libFuzzer writes it.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # the repository, not this folder
PACKAGE = ROOT / "src"

from fuzz.findings import Findings  # noqa: E402
from fuzz.mutate import Mutations  # noqa: E402
from fuzz.targets import MEMORY, SECONDS, TARGETS, seeds, tokens  # noqa: E402

#: Exit codes: findings that were gone on from, and a hang where there is no libFuzzer.
FOUND, HANG = 1, 70
#: Bytes of addresses: an input that wants them all fails by itself, and the machine goes on.
ROOM = 8 * 2**30
#: Bytes of a word in a dictionary of libFuzzer.
LONGEST = 64


class Plain(importlib.abc.MetaPathFinder):
    """Finds our modules as plain files: atheris does not see into the loader of an editable install."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The file of a module of the package; None for all others, also for the compiled kernels."""
        place = PACKAGE.joinpath(*fullname.split("."))
        if fullname.split(".")[0] != "rangevote":
            return None
        if (place / "__init__.py").is_file():
            return importlib.util.spec_from_file_location(
                fullname, place / "__init__.py", submodule_search_locations=[str(place)]
            )
        file = place.with_suffix(".py")
        return importlib.util.spec_from_file_location(fullname, file) if file.is_file() else None


def led(name: str, options: argparse.Namespace) -> int:
    """By atheris; does not come back, for libFuzzer ends the process."""
    atheris: Any = importlib.import_module("atheris")
    sys.meta_path.insert(0, Plain())
    with atheris.instrument_imports(include=["rangevote", "click", "tomllib"]):
        function = TARGETS[name].load()
        found = Findings(function, options.findings)
        for path in seeds(name):  # what is imported on use is instrumented too
            found.attempt(path.read_bytes())
    folder = options.findings / "corpus"
    folder.mkdir(exist_ok=True)
    words = options.findings / "words.dict"
    spelled = {"".join(f"\\x{byte:02x}" for byte in token) for token in tokens(name) if len(token) <= LONGEST}
    words.write_text("".join(f'"{token}"\n' for token in sorted(spelled)), encoding="ascii")
    arguments = [
        *(f"-max_total_time={options.seconds}", f"-timeout={SECONDS}", f"-rss_limit_mb={MEMORY}"),
        *(f"-seed={options.seed}", f"-dict={words}", f"-artifact_prefix={options.findings}/"),
        *("-print_final_stats=1", f"-error_exitcode={FOUND}", "-timeout_exitcode=70", "-max_len=4096"),
        *(str(folder), *({str(path.parent) for path in seeds(name)})),
    ]
    atheris.Setup([sys.argv[0], *arguments], found.attempt)
    atheris.Fuzz()
    return 0


def by_chance(name: str, options: argparse.Namespace) -> int:
    """The same findings without coverage: samples, changed in a few places."""
    import signal

    found = Findings(TARGETS[name].load(), options.findings)
    current = b""

    def late(*_: object) -> None:
        (options.findings / "timeout-1").write_bytes(current)
        os._exit(HANG)

    signal.signal(signal.SIGALRM, late)
    listed = [path.read_bytes() for path in seeds(name)]
    inputs = Mutations(listed, tokens(name), options.seed)
    began, runs = time.monotonic(), 0
    while (passed := time.monotonic() - began) < options.seconds:
        current = listed[runs] if runs < len(listed) else inputs.next()
        signal.alarm(SECONDS)
        found.attempt(current)
        signal.alarm(0)
        runs += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    sys.stderr.write(
        f"stat::number_of_executed_units: {runs}\nstat::average_exec_per_sec: {runs / passed:.0f}\n"
    )
    sys.stderr.write(f"stat::peak_rss_mb: {peak}\n")
    return 0


def main() -> int:
    """Parse, and fuzz."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--findings", type=Path, required=True, help="a folder for what is found")
    parser.add_argument("--by-chance", action="store_true", help="without atheris, even if it is there")
    options = parser.parse_args()
    options.findings = options.findings.resolve()
    options.findings.mkdir(parents=True, exist_ok=True)
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", OMP_NUM_THREADS="1", RUST_BACKTRACE="0")
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    chance = options.by_chance or importlib.util.find_spec("atheris") is None
    return by_chance(options.target, options) if chance else led(options.target, options)


if __name__ == "__main__":
    sys.exit(main())
