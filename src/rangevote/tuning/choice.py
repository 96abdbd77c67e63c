"""What tuning tried and chose: numbers with their intervals, the profile, and tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from rangevote import __version__
from rangevote.election.agreement import Agreement
from rangevote.election.settings import write_tables
from rangevote.election.weights import AGREEMENT
from rangevote.evaluation.metrics import get_metric
from rangevote.evaluation.risk_coverage import RiskCurve
from rangevote.evaluation.significance import Interval
from rangevote.evaluation.tables import STARS_NOTE, Cell, Column, Table, TableRow, Value, between, stars
from rangevote.similarity.base import number_text
from rangevote.similarity.ngram import DEFAULT_UNIT
from rangevote.tuning.grid import Setting

COMMENT = "Options of an election, chosen by `rangevote tune`.\nUse: rangevote vote --profile FILE"
#: A gain with a smaller p-value is more than chance.
LEVEL = 0.05


@dataclass(frozen=True)
class Tried:
    """A setting, its score, and its gain over the default, with 95 % intervals.

    `p` is the probability that the best of all settings gains as much if none is better than the default.
    """

    name: str
    setting: Setting
    score: float
    interval: Interval
    gain: float
    gain_interval: Interval
    p: float


@dataclass(frozen=True)
class Unseen:
    """What choosing brings on ballots left out of the choice: the mean gain, and how often it is a gain."""

    gain: float
    share: float


@dataclass(frozen=True)
class OptionGain:
    """The best setting with one value of an option, compared with the best setting with the first: `weights`,
    or `scores`, where the first is none.

    `p` allows for the choice among the settings with this value.
    """

    option: str
    value: str
    against: str
    gain: float
    interval: Interval
    p: float

    def __str__(self) -> str:
        verdict = "helps beyond chance" if self.p < LEVEL else "no gain beyond chance"
        return (
            f"{self.option} {self.value}: {self.gain:+.2f} over {self.against}, 95 % interval "
            f"{self.interval.low:+.2f} to {self.interval.high:+.2f}, p = {self.p:.4f}: {verdict}."
        )


@dataclass(frozen=True)
class BestMember:
    """The member of a panel whose own outputs score best, compared with the chosen setting.

    A member's own output is the winner among its candidates. `p` allows for the choice among the members.
    """

    name: str
    score: float
    gain: float
    interval: Interval
    p: float

    @property
    def above(self) -> bool:
        """Whether the panel is below its best member."""
        return self.gain > 0

    def __str__(self) -> str:
        gain, ends = abs(self.gain), f"{self.interval.low:+.2f} to {self.interval.high:+.2f}"
        if not self.above:
            return f"The panel is {gain:.2f} above its best member, {self.name} ({self.score:.2f})."
        sure = "beyond chance" if self.p < LEVEL else "within chance"
        return (
            f"The panel is {gain:.2f} below its best member, {self.name} ({self.score:.2f}; 95 % interval of "
            f"the gain {ends}, p = {self.p:.2g} as the best of several: {sure}). Use {self.name} alone, or "
            f"leave out the members that do worst."
        )


@dataclass(frozen=True)
class Tuning:
    """What was tried and what was chosen.

    `tried` are all settings of the grid in its order, `best` is the one with the highest score. `default`
    is an election without options (for answers: the first similarity), `baselines` are the rules without
    voters, if log-probabilities are known. `chosen` is the best setting that beats the default beyond
    chance, otherwise the default. `shared` are options of all elections, `gains` compares weights if
    several were tried and scores with none, and `curve` has the risk of the chosen setting at every
    threshold, if `max_risk` was given. For a panel, `members` has the scores of each member's own outputs,
    `best_member` compares the best of them with the choice, and `found` says how shares by agreement were
    found.
    """

    chosen: Tried
    best: Tried
    default: Tried
    tried: tuple[Tried, ...]
    baselines: tuple[Tried, ...]
    unseen: Unseen | None
    metric: str
    signature: str
    ballots: int
    resamples: int
    seed: int
    shared: dict[str, Any]
    gains: tuple[OptionGain, ...] = ()
    curve: RiskCurve | None = None
    members: tuple[Tried, ...] = ()
    best_member: BestMember | None = None
    found: dict[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        """For `elect(ballot, **tuning.options)`."""
        options = {**self.chosen.setting.options, **{k: v for k, v in self.shared.items() if v}}
        if self.curve is not None and self.curve.chosen is not None:
            options[self.curve.option] = self.curve.chosen.threshold
        return options

    @property
    def kept_default(self) -> bool:
        """Whether the default is chosen although another setting scores at least as high on these ballots."""
        other = self.best.setting != self.default.setting and self.best.gain >= 0
        return self.chosen is self.default and other

    def warnings(self) -> list[str]:
        """Why tuning did not bring what was asked for."""
        warnings = []
        if self.chosen is self.default and self.best.gain < 0:
            warnings.append(
                f"no setting scores as high as the default {self.default.name}, so the default is chosen. "
                f"The best of {len(self.tried)}, {self.best.name}, is {-self.best.gain:.2f} {self.metric} "
                f"below it. Try other settings."
            )
        elif self.kept_default:
            unseen = "" if self.unseen is None else f" and {self.unseen.gain:+.2f} on ballots left out"
            warnings.append(
                f"no setting beats the default {self.default.name} beyond chance, so the default is chosen. "
                f"The best of {len(self.tried)}, {self.best.name}, gains {self.best.gain:+.2f} "
                f"{self.metric} on these ballots (p = {self.best.p:.2g}){unseen}. Use more ballots, or try "
                f"fewer settings."
            )
        if self.curve is not None and self.curve.max_risk is not None and self.curve.chosen is None:
            warnings.append(f"no threshold is chosen, so every ballot is answered: {self.curve.note()}")
        if self.best_member is not None and self.best_member.above:
            warnings.append(str(self.best_member))
        return warnings

    def profile(self) -> str:
        """TOML for `rangevote vote --profile`."""
        tuned = {
            "metric": self.metric,
            "signature": self.signature,
            "score": round(self.chosen.score, 4),
            "interval": [round(end, 4) for end in self.chosen.interval],
            "over_default": round(self.chosen.gain, 4),
            "best": self.best.name,
            "p": round(self.best.p, 6),
            "gain_unseen": None if self.unseen is None else round(self.unseen.gain, 4),
            "within_noise": self.kept_default,
            "max_risk": None if self.curve is None else self.curve.max_risk,
            "best_member": self.best_member and self.best_member.name,
            "best_member_gain": self.best_member and round(self.best_member.gain, 4),
            "below_best_member": self.best_member and self.best_member.above,
            **self.found,
            "ballots": self.ballots,
            "settings": len(self.tried),
            "resamples": self.resamples,
            "seed": self.seed,
            "rangevote": __version__,
        }
        advice = f"\n{self.best_member}" if self.best_member is not None and self.best_member.above else ""
        return write_tables({"election": self.options, "tuned": tuned}, f"{COMMENT}{advice}")

    def as_data(self) -> dict[str, Any]:
        """All of it for JSON."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return {**data, "options": self.options, "warnings": self.warnings()}


