"""Choose how to elect, on ballots with references, and say how far the choice can be trusted.

Every setting of a grid elects every ballot. The ballots are drawn anew, with replacement (the paired
bootstrap): the spread of a setting's scores is its interval.

The best of many settings looks better than it is, since it was also the luckiest. Two numbers allow for that:

* `p`: the probability that the *best* of all settings gains as much by chance. The winners of a setting and
  of the default are swapped on random ballots, or all winners of a ballot change places: if no setting is
  better than the default, this changes nothing but chance (`evaluation.significance.best_of_many`).
* `unseen`: in each resample the best setting is chosen on the ballots that were drawn, and its gain over the
  default is measured on those that were not (on average 37 % of them).

A setting is chosen only if p < 0.05 and the gain on ballots left out is positive; otherwise the default is
kept. So if no setting is better than the default, another one is chosen in at most 5 % of tunings. That
assumes that ballots are independent and that, without a gain, a difference on a ballot is as likely up as
down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec
import numpy as np

from rangevote import __version__
from rangevote.election.agreement import Agreement, agreement_shares
from rangevote.election.panel import AGREEMENT, Shares
from rangevote.election.settings import Settings, write_tables
from rangevote.errors import DataError, UsageError, warn
from rangevote.evaluation.corpus import EvaluationCorpus, WordUnits, as_entries, placed
from rangevote.evaluation.metrics import LEARNED, METRICS, Metric, get_metric
from rangevote.evaluation.risk_coverage import RiskCurve, check_risk, risk_curve
from rangevote.evaluation.significance import SEED, Indices, Interval, best_of_many, draws, interval
from rangevote.evaluation.tables import STARS_NOTE, Cell, Column, Table, TableRow, stars
from rangevote.formats import Entry
from rangevote.hypothesis import Array, Ballot
from rangevote.parallel import map_in_order
from rangevote.similarity import get_similarity
from rangevote.similarity.base import number_text
from rangevote.similarity.units import DEFAULT_UNIT
from rangevote.tuning.grid import (
    BASELINES,
    DEFAULT,
    EXPONENTS,
    LIKELIHOODS,
    SCORE_WEIGHTS,
    SIMILARITIES,
    TOKENIZE,
    GridElections,
    Setting,
    grid,
)

COMMENT = "Options of an election, chosen by `rangevote tune`.\nUse: rangevote vote --profile FILE"
#: Enough for intervals to a tenth of their width.
RESAMPLES = 1_000
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
            f"the gain {ends}, p = {self.p:.2g}: {sure}). Use {self.name} alone, or leave out the members "
            f"that do worst."
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
    `best_member` compares the best of them with the choice, and `found` is the `Agreement` behind the shares.
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


def tune(
    ballots: Iterable[Ballot | Entry],
    *,
    metric: str = "bleu",
    similarities: Sequence[str] = SIMILARITIES,
    exponents: Sequence[float] = EXPONENTS,
    temperatures: Sequence[float] | None = None,
    likelihoods: Sequence[float] = LIKELIHOODS,
    tokenize: Sequence[str] = TOKENIZE,
    weights: str | Sequence[str] | None = None,
    scores: Sequence[str] | None = None,
    score_weights: Sequence[float] = SCORE_WEIGHTS,
    normalize: str | None = None,
    merge: bool = False,
    shares: Shares | Literal["agreement"] | None = None,
    units: WordUnits | None = None,
    max_risk: float | None = None,
    curve: bool = False,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    threads: int = 1,
) -> Tuning:
    """Elect every ballot under every setting of a grid, and choose the one whose winners score best, if it
    beats the default beyond chance; otherwise choose the default.

    Ballots bring their references; of entries of a file (`rv.read`) errors name the line. `metric` is "bleu"
    (sacreBLEU), "bleu_1" to "bleu_4" or "chrf" of all winners together, or "accuracy:KEY", the share of
    winners whose answer, by a key of `exact`, is that of a reference. `similarities` without an exponent are
    tried with all `exponents`, and everything with all `temperatures` of the weights, by default 0.5, 1, 2
    and 4 and for a preset its own, with all `likelihoods`, if all log-probabilities of candidates are known,
    and all word units `tokenize`. You can try several `weights`, and `scores` that candidates carry, such as
    "reward", one at a time with all `score_weights`; the result says which help. They, `normalize` and
    `merge` are as in `elect`. Intervals and p-values come from `resamples` of the ballots. Of settings with
    equal scores the first is chosen.

    If none of the settings is better than the default, another setting is chosen in at most 5 % of tunings.

    Ballots whose candidates have a member are those of a panel, with equal shares or these `shares`, which
    `"agreement"` finds from the ballots without their references. The own outputs of each member are tried
    too: if the best member is better than the panel, the result says so.

    `max_risk` also chooses the threshold below which nobody is elected, so that with 95 % confidence at most
    this share of the answers on new ballots is wrong (`risk_curve` says what that assumes). The threshold is
    chosen on a random half of the ballots, the setting on the other half. `curve` has the risk at every
    threshold.
    """
    chosen_metric = metric_of(metric)
    schemes: list[str | None] = [weights] if weights is None or isinstance(weights, str) else list(weights)
    schemes = schemes or [None]
    for scheme in schemes:
        Settings(weights=scheme, normalize=normalize, merge=merge)  # refuses what cannot be meant
    check_risk(max_risk)
    if (max_risk is not None or curve) and metric.partition(":")[0] in LEARNED:
        raise UsageError(
            f"a risk is 1 - score / 100, for metrics from 0 to 100, and {metric} has another scale, so that "
            f"no bound of the risk would hold. Leave max_risk and curve (--max-risk, --plot) out, or use "
            f"bleu, chrf or accuracy:KEY."
        )
    if resamples < 1:
        raise UsageError(f"resamples must be 1 or more, got {resamples}.")
    choices = grid(
        similarities, exponents, temperatures, tokenize, likelihoods, schemes, scores or (), score_weights
    )
    default = replace(DEFAULT, weights=schemes[0])
    if all(_compares_answers(setting) for setting in choices):
        default = replace(choices[0], temperature=1.0, likelihood=0.0)
    entries: Iterable[Entry] = as_entries(ballots)
    found = None
    if shares == AGREEMENT:
        entries = list(entries)
        some = halves(len(entries), seed)[0] if max_risk is not None else range(len(entries))
        options = {**default.options, "normalize": normalize, "merge": merge}
        found = agreement_shares([entries[i].get() for i in some], **options)
        shares = found.shares
    equal = () if shares is None else (replace(default, equal=True),)
    settings = [*choices, default, *BASELINES, *equal]
    elections = GridElections(settings, normalize, merge, shares)

    def elect(entry: Entry) -> tuple[Entry, list[tuple[int, float]], dict[str, int]]:
        ballot = entry.get()
        with placed(entry.where):
            results, own = elections.winners(ballot), elections.own(ballot, default)
        return entry, results, own

    winners = Winners()
    for entry, results, own in map_in_order(elect, entries, threads):
        with placed(entry.where):
            winners.add(entry.get(), results, own)
    rows, signature = winners.statistics(chosen_metric, units or WordUnits())
    elected: Indices = np.array(winners.indices)  # (ballots, settings): index into rows
    known = np.flatnonzero((elected >= 0).all(axis=0)).tolist()  # settings with a winner in every ballot
    base = sum(number < len(choices) for number in known)  # the default stands behind the choices
    _check_choices(len(choices), base)
    members = winners.members()
    first = len(known)  # the members stand behind all others
    own_outputs = [winners.own_of(name, settings.index(default)) for name in members]
    elected = np.column_stack([elected[:, known], *own_outputs])
    confidences = np.array(winners.scores)[:, known]
    settings = [settings[number] for number in known] + [replace(default, member=name) for name in members]

    size = len(elected)
    choosing = answering = np.arange(size)
    differ = (elected[:, :base] != elected[:, [base]]).any()
    if max_risk is not None and differ and size > 1:  # otherwise there is nothing to choose
        choosing, answering = halves(size, seed)
    there = elected[choosing]
    totals, drawn, left_out = resample(rows[there], chosen_metric, resamples, seed)

    def p_values(numbers: Sequence[int], base: int) -> Array:
        systems = there[:, list(numbers)], there[:, base]
        outputs = rows, np.array(winners.ballots)
        return best_of_many(chosen_metric.score, *outputs, *systems, resamples=resamples, seed=seed)

    others = range(base + 1, len(settings))
    p = [*p_values(range(base), base), 1.0, *p_values(others, base)]

    def gain(number: int, over: int) -> tuple[float, Interval]:
        return float(totals[number] - totals[over]), interval(drawn[:, number] - drawn[:, over])

    tried = [
        Tried(setting.name, setting, float(totals[i]), interval(drawn[:, i]), *gain(i, base), float(p[i]))
        for i, setting in enumerate(settings)
    ]
    unseen = gain_on_unseen(drawn[:, :base], left_out[:, :base], left_out[:, base])
    better = [i for i in range(base) if p[i] < LEVEL and totals[i] > totals[base]]
    chosen = base
    if better and (unseen is None or unseen.gain > 0):
        chosen = max(better, key=lambda i: totals[i])

    best_member = None
    if members:
        best = first + int(totals[first:].argmax())
        p_best = p_values(range(first, len(settings)), chosen)[best - first]
        best_member = BestMember(
            members[best - first], float(totals[best]), *gain(best, chosen), float(p_best)
        )

    risks = None
    if curve or max_risk is not None:
        setting = settings[chosen]
        votes_alone = not setting.likelihood and setting.score is None
        option = "min_share" if votes_alone and _compares_answers(setting) else "min_score"
        losses = 1 - chosen_metric.score(rows[elected[answering, chosen]]) / 100
        risks = risk_curve(confidences[answering, chosen], losses, option, max_risk)

    tuning = Tuning(
        tried[chosen],
        tried[int(totals[:base].argmax())],
        tried[base],
        tuple(tried[:base]),
        tuple(tried[base + 1 : first]),
        unseen,
        metric,
        signature,
        len(choosing),
        resamples,
        seed,
        {"normalize": normalize, "merge": merge, "shares": shares},
        tuple(_gains(settings[:base], totals, gain, p_values)),
        risks,
        tuple(tried[first:]),
        best_member,
        {} if found is None else agreement_facts(found),
    )
    for warning in tuning.warnings():
        warn(warning)
    return tuning


def halves(size: int, seed: int) -> tuple[Indices, Indices]:
    """A random half of the ballots to choose on, and the others."""
    choosing, others = np.split(np.random.default_rng(seed).permutation(size), [size // 2])
    return choosing, others


def agreement_facts(found: Agreement) -> dict[str, Any]:
    """How shares by agreement were found, for a profile."""
    return {
        "shares": AGREEMENT,
        "agreement": {name: round(p, 4) for name, p in found.agreement.items() if not math.isnan(p)},
        "twins": [list(group) for group in found.twins],
        "rounds": found.rounds,
        "converged": found.converged,
    }


def agreement_profile(found: Agreement, options: Mapping[str, Any]) -> str:
    """TOML for `rangevote vote --profile` with shares that were found without references."""
    tuned = {**agreement_facts(found), "ballots": found.ballots, "rangevote": __version__}
    return write_tables({"election": {**options, "shares": found.shares}, "tuned": tuned}, COMMENT)


def _gains(
    settings: Sequence[Setting],
    scores: Array,
    gain: Callable[[int, int], tuple[float, Interval]],
    p_values: Callable[[Sequence[int], int], Array],
) -> Iterator[OptionGain]:
    """The best setting with each weights, and with each score, against the best with the first ones."""
    values = {
        "weights": [str(setting.weights) for setting in settings],
        "scores": [setting.score[0] if setting.score else "none" for setting in settings],
    }
    for option, column in values.items():
        numbers: dict[str, list[int]] = {}
        for i, value in enumerate(column):
            numbers.setdefault(value, []).append(i)
        best = {value: max(some, key=lambda i: scores[i]) for value, some in numbers.items()}
        (first, base), *others = best.items()
        for value, i in others:
            p = float(p_values(numbers[value], base)[numbers[value].index(i)])
            yield OptionGain(option, value, first, *gain(i, base), p)


def _compares_answers(setting: Setting) -> bool:
    return get_similarity(setting.similarity, setting.tokenize).answers


def _check_choices(tried: int, possible: int) -> None:
    """Of the settings tried, those are possible that elect somebody in every ballot: likelihood needs
    log-probabilities."""
    if not possible:
        raise DataError(
            "is missing for some candidates; likelihood needs it. Give it, or have 0 among the likelihoods.",
            field="candidates[].logprob",
        )
    if possible < tried:
        warn(
            f"some candidates have no log-probability, so {tried - possible} settings with likelihood were "
            f"left out; give it, or use likelihoods=[0] (--likelihoods 0)."
        )


def _decides(metric: Metric) -> bool:
    return metric.resampled and metric.best == "highest"


def metric_of(name: str) -> Metric:
    """A metric that settings can be chosen by: higher is better, and it is a score of sums."""
    metric = get_metric(name)
    if not _decides(metric):
        good = [*(key for key, one in METRICS.items() if _decides(one)), "accuracy:last_number"]
        raise UsageError(f"settings cannot be chosen by {name!r}; choose from: {', '.join(good)}.")
    return metric


@dataclass
class Winners:
    """The winners of all settings, ballot by ballot; of each ballot the different ones are kept once."""

    texts: list[str] = field(default_factory=list)
    references: list[Sequence[str]] = field(default_factory=list)
    ballots: list[int] = field(default_factory=list)  # of each text
    indices: list[list[int]] = field(default_factory=list)  # (ballots, settings) into texts, negative: nobody
    scores: list[list[float]] = field(default_factory=list)  # (ballots, settings)
    own: list[dict[str, int]] = field(default_factory=list)  # of each ballot by member, into texts

    def add(self, ballot: Ballot, elected: Sequence[tuple[int, float]], own: Mapping[str, int]) -> None:
        if not ballot.references:
            raise DataError("is missing; settings are chosen by the references.", field="references")
        known: dict[int, int] = {index: index for index, _ in elected if index < 0}
        for index in (*(index for index, _ in elected), *own.values()):
            if index in known:
                continue
            text = ballot.candidates[index].text
            if text is None:
                raise DataError(
                    "is missing, and references are texts; decode the tokens first.",
                    field=f"candidates[{index}].text",
                )
            known[index] = len(self.texts)
            self.texts.append(text)
            self.references.append(ballot.references)
            self.ballots.append(len(self.indices))
        self.indices.append([known[index] for index, _ in elected])
        self.scores.append([score for _, score in elected])
        self.own.append({name: known[index] for name, index in own.items()})

    def members(self) -> list[str]:
        """The members of the panel by name; none where there are fewer than two."""
        names = sorted({name for row in self.own for name in row})
        return names if len(names) > 1 else []

    def own_of(self, member: str, default: int) -> list[int]:
        """A member's own output of each ballot, (ballots,); where it has none, that of the setting `default`,
        so that it is compared where it has some."""
        return [own.get(member, row[default]) for own, row in zip(self.own, self.indices, strict=True)]

    def statistics(self, metric: Metric, units: WordUnits) -> tuple[Array, str]:
        """The sentence statistics of every text, shape (texts, statistics), and the metric's signature."""
        if not self.indices:
            raise DataError("there are no ballots, so there is nothing to tune on.")
        counts = metric.statistics(EvaluationCorpus.of(len(self.texts), self.references), units)
        return counts.rows(self.texts), counts.signature


