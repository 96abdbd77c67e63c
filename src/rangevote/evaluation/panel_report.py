"""What the members of a panel did over a file: who wins, who agrees with whom, and what each one changes."""

from __future__ import annotations

import math
import warnings
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from statistics import median

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rangevote import __version__
from rangevote.election.agreement import ANSWERS, Agreement, AgreementTable, member_votes
from rangevote.election.elect import elect_ballot
from rangevote.election.result import Result
from rangevote.election.settings import Settings
from rangevote.election.weights import AGREEMENT, weigh_members
from rangevote.errors import DataError, RangevoteWarning
from rangevote.evaluation.corpus import placed
from rangevote.evaluation.metrics import Best
from rangevote.evaluation.samples import right_of
from rangevote.evaluation.significance import Interval, wilson
from rangevote.evaluation.tables import Column, Table, TableRow, Value, between, to_html
from rangevote.formats.reader import Entry
from rangevote.hypothesis import Array, Ballot
from rangevote.similarity.base import same_content
from rangevote.text import escape_controls, finite

#: Members that wrote the same text in this share of their common ballots are called copies.
COPIES = 0.9
#: Members whose texts agree with the others this much less than usual are named as far off.
FAR_OFF = 0.1


class MemberSummary(Struct, kw_only=True):
    """What one member did.

    `outputs` are its candidates. It `wins` where the measure cannot tell an output of it from the elected
    one. `share` is its mean share of the vote in the `ballots` where it votes.

    Of answers, `agreement` is how often its answer is that of the election without it and its twins, under
    shares by agreement, with a 95 % interval over the ballots that it answers: an estimate of its accuracy
    without labels.
    `agreement_share` is the share that shares="agreement" gives it, and `twins` make the same mistakes. Of
    texts, `agreement` is the mean similarity to the others' outputs, and `twins` wrote the same text in most
    ballots.

    With labels, `accuracy` is how much of its vote is right, an output without an answer being wrong. Without
    the member, `changed` ballots have another winner, and `accuracy_without` of the winners are right.
    """

    name: str
    outputs: int = 0
    ballots: int = 0
    wins: int = 0
    share: float | None = None
    agreement: float | None = None
    interval: Interval | None = None
    agreement_share: float | None = None
    twins: list[str] = []
    accuracy: float | None = None
    accuracy_interval: Interval | None = None
    changed: int | None = None
    accuracy_without: float | None = None


class PanelSummary(Struct, kw_only=True):
    """The members over `ballots` of the `total` in a file; `elected` of these have a winner.

    `matrix[i][j]` is how often the members i and j give the same answer, or the mean similarity between their
    texts; None where they never meet. With labels, `accuracy` is how many winners are right: as elected, and
    with shares by agreement.
    """

    ballots: int
    total: int
    elected: int
    measure: str
    answers: bool
    members: list[MemberSummary]
    matrix: list[list[float | None]]
    accuracy: float | None = None
    accuracy_interval: Interval | None = None
    accuracy_by_agreement: float | None = None


