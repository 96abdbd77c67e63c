"""Where data are found and results are kept; nothing here depends on the machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rangevote.errors import SetupError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
#: The environment variable that names the folder of data sets.
VARIABLE = "RANGEVOTE_DATA"


@dataclass(frozen=True)
class Places:
    """`data`: the folder of data sets; `work`: what steps leave behind; `results`: the recorded numbers."""

    data: Path
    work: Path
    results: Path

    @classmethod
    def usual(cls, data: str | None = None) -> Places:
        """The repository's own; `data` or the environment variable name another folder of data sets."""
        named = data or os.environ.get(VARIABLE) or ROOT.parent / "shared" / "data"
        return cls(Path(named), ROOT / ".experiments", HERE / "results")

    def given(self, folder: str, name: str) -> Path:
        """A file of a data set that must be there."""
        path = self.data / folder / name
        if not path.is_file():
            raise SetupError(
                f"no file {folder}/{name} in the folder of data sets; set {VARIABLE} to the folder that has "
                f"it (experiments/README.md tells what it must hold)."
            )
        return path