def agreement_facts(agreement: Agreement) -> dict[str, Any]:
    """How shares by agreement were found, for a profile."""
    return {
        "shares": AGREEMENT,
        "agreement": {name: round(p, 4) for name, p in agreement.agreement.items() if not math.isnan(p)},
        "twins": [list(group) for group in agreement.twins],
        "rounds": agreement.rounds,
        "converged": agreement.converged,
    }


def agreement_profile(agreement: Agreement, options: Mapping[str, Any]) -> str:
    """TOML for `rangevote vote --profile` with shares that were found without references."""
    tuned = {**agreement_facts(agreement), "ballots": agreement.ballots, "rangevote": __version__}
    return write_tables({"election": {**options, "shares": agreement.shares}, "tuned": tuned}, COMMENT)


BEST, PROVEN = "<", "+"


def surface_table(tuning: Tuning) -> Table:
    """A row for each measure, likelihood and word unit, a column for each temperature."""
    temperatures = sorted({tried.setting.temperature for tried in tuning.tried})
    several = len({tried.setting.tokenize for tried in tuning.tried}) > 1
    by_row: dict[Setting, dict[float, Cell]] = {}
    for tried in tuning.tried:
        mark = (BEST if tried is tuning.best else "") + (PROVEN if tried.p < LEVEL else "")
        cell = Cell(f"{tried.score:.2f} {between(tried.interval, 1)}", mark)
        by_row.setdefault(replace(tried.setting, temperature=1.0), {})[tried.setting.temperature] = cell
    rows = [
        TableRow(
            setting.name + (f", {DEFAULT_UNIT}" if several and setting.tokenize == DEFAULT_UNIT else ""),
            [cells.get(temperature) for temperature in temperatures],
            group=f"{setting.tokenize} {setting.similarity.partition('@')[0]}",
        )
        for setting, cells in by_row.items()
    ]
    proven = sum(tried.p < LEVEL for tried in tuning.tried)
    notes = [
        f"{BEST} highest score, {PROVEN} better than the default beyond chance ({proven} settings); in "
        f"brackets 95 % intervals of a bootstrap, {tuning.resamples:,} resamples.",
        f"signature: {tuning.signature}",
    ]
    title = f"{get_metric(tuning.metric).label} of {len(tuning.tried)} settings on {tuning.ballots:,} ballots"
    columns = [Column(f"T = {number_text(temperature)}") for temperature in temperatures]
    return Table(columns, rows, "similarity", title, notes)


def choice_table(tuning: Tuning) -> Table:
    """The best setting and the rules without voters, compared with the default."""
    columns = [get_metric(tuning.metric).label, "95 % interval", "gain", "95 % interval", "p"]
    rows = []
    compared = (tuning.best, tuning.default, *tuning.baselines, *tuning.members)
    names = ("best: ", "default: ", *[""] * (len(compared) - 2))
    for name, tried in zip(names, compared, strict=True):
        cells: list[Value | Cell] = [tried.score, between(tried.interval, 2), *[None] * 3]
        if tried is not tuning.default:
            low, high = tried.gain_interval
            p = Cell(f"{tried.p:.4f}", stars(tried.p))
            cells[2:] = [f"{tried.gain:+.2f}", f"[{low:+.2f}, {high:+.2f}]", p]
        rows.append(TableRow(name + tried.name, cells, group="best" if tried is tuning.best else "others"))
    notes = [
        f"gain: over the default, on these ballots; p: that the best of {len(tuning.tried)} settings gains "
        f"as much by chance; {STARS_NOTE}."
    ]
    if tuning.unseen is not None:
        notes.append(
            f"Choosing the best setting gains {tuning.unseen.gain:+.2f} on ballots left out of the choice, "
            f"on average over the resamples; it is a gain in {100 * tuning.unseen.share:.0f} % of them."
        )
    notes += [f"chosen: {tuning.chosen.name}", *map(str, tuning.gains)]
    if tuning.best_member is not None:
        notes.append(f"NAME alone: the winners among the outputs of that member. {tuning.best_member}")
    return Table(list(map(Column, columns)), rows, "election", notes=notes)
