"""What an experiment is to do, read from its TOML file; an unknown name in it is an error.

In the templates of searches `{k}` stands for the number of hypotheses and `{seed}` for the run's seed;
`{groups}` is 2, or 1 where k is 1, since one hypothesis makes no two groups.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from rangevote.election.settings import read_toml
from rangevote.errors import SetupError, UsageError, choose

EXPERIMENTS = ("captions", "translation")
Section = TypeVar("Section")


@dataclass(frozen=True)
class Data:
    """The data set: its `folder`, and the files of each split.

    Captions: a JSON file `captions` and `features`, an .npz file for each {split}. Translation: `files`, one
    for each {split} and {language}; `languages` are source and target. `rows` are the first row of a split
    and the one behind its last, where not all are taken.
    """

    folder: str
    splits: Mapping[str, str]
    captions: str = ""
    features: str = ""
    files: str = ""
    languages: tuple[str, ...] = ()
    rows: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """`metrics` by name, in units of `words`; `metric` is the one that decides which method is best."""

    metric: str
    metrics: tuple[str, ...]
    words: str = "space"
    resamples: int = 10_000


@dataclass(frozen=True)
class Search:
    """`max_rows` go through the model at a time; about `part_rows` hypotheses are written at a time, so that
    an interrupted search loses no more than that. `largest`: searches that stop at this k."""

    max_new_tokens: int = 64
    max_rows: int = 1000
    part_rows: int = 20_000
    largest: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Vote:
    """`measures` on n-grams of `words`; `other_measures` once more on `other_words`.

    The searches in `not_empty` are reported also without their empty hypotheses, those in `reranked` also
    with the best by log P / length of the same list.
    """

    measures: tuple[str, ...]
    words: str = "space"
    other_words: str = ""
    other_measures: tuple[str, ...] = ()
    not_empty: tuple[str, ...] = ("beam",)
    reranked: tuple[str, ...] = ("beam",)


@dataclass(frozen=True)
class System:
    """A model to train, the `searches` to run on it, and on which of their lists is voted (`vote_on`).

    A model with a `folder` (of the data sets) is published and not trained; with a `quantization`, as "int8",
    CTranslate2 searches it, else rangevote. `items`: only the first so many are searched (0: all). Empty
    `seeds` and `ks` are those of the experiment. Names of methods that vote on the first list of `vote_on`
    are the measures' own; others say "on beam".
    """

    label: str
    searches: tuple[str, ...]
    vote_on: tuple[str, ...]
    training: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""
    quantization: str = ""
    items: int = 0
    seeds: tuple[int, ...] = ()
    ks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Voters:
    """Figure 3: `searches` for voters, `numbers` of them, for the candidates that `candidates` found at `k`.

    On the first `items` alone (0: all): voters by the thousand take their time. Of `sampled` searches the
    smaller numbers are drawn from the largest list. Lists that the experiment has anyway are not searched
    again.
    """

    system: str
    items: int
    candidates: str
    k: int
    numbers: tuple[int, ...]
    searches: Mapping[str, str]
    measures: tuple[str, ...]
    sampled: tuple[str, ...] = ("sample",)
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Sampled:
    """Elections of the usual lists, at `ks`, by sampled voters.

    `lists` are the searches for voters; `voters` names kinds of electorates, each some of these lists.
    `measures` are tried with all `likelihoods`; which setting is best in the mean over `dev_ks` (none: `ks`)
    is decided on the development set, among those with the kinds of voters `dev_voters` (none: all); without
    such a set nothing is chosen. `preset` names the kind that the preset "consensus" is tried with. With a
    `panel` (a kind of voters) those of all seeds vote together, each seed with an equal share, by
    `panel_measures` (none: all).
    """

    system: str
    ks: tuple[int, ...]
    lists: Mapping[str, str]
    voters: Mapping[str, Sequence[str]]
    measures: tuple[str, ...]
    likelihoods: tuple[float, ...]
    preset: str
    panel: str = ""
    panel_measures: tuple[str, ...] = ()
    dev_ks: tuple[int, ...] = ()
    dev_voters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tune:
    """Settings are chosen on lists of the development set, for each of `ks`, and used at the same k.

    `grid` are options of `rangevote.tune`: what is tried.
    """

    system: str
    ks: tuple[int, ...]
    metric: str
    grid: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection:
    """Section 4.2.1: what became of the winners of `small` beams in the `large` one."""

    methods: tuple[str, ...]
    small: tuple[int, ...]
    large: int


@dataclass(frozen=True)
class Settings:
    """One experiment at one scale. `main` is the system of the main tables; `threads` those of each step."""

    experiment: str
    title: str
    seeds: tuple[int, ...]
    ks: tuple[int, ...]
    main: str
    data: Data
    report: Report
    search: Search
    searches: Mapping[str, str]
    vote: Vote
    systems: Mapping[str, System]
    voters: Voters | None = None
    sampled: Sampled | None = None
    tune: Tune | None = None
    selection: Selection | None = None
    threads: int = 1
    device: str = "cpu"
    scale: str = field(default="", kw_only=True)

    @property
    def name(self) -> str:
        """As files are called: "captions-local"."""
        return f"{self.experiment}-{self.scale}"

    def as_data(self) -> dict[str, Any]:
        """What JSON can hold."""
        return asdict(self)

    def wants(self, part: System | Voters, seed: int) -> bool:
        """Whether a part of the experiment is wanted for a seed: see `Plan`."""
        return not part.seeds or seed in part.seeds or seed not in self.seeds


def read_settings(path: Path) -> Settings:
    """The settings in `<experiment>-<scale>.toml`."""
    table = read_toml(path)
    try:
        return _settings(table, scale=path.stem.partition("-")[2])
    except (UsageError, TypeError, KeyError) as error:
        raise UsageError(f"{path.name}: {error}") from error


def _settings(table: dict[str, Any], scale: str) -> Settings:
    parts = {"data": Data, "report": Report, "search": Search, "vote": Vote}
    parts |= {"voters": Voters, "sampled": Sampled, "tune": Tune, "selection": Selection}
    read = {name: _section(parts[name], value) if name in parts else value for name, value in table.items()}
    read["systems"] = {name: _section(System, value) for name, value in table["systems"].items()}
    found = _section(Settings, read | {"scale": scale})
    choose("experiment", found.experiment, dict.fromkeys(EXPERIMENTS))
    choose("system", found.main, found.systems)
    for part in (found.voters, found.sampled, found.tune):
        if part is not None:
            choose("system", part.system, found.systems)
    for system in found.systems.values():
        for search in (*system.searches, *system.vote_on):
            choose("search", search, found.searches)
    return found


def _section(kind: type[Section], table: Mapping[str, Any]) -> Section:
    """A section as its dataclass; lists become tuples, which cannot be changed."""
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    for name in table:
        choose(f"setting of {kind.__name__.lower()}", name, dict.fromkeys(known))
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in table.items()})


def spec(template: str, k: int, seed: int, max_new_tokens: int) -> str:
    """A search as `rangevote.search` reads it.

    >>> spec("diverse_beam:{k},groups={groups}", 1, 7, 64)
    'diverse_beam:1,groups=1,max_new_tokens=64'
    """
    found = template.format(k=k, seed=seed, groups=min(k, 2))
    return f"{found},max_new_tokens={max_new_tokens}"


def independent_of_k(template: str) -> bool:
    """Whether a search does not depend on k: one sample is one sample."""
    return "{k}" not in template


HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
#: The environment variable that names the folder of data sets.
VARIABLE = "RANGEVOTE_DATA"


@dataclass(frozen=True)
class Folders:
    """`data`: the folder of data sets; `work`: what steps leave behind; `results`: the recorded numbers."""

    data: Path
    work: Path
    results: Path

    @classmethod
    def usual(cls, data: str | None = None) -> Folders:
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
