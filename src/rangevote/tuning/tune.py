"""Choose how to elect, on ballots with references."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rangevote import __version__
from rangevote.election.settings import Settings, write_tables
from rangevote.errors import UsageError, warn
from rangevote.evaluation.bootstrap import SEED, Difference, Interval, difference, interval
from rangevote.evaluation.words import Units
from rangevote.hypothesis import Ballot
from rangevote.parallel import map_in_order
from rangevote.tuning.grid import (
    BASELINES,
    DEFAULT,
    EXPONENTS,
    SIMILARITIES,
    TEMPERATURES,
    TOKENIZE,
    Setting,
    grid,
)
from rangevote.tuning.measuring import Winners, metric_of
from rangevote.tuning.noise import Unseen, resample, unseen
from rangevote.tuning.polling import Office

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
class Tuning:
    """What was tried and what was chosen.

    `tried` are all settings of the grid in its order; `default` is an election without options, and
    `baselines` are the rules in which nobody votes, where log-probabilities are known. `shared` are the
    options of all elections.
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

    @property
    def alike(self) -> list[Tried]:
        """The settings that are as good as the chosen one as far as these ballots tell, itself included."""
        return [one for one in self.tried if one.within_noise or one is self.chosen]

    @property
    def options(self) -> dict[str, Any]:
        """For `elect`: `elect(ballot, **tuning.options)`."""
        return {**self.chosen.setting.options, **{k: v for k, v in self.shared.items() if v}}

    def warning(self) -> str | None:
        """Why the choice should not be trusted to be better than no tuning, or None."""
        if self.chosen.setting == DEFAULT:
            return None
        behind = self.default.behind
        if behind.p >= LEVEL:
            return (
                f"the choice is within noise: {behind.value:+.2f} {self.metric} over the default "
                f"{DEFAULT.name}, 95 % interval {behind.interval.low:+.2f} to {behind.interval.high:+.2f}; "
                f"more ballots would tell."
            )
        if self.unseen is not None and self.unseen.gain <= 0:
            return (
                f"the choice does not hold on ballots it was not made on: {self.unseen.gain:+.2f} "
                f"{self.metric} against the default {DEFAULT.name}; more ballots, or fewer settings, would "
                f"help."
            )
        return None

    def profile(self) -> str:
        """TOML for `rangevote vote --profile`."""
        behind, low_high = self.default.behind, list(self.chosen.interval)
        tuned = {
            "metric": self.metric,
            "signature": self.signature,
            "score": round(self.chosen.score, 4),
            "interval": [round(end, 4) for end in low_high],
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
        told = "Options of an election, chosen by `rangevote tune`.\nUse: rangevote vote --profile FILE"
        return write_tables({"election": self.options, "tuned": tuned}, told)

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
        }


def _data(one: Tried) -> dict[str, Any]:
    setting = asdict(one.setting) if one.setting.voted else {"rule": one.setting.rule}
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
    temperatures: Sequence[float] = TEMPERATURES,
    tokenize: Sequence[str] = TOKENIZE,
    weights: str | None = None,
    normalize: str | None = None,
    merge: bool = False,
    units: Units | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    threads: int = 1,
) -> Tuning:
    """Elect every ballot under every setting of a grid, and choose the one whose winners score best.

    Ballots bring their references. `metric` is "bleu" (sacreBLEU), "bleu_1" to "bleu_4" or "chrf" of all
    winners together. `similarities` without an exponent are tried with all `exponents`, and everything with
    all `temperatures` of the weights and all word units `tokenize`; `weights`, `normalize` and `merge` are as
    in `elect`. Intervals come from `resamples` of the ballots. Of settings with equal scores the first is
    chosen. A choice that is within noise is warned about.
    """
    found = metric_of(metric)
    choices = grid(similarities, exponents, temperatures, tokenize)
    Settings(weights=weights, normalize=normalize, merge=merge)  # refuses what cannot be meant
    if resamples < 1:
        raise UsageError(f"resamples must be 1 or more, got {resamples}.")
    settings = [*choices, DEFAULT, *BASELINES]
    office = Office(settings, weights, normalize, merge)
    winners = Winners.none()
    for ballot, indices in map_in_order(lambda ballot: (ballot, office.winners(ballot)), ballots, threads):
        winners.add(ballot, indices)
    statistics = winners.statistics(found, units or Units())
    known = [number for number in range(len(settings)) if statistics.known(number)]
    sums = statistics.of(known).sum(axis=0).reshape(len(known), -1)
    scores = found.score(sums)  # (known settings,)
    best = int(scores[: len(choices)].argmax())
    resampled = resample(statistics, known, found, resamples, seed)

    def tried(place: int) -> Tried:
        apart = float(scores[best] - scores[place])
        own, above = resampled.drawn[:, place], resampled.drawn[:, best]
        return Tried(
            settings[known[place]], float(scores[place]), interval(own), difference(above, own, apart)
        )

    everything = [tried(place) for place in range(len(known))]
    tuning = Tuning(
        everything[best],
        tuple(everything[: len(choices)]),
        everything[len(choices)],
        tuple(everything[len(choices) + 1 :]),
        unseen(resampled, range(len(choices)), len(choices)),
        metric,
        statistics.signature,
        statistics.ballots,
        resamples,
        seed,
        {"weights": weights, "normalize": normalize, "merge": merge},
    )
    if (told := tuning.warning()) is not None:
        warn(told)
    return tuning