def resample(rows: Array, metric: Metric, resamples: int, seed: int) -> tuple[Array, Array, Array]:
    """Scores of settings from rows (ballots, settings, statistics): on all ballots, shape (settings,), and
    in each resample, shape (resamples, settings), on the ballots drawn and on those left out (nan if none
    is)."""
    size, *shape = rows.shape
    flat = rows.reshape(size, -1)

    def scores(counts: Array) -> Array:
        return metric.score((counts @ flat).reshape(len(counts), *shape))

    drawn, left_out = [], []
    for counts in draws(size, resamples, seed):
        drawn.append(scores(counts))
        left = counts == 0
        some = left.any(axis=1)  # of a handful of ballots a resample may leave out none
        left_scores = np.full_like(drawn[-1], np.nan)
        left_scores[some] = scores(left[some].astype(np.float64))
        left_out.append(left_scores)
    return scores(np.ones((1, size)))[0], np.concatenate(drawn), np.concatenate(left_out)


def gain_on_unseen(drawn: Array, left_out: Array, default: Array) -> Unseen | None:
    """Choose the best setting in each resample, and compare it with the default on what was left out.

    `drawn` and `left_out` have shape (resamples, settings), `default` (resamples,). None if no resample
    leaves a ballot out.
    """
    gains = left_out[np.arange(len(drawn)), drawn.argmax(axis=1)] - default
    gains = gains[np.isfinite(gains)]
    return Unseen(float(gains.mean()), float((gains > 0).mean())) if len(gains) else None


