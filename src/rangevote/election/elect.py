"""One election, or many: options -> checked columns -> weights -> rule -> `Result`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import astuple

from rangevote.election.panel import AGREEMENT, PanelShares, panel_of, warn_of_self_election
from rangevote.election.preprocess import prepare
from rangevote.election.result import NO_SUPPORT, Answer, Result, counted_result, with_thresholds
from rangevote.election.rules import RULES, WITHOUT_VOTERS, Contest
from rangevote.election.settings import ElectionOptions, Settings, has_temperature, settings_of
from rangevote.election.weights import (
    MASS_SLACK,
    default_weights,
    distinct_mass,
    repeated,
    weigh,
)
from rangevote.errors import DataError, UsageError, warn
from rangevote.hypothesis import Array, Ballot, Hypotheses, Hypothesis, Listed, Logprobs
from rangevote.parallel import map_in_order
from rangevote.similarity.base import pair_limit, short

if TYPE_CHECKING:
    from typing_extensions import Unpack

Panel = Mapping[str, Listed]


def elect(
    candidates: Ballot | Listed | Panel,
    logprobs: Logprobs | Mapping[str, Logprobs] = None,
    *,
    voters: Listed | Panel | None = None,
    voter_logprobs: Logprobs | Mapping[str, Logprobs] = None,
    **options: Unpack[ElectionOptions],
) -> Result:
    """Elect the most representative candidate: score(c) = sum of P(v) sim(v, c) over the voters.

    `candidates` (texts, token-id lists, `Hypothesis` objects, or one `Ballot`) vote for each other unless
    `voters` are given. `logprobs` are natural-log sums over all tokens, end of sequence included.
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
    if not isinstance(candidates, Ballot):
        given = candidates, logprobs, voters, voter_logprobs
        [(answer, panel)] = _answers([given], settings)
        if answer is None:
            return _warn_of_voters(_elect_general(settings, given))
        return _warn_of_voters(counted_result(answer, _copied(given), settings, panel))
    if logprobs is not None or voters is not None or voter_logprobs is not None:
        raise UsageError("a Ballot brings its own voters and log-probabilities; give it alone.")
    return _warn_of_voters(elect_ballot(candidates, settings))


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
    if "probability" not in result.weighting or sum(map(math.exp, result.voter_logprobs())) <= 1.0:
        return result
    mass = max(distinct_mass(part) for _, part in result.voters.by_member())
    if mass > 1 + MASS_SLACK:
        warn(
            f"the probabilities of the voters sum to {mass:.4g}, more than 1: they are not natural-log sums "
            f"over all tokens. Give such sums, or use weights='count'."
        )
    return result


def elect_ballot(ballot: Ballot | Listed | Panel, settings: Settings) -> Result:
    """The election of one ballot, or among the candidates of a list."""
    (result,) = elect_each([ballot], settings)
    if isinstance(result, Exception):
        raise result
    return result


def elect_each(
    ballots: Sequence[Ballot | Listed | Panel], settings: Settings
) -> Iterator[Result | Exception]:
    """Elections of ballots: one call into the kernels for the usual ones, the others as they are asked for;
    errors are given, not raised."""
    lists = list(map(_lists, ballots))
    for ballot, given, (answer, panel) in zip(ballots, lists, _answers(lists, settings), strict=True):
        try:
            if answer is not None:
                yield counted_result(answer, _copied(given), settings, panel)
            else:
                source = ballot.source if isinstance(ballot, Ballot) else None
                yield _elect_general(settings, given, source)
        except Exception as error:
            yield error


#: Candidates, their log-probabilities where they do not carry them, voters and theirs, as they were given.
Lists = tuple[Any, Any, Any, Any]


def _lists(ballot: Ballot | Listed | Panel) -> Lists:
    if isinstance(ballot, Ballot):
        return ballot.candidates, None, ballot.voters, None
    return ballot, None, None, None


