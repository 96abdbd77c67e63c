"""Step "tune": settings of an election, chosen on the lists of the development set alone."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.searching import read_ballots
from rangevote.election.settings import read_toml
from rangevote.errors import RangevoteWarning
from rangevote.evaluation.texts import WordUnits
from rangevote.models.arpa import replacing
from rangevote.tuning.tune import tune


def tune_ballots(output: Path, *, metric: str, words: str, grid: Mapping[str, Any], ballots: Path) -> None:
    """Write the profile that is best on these ballots; `grid` are options of `rangevote.tune`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangevoteWarning)  # the profile says whether the choice is noise
        found = tune(read_ballots(ballots), metric=metric, units=WordUnits(tokenize=words), **grid)
    with replacing(output) as file:
        file.write(found.profile().encode())


def told(profile: Path) -> dict[str, Any]:
    """What a profile says of its choice: the options, and how they were found."""
    found = read_toml(profile)
    return {"options": found["election"], **found["tuned"]}
