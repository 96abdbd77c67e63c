"""Choose how to elect, on ballots with references, and say how far the choice can be trusted.

The ballots are drawn anew, as many as there are, with replacement (the paired bootstrap). In each resample
every setting has a score: their spread is a setting's interval, and the spread of a difference tells whether
two settings differ by more than chance.

The best of many settings looks better than it is, since it was also the luckiest. So in each resample the
best is chosen anew on the ballots that were drawn, and measured on those that were not (on average 37 % of
them): its gain over the default there is what tuning would have brought on ballots it has not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rangevote import __version__
from rangevote.election.settings import Settings, write_tables
from rangevote.errors import DataError, UsageError, warn
from rangevote.evaluation.corpus import EvaluationCorpus, WordUnits
from rangevote.evaluation.metrics import METRICS, Metric, get_metric
from rangevote.evaluation.significance import SEED, Difference, Interval, difference, draws, interval
from rangevote.evaluation.tables import STARS_NOTE, Cell, Column, Table, TableRow, stars
from rangevote.hypothesis import Array, Ballot
from rangevote.parallel import map_in_order
from rangevote.similarity import get_similarity
from rangevote.similarity.base import short
from rangevote.tuning.grid import (
    BASELINES,
    DEFAULT,
    EXPONENTS,
    LIKELIHOODS,
    SIMILARITIES,
    TOKENIZE,
    GridElections,
    Setting,
    grid,
)
from rangevote.tuning.risk_coverage import RiskCurve, check_risk, risk_curve

#: Enough for intervals to a tenth of their width.
RESAMPLES = 1_000
#: A difference with a smaller p-value is more than chance.
LEVEL = 0.05


@dataclass(frozen=True)
class Tried:
    """A setting, its score with its interval, and how far the chosen one is above it."""

    setting: Setting
    score: float
    interval: Interval
    behind: Difference

    @property
    def within_noise(self) -> bool:
        """Whether the chosen setting is better by no more than chance."""
        return self.behind.p >= LEVEL


@dataclass(frozen=True)
class Unseen:
    """What the choice brings on ballots it was not made on: the mean gain, and how often it is a gain."""

    gain: float
    share: float


@dataclass(frozen=True)
class WeightingGain:
    """What weights bring: the best setting with them against the best with those that were named first."""

    weights: str
    against: str
    gain: Difference

    def __str__(self) -> str:
        low, high = self.gain.interval
        verdict = "helps beyond noise" if self.gain.value > 0 else "hurts beyond noise"
        verdict = "within noise" if self.gain.p >= LEVEL else verdict
        return (
            f"weights {self.weights}: {self.gain.value:+.2f} over {self.against}, 95 % interval "
            f"{low:+.2f} to {high:+.2f}, p = {self.gain.p:.4f}: {verdict}."
        )


@dataclass(frozen=True)
class Tuning:
    """What was tried and what was chosen.

    `tried` are all settings of the grid in its order; `default` is an election without options, and
    `baselines` are the rules without voters, where log-probabilities are known. `shared` are the
    options of all elections, `weightings` says what weights bring where several were tried, and `curve` is
    the risk of the chosen setting's winners at every threshold, where that was asked for.
    """

    chosen: Tried
    tried: tuple[Tried, ...]
    default: Tried
    baselines: tuple[Tried, ...]
    unseen: Unseen | None
    metric: str
    signature: str
    ballots: int
    resamples: int
    seed: int
    shared: dict[str, Any]
    weightings: tuple[WeightingGain, ...] = ()
    curve: RiskCurve | None = None

    @property
    def alike(self) -> list[Tried]:
        """The settings that are as good as the chosen one as far as these ballots tell, itself included."""
        return [one for one in self.tried if one.within_noise or one is self.chosen]

    @property
    def options(self) -> dict[str, Any]:
        """For `elect(ballot, **tuning.options)`."""
        options = {**self.chosen.setting.options, **{k: v for k, v in self.shared.items() if v}}
        if self.curve is not None and self.curve.chosen is not None:
            options[self.curve.option] = self.curve.chosen.threshold
        return options

    def warning(self) -> str | None:
        """Why the choice should not be trusted to be better than no tuning, or None."""
        if self.chosen.setting == self.default.setting:
            return None
        behind, default = self.default.behind, self.default.setting.name
        if behind.p >= LEVEL:
            return (
                f"the choice is within noise: {behind.value:+.2f} {self.metric} over the default "
                f"{default}, 95 % interval {behind.interval.low:+.2f} to {behind.interval.high:+.2f}; "
                f"more ballots would tell."
            )
        if self.unseen is not None and self.unseen.gain <= 0:
            return (
                f"the choice does not hold on ballots it was not made on: {self.unseen.gain:+.2f} "
                f"{self.metric} against the default {default}; more ballots, or fewer settings, would help."
            )
        return None

    def profile(self) -> str:
        """TOML for `rangevote vote --profile`."""
        behind = self.default.behind
        tuned = {
            "metric": self.metric,
            "signature": self.signature,
            "score": round(self.chosen.score, 4),
            "interval": [round(end, 4) for end in self.chosen.interval],
            "over_default": round(behind.value, 4),
            "p": round(behind.p, 6),
            "gain_unseen": None if self.unseen is None else round(self.unseen.gain, 4),
            "within_noise": self.warning() is not None,
            "ballots": self.ballots,
            "settings": len(self.tried),
            "resamples": self.resamples,
            "seed": self.seed,
            "rangevote": __version__,
        }
        comment = "Options of an election, chosen by `rangevote tune`.\nUse: rangevote vote --profile FILE"
        return write_tables({"election": self.options, "tuned": tuned}, comment)

    def as_data(self) -> dict[str, Any]:
        """All of it for JSON."""
        return {
            "chosen": _data(self.chosen),
            "default": _data(self.default),
            "baselines": [_data(one) for one in self.baselines],
            "tried": [_data(one) for one in self.tried],
            "alike": [one.setting.name for one in self.alike],
            "unseen": None if self.unseen is None else asdict(self.unseen),
            "warning": self.warning(),
            "metric": self.metric,
            "signature": self.signature,
            "ballots": self.ballots,
            "resamples": self.resamples,
            "seed": self.seed,
            "options": self.options,
            "weightings": [asdict(one) for one in self.weightings],
            "risk_curve": None if self.curve is None else self.curve.as_data(),
        }


def _data(one: Tried) -> dict[str, Any]:
    setting = asdict(one.setting) if one.setting.has_voters else {"rule": one.setting.rule}
    return {
        "name": one.setting.name,
        **setting,
        "score": one.score,
        "interval": list(one.interval),
        "behind": one.behind.value,
        "behind_interval": list(one.behind.interval),
        "p": one.behind.p,
        "within_noise": one.within_noise,
    }


def tune(
    ballots: Iterable[Ballot],
    *,
    metric: str = "bleu",
    similarities: Sequence[str] = SIMILARITIES,
    exponents: Sequence[float] = EXPONENTS,
    temperatures: Sequence[float] | None = None,
    likelihoods: Sequence[float] = LIKELIHOODS,
    tokenize: Sequence[str] = TOKENIZE,
    weights: str | Sequence[str] | None = None,
    normalize: str | None = None,
    merge: bool = False,
    units: WordUnits | None = None,
    max_risk: float | None = None,
    curve: bool = False,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    threads: int = 1,
) -> Tuning:
    """Elect every ballot under every setting of a grid, and choose the one whose winners score best.

    Ballots bring their references. `metric` is "bleu" (sacreBLEU), "bleu_1" to "bleu_4" or "chrf" of all
    winners together, or "accuracy:KEY", the share of winners whose answer, by a key of `exact`, is that of a
    reference. `similarities` without an exponent are tried with all `exponents`, and everything with
    all `temperatures` of the weights, by default 0.5, 1, 2 and 4 and for a preset its own, with all
    `likelihoods`, if all log-probabilities of candidates are known, and all word units `tokenize`. Of
    `weights` several can be tried, and the result says which help; they, `normalize` and `merge` are as in
    `elect`. `max_risk` chooses the threshold below which nobody is elected, so that at most this share of
    the answers that are given is wrong; `curve` has the risk at every threshold. Intervals come from
    `resamples` of the ballots. Of settings with equal scores the first is chosen. A choice that is within
    noise is warned about.
    """
    chosen_metric = metric_of(metric)
    schemes: list[str | None] = [weights] if weights is None or isinstance(weights, str) else list(weights)
    for scheme in schemes or [None]:
        Settings(weights=scheme, normalize=normalize, merge=merge)  # refuses what cannot be meant
    check_risk(max_risk)
    choices = grid(similarities, exponents, temperatures, tokenize, likelihoods, schemes or [None])
    if resamples < 1:
        raise UsageError(f"resamples must be 1 or more, got {resamples}.")
    settings = [*choices, replace(DEFAULT, weights=(schemes or [None])[0]), *BASELINES]
    elections = GridElections(settings, normalize, merge)
    winners = Winners([], [], [], [])
    for ballot, elected in map_in_order(lambda ballot: (ballot, elections.winners(ballot)), ballots, threads):
        winners.add(ballot, elected)
    statistics = winners.statistics(chosen_metric, units or WordUnits())
    known = [number for number in range(len(settings)) if statistics.complete(number)]
    choices = _possible(choices, [settings[number] for number in known])
    sums = statistics.of(known).sum(axis=0).reshape(len(known), -1)
    scores = chosen_metric.score(sums)  # (known settings,)
    best = int(scores[: len(choices)].argmax())
    drawn, left_out = resample(statistics, known, chosen_metric, resamples, seed)
    tried = [
        Tried(
            settings[known[i]],
            float(scores[i]),
            interval(drawn[:, i]),
            difference(drawn[:, best], drawn[:, i], float(scores[best] - scores[i])),
        )
        for i in range(len(known))
    ]
    tuning = Tuning(
        tried[best],
        tuple(tried[: len(choices)]),
        tried[len(choices)],
        tuple(tried[len(choices) + 1 :]),
        unseen(drawn, left_out, range(len(choices)), len(choices)),
        metric,
        statistics.signature,
        len(statistics.rows_of_ballots),
        resamples,
        seed,
        {"normalize": normalize, "merge": merge},
        _weighting_gains(tried[: len(choices)], drawn),
        _curve(winners, statistics, known[best], settings, chosen_metric, max_risk, resamples, seed)
        if curve or max_risk is not None
        else None,
    )
    if (warning := tuning.warning()) is not None:
        warn(warning)
    return tuning


def _weighting_gains(tried: Sequence[Tried], drawn: Array) -> tuple[WeightingGain, ...]:
    """The best setting of each weighting against the best of the first one."""
    best: dict[str | None, int] = {}
    for i, one in enumerate(tried):
        scheme = one.setting.weights
        if scheme not in best or one.score > tried[best[scheme]].score:
            best[scheme] = i
    (first, base), *others = best.items()
    return tuple(
        WeightingGain(
            str(scheme),
            str(first),
            difference(drawn[:, i], drawn[:, base], tried[i].score - tried[base].score),
        )
        for scheme, i in others
    )


def _curve(
    winners: Winners,
    statistics: WinnerStatistics,
    number: int,
    settings: Sequence[Setting],
    metric: Metric,
    max_risk: float | None,
    resamples: int,
    seed: int,
) -> RiskCurve:
    """The risk curve of one setting."""
    measure = get_similarity(settings[number].similarity, settings[number].tokenize)
    option = "min_share" if measure.answers and not settings[number].likelihood else "min_score"
    scores = [row[number] for row in winners.scores]
    rows = statistics.of([number])
    return risk_curve(scores, rows, metric, option, max_risk, resamples=resamples, seed=seed)


def _possible(choices: list[Setting], known: list[Setting]) -> list[Setting]:
    """The choices that elect somebody in every ballot: all but those that lack log-probabilities."""
    possible = [setting for setting in choices if setting in known]
    if not possible:
        raise DataError(
            "are not all known, which likelihood needs; give them, or have 0 among the likelihoods.",
            field="candidates[].logprob",
        )
    if len(possible) < len(choices):
        warn(
            f"the log-probability of some candidates is not known, so that {len(choices) - len(possible)} "
            f"settings with likelihood were left out; give it, or use likelihoods=[0] (--likelihoods 0)."
        )
    return possible


def metric_of(name: str) -> Metric:
    """A metric that settings can be chosen by: higher is better, and it is a score of sums."""
    metric = get_metric(name)
    if not isinstance(metric, Metric) or metric.best != "highest":
        good = [key for key, one in METRICS.items() if isinstance(one, Metric) and one.best == "highest"]
        good.append("accuracy:last_number")
        raise UsageError(f"settings cannot be chosen by {name!r}; choose from: {', '.join(good)}.")
    return metric


@dataclass
class Winners:
    """The winners of all settings, ballot by ballot; of each ballot the different ones are kept once."""

    texts: list[str]
    references: list[Sequence[str]]
    rows: list[list[int]]  # (ballots, settings): index into `texts`, negative for nobody
    scores: list[list[float]]  # (ballots, settings)

    def add(self, ballot: Ballot, elected: Sequence[tuple[int, float]]) -> None:
        if not ballot.references:
            raise DataError("there are none, and settings are chosen by them.", field="references")
        known: dict[str, int] = {}
        row = []
        self.scores.append([score for _, score in elected])
        for index, _ in elected:
            if index < 0:
                row.append(index)
                continue
            text = ballot.candidates[index].text
            if text is None:
                raise DataError(
                    "is not known, while references are texts; decode the tokens first.",
                    field=f"candidates[{index}].text",
                )
            if text not in known:
                known[text] = len(self.texts)
                self.texts.append(text)
                self.references.append(ballot.references)
            row.append(known[text])
        self.rows.append(row)

    def statistics(self, metric: Metric, units: WordUnits) -> WinnerStatistics:
        """The sentence statistics of every setting; every different winner is measured once."""
        if not self.rows:
            raise DataError("there are no ballots, so there is nothing to tune on.")
        counts = metric.statistics(EvaluationCorpus.of(len(self.texts), self.references), units)
        return WinnerStatistics(counts.rows(self.texts), np.array(self.rows), counts.signature)


@dataclass(frozen=True)
class WinnerStatistics:
    """`rows` (different winners, statistics); `rows_of_ballots` (ballots, settings) are indices into them."""

    rows: Array
    rows_of_ballots: NDArray[np.int64]
    signature: str

    def complete(self, setting: int) -> bool:
        """Whether the setting has a winner in every ballot."""
        return bool((self.rows_of_ballots[:, setting] >= 0).all())

    def of(self, settings: Sequence[int]) -> Array:
        """The statistics of some settings side by side, (ballots, settings x statistics)."""
        selected: Array = self.rows[self.rows_of_ballots[:, settings]]
        return selected.reshape(len(self.rows_of_ballots), -1)


def resample(
    statistics: WinnerStatistics, settings: Sequence[int], metric: Metric, resamples: int, seed: int
) -> tuple[Array, Array]:
    """Scores of the settings (resamples, settings) on the ballots drawn, and on those left out.

    Where a resample leaves nothing out the score is nan.
    """
    rows = statistics.of(settings)  # (ballots, settings x statistics)

    def scores(counts: Array) -> Array:
        sums = counts @ rows
        return metric.score(sums.reshape(len(counts), len(settings), rows.shape[1] // len(settings)))

    drawn, left_out = [], []
    for counts in draws(len(rows), resamples, seed):
        drawn.append(scores(counts))
        left = counts == 0
        some = left.any(axis=1)  # of a handful of ballots a resample may leave out none
        left_scores = np.full_like(drawn[-1], np.nan)
        left_scores[some] = scores(left[some].astype(np.float64))
        left_out.append(left_scores)
    return np.concatenate(drawn), np.concatenate(left_out)


def unseen(drawn: Array, left_out: Array, choices: Sequence[int], default: int) -> Unseen | None:
    """Choose the best of `choices` in each resample, and compare it with the default on what was left out.

    None where no resample leaves out enough to tell (a handful of ballots).
    """
    best = np.asarray(choices)[drawn[:, choices].argmax(axis=1)]  # (resamples,)
    every = np.arange(len(best))
    gains = left_out[every, best] - left_out[every, default]
    gains = gains[np.isfinite(gains)]
    if not len(gains):
        return None
    return Unseen(float(gains.mean()), float((gains > 0).mean()))


CHOSEN, ALIKE = "<", "~"


def surface_table(tuning: Tuning) -> Table:
    """A row for each measure, likelihood and word unit, a column for each temperature."""
    temperatures = sorted({one.setting.temperature for one in tuning.tried})
    several = len({one.setting.tokenize for one in tuning.tried}) > 1
    rows: dict[Setting, dict[float, Tried]] = {}
    for one in tuning.tried:
        rows.setdefault(replace(one.setting, temperature=1.0), {})[one.setting.temperature] = one
    return Table(
        [Column(f"T = {short(temperature)}") for temperature in temperatures],
        [
            TableRow(
                f"{setting.name}, words" if several and setting.tokenize == "words" else setting.name,
                [_surface_cell(tuning, by_temperature.get(temperature)) for temperature in temperatures],
                group=f"{setting.tokenize} {setting.similarity.partition('@')[0]}",
            )
            for setting, by_temperature in rows.items()
        ],
        "measure",
        f"{get_metric(tuning.metric).label} of {len(tuning.tried)} settings on {tuning.ballots:,} ballots",
        [
            f"{CHOSEN} chosen, {ALIKE} as good as far as these ballots tell ({len(tuning.alike) - 1} "
            f"settings); in brackets 95 % intervals of a paired bootstrap, {tuning.resamples:,} resamples.",
            f"signature: {tuning.signature}",
        ],
    )


def _surface_cell(tuning: Tuning, one: Tried | None) -> Cell:
    if one is None:
        return Cell()
    mark = CHOSEN if one is tuning.chosen else ALIKE if one.within_noise else ""
    return Cell(f"{one.score:.2f} [{one.interval.low:.1f}, {one.interval.high:.1f}]", mark)


def choice_table(tuning: Tuning) -> Table:
    """The choice, and how far it is above the default and the rules without voters."""
    columns = [Column(get_metric(tuning.metric).label), *map(Column, ("95 % interval", "gain", "of gain"))]
    columns.append(Column("p", decimals=4))
    rows = [TableRow(f"chosen: {tuning.chosen.setting.name}", [*_score_cells(tuning.chosen), *[Cell()] * 3])]
    names = [f"default: {tuning.default.setting.name}", *(one.setting.name for one in tuning.baselines)]
    for name, one in zip(names, (tuning.default, *tuning.baselines), strict=True):
        behind = one.behind
        between = f"[{behind.interval.low:+.2f}, {behind.interval.high:+.2f}]"
        gain = [Cell(f"{behind.value:+.2f}", stars(behind.p)), Cell(between), Cell(behind.p)]
        rows.append(TableRow(name, [*_score_cells(one), *gain], group="against"))
    notes = [f"gain: of the choice over this row, on the ballots it was made on; {STARS_NOTE}."]
    if tuning.unseen is not None:
        notes.append(
            f"On ballots left out of the choice it gains {tuning.unseen.gain:+.2f} over the default, on "
            f"average over the resamples; it is a gain in {100 * tuning.unseen.share:.0f} % of them."
        )
    notes += map(str, tuning.weightings)
    return Table(columns, rows, "election", notes=notes)


def _score_cells(one: Tried) -> list[Cell]:
    return [Cell(one.score), Cell(f"[{one.interval.low:.2f}, {one.interval.high:.2f}]")]
