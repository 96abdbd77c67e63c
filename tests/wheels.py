"""The wheel that the tests install, built once for all of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEFT_OUT = (
    *(".git", ".venv*", "build", "*.so", "__pycache__", ".*_cache", ".experiments", ".benchmarks", "tests"),
)
CONSTRAINED = {**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints.txt")}


def done(command: list[object], **options: object) -> str:
    """Run to the end; what it told where it failed."""
    found = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert found.returncode == 0, found.stderr[-3000:]
    return str(found.stdout)


def built(place: Path) -> Path:
    """The wheel in `place`, built by the first of the processes that ask for it.

    From a copy of the sources, without what lies around in the working tree.
    """
    import fcntl  # not on Windows, where no test installs the wheel

    place.mkdir(exist_ok=True)
    with (place / "lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not list(place.glob("*.whl")):
            shutil.copytree(ROOT, place / "source", ignore=shutil.ignore_patterns(*LEFT_OUT))
            pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
            done([*pip, "-w", place, place / "source"], env=CONSTRAINED)
            shutil.rmtree(place / "source")
        (found,) = place.glob("*.whl")
    return found