class PanelCount:
    """Counts what the members do, one election after the other."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.measure = settings, settings.measure
        self.ballots = self.elected = 0
        self.members: dict[str, MemberSummary] = {}
        self.table = AgreementTable()
        self._answered, self._right = defaultdict[str, float](float), defaultdict[str, float](float)
        # sums over ballots of texts, (members, members): similarity, equal texts, and common ballots
        self._sums = np.zeros((3, 0, 0))

    def add(self, ballot: Ballot, result: Result, right: set[Hashable] | None = None) -> None:
        """Count one election; `right` are the right answers, where they are known."""
        self.ballots += 1
        self.elected += bool(result.elected)
        for name in result.candidates.members or ():
            self._member(name).outputs += 1
        for name in result.members:
            self._member(name).wins += 1
        if result.panel is None:
            return
        for name, share in result.panel.shares.items():
            member = self._member(name)
            member.ballots += 1
            member.share = (member.share or 0.0) + share
        if self.measure.answers:
            self._add_answers(ballot, right)
        else:
            self._add_texts(result)

    def _member(self, name: str) -> MemberSummary:
        if name not in self.members:
            self.members[name] = MemberSummary(name=name)
            self._sums = np.pad(self._sums, ((0, 0), (0, 1), (0, 1)))
        return self.members[name]

    def _add_answers(self, ballot: Ballot, right: set[Hashable] | None) -> None:
        votes = member_votes(ballot, self.settings)
        self.table.add(votes)
        for name, parts in votes.items():
            self._answered[name] += math.fsum(parts.values())
            if right is not None:
                self._right[name] += math.fsum(part for key, part in parts.items() if key in right)

    def _add_texts(self, result: Result) -> None:
        voters, settings = result.voters, self.settings
        weighed = list(weigh_members(voters, settings.weights, settings.vote_temperature, voters))
        parts = np.zeros((len(weighed), len(voters)))  # each row sums to 1
        for row, (indices, _, weights) in zip(parts, weighed, strict=True):
            row[indices] = weights
        numbers: dict[object, int] = {}
        texts = np.array([numbers.setdefault(text, len(numbers)) for text in same_content(voters)])
        alike = parts @ result.similarity.matrix(voters, voters) @ parts.T
        equal = parts @ (texts[:, None] == texts) @ parts.T
        names = list(self.members)
        places = [names.index(voters[indices[0]].member or "") for indices, _, _ in weighed]
        self._sums[np.ix_(range(3), places, places)] += [(alike + alike.T) / 2, equal, np.ones_like(alike)]

    def agreement(self) -> Agreement | None:
        """The agreement of answers; None where texts are compared. What is odd in it stands in the table."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RangevoteWarning)
            return self.table.shares() if self.measure.answers else None

    def summary(self, total: int, agreement: Agreement | None) -> PanelSummary:
        """What was counted, of a file of `total` ballots; the members that agree most come first.

        `agreement` is that of answers, where there is one.
        """
        names = sorted(self.members)
        places = [list(self.members).index(name) for name in names]
        sums = self._sums[np.ix_(range(3), places, places)]
        with np.errstate(invalid="ignore"):
            alike, equal = sums[:2] / sums[2]  # NaN where two never meet
        twins = {name: [names[j] for j in np.flatnonzero(equal[i] >= COPIES)] for i, name in enumerate(names)}
        if agreement is not None:
            inside = [names.index(name) for name in agreement.shares]
            alike[np.ix_(inside, inside)] = agreement.overlap
            twins = {name: list(some) for some in agreement.twins for name in some}
        np.fill_diagonal(alike, np.nan)
        for i, name in enumerate(names):
            self._finish(self.members[name], alike[i], agreement)
            self.members[name].twins = [other for other in twins.get(name, ()) if other != name]
        order = sorted(range(len(names)), key=lambda i: (-(self.members[names[i]].agreement or 0.0), i))
        return PanelSummary(
            ballots=self.ballots,
            total=total,
            elected=self.elected,
            measure=self.measure.name,
            answers=self.measure.answers,
            members=[self.members[names[i]] for i in order],
            matrix=[[finite(one) for one in alike[i, order].tolist()] for i in order],
        )

    def _finish(self, member: MemberSummary, alike: Array, agreement: Agreement | None) -> None:
        name = member.name
        if member.share is not None:
            member.share /= member.ballots
        if agreement is not None and name in agreement.shares:
            member.agreement = finite(agreement.agreement[name])
            member.agreement_share = agreement.shares[name]
            if member.agreement is not None:
                member.interval = wilson(member.agreement, self._answered[name])
        elif not self.measure.answers:
            others = alike[~np.isnan(alike)]
            member.agreement = float(others.mean()) if len(others) else None
        if name in self._right:
            member.accuracy = self._right[name] / member.ballots
            member.accuracy_interval = wilson(member.accuracy, member.ballots)


