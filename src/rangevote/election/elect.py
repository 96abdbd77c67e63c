"""Hold one election, or many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from rangevote.election.normalize import prepare
from rangevote.election.result import Result
from rangevote.election.rules import WITHOUT_VOTERS, Contest
from rangevote.election.settings import Grader, Settings, Weights
from rangevote.election.weights import repeated, weigh
from rangevote.errors import DataError, UsageError, warn
from rangevote.hypothesis import Array, Ballot, Hypotheses, Hypothesis
from rangevote.parallel import map_in_order
from rangevote.similarity.base import Poll, open_poll
from rangevote.similarity.tokens import Tokenise

Listed = Hypotheses | Iterable[Hypothesis | str | Sequence[int]]


def elect(
    candidates: Ballot | Listed,
    logprobs: Iterable[float | None] | None = None,
    *,
    voters: Listed | None = None,
    voter_logprobs: Iterable[float | None] | None = None,
    similarity: Grader = "overlap_2",
    weights: Weights = None,
    temperature: float = 1.0,
    rule: str = "range",
    winners: int = 1,
    tokenize: Tokenise = "words",
    preset: str | None = None,
    normalize: str | None = None,
    merge: bool = False,
) -> Result:
    """Elect the most representative candidate: score(c) = sum of P(v) sim(v, c) over the voters.

    `candidates` (texts, token-id lists, `Hypothesis` objects, or one `Ballot`) vote for each other unless
    `voters` are given. `logprobs` are natural-log sums over all tokens, end of sequence included.
    `weights` is "probability", "count" or "importance", or one number for each voter; by default
    count for sampled voters and where a log-probability is not known, else probability, with
    P(v)^(1/temperature). `rule` is "range", "reweighted" (for several `winners`), "most_likely" or
    "length_normalised". `tokenize` says what n-grams are made of: "words", "chars", "13a", "intl",
    "zh", "tokens" (the model's ids) or a function. `preset="blend"` sets similarity and temperature.
    `normalize="NFC"` makes texts comparable that differ in encoding only; `merge=True` lets the
    first of equal texts carry the mass of all.

    >>> elect(["a dog runs", "a dog sits", "cats"], [-1.2, -1.3, -1.0]).winner
    'a dog runs'
    """
    settings = Settings.of(
        similarity, weights, temperature, rule, winners, tokenize, preset, normalize, merge
    )
    if isinstance(candidates, Ballot):
        if logprobs is not None or voters is not None or voter_logprobs is not None:
            raise UsageError("a Ballot brings its own voters and log-probabilities; give it alone.")
        return hold(candidates, settings)
    if voters is None and voter_logprobs is not None:
        raise UsageError("voter_logprobs without voters; give the voters, or use logprobs.")
    slate = Hypotheses.of(candidates, logprobs)
    roll = None if voters is None else Hypotheses.of(voters, voter_logprobs, role="voters")
    return decide(slate, roll, settings)


def hold(ballot: Ballot, settings: Settings) -> Result:
    """The election of one ballot."""
    settings = settings.about(ballot.source)
    slate = Hypotheses.of(ballot.candidates)
    roll = None if ballot.voters is None else Hypotheses.of(ballot.voters, role="voters")
    return decide(slate, roll, settings)


def decide(candidates: Hypotheses, voters: Hypotheses | None, settings: Settings) -> Result:
    """The election among checked columns; `voters=None`: the candidates vote."""
    if not len(candidates):
        raise DataError("there are no candidates, so nobody can be elected.", field="candidates")
    if settings.winners > len(candidates):
        warn(f"{settings.winners} winners asked of {len(candidates)} candidates: all of them are elected.")
    given = candidates if voters is None else voters
    candidates = prepare(candidates, settings.normalize, settings.merge)
    roll = candidates if voters is None else prepare(voters, settings.normalize, settings.merge)
    if settings.rule_name in WITHOUT_VOTERS:
        roll = Hypotheses([], role="voters")
        weighting = "none"
        weights: Array = np.zeros(0)
    else:
        if not len(roll):
            raise DataError(
                "there are no voters; leave the list out to let the candidates vote.", field="voters"
            )
        weighting, weights = weigh(roll, settings.weights, settings.temperature, given)
        if voters is not None and settings.weights is None and weighting == "probability" and repeated(given):
            warn(
                "some voters repeat others and count once, by their probability; if the voters are samples, "
                "use weights='count'."
            )
    return count(candidates, roll, weighting, weights, settings, None)


def count(
    candidates: Hypotheses,
    voters: Hypotheses,
    weighting: str,
    weights: Array,
    settings: Settings,
    poll: Poll | None,
) -> Result:
    """Apply the rule; `poll` may already hold the voters."""

    def opened() -> Poll:
        nonlocal poll
        if poll is None:
            poll = open_poll(settings.similarity, candidates)
            poll.add(voters)
        return poll

    def grades_for(index: int) -> Array:
        return settings.similarity.matrix(candidates.only(index), voters)[:, 0]

    outcome = settings.rule(Contest(candidates, weights, opened, grades_for), settings.winners)
    outcome.scores.flags.writeable = weights.flags.writeable = False
    return Result(
        candidates,
        voters,
        weights,
        outcome.scores,
        outcome.elected,
        settings.signature(weighting, candidates, len(voters)),
        settings.similarity,
    )


def elect_many(
    ballots: Iterable[Ballot | Listed],
    *,
    similarity: Grader = "overlap_2",
    weights: str | None = None,
    temperature: float = 1.0,
    rule: str = "range",
    winners: int = 1,
    tokenize: Tokenise = "words",
    preset: str | None = None,
    normalize: str | None = None,
    merge: bool = False,
    threads: int = 1,
) -> Iterator[Result]:
    """Elections of many ballots, one `Result` each, in order; options as in `elect`.

    Ballots are taken from the iterable as results are asked for, with a bounded look-ahead, so
    memory does not grow. `threads` elections run at a time; the result is the same for any number.

    >>> [result.index for result in elect_many([["a b", "a c", "a b"], ["x", "y", "y"]])]
    [0, 1]
    """
    settings = Settings.of(
        similarity, weights, temperature, rule, winners, tokenize, preset, normalize, merge
    )
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise UsageError(f"threads must be a whole number from 1, got {threads!r}.")

    def one(ballot: Ballot | Listed) -> Result:
        return (
            hold(ballot, settings)
            if isinstance(ballot, Ballot)
            else decide(Hypotheses.of(ballot), None, settings)
        )

    return map_in_order(one, ballots, threads)
