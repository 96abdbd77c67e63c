"""Step "tune": settings of an election, chosen on the lists of the development set alone.

The command `rangevote tune` does it and writes a profile. Where this rangevote has no such command there is
no profile, and the tables have no row for it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from experiments.settings import read_toml
from rangevote.cli import COMMANDS
from rangevote.errors import SetupError, UsageError

#: What a profile may set, as `rangevote.elect` has it.
OPTIONS = ("similarity", "weights", "temperature", "tokenize", "normalize", "preset")


def can_tune() -> bool:
    """Whether the command is there."""
    return "tune" in COMMANDS


def tune_ballots(output: Path, *, metric: str, ballots: Path) -> None:
    """Write the profile that is best on these ballots."""
    command = [sys.executable, "-m", "rangevote", "tune", str(ballots), "--metric", metric, "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        raise SetupError(f"rangevote tune failed ({done.returncode}): {done.stderr.strip()[-500:]}")


def read_profile(path: Path) -> dict[str, Any]:
    """The options of an election in a profile; tables around or beside them do not matter."""
    table = read_toml(path)
    for found in (table, *(value for value in table.values() if isinstance(value, dict))):
        chosen = {name: found[name] for name in OPTIONS if name in found}
        if "similarity" in chosen or "preset" in chosen:
            return chosen
    raise UsageError(f"{path.name} is no profile: it names no similarity.")