def _answers(
    lists: Sequence[Lists], settings: Settings
) -> Iterable[tuple[Answer | None, PanelShares | None]]:
    """What one call into the kernels says, and the panels; None of those elections that the general way has
    to hold, since they need a warning, an error or a choice."""
    if settings.one_call is not None:
        usual = settings.always_one_call
        columns = [
            _columns(given, settings) if usual or not _needs_general(settings, given) else (False, None, None)
            for given in lists
        ]
        with suppress(MemoryError):  # of one ballot, which the general way finds
            return zip(settings.one_call.many(columns), map(itemgetter(2), columns), strict=True)
    return [(None, None)] * len(lists)


#: Fields of hypotheses that an election in one call reads, and those it ignores; the others must be None.
_READ = ("text", "logprob", "tokens", "finished", "sampled")
_IGNORED = ("state", "ranked_by", "token_logprobs", "scores")
_MEMBER = Hypothesis.__struct_fields__.index("member")
_read_columns = itemgetter(*map(Hypothesis.__struct_fields__.index, _READ))
_other_columns = itemgetter(
    *(i for i, name in enumerate(Hypothesis.__struct_fields__) if name not in (*_READ, *_IGNORED, "member"))
)


def _columns(given: Lists, settings: Settings) -> tuple[Any, Any, PanelShares | None]:
    """The columns of candidates and voters as the kernels take them: False for what they do not take, None
    for voters where the candidates vote; and the panel of those who vote."""
    candidates, logprobs, voters, voter_logprobs = given
    standing, members = _side(candidates, logprobs)
    voting = None
    if voters is not None:
        if members is not None and set(map(type, members)) != {str}:
            return False, None, None
        voting, members = _side(voters, voter_logprobs)
    elif voter_logprobs is not None:
        return False, None, None
    if members is None:
        return standing if settings.shares is None else False, voting, None
    numbered = settings.one_call_panel(members)
    if numbered is None or not (standing and voting is not False):
        return False, None, None
    numbers, shares, panel = numbered
    columns = standing if voting is None else voting
    columns = (*columns[:5], *(None,) * (5 - len(columns)), numbers, shares, *columns[7:])
    return (columns, None, panel) if voting is None else (standing, columns, panel)


def _side(listed: Any, logprobs: Any) -> tuple[Any, tuple[Any, ...] | None]:
    """The columns of one list, and its members where it has any."""
    if type(listed) is dict and (logprobs is None or type(logprobs) is dict):
        return _panel_side(listed, logprobs)
    kinds = set(map(type, listed)) if type(listed) is list else set()
    if kinds == {Hypothesis} and logprobs is None:
        columns = tuple(zip(*map(astuple, listed), strict=True))
        members = columns[_MEMBER]
        none = members[0] is None and members.count(None) == len(members)
        read = (*_read_columns(columns), None, None, *_other_columns(columns))
        return read, None if none else members
    if kinds == {str} and logprobs is None:
        return (tuple(listed), None), None
    if kinds == {str} and type(logprobs) is list and len(logprobs) == len(listed):
        return (tuple(listed), tuple(logprobs)), None
    return False, None


def _panel_side(
    listed: dict[Any, Any], logprobs: dict[Any, Any] | None
) -> tuple[Any, tuple[Any, ...] | None]:
    """The same of lists by member; those of a member without outputs are for the general way."""
    lists = list(listed.values())
    if not lists or set(map(type, lists)) != {list} or not all(lists):
        return False, None
    texts, numbers = tuple(chain.from_iterable(lists)), None
    if set(map(type, texts)) != {str}:
        return False, None
    if logprobs is not None:
        known = [logprobs.get(name) for name in listed]
        if set(map(type, known)) != {list} or list(map(len, known)) != list(map(len, lists)):  # type: ignore[arg-type]
            return False, None
        numbers = tuple(chain.from_iterable(known))  # type: ignore[arg-type]
        if len(logprobs) > len(listed):
            return False, None
    members = chain.from_iterable(repeat(name, len(some)) for name, some in listed.items())
    return (texts, numbers), tuple(members)