BEST, PROVEN = "<", "+"


def surface_table(tuning: Tuning) -> Table:
    """A row for each measure, likelihood and word unit, a column for each temperature."""
    temperatures = sorted({tried.setting.temperature for tried in tuning.tried})
    several = len({tried.setting.tokenize for tried in tuning.tried}) > 1
    by_row: dict[Setting, dict[float, Cell]] = {}
    for tried in tuning.tried:
        mark = (BEST if tried is tuning.best else "") + (PROVEN if tried.p < LEVEL else "")
        cell = Cell(f"{tried.score:.2f} [{tried.interval.low:.1f}, {tried.interval.high:.1f}]", mark)
        by_row.setdefault(replace(tried.setting, temperature=1.0), {})[tried.setting.temperature] = cell
    rows = [
        TableRow(
            setting.name + (f", {DEFAULT_UNIT}" if several and setting.tokenize == DEFAULT_UNIT else ""),
            [cells.get(temperature, Cell()) for temperature in temperatures],
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
    listed = (tuning.best, tuning.default, *tuning.baselines, *tuning.members)
    names = ("best: ", "default: ", *[""] * (len(listed) - 2))
    for name, tried in zip(names, listed, strict=True):
        cells = [
            Cell(tried.score),
            Cell(f"[{tried.interval.low:.2f}, {tried.interval.high:.2f}]"),
            *[Cell()] * 3,
        ]
        if tried is not tuning.default:
            low, high = tried.gain_interval
            cells[2:] = [Cell(f"{tried.gain:+.2f}"), Cell(f"[{low:+.2f}, {high:+.2f}]")]
            cells.append(Cell(f"{tried.p:.4f}", stars(tried.p)))
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
