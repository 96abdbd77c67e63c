"""What the pages take to install: packages and megabytes, in virtual environments made for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from common import ROOT, SCRATCH, command_line, say

FOLDER = SCRATCH / "pages"
FRESH = FOLDER / "venv"
POTATO = ROOT / ".venv-potato"
LOG = FOLDER / "install.log"


def measure() -> dict[str, Any]:
    """Sizes of an empty environment, with rangevote's core, with its `web` extra; and of Potato's."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    LOG.unlink(missing_ok=True)
    for old in (FRESH, FOLDER / "wheel"):
        shutil.rmtree(old, ignore_errors=True)
    found: dict[str, Any] = {}
    try:
        _run(sys.executable, "-m", "venv", FRESH)
        found["empty"] = look(FRESH)
        wheel = _wheel()
        for name, extra in (("core", ""), ("web", "[web]")):
            say(f"  {name}")
            _run(FRESH / "bin" / "python", "-m", "pip", "install", f"{wheel}{extra}")
            found[name] = look(FRESH)
    except RuntimeError as error:
        found["error"] = str(error)
    if (POTATO / "bin" / "potato").exists():
        found["potato"] = look(POTATO)
    return found


def _wheel() -> Path:
    """rangevote as users get it, built apart from the tree's own build."""
    build = FOLDER / "build"
    _run(
        *(sys.executable, "-m", "pip", "wheel", "--no-deps", "-C", f"build-dir={build}"),
        *("-w", FOLDER / "wheel", ROOT),
    )
    return next((FOLDER / "wheel").glob("rangevote-*.whl"))


def _run(*command: str | Path) -> None:
    """A command that must succeed; what it says stays in a file, since it may name hosts."""
    environment = os.environ | {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    with LOG.open("a") as log:
        done = subprocess.run(command, stdout=log, stderr=log, env=environment, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"could not be installed; {LOG.relative_to(ROOT)} says why")


def look(venv: Path) -> dict[str, Any]:
    """Kilobytes on the disk and versions of what is installed, pip and setuptools among them."""
    version = f"python{sysconfig.get_python_version()}"
    site = venv / "lib" / version / "site-packages"
    listed = subprocess.check_output([venv / "bin" / "python", "-m", "pip", "list", "--format=json"])
    versions = {one["name"].lower(): one["version"] for one in json.loads(listed)}
    numpy = sum(_kilobytes(path) for path in (site / "numpy", site / "numpy.libs"))
    return {"kilobytes": _kilobytes(site), "numpy": numpy, "versions": versions}


def _kilobytes(folder: Path) -> int:
    if not folder.exists():
        return 0
    return int(subprocess.check_output(["du", "-sk", folder], text=True).split()[0])


def rangevote() -> list[str | Path]:
    """The command as it was just installed; without that, the one of this environment."""
    script = FRESH / "bin" / "rangevote"
    return [script] if script.exists() else command_line()
