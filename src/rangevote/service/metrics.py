"""Metrics of the service in Prometheus' text format. Values of labels come only from fixed sets."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterator

from rangevote.engines.openai.sample_and_elect import ElectionOutcome

#: Upper bounds of the buckets of times, in seconds.
BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Counter:
    """One count for each combination of labels."""

    def __init__(self, name: str, help: str, labels: tuple[str, ...] = ()) -> None:
        self.name, self.help, self._labels = name, help, labels
        self._counts: dict[tuple[str, ...], float] = {} if labels else {(): 0}

    def add(self, *labels: str, by: float = 1) -> None:
        assert len(labels) == len(self._labels)
        self._counts[labels] = self._counts.get(labels, 0) + by

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.help, "counter")
        for values, count in sorted(self._counts.items()):
            named = ",".join(
                f"{n}={json.dumps(v, ensure_ascii=False)}" for n, v in zip(self._labels, values, strict=True)
            )
            yield f"{self.name}{{{named}}} {count:g}" if named else f"{self.name} {count:g}"


class Histogram:
    """A distribution of durations."""

    def __init__(self, name: str, help: str) -> None:
        self.name, self.help = name, help
        self._counts, self._sum = [0] * (len(BOUNDS) + 1), 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self._sum += seconds

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.help, "histogram")
        total = 0
        for bound, count in zip((*BOUNDS, "+Inf"), self._counts, strict=True):
            total += count
            yield f'{self.name}_bucket{{le="{bound}"}} {total}'
        yield f"{self.name}_sum {self._sum:.6f}"
        yield f"{self.name}_count {total}"


class Metrics:
    def __init__(self) -> None:
        self.requests = Counter("rangevote_requests_total", "Requests answered.", ("route", "status"))
        self.cancelled = Counter("rangevote_cancelled_total", "Requests whose client disconnected.")
        self.elections = Counter("rangevote_elections_total", "Elections held.")
        self.modes = Counter("rangevote_winner_is_mode_total", "Elections won by the most frequent text.")
        self.samples = Counter("rangevote_samples_total", "Samples, by what became of them.", ("outcome",))
        self.saved = Counter("rangevote_samples_saved_total", "Samples that did not have to be drawn.")
        self.members = Counter(
            "rangevote_members_total", "Elections, by member of the panel.", ("member", "outcome")
        )
        self.wins = Counter("rangevote_member_wins_total", "Elections, by member that won.", ("member",))
        self.tokens = Counter("rangevote_tokens_total", "Tokens used by all samples.", ("kind",))
        self.election_seconds = Histogram("rangevote_election_seconds", "Time of counting votes.")
        self.upstream_seconds = Histogram("rangevote_upstream_seconds", "Time of one round of sampling.")
        self._gauges: list[tuple[str, str, Callable[[], float]]] = []

    def count(self, outcome: ElectionOutcome) -> None:
        """Count an election."""
        self.elections.add()
        self.modes.add(by=outcome.winner_is_mode)
        self.saved.add(by=outcome.saved)
        self.election_seconds.add(outcome.seconds)
        for name, count in outcome.counts.items():
            self.samples.add(name, by=count)
        if len(outcome.members) > 1:
            left_out = () if outcome.result.panel is None else outcome.result.panel.left_out
            for name, asked in outcome.members.items():
                self.members.add(name, "left_out" if name in left_out else "asked" if asked else "spared")
        for name in outcome.result.members:
            self.wins.add(name)
        self.tokens.add("prompt", by=outcome.usage.prompt)
        self.tokens.add("completion", by=outcome.usage.completion)

    def gauge(self, name: str, help: str, ask: Callable[[], float]) -> None:
        """Add a number that goes up and down; `ask` returns it."""
        self._gauges.append((name, help, ask))

    def text(self) -> str:
        metrics = [metric for metric in vars(self).values() if isinstance(metric, (Counter, Histogram))]
        lines = [line for metric in metrics for line in metric.lines()]
        for name, help, ask in self._gauges:
            lines += [*_head(name, help, "gauge"), f"{name} {ask():g}"]
        return "\n".join(lines) + "\n"


def _head(name: str, help: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {help}", f"# TYPE {name} {kind}"