def agreement_of(entries: Iterable[Entry], settings: Settings) -> Agreement:
    """The agreement of members; a bad ballot is left to the election, which names it, unless all are bad."""
    table, bad = AgreementTable(), None
    for entry in entries:
        if entry.ballot is not None and entry.ballot.candidates:
            try:
                table.add(member_votes(entry.ballot, settings))
            except DataError as error:
                bad = bad or error.placed(entry.where)
    if bad is not None and not table.ballots:
        raise bad
    return table.shares()


def resolve_shares(settings: Settings, entries: Iterable[Entry]) -> Settings:
    """The settings with the shares that shares="agreement" finds over all these ballots."""
    if settings.shares != AGREEMENT:
        return settings
    return settings.replace(shares=agreement_of(entries, settings).shares)


def panel_report(
    entries: Sequence[Entry], settings: Settings, gold: str | None = None, done: Callable[[], object] = int
) -> PanelSummary:
    """What the members did, and what leaving each of them out changes; `done` is called after each ballot.

    `gold` is the field with the right answer, which the ballots carry, or "references". Where shares are by
    agreement, they are found again without the member that is left out.
    """
    measure, ballots = settings.measure.remembering(), [entry.get() for entry in entries]
    if measure is not settings.measure:  # every text stands in as many elections as there are members
        settings = settings.replace(similarity=measure)
    _check_members(ballots)
    complete = resolve_shares(settings, entries)
    count, winners, rights = PanelCount(complete), list[Hashable](), list[set[Hashable]]()
    for entry, ballot in zip(entries, ballots, strict=True):
        with placed(entry.where):
            right = None if gold is None else right_of(ballot, gold, measure)
            result = elect_ballot(ballot, complete)
            count.add(ballot, result, right)
        winners.append(_winner(result))
        rights.append(right or set())
    agreement = count.agreement()
    report = count.summary(len(ballots), agreement)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangevoteWarning)  # what is odd was said of the whole panel
        _leave_out(report, ballots, settings, winners, rights if gold is not None else None, done)
        if gold is not None:
            report.accuracy = _share_right(winners, rights)
            report.accuracy_interval = wilson(report.accuracy, len(ballots))
            if agreement is not None:
                shared = settings.replace(shares=agreement.shares)
                keys = [_winner(elect_ballot(ballot, shared)) for ballot in ballots]
                report.accuracy_by_agreement = _share_right(keys, rights)
    return report


def _check_members(ballots: Sequence[Ballot]) -> None:
    """Refuse a file that is not a panel."""
    if not ballots:
        raise DataError("there are no ballots, so there is nothing to report.")
    names = {member for ballot in ballots for member in _members(ballot)}
    if len(names) < 2:
        only = f"{names.pop()!r} is the only member" if names else "no candidate has a member"
        raise DataError(
            f"{only}, and a panel has two or more; give each candidate the field member, or name a file for "
            f"each member: rangevote panel report a.jsonl b.jsonl.",
            field="candidates[0].member",
        )


def _members(ballot: Ballot) -> set[str]:
    return {one.member for one in (*ballot.candidates, *(ballot.voters or ())) if one.member is not None}


def _winner(result: Result) -> Hashable:
    """What the measure sees of the winner: its answer, or its text; None without a winner."""
    if not result.elected:
        return None
    [key] = result.similarity.keys(result.candidates.only(result.elected[0]))
    return key


def _share_right(winners: Sequence[Hashable], rights: Sequence[set[Hashable]]) -> float:
    return sum(key in right for key, right in zip(winners, rights, strict=True)) / len(winners)


def _leave_out(
    report: PanelSummary,
    ballots: Sequence[Ballot],
    settings: Settings,
    winners: Sequence[Hashable],
    rights: Sequence[set[Hashable]] | None,
    done: Callable[[], object],
) -> None:
    """Hold the elections again without each member."""
    others = {one.name: _settings_without(settings, ballots, one.name) for one in report.members}
    keys_without: dict[str, list[Hashable]] = {name: [] for name in others}
    for ballot, winner in zip(ballots, winners, strict=True):
        present = _members(ballot)
        for name, other in others.items():
            if name not in present and settings.shares != AGREEMENT:
                keys_without[name].append(winner)
            else:
                left = without(ballot, name)
                keys_without[name].append(_winner(elect_ballot(left, other)) if left.candidates else None)
        done()
    for member in report.members:
        keys = keys_without[member.name]
        member.changed = sum(key != winner for key, winner in zip(keys, winners, strict=True))
        if rights is not None:
            member.accuracy_without = _share_right(keys, rights)


