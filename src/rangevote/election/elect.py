"""One election, or many: options -> checked columns -> weights -> rule -> `Result`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rangevote.election.preprocess import prepare
from rangevote.election.result import NO_SUPPORT, Answer, Result, counted_result, with_thresholds
from rangevote.election.rules import RULES, WITHOUT_VOTERS, Contest
from rangevote.election.settings import (
    ElectionOptions,
    Settings,
    has_temperature,
    settings_of,
    with_option_names,
)
from rangevote.election.weights import (
    AGREEMENT,
    MASS_SLACK,
    PanelShares,
    default_weights,
    distinct_mass,
    panel_of,
    repeated,
    warn_of_self_election,
    weigh,
)
from rangevote.errors import DataError, UsageError, warn
from rangevote.hypothesis import Array, Ballot, Hypotheses, Listed, Logprobs, as_ballot
from rangevote.parallel import map_in_order
from rangevote.similarity.base import number_text, pair_limit

if TYPE_CHECKING:
    from typing_extensions import Unpack

Panel = Mapping[str, Listed]
Columns = tuple[Any, Any, PanelShares | None]  # as `_columns` makes them


@with_option_names
def elect(
    candidates: Ballot | Listed | Panel,
    logprobs: Logprobs | Mapping[str, Logprobs] = None,
    *,
    voters: Listed | Panel | None = None,
    voter_logprobs: Logprobs | Mapping[str, Logprobs] = None,
    **options: Unpack[ElectionOptions],
) -> Result:
    """Elect the most representative candidate: score(c) = sum of P(v) sim(v, c) over the voters.

    `candidates` (texts, token-id lists, `Hypothesis` objects, or one `Ballot`, also as a dict of a ballot
    file's shape) vote for each other unless `voters` are given. `logprobs` are natural-log sums over all
    tokens, end of sequence included.
    Outputs of several models are a panel, `elect({"a": [...], "b": [...]})`: the candidates of all members
    stand, and each member has an equal share of the vote (or that in `shares`), however many outputs it has;
    `Result.member` says whose output won. A panel may also vote on the candidates of others, as `voters`.

    The other options are declared in `rangevote.election.settings.Settings`; docs/reference/election.md and
    `rangevote vote --help` list them.

    >>> elect(["a dog runs", "a dog sits", "cats"], [-1.2, -1.3, -1.0]).winner
    'a dog runs'
    >>> elect({"one": ["a dog runs"], "two": ["a dog runs home", "cats"], "three": ["the dog runs"]}).member
    'one'
    """
    settings = settings_of(options)
    candidates = as_ballot(candidates)
    if isinstance(candidates, Ballot):
        if logprobs is not None or voters is not None or voter_logprobs is not None:
            raise UsageError("a Ballot brings its own voters and log-probabilities; give it alone.")
        return _warn_of_voters(elect_ballot(candidates, settings))
    return _warn_of_voters(_elect(_sides(settings, candidates, logprobs, voters, voter_logprobs)))


@with_option_names
def elect_many(
    ballots: Iterable[Ballot | Listed | Panel], *, threads: int = 1, **options: Unpack[ElectionOptions]
) -> Iterator[Result]:
    """Hold many elections: one `Result` per ballot, in order. Options are those of `elect`.

    Ballots are read as results are requested, with a bounded look-ahead, so memory does not grow.
    `threads` elections run at once; the results are the same for any number.
    With `shares="agreement"` all ballots are read first, to find the members' shares from them.

    >>> [result.index for result in elect_many([["a b", "a c", "a b"], ["x", "y", "y"]])]
    [0, 1]
    """
    settings = settings_of(options)
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise UsageError(f"threads must be a whole number from 1, got {threads!r}.")
    if settings.shares == AGREEMENT:
        from rangevote.election.agreement import agreement_shares

        ballots = list(ballots)
        settings = settings.replace(shares=agreement_shares(ballots, **options).shares)

    def together(batch: list[Ballot | Listed | Panel]) -> list[Result | Exception]:
        return list(elect_each(batch, settings))

    results = map_in_order(lambda ballot: elect_ballot(ballot, settings), ballots, threads, together=together)
    return (_warn_of_voters(result) for result in results)


def _warn_of_voters(result: Result) -> Result:
    """Warn of members without voters, and of voters whose probabilities sum to more than 1. Readers of
    files count the first and warn of the second themselves."""
    if result.panel is not None and result.panel.left_out:
        for name in result.panel.left_out:
            missing = f"panel member {name!r} has no {result.voters.role}"
            warn(f"{missing}; its share was divided among the others.")
    voters, weighting = result.voters, result.weighting
    if "probability" not in weighting or (weighting == "probability" and voters.mass <= 1.0):
        return result
    mass = max(distinct_mass(part) for _, part in voters.by_member())
    if mass > 1 + MASS_SLACK:
        warn(
            f"the probabilities of the voters sum to {mass:.4g}, more than 1: they are not natural-log sums "
            f"over all tokens. Give such sums, or use weights='count'."
        )
    return result


class Sides(NamedTuple):
    """Who stands and who votes (None: those who stand), checked, and the options of their election."""

    candidates: Hypotheses
    voters: Hypotheses | None
    settings: Settings


def elect_ballot(ballot: Ballot | Listed | Panel, settings: Settings) -> Result:
    """The election of one ballot, or among the candidates of a list."""
    return _elect(_ballot_sides(ballot, settings))


def elect_each(
    ballots: Sequence[Ballot | Listed | Panel], settings: Settings
) -> Iterator[Result | Exception]:
    """Elections of ballots: one call into the kernels for the usual ones, the others as they are asked for;
    errors are given, not raised."""
    checked: list[Sides | Exception] = []
    for ballot in ballots:
        try:
            checked.append(_ballot_sides(ballot, settings))
        except Exception as error:
            checked.append(error)
    columns = [_columns(*sides) for sides in checked if isinstance(sides, Sides)]
    answers = zip(_answers(columns, settings), columns, strict=True)
    for sides in checked:
        try:
            if isinstance(sides, Exception):
                yield sides
            else:
                answer, (_, _, panel) = next(answers)
                yield _result(sides, answer, panel)
        except Exception as error:
            yield error


def _elect(sides: Sides) -> Result:
    columns = _columns(*sides)
    return _result(sides, _answers([columns], sides.settings)[0], columns[2])


def _ballot_sides(ballot: Ballot | Listed | Panel, settings: Settings) -> Sides:
    ballot = as_ballot(ballot)
    if isinstance(ballot, Ballot):
        return _sides(settings.about(ballot.source), ballot.candidates, voters=ballot.voters)
    return _sides(settings, ballot)


def _sides(
    settings: Settings,
    candidates: Listed | Panel,
    logprobs: Logprobs | Mapping[str, Logprobs] = None,
    voters: Listed | Panel | None = None,
    voter_logprobs: Logprobs | Mapping[str, Logprobs] = None,
) -> Sides:
    if voters is None and voter_logprobs is not None:
        raise UsageError("voter_logprobs without voters; give the voters, or use logprobs.")
    standing = Hypotheses.of(candidates, logprobs)
    voting = None if voters is None else Hypotheses.of(voters, voter_logprobs, role="voters")
    panel, members = (candidates, standing.members) if voting is None else (voters, voting.members)
    if members is None or settings.shares is not None or not isinstance(panel, Mapping):
        return Sides(standing, voting, settings)
    if len(set(members)) < len(panel):  # name those without outputs
        settings = settings.replace(shares=dict.fromkeys(panel, 1.0))
    return Sides(standing, voting, settings)


def _answers(columns: Sequence[Columns], settings: Settings) -> Sequence[Answer | None]:
    """What one call into the kernels says; None of those elections that need a warning, an error or a choice,
    which `elect_columns` makes."""
    if settings.one_call is not None:
        try:
            return settings.one_call.many(columns)
        except MemoryError:  # of one ballot, which `elect_columns` finds
            pass
    return [None] * len(columns)


def _columns(candidates: Hypotheses, voters: Hypotheses | None, settings: Settings) -> Columns:
    """The columns of candidates and voters as the kernels take them: False for what they do not take, None
    for voters where the candidates vote; and the panel of those who vote."""
    refused = (False, None, None)
    if settings.one_call is None or (settings.preset == "consensus" and voters is None):
        return refused
    electors = candidates if voters is None else voters
    if not settings.measure.linear and len(candidates) * len(electors) > pair_limit():
        return refused
    panel = None
    if electors.members is not None or settings.shares is not None:
        try:
            panel = panel_of(electors, settings.shares)
        except (DataError, UsageError):
            return refused
    if voters is None:
        return _side(candidates, panel), None, panel
    return _side(candidates, None), _side(voters, panel), panel


def _side(hypotheses: Hypotheses, panel: PanelShares | None) -> Any:
    """The columns text, log-probability, tokens, finished, sampled, number of the member; and each member's
    share."""
    if hypotheses.texts is None or hypotheses.weights is not None or hypotheses.tool_calls is not None:
        return False
    sampled = members = shares = None
    if hypotheses.sampled:
        rows = hypotheses.rows  # without rows all are sampled
        sampled = [True] * len(hypotheses) if rows is None else [row.sampled for row in rows]
    if panel is not None:
        number = {name: i for i, name in enumerate(panel.shares)}
        members = map(number.__getitem__, hypotheses.members or ())
        shares = panel.shares.values()
    tokens, finished = hypotheses.tokens, hypotheses.finished
    return hypotheses.texts, hypotheses.numbers, tokens, finished, sampled, members, shares


def _result(sides: Sides, answer: Answer | None, panel: PanelShares | None) -> Result:
    if answer is None:
        return elect_columns(*sides)
    result = counted_result(answer, *sides, panel)
    if panel is not None and sides.voters is None:
        warn_of_self_election(panel, sides.candidates)
    return _checked_support(result)


def _checked_support(result: Result) -> Result:
    """The result, with a warning if nobody supports another one, and without a winner if all voters
    abstain."""
    if not result.no_support:
        return result
    electing = result.voters.pick(np.flatnonzero(result.weights > 0).tolist())
    if any(key is not None for key in result.similarity.keys(electing)):
        warn(NO_SUPPORT)
        return result
    answers = result.similarity.label is not None
    nothing = f"{result.similarity.name} finds nothing to compare in any voter, so that all abstain"
    reason = "no voter gave an answer" if answers else nothing
    return replace(result, elected=(), no_winner=reason)


def elect_columns(candidates: Hypotheses, voters: Hypotheses | None, settings: Settings) -> Result:
    """The election among checked columns; `voters=None`: the candidates vote."""
    if not len(candidates):
        raise DataError("there are no candidates, so nobody can be elected.", field="candidates")
    given = candidates if voters is None else voters
    electors = voters
    if settings.normalize or settings.merge:
        candidates = prepare(candidates, settings.normalize, settings.merge)
        electors = None if voters is None else prepare(voters, settings.normalize, settings.merge)
    if settings.rule in WITHOUT_VOTERS:
        return conclude(Contest(candidates), "none", settings)
    if electors is None:
        electors = candidates
    if not len(electors):
        raise DataError("there are no voters; leave the list out to let the candidates vote.", field="voters")
    if candidates.tool_calls is not None or electors.tool_calls is not None:
        settings = settings.with_tool_calls()
    if voters is None and settings.preset == "consensus":
        warn(
            "the preset 'consensus' is for sampled voters, but here the candidates vote; give voters, or use "
            "the preset 'blend'."
        )
    weighting, weights = weigh(electors, settings.weights, settings.vote_temperature, given, settings.shares)
    if settings.weights is None:
        for indices, part in given.by_member():
            _report_weighting(default_weights(part), weights[indices], part)
    evidence, merging = settings.evidence(candidates), settings.merging
    contest = Contest(candidates, electors, weights, settings.measure, evidence=evidence, merging=merging)
    return conclude(contest, weighting, settings)


def _report_weighting(weighting: str, weights: Array, voters: Hypotheses) -> None:
    """Warn of voters that were weighed as is usual, but probably not as was meant."""
    if weighting == "probability" and 0.0 in weights.tolist():  # of equal voters all but one have weight 0
        # a search that ranks by other numbers (groups of diverse beams) may find the same twice: no samples
        if any(voters[i].ranked_by is None for i in repeated(voters)):
            warn(
                f"some {voters.role} repeat others and count once, by their probability; if they are "
                f"samples, use weights='count'."
            )
    elif weighting == "count" and not voters.sampled and any(x is not None for x in voters.numbers or ()):
        warn(
            f"the log-probability of some {voters.role} is not known, so all of them count the same; "
            f"give it, or, if they are samples, use weights='count'."
        )


def conclude(contest: Contest, weighting: str, settings: Settings) -> Result:
    """Apply the rule; `weighting` is the name of the weights for the signature."""
    if settings.temperature is not None and not has_temperature(weighting):
        warn(
            f"the temperature of the votes, {number_text(settings.temperature)}, has no effect: it is for "
            f"weights='probability', and these are {weighting!r}."
        )
    outcome = RULES[settings.rule](contest, settings.winners)
    voters = Hypotheses([], role="voters") if contest.voters is None else contest.voters
    weights = contest.weights if outcome.weights is None else outcome.weights
    outcome.scores.flags.writeable = weights.flags.writeable = False
    if len(outcome.elected) < settings.winners and outcome.no_winner is None:
        number, listed = len(outcome.elected), len(contest.candidates)
        those = "all of them" if number == listed else f"the {number} that the similarity tells apart"
        warn(f"{settings.winners} winners asked of {listed} candidates: {those} are elected.")
    panel = panel_of(voters, settings.shares) if len(voters) else None
    if panel is not None and voters is contest.candidates:
        warn_of_self_election(panel, voters)
    result = Result(
        contest.candidates,
        voters,
        weights,
        outcome.scores,
        outcome.elected,
        settings,
        weighting,
        contest.evidence,
        panel,
        outcome.no_winner,
        no_support=contest.no_support and settings.merging is None,
        all_weights=contest.weights,
        merged=outcome.merged,
    )
    if settings.merging is not None:  # which has asked for the share already
        return result if outcome.no_winner else with_thresholds(result, settings.min_score, None)
    result = _checked_support(result)
    if result.no_winner or (settings.min_score is None and settings.min_share is None):
        return result
    return with_thresholds(result, settings.min_score, settings.min_share)
