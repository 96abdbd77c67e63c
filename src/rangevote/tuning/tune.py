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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np

from rangevote.election.agreement import agreement_shares
from rangevote.election.settings import Settings
from rangevote.election.weights import AGREEMENT, Shares
from rangevote.errors import DataError, UsageError, warn
from rangevote.evaluation.corpus import EvaluationCorpus, WordUnits, as_entries, placed
from rangevote.evaluation.metrics import LEARNED, METRICS, Metric, get_metric
from rangevote.evaluation.risk_coverage import check_risk, risk_curve
from rangevote.evaluation.significance import SEED, Indices, Interval, best_of_many, draws, interval
from rangevote.formats import Entry
from rangevote.hypothesis import Array, Ballot
from rangevote.parallel import map_in_order
from rangevote.similarity import get_similarity
from rangevote.tuning.choice import LEVEL, BestMember, OptionGain, Tried, Tuning, Unseen, agreement_facts
from rangevote.tuning.grid import (
    BASELINES,
    DEFAULT,
    EXPONENTS,
    LIKELIHOODS,
    SCORE_WEIGHTS,
    SIMILARITIES,
    TOKENIZE,
    Setting,
    SharedCounts,
    SharedOptions,
    grid,
    own_winners,
)

#: Enough for intervals to a tenth of their width.
RESAMPLES = 1_000


