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
    """The output of a command that must succeed."""
    completed = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert completed.returncode == 0, completed.stderr[-3000:]
    return str(completed.stdout)


def built(folder: Path) -> Path:
    """The wheel in `folder`, built by the first of the processes that ask for it.

    From a copy of the sources, without what lies around in the working tree.
    """
    import fcntl  # not on Windows, where no test installs the wheel

    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not list(folder.glob("*.whl")):
            shutil.copytree(ROOT, folder / "source", ignore=shutil.ignore_patterns(*LEFT_OUT))
            pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
            done([*pip, "-w", folder, folder / "source"], env=CONSTRAINED)
            shutil.rmtree(folder / "source")
        (wheel,) = folder.glob("*.whl")
    return wheel
