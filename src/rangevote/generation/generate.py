"""Generate outputs by election: search for candidates, search for voters, vote."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from rangevote.decoding import MAX_ROWS, STREAMS, Batch, check_inputs
from rangevote.decoding.base import Search
from rangevote.election.elect import elect_ballot
from rangevote.election.result import Result
from rangevote.election.sequential_test import rounds
from rangevote.election.settings import ElectionOptions, Settings, settings_of
from rangevote.election.streaming import Electorate
from rangevote.errors import DataError, SetupError, UsageError, warn
from rangevote.generation.plan import GenerationPlan, Model, seeded
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.models.protocol import Engine

if TYPE_CHECKING:
    from typing_extensions import Unpack


def generate(
    model: Model | Mapping[str, Model],
    inputs: Sequence[Any],
    *,
    candidates: Search | str = "beam:10",
    voters: Search | str | None = None,
    adaptive: float | bool | None = None,
    within: float = 0.0,
    states: bool | None = None,
    max_rows: int = MAX_ROWS,
    escalate: str | None = None,
    voter_models: Mapping[str, Model] | None = None,
    **options: Unpack[ElectionOptions],
) -> list[Result]:
    """Search a model's outputs for each input and elect one: a `Result` per input, in order.

    `candidates` and `voters` are searches (`Beam(4, copy_filter=0.5)`, `Sample(1000, seed=1)`) or their
    names as on the command line ("beam:4,copy_filter=0.5", or a sum such as "sample:50+nucleus:50"). Without
    `voters` the candidates vote; under `preset="consensus"`, 50 ancestral and 50 nucleus samples do.
    `adaptive=0.99` (or True) draws sampled voters in rounds and stops, separately for each input, when no
    rival can overtake the leader, or, with `within=0.02`, none by more than 0.02, at that confidence.
    `states` keeps hidden states; by default they are kept if the similarity compares them. At most
    `max_rows` hypotheses are extended at a time. All other options are those of `elect`.

    Several models, `{"small": model, "large": other}`, are a panel: all of them search, their outputs stand
    and vote, and each has an equal share, or the one given in `shares`. With `escalate="share<1"` they are
    asked in order, separately for each input: the next one only if the winner's share of the votes so far is
    below 1 (also "score<0.8", "margin<0.2", or with `adaptive` "undecided"). `voter_models={"small": other}`
    draws the voters from other models; several of these are a panel too.

    >>> from rangevote.models.ngram import NgramModel
    >>> known = ["the train leaves at ten", "a train leaves at ten", "the train leaves at noon", "i know"]
    >>> model = NgramModel.train(2 * known, order=3)
    >>> [result.winner for result in generate(model, ["", "the train"], candidates="beam:4")]
    ['the train leaves at ten', 'leaves at ten']
    """
    settings = settings_of(options)
    plan = GenerationPlan.of(
        settings,
        candidates,
        voters,
        adaptive=adaptive,
        within=within,
        states=states,
        max_rows=max_rows,
        escalate=escalate,
    )
    models = model if isinstance(model, Mapping) else {"": model}
    others = voter_models or {}
    plan = replace(plan.by(models, others), voter_models=others)
    for name, one in (*models.items(), *others.items()):
        if not hasattr(one, "start") and not hasattr(one, "hypotheses"):
            raise UsageError(
                f"model {repr(name) + ' ' if name else ''}must be a language model, got {one!r:.60}; "
                f"rangevote.load makes one of a name, a folder or a transformers model."
            )
    check_inputs(inputs)
    requests = [Request.of(number, input) for number, input in enumerate(inputs)]
    batches = (requests[i : i + plan.batch] for i in range(0, len(requests), plan.batch))
    return [elected.result for batch in batches for elected in elect_batch(models, batch, plan)]


#: Phrases in torch's errors when there is not enough memory.
NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


#: An election or an error for every request, in order; requests are read only when there is room for them.
Elector = Callable[[Iterable["Request"]], Generator["Elected | DataError", None, None]]


@dataclass(frozen=True)
class Request:
    """One input and its number in the run, which determines its random numbers in any batch.

    `blank` is the ballot to fill in: it has id, source and references, but no candidates.
    """

    number: int
    input: Any
    blank: Ballot

    @classmethod
    def of(cls, number: int, input: Any) -> Request:
        """A request with nothing but an input."""
        return cls(number, input, Ballot((), source=input if isinstance(input, str) else None))


@dataclass(frozen=True)
class Elected:
    """One election.

    `reasoning` is the model's reasoning before the winner, if the server separates them. `asked` are the
    members of a panel that were asked, if they are asked in order.
    """

    ballot: Ballot
    result: Result
    reasoning: str = ""
    asked: Sequence[str] = ()


def elect_requests(
    models: Mapping[str, Model], requests: Iterable[Request], plan: GenerationPlan
) -> Generator[Elected | DataError, None, None]:
    """An `Elector` with models in this process.

    If a batch fails, its inputs are tried one by one, in order, as results are consumed.
    """
    source = iter(requests)
    while batch := list(islice(source, plan.batch)):
        try:
            yield from elect_batch(models, batch, plan)
        except DataError as error:
            if len(batch) == 1:
                yield error
            else:
                for request in batch:
                    yield from elect_requests(models, [request], plan)


def elect_batch(
    models: Mapping[str, Model], requests: Sequence[Request], plan: GenerationPlan
) -> list[Elected]:
    """The elections of one batch of requests, which fails as a whole."""
    try:
        return BatchElections(models, requests, plan).elect()
    except RuntimeError as error:  # torch has no error class for this on all devices
        if not any(words in str(error).lower() for words in NO_MEMORY):
            raise
        raise SetupError(
            f"out of memory with {plan.batch} inputs at a time, {plan.max_rows} rows; use fewer rows "
            f"(max_rows), shorter outputs (max_new_tokens) or fewer hypotheses."
        ) from error


@dataclass(eq=False)
class OpenElection:
    """The election of one input, as far as it has come.

    `asked` are the models that were asked, and `result` what they elected. Where voters are drawn in rounds,
    `electorate` counts their votes, and `certain` says whether there were enough.
    """

    request: Request
    candidates: list[Hypothesis] = field(default_factory=list)
    voters: list[Hypothesis] = field(default_factory=list)
    asked: tuple[str, ...] = ()
    result: Result = field(init=False)
    electorate: Electorate = field(init=False)
    certain: bool = False


@dataclass(frozen=True)
class Role:
    """The candidates or the voters: the search for them, and whether a panel of models searches."""

    name: str
    search: Search
    panel: bool

    def search_of(self, member: str) -> Search:
        return seeded(self.search, member) if self.panel else self.search

    def add(self, election: OpenElection, member: str, hypotheses: Sequence[Hypothesis]) -> None:
        """Keep what was found, in a panel with the name of the member."""
        if self.panel:
            hypotheses = [msgspec.structs.replace(one, member=member) for one in hypotheses]
        getattr(election, self.name).extend(hypotheses)

    def leave_out(self, member: str, error: DataError | SetupError) -> None:
        """Warn and go on without a member of a panel; raise if there is only one model."""
        if not self.panel:
            raise error
        warn(f"panel member {member!r} failed and is left out: {error}")


class BatchElections:
    """The elections of a batch; each model reads an input once, for candidates and voters.

    If the models are asked in order, the next one reads only the inputs on which those before did not agree.
    """

    def __init__(
        self, models: Mapping[str, Model], requests: Sequence[Request], plan: GenerationPlan
    ) -> None:
        self._models, self._plan = models, plan
        self._elections = [OpenElection(request) for request in requests]
        self._read: dict[tuple[int, tuple[int, ...]], Batch] = {}  # by model and numbers of inputs

    def elect(self) -> list[Elected]:
        plan, undecided, asked = self._plan, self._elections, tuple[str, ...]()
        stages = [[name] for name in self._models] if plan.escalate else [list(self._models)]
        for stage in stages:
            asked += tuple(stage)
            last, settings = stage is stages[-1], plan.settings
            if plan.escalate and isinstance(settings.shares, Mapping):
                settings = settings.replace(shares={name: settings.shares[name] for name in asked})
            models = {name: self._models[name] for name in stage}
            self._search(Role("candidates", plan.candidates, len(self._models) > 1), models, undecided, last)
            if plan.voters is not None:
                role = Role("voters", plan.voters, len(plan.voter_models or self._models) > 1)
                if plan.confidence is None:
                    self._search(role, plan.voter_models or models, undecided, last)
                elif standing := [election for election in undecided if election.candidates]:
                    confidence = 1 - (1 - plan.confidence) / len(stages)
                    self._draw(role, plan.voter_models or models, standing, settings, confidence)
            for election in undecided:
                election.asked = asked
                if election.candidates or last:
                    election.result = self._result(election, settings)
            self._read.clear()
            undecided = [election for election in undecided if not last and self._goes_on(election)]
            if not undecided:
                break
        return [
            Elected(self._ballot(election), election.result, asked=election.asked if plan.escalate else ())
            for election in self._elections
        ]

    def _ballot(self, election: OpenElection) -> Ballot:
        voters = None if self._plan.voters is None else election.voters
        return msgspec.structs.replace(election.request.blank, candidates=election.candidates, voters=voters)

    def _result(self, election: OpenElection, settings: Settings) -> Result:
        try:
            if self._plan.confidence is not None and election.candidates:
                return election.electorate.result()
            return elect_ballot(self._ballot(election), settings)
        except DataError as error:
            raise error.at(f"inputs[{election.request.number}]") from None

    def _goes_on(self, election: OpenElection) -> bool:
        """Whether the next model is asked about an input."""
        assert self._plan.escalate is not None
        return not election.candidates or self._plan.escalate.goes_on(election.result, election.certain)

    def _draw(
        self,
        role: Role,
        models: Mapping[str, Model],
        elections: Sequence[OpenElection],
        settings: Settings,
        confidence: float,
    ) -> None:
        """Draw voters in rounds, for each input until its election is decided.

        The voters of an input do not depend on the other inputs.
        """
        plan, undecided = self._plan, list(elections)
        for election in elections:
            about = settings.about(election.request.blank.source)
            election.electorate = Electorate(election.candidates, settings=about).add(election.voters)

        def decided() -> bool:
            for election in undecided:
                election.certain = election.electorate.decided(confidence, plan.within)
            undecided[:] = [election for election in undecided if not election.certain]
            return not undecided

        batches = {}
        for name, model in models.items():
            if isinstance(model, Engine):
                raise UsageError("adaptive draws from a model in rounds, which engines do not support.")
            try:
                batches[name] = self._batch(model, elections)
            except (DataError, SetupError) as error:
                role.leave_out(name, error)
        for draws in rounds(role.search.size, decided=decided):
            size = max(1, plan.max_rows // len(undecided))
            places = [elections.index(election) for election in undecided]
            before = [len(election.voters) for election in undecided]
            for name, batch in batches.items():
                search = role.search_of(name)
                for start in range(0, len(draws), size):
                    part = draws[start : start + size]
                    lists = batch.run(search, STREAMS["voters"], part, places)
                    for election, place in zip(undecided, places, strict=True):
                        role.add(election, name, lists[place])
            for election, count in zip(undecided, before, strict=True):
                election.electorate.add(election.voters[count:])
        if plan.escalate and undecided:  # was the last round enough?
            decided()

    def _search(
        self, role: Role, models: Mapping[str, Model], elections: Sequence[OpenElection], last: bool
    ) -> None:
        """Add what the models find; members of a panel that fail are left out."""
        failures: dict[OpenElection, DataError | SetupError] = {}

        def add(name: str, model: Model, some: Sequence[OpenElection]) -> None:
            """If a batch fails, try its inputs one by one."""
            try:
                lists = self._lists(role, name, model, some)
            except (DataError, SetupError) as error:
                if len(some) == 1 or not role.panel:
                    role.leave_out(name, error)
                    failures[some[0]] = error
                else:
                    for election in some:
                        add(name, model, [election])
                return
            for election, hypotheses in zip(some, lists, strict=True):
                role.add(election, name, hypotheses)

        for name, model in models.items():
            add(name, model, elections)
        for election, failure in failures.items():
            if last and not getattr(election, role.name):
                raise failure

    def _lists(
        self, role: Role, name: str, model: Model, elections: Sequence[OpenElection]
    ) -> list[list[Hypothesis]]:
        """All hypotheses of a search, at least one for each input."""
        search = role.search_of(name)
        lists = self._batch(model, elections).search(search, STREAMS[role.name], self._plan.max_rows)
        for election, hypotheses in zip(elections, lists, strict=True):
            if not hypotheses:
                filtered = "" if search.copy_filter is None else " that pass the copy filter"
                raise DataError(
                    f"the search {str(search)!r} found no {role.name}{filtered}.",
                    field=f"inputs[{election.request.number}]",
                )
        return lists

    def _batch(self, model: Model, elections: Sequence[OpenElection]) -> Batch:
        """These inputs, read by the model if they were not before."""
        numbers = [election.request.number for election in elections]
        key = id(model), tuple(numbers)
        if key not in self._read:
            inputs = [election.request.input for election in elections]
            self._read[key] = Batch(model, inputs, numbers, self._plan.states)
        return self._read[key]