def tune(
    ballots: Iterable[Ballot | Entry],
    *,
    metric: str | None = None,
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
    winners whose answer, by a key of `exact`, is that of a reference; by default accuracy if all similarities
    compare answers, otherwise BLEU. `similarities` without an exponent are
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
    schemes: list[str | None] = [weights] if isinstance(weights, str) else list(weights or ()) or [None]
    for scheme in schemes:
        Settings(weights=scheme, normalize=normalize, merge=merge)  # rejects invalid options
    choices = grid(
        similarities, exponents, temperatures, tokenize, likelihoods, schemes, scores or (), score_weights
    )
    metric = metric or usual_metric(choices)
    chosen_metric = metric_of(metric)
    check_risk(max_risk)
    if max_risk is not None or curve:
        _check_scale(metric)
    if resamples < 1:
        raise UsageError(f"resamples must be 1 or more, got {resamples}.")
    default = _default_of(choices)
    entries: Iterable[Entry] = as_entries(ballots)
    found = None
    if shares == AGREEMENT:
        entries = list(entries)
        some = halves(len(entries), seed)[0] if max_risk is not None else range(len(entries))
        options = {**default.options, "normalize": normalize, "merge": merge}
        found = agreement_shares([entries[i].get() for i in some], **options)
        shares = found.shares
    shared = SharedOptions(normalize, merge, shares)

    equal = () if shares is None else (replace(default, equal=True),)
    settings = [*choices, default, *BASELINES, *equal]
    winners = _elections(entries, settings, default, shared, threads)
    rows, signature = winners.statistics(chosen_metric, units or WordUnits())
    elected: Indices = np.array(winners.indices)  # (ballots, settings): index into rows
    possible = np.flatnonzero((elected >= 0).all(axis=0)).tolist()  # with a winner in every ballot
    base = sum(number < len(choices) for number in possible)  # the default stands behind the choices
    _check_choices(len(choices), base)
    members = winners.of_members(settings.index(default))
    first = len(possible)  # the members stand behind all others
    elected = np.column_stack([elected[:, possible], *members.values()])
    settings = [settings[number] for number in possible] + [replace(default, member=name) for name in members]

    choosing = answering = np.arange(len(elected))
    differ = (elected[:, :base] != elected[:, [base]]).any()
    if max_risk is not None and differ and len(elected) > 1:  # otherwise there is nothing to choose
        choosing, answering = halves(len(elected), seed)
    texts = np.array(winners.ballots)
    scored = ScoredSettings(chosen_metric, rows, texts, elected[choosing], resamples, seed)
    tried = scored.tried(settings, base)
    unseen = gain_on_unseen(scored.drawn[:, :base], scored.left_out[:, :base], scored.left_out[:, base])
    chosen = _choose(tried, base, unseen)
    risks = None
    if curve or max_risk is not None:
        losses = 1 - chosen_metric.score(rows[elected[answering, chosen]]) / 100
        confidences = np.array(winners.scores)[answering, possible[chosen]]
        risks = risk_curve(confidences, losses, _threshold_of(settings[chosen]), max_risk)

    tuning = Tuning(
        chosen=tried[chosen],
        best=max(tried[:base], key=lambda one: one.score),
        default=tried[base],
        tried=tuple(tried[:base]),
        baselines=tuple(tried[base + 1 : first]),
        unseen=unseen,
        metric=metric,
        signature=signature,
        ballots=len(choosing),
        resamples=resamples,
        seed=seed,
        shared=shared._asdict(),
        gains=tuple(_gains(settings[:base], scored)),
        curve=risks,
        members=tuple(tried[first:]),
        best_member=scored.best_member([*members], first, chosen) if members else None,
        found={} if found is None else agreement_facts(found),
    )
    for warning in tuning.warnings():
        warn(warning)
    return tuning


def _elections(
    entries: Iterable[Entry],
    settings: Sequence[Setting],
    default: Setting,
    shared: SharedOptions,
    threads: int,
) -> Winners:
    """Every ballot under every setting; and among the outputs of each member alone, under the default."""

    def elections(entry: Entry) -> tuple[Entry, list[tuple[int, float]], dict[str, int]]:
        ballot = entry.get()
        with placed(entry.where):
            counts = SharedCounts(ballot, shared)
            results = [counts.winner(setting) for setting in settings]
            return entry, results, own_winners(ballot, default, shared)

    winners = Winners()
    for entry, results, by_member in map_in_order(elections, entries, threads):
        with placed(entry.where):
            winners.add(entry.get(), results, by_member)
    return winners


def _default_of(choices: Sequence[Setting]) -> Setting:
    """An election without options; for answers, by the first similarity."""
    first = choices[0]
    if all(map(_compares_answers, choices)):
        return replace(first, temperature=1.0, likelihood=0.0)
    return replace(DEFAULT, weights=first.weights)


def _choose(tried: Sequence[Tried], base: int, unseen: Unseen | None) -> int:
    """The number of the best setting that beats the default, at `base`, beyond chance; otherwise `base`."""
    better = [i for i in range(base) if tried[i].p < LEVEL and tried[i].gain > 0]
    if better and (unseen is None or unseen.gain > 0):
        return max(better, key=lambda i: tried[i].score)
    return base


def _check_scale(metric: str) -> None:
    """Refuse a risk by a metric whose values are not shares."""
    if metric.partition(":")[0] in LEARNED:
        raise UsageError(
            f"a risk is 1 - score / 100, for metrics from 0 to 100, and {metric} has another scale, so that "
            f"no bound of the risk would hold. Leave max_risk and curve (--max-risk, --plot) out, or use "
            f"bleu, chrf or accuracy:KEY."
        )


def _threshold_of(setting: Setting) -> str:
    """The option that is a threshold: a share of the vote where votes alone decide between answers."""
    votes_alone = not setting.likelihood and setting.score is None
    return "min_share" if votes_alone and _compares_answers(setting) else "min_score"


def halves(size: int, seed: int) -> tuple[Indices, Indices]:
    """A random half of the ballots to choose on, and the others."""
    choosing, others = np.split(np.random.default_rng(seed).permutation(size), [size // 2])
    return choosing, others


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


def usual_metric(settings: Sequence[Setting]) -> str:
    """Accuracy by the key of the first similarity if all compare answers, otherwise BLEU."""
    name = settings[0].similarity
    if isinstance(name, str) and all(map(_compares_answers, settings)):
        return f"accuracy:{name.partition(':')[2] or 'plain'}"
    return "bleu"


def metric_of(name: str) -> Metric:
    """A metric that settings can be chosen by: higher is better, and it is a score of sums."""
    metric = get_metric(name)
    if not metric.resampled or metric.best != "highest":
        good = [key for key, one in METRICS.items() if one.resampled and one.best == "highest"]
        good.append("accuracy:last_number")
        raise UsageError(f"settings cannot be chosen by {name!r}; choose from: {', '.join(good)}.")
    return metric


@dataclass
class Winners:
    """The winners of all settings, ballot by ballot; of each ballot the different ones are kept once."""

    texts: list[str] = field(default_factory=list)
    references: list[Sequence[str]] = field(default_factory=list)
    ballots: list[int] = field(default_factory=list)  # of each text
    indices: list[list[int]] = field(default_factory=list)  # (ballots, settings) into texts; negative: none
    scores: list[list[float]] = field(default_factory=list)  # (ballots, settings)
    by_member: list[dict[str, int]] = field(default_factory=list)  # of each ballot, into texts

    def add(self, ballot: Ballot, elected: Sequence[tuple[int, float]], by_member: Mapping[str, int]) -> None:
        if not ballot.references:
            problem = "is missing; add it to the ballots, or give a file of references (--references)."
            raise DataError(problem, field="references")
        places: dict[int, int] = {index: index for index, _ in elected if index < 0}
        for index in (*(index for index, _ in elected), *by_member.values()):
            if index in places:
                continue
            text = ballot.candidates[index].text
            if text is None:
                raise DataError(
                    "is missing, and references are texts; decode the tokens first.",
                    field=f"candidates[{index}].text",
                )
            places[index] = len(self.texts)
            self.texts.append(text)
            self.references.append(ballot.references)
            self.ballots.append(len(self.indices))
        self.indices.append([places[index] for index, _ in elected])
        self.scores.append([score for _, score in elected])
        self.by_member.append({name: places[index] for name, index in by_member.items()})

    def of_members(self, default: int) -> dict[str, list[int]]:
        """The own output of each member of a panel in each ballot, by name; where it has none, that of the
        setting `default`, so that it is compared where it has some."""
        names = sorted({name for row in self.by_member for name in row})
        rows = list(zip(self.by_member, self.indices, strict=True))
        by_member = {name: [outputs.get(name, row[default]) for outputs, row in rows] for name in names}
        return by_member if len(names) > 1 else {}

    def statistics(self, metric: Metric, units: WordUnits) -> tuple[Array, str]:
        """The sentence statistics of every text, shape (texts, statistics), and the metric's signature."""
        if not self.indices:
            raise DataError("there are no ballots, so there is nothing to tune on.")
        counts = metric.statistics(EvaluationCorpus.of(len(self.texts), self.references), units)
        return counts.rows(self.texts), counts.signature


class ScoredSettings:
    """Scores of settings on all ballots, `totals` (settings,); and by resample, (resamples, settings), on the
    ballots that were `drawn` and on those `left_out` (nan if none is).

    `rows` (texts, statistics) are those of all different winners, `ballots` (texts,) the ballot of each, and
    `elected` (ballots, settings) are indices of them.
    """

    def __init__(
        self, metric: Metric, rows: Array, ballots: Indices, elected: Indices, resamples: int, seed: int
    ) -> None:
        self._elected = elected
        self._best_of = partial(best_of_many, metric.score, rows, ballots, resamples=resamples, seed=seed)
        size, *shape = rows[elected].shape
        flat = rows[elected].reshape(size, -1)

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
        self.totals: Array = scores(np.ones((1, size)))[0]
        self.drawn, self.left_out = np.concatenate(drawn), np.concatenate(left_out)

    def p_values(self, numbers: Sequence[int], base: int) -> Array:
        """That these settings beat another, allowing for their number."""
        return self._best_of(self._elected[:, list(numbers)], self._elected[:, base])

    def gain(self, number: int, over: int) -> tuple[float, Interval]:
        difference = float(self.totals[number] - self.totals[over])
        return difference, interval(self.drawn[:, number] - self.drawn[:, over])

    def tried(self, settings: Sequence[Setting], base: int) -> list[Tried]:
        """All settings, compared with `base`: the choices stand before it, others behind it."""
        others = range(base + 1, len(settings))
        p = [*self.p_values(range(base), base), 1.0, *self.p_values(others, base)]
        return [
            Tried(
                setting.name,
                setting,
                float(self.totals[i]),
                interval(self.drawn[:, i]),
                *self.gain(i, base),
                float(p[i]),
            )
            for i, setting in enumerate(settings)
        ]

    def best_member(self, members: Sequence[str], first: int, chosen: int) -> BestMember:
        """The best of the members, which stand from `first` on, compared with the chosen setting."""
        best = int(self.totals[first:].argmax())
        p = self.p_values(range(first, len(self.totals)), chosen)[best]
        score, gain = float(self.totals[first + best]), self.gain(first + best, chosen)
        return BestMember(members[best], score, *gain, float(p))


def gain_on_unseen(drawn: Array, left_out: Array, default: Array) -> Unseen | None:
    """Choose the best setting in each resample, and compare it with the default on what was left out.

    `drawn` and `left_out` have shape (resamples, settings), `default` (resamples,). None if no resample
    leaves a ballot out.
    """
    gains = left_out[np.arange(len(drawn)), drawn.argmax(axis=1)] - default
    gains = gains[np.isfinite(gains)]
    return Unseen(float(gains.mean()), float((gains > 0).mean())) if len(gains) else None


def _gains(settings: Sequence[Setting], scored: ScoredSettings) -> Iterator[OptionGain]:
    """The best setting with each weights, and with each score, against the best with the first ones."""
    values = {
        "weights": [str(setting.weights) for setting in settings],
        "scores": [setting.score[0] if setting.score else "none" for setting in settings],
    }
    for option, column in values.items():
        numbers: dict[str, list[int]] = {}
        for i, value in enumerate(column):
            numbers.setdefault(value, []).append(i)
        best = {value: max(some, key=lambda i: scored.totals[i]) for value, some in numbers.items()}
        (first, base), *others = best.items()
        for value, i in others:
            p = float(scored.p_values(numbers[value], base)[numbers[value].index(i)])
            yield OptionGain(option, value, first, *scored.gain(i, base), p)