def _copied(given: Lists) -> Lists:
    """Tuples, since the caller may change the lists; those by member as one list."""
    candidates, logprobs, voters, theirs = given
    return (*_copy(candidates, logprobs, "candidates"), *_copy(voters, theirs, "voters"))


def _copy(listed: Any, logprobs: Any, role: str) -> tuple[Any, Any]:
    if isinstance(listed, dict):
        texts = list(chain.from_iterable(listed.values()))
        members = [name for name, some in listed.items() for _ in some]
        numbers = None if logprobs is None else [x for name in listed for x in logprobs[name]]
        column = None if numbers is None else np.array(numbers, dtype=np.float64)
        complete = numbers is not None and numbers[0] is not None  # all are known, or none is
        return Hypotheses(texts, None, column, None, None, False, None, role, complete, members), None
    return None if listed is None else tuple(listed), None if logprobs is None else tuple(logprobs)


def _needs_general(settings: Settings, given: Lists) -> bool:
    """Whether the pairs may be too many for a measure, or the preset warns of the voters."""
    candidates, _, voters, _ = given
    if settings.preset == "consensus" and voters is None:
        return True
    if settings.measure.linear:
        return False
    standing, voting = (_size(listed) for listed in (candidates, candidates if voters is None else voters))
    return standing * voting > pair_limit()


def _size(listed: Any) -> int:
    """How many there are, where they are lists; others are for the general way."""
    if isinstance(listed, dict):
        return sum(map(_size, listed.values()))
    return len(listed) if isinstance(listed, list) else 0


def _elect_general(settings: Settings, given: Lists, source: str | None = None) -> Result:
    candidates, logprobs, voters, voter_logprobs = given
    if voters is None and voter_logprobs is not None:
        raise UsageError("voter_logprobs without voters; give the voters, or use logprobs.")
    columns = Hypotheses.of(candidates, logprobs)
    settings = settings.about(source)
    electors = None if voters is None else Hypotheses.of(voters, voter_logprobs, role="voters")
    panel, present = (candidates, columns) if electors is None else (voters, electors)
    if (
        isinstance(panel, Mapping)
        and settings.shares is None
        and 0 < len(set(present.members or ())) < len(panel)
    ):
        settings = settings.replace(shares=dict.fromkeys(panel, 1.0))  # those without outputs are named
    return elect_columns(columns, electors, settings)


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
        for indices, own in given.by_member():
            _report_weighting(default_weights(own), weights[indices], own)
    evidence, merging = settings.evidence(candidates), settings.merging
    contest = Contest(candidates, electors, weights, settings.measure, own=evidence, merging=merging)
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
    elif weighting == "count" and not voters.sampled and _some_known(voters.logprobs):
        warn(
            f"the log-probability of some {voters.role} is not known, so all of them count the same; "
            f"give it, or, if they are samples, use weights='count'."
        )


def _some_known(logprobs: Array | None) -> bool:
    return logprobs is not None and not np.isnan(logprobs).all()


def conclude(contest: Contest, weighting: str, settings: Settings) -> Result:
    """Apply the rule; `weighting` is the name of the weights for the signature."""
    if settings.temperature is not None and not has_temperature(weighting):
        warn(
            f"the temperature of the votes, {short(settings.temperature)}, has no effect: it is for "
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
        contest.own,
        panel,
        outcome.no_winner,
        no_support=contest.no_support and settings.merging is None,
        all_weights=contest.weights,
        merged=outcome.merged,
    )
    if settings.merging is not None:  # which has asked for the share already
        return result if outcome.no_winner else with_thresholds(result, settings.min_score, None)
    if result.similarity.label is not None and not outcome.scores.any() and not result.votes:
        return replace(result, elected=(), no_winner="no voter gave an answer")
    if result.no_support:
        warn(NO_SUPPORT)
    if settings.min_score is None and settings.min_share is None:
        return result
    return with_thresholds(result, settings.min_score, settings.min_share)