def without(ballot: Ballot, name: str) -> Ballot:
    """The ballot without the outputs of one member; where it was the only voter, the candidates vote."""
    voters = [voter for voter in ballot.voters or () if voter.member != name] or None
    return replace(ballot, candidates=[one for one in ballot.candidates if one.member != name], voters=voters)


def _settings_without(settings: Settings, ballots: Sequence[Ballot], name: str) -> Settings:
    """The same for the panel without one member."""
    left = [without(ballot, name) for ballot in ballots]
    if settings.shares == AGREEMENT:
        alone = len({member for ballot in left for member in _members(ballot)}) < 2
        entries = (Entry("", ballot) for ballot in left)
        return settings.replace(shares=None) if alone else resolve_shares(settings, entries)
    if isinstance(settings.shares, Mapping):
        shares = {member: share for member, share in settings.shares.items() if member != name}
        return settings.replace(shares=shares if any(shares.values()) else None)
    return settings


def tables(report: PanelSummary) -> list[Table]:
    """The members; of answers, how often they are right; how far each two agree. Members are numbered."""
    labels = [f"{i} {escape_controls(member.name)}" for i, member in enumerate(report.members, 1)]
    parts = [_member_table(report, labels)]
    parts += [_accuracy_table(report, labels)] if report.answers else []
    rows = list(map(TableRow, labels, report.matrix))
    decimals = 0 if report.answers else 2
    columns = [Column(str(i), decimals, percent=report.answers) for i in range(1, len(labels) + 1)]
    return [*parts, Table(columns, rows, "member", matrix_title(report))]


def _member_table(report: PanelSummary, labels: Sequence[str]) -> Table:
    columns = [Column(name, decimals=0) for name in ("outputs", "wins")]
    columns += [_percent("share %")]
    columns += [] if report.answers else [Column("agreement", decimals=3)]
    columns += [Column("changed", decimals=0), Column("twins" if report.answers else "copies")]
    numbers = {member.name: i for i, member in enumerate(report.members, 1)}
    rows = []
    for label, one in zip(labels, report.members, strict=True):
        cells: list[Value] = [one.outputs, one.wins, one.share]
        cells += [] if report.answers else [one.agreement]
        cells += [one.changed, " ".join(str(numbers[name]) for name in one.twins)]
        rows.append(TableRow(label, cells))
    notes = [
        f"{report.ballots:,} ballots by {report.measure}; {report.elected:,} have a winner.",
        "wins: the similarity cannot tell its output from the elected one, so that several members may win. "
        "changed: ballots with another winner without it.",
    ]
    if report.answers:
        notes.append("twins make the same mistakes; with --shares agreement they divide one share.")
    else:
        notes += [
            "agreement: mean similarity to the other members' outputs. Of texts it does not say who is good: "
            "there is no estimate of accuracy, and shares are equal unless you give them.",
            "copies wrote the same text in nine of ten ballots or more.",
        ]
    if far := _far_off(report):
        notes.append(
            f"far off, because these members hardly ever agree with the others: "
            f"{', '.join(map(escape_controls, far))}. Look at their outputs, and leave them out or give them "
            "smaller shares if they are wrong."
        )
    return Table(columns, rows, "member", "Members of the panel", notes)


def _far_off(report: PanelSummary) -> list[str]:
    """Members whose agreement is near zero: for answers no better than chance, for texts far below the usual
    one. Nobody where all are like that."""
    agreements = {member.name: member.agreement for member in report.members if member.agreement is not None}
    if not agreements:
        return []
    limit = 1 / ANSWERS if report.answers else FAR_OFF * median(agreements.values())
    far = [name for name, agreement in agreements.items() if agreement <= limit]
    return far if len(far) < len(agreements) else []


def _accuracy_table(report: PanelSummary, labels: Sequence[str]) -> Table:
    labelled = report.accuracy is not None
    columns = [_percent("agreement %"), Column("95 %"), _percent("share by agreement %")]
    if labelled:
        columns += [_percent("accuracy %", "highest"), Column("95 %"), _percent("panel without it %")]
    rows = []
    for label, one in zip(labels, report.members, strict=True):
        cells: list[Value] = [one.agreement, _percents(one.interval), one.agreement_share]
        if labelled:
            cells += [one.accuracy, _percents(one.accuracy_interval), one.accuracy_without]
        rows.append(TableRow(label, cells))
    notes = [
        "agreement: how often its answer is that of the election without it and its twins (with shares by "
        "agreement), of the ballots it answers. It estimates accuracy without labels, too high where others "
        "share its mistakes.",
        "95 %: intervals by Wilson over the ballots. share by agreement: what --shares agreement gives it.",
    ]
    if labelled:
        best = max(report.members, key=lambda one: one.accuracy or 0.0)
        notes += [
            "accuracy: of all its outputs; one without an answer is wrong. panel without it: winners that "
            "are right if it is left out.",
            f"The panel is right in {100 * (report.accuracy or 0):.1f} % "
            f"{_percents(report.accuracy_interval)} of the ballots, with shares by agreement in "
            f"{100 * (report.accuracy_by_agreement or 0):.1f} %; the best member alone, "
            f"{escape_controls(best.name)}, in {100 * (best.accuracy or 0):.1f} %.",
        ]
    return Table(columns, rows, "member", "How often members are right", notes)


def matrix_title(report: PanelSummary) -> str:
    """What the numbers of the matrix are."""
    if report.answers:
        return "How often two members give the same answer, in % of the ballots that both answer"
    return f"Mean similarity of two members' outputs by {report.measure}"


def picture(report: PanelSummary, kind: str) -> bytes:
    """The matrix, and of answers each member's estimated and true accuracy beside it: .svg, .png or .pdf."""
    from rangevote.evaluation.plot import Dots, matrix_picture

    members, dots = report.members, []
    if report.answers:
        estimates = [one.agreement for one in members], [one.interval for one in members]
        dots.append(Dots("agreement (no labels)", *estimates))
    if report.accuracy is not None:
        accuracies = [one.accuracy for one in members], [one.accuracy_interval for one in members]
        dots.append(Dots("accuracy (labels)", *accuracies))
    names, title = [escape_controls(one.name) for one in members], matrix_title(report)
    return matrix_picture(names, report.matrix, kind, title=title, percent=report.answers, dots=dots)


_STYLE = """\
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 72rem; }
.scroll { overflow: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; text-align: end; border-bottom: 1px solid #8888; vertical-align: bottom; }
th:first-child { text-align: start; overflow-wrap: anywhere; min-width: 8rem; }
td { white-space: nowrap; }
img { max-width: 100%; background: #fff; }
p { max-width: 50rem; }
"""


def html_page(report: PanelSummary) -> str:
    """The report as one file that loads nothing."""
    image = b64encode(picture(report, "svg")).decode()
    *first, between_members = map(to_html, tables(report))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>Panel report · rangevote</title>
<style>
{_STYLE}</style>
</head>
<body>
<h1>Panel report</h1>
{"".join(first)}<div><img alt="{matrix_title(report)}; the same numbers are in the table below"
src="data:image/svg+xml;base64,{image}"></div>
{between_members}<p>rangevote {__version__}</p>
</body>
</html>
"""


def _percent(name: str, best: Best = "") -> Column:
    return Column(name, decimals=1, best=best, percent=True)


def _percents(interval: Interval | None) -> str:
    return between(interval and Interval(100 * interval.low, 100 * interval.high), 1)
