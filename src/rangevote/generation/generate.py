"""Generate outputs by election: search for candidates, search for voters, vote."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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


class Role:
    """The candidates or the voters of a batch: which models search for them, and what was found so far."""

    def __init__(self, name: str, search: Search | None, models: Mapping[str, Model], inputs: int) -> None:
        self.name, self.search, self.panel = name, search, len(models) > 1
        self.found: list[list[Hypothesis]] = [[] for _ in range(inputs)]

    def search_of(self, member: str) -> Search:
        assert self.search is not None
        return seeded(self.search, member) if self.panel else self.search

    def add(self, i: int, member: str, hypotheses: Sequence[Hypothesis]) -> None:
        """Keep what was found for input i, in a panel with the name of the member."""
        if self.panel:
            hypotheses = [msgspec.structs.replace(one, member=member) for one in hypotheses]
        self.found[i] += hypotheses

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
        self._models, self._requests, self._plan = models, requests, plan
        self._read: dict[tuple[int, tuple[int, ...]], Batch] = {}  # by model and inputs
        self._candidates = Role("candidates", plan.candidates, models, len(requests))
        self._voters = Role("voters", plan.voters, plan.voter_models or models, len(requests))
        self._electorates: dict[int, Electorate] = {}
        self._certain: set[int] = set()

    def elect(self) -> list[Elected]:
        plan, count = self._plan, len(self._requests)
        stages = [[name] for name in self._models] if plan.escalate else [list(self._models)]
        results: dict[int, Result] = {}
        asked: list[tuple[str, ...]] = [()] * count
        so_far: list[str] = []
        undecided = list(range(count))
        for stage in stages:
            so_far += stage
            last, settings = stage is stages[-1], plan.settings
            if plan.escalate and isinstance(settings.shares, Mapping):
                settings = settings.replace(shares={name: settings.shares[name] for name in so_far})
            models = {name: self._models[name] for name in stage}
            voting = plan.voter_models or models
            self._extend(self._candidates, models, undecided, last)
            if plan.confidence is not None:
                confidence = 1 - (1 - plan.confidence) / len(stages)
                self._until_decided(voting, undecided, settings, confidence)
            elif plan.voters is not None:
                self._extend(self._voters, voting, undecided, last)
            for i in undecided:
                asked[i] = tuple(so_far)
                if self._candidates.found[i] or last:
                    results[i] = self._result(i, settings)
            undecided = [i for i in undecided if not last and self._goes_on(i, results)]
            self._read.clear()
            if not undecided:
                break
        return [
            Elected(self._ballot(i), results[i], asked=asked[i] if plan.escalate else ())
            for i in range(count)
        ]

    def _ballot(self, i: int) -> Ballot:
        voters = None if self._plan.voters is None else self._voters.found[i]
        blank = self._requests[i].blank
        return msgspec.structs.replace(blank, candidates=self._candidates.found[i], voters=voters)

    def _result(self, i: int, settings: Settings) -> Result:
        try:
            if i in self._electorates:
                return self._electorates[i].result()
            return elect_ballot(self._ballot(i), settings)
        except DataError as error:
            raise error.at(f"inputs[{self._requests[i].number}]") from None

    def _goes_on(self, i: int, results: Mapping[int, Result]) -> bool:
        """Whether the next model is asked about an input."""
        assert self._plan.escalate is not None
        return i not in results or self._plan.escalate.goes_on(results[i], i in self._certain)

    def _until_decided(
        self, models: Mapping[str, Model], wanted: Sequence[int], settings: Settings, confidence: float
    ) -> None:
        """Draw voters in rounds, for each input until its election is decided.

        The voters of an input do not depend on the other inputs.
        """
        plan, role = self._plan, self._voters
        assert plan.voters is not None
        self._certain.clear()
        wanted = [i for i in wanted if self._candidates.found[i]]
        for i in wanted:
            about = settings.about(self._requests[i].blank.source)
            self._electorates[i] = Electorate(self._candidates.found[i], settings=about)
            self._electorates[i].add(role.found[i])
        undecided = list(wanted)

        def decided() -> bool:
            self._certain.update(
                i for i in undecided if self._electorates[i].decided(confidence, plan.within)
            )
            undecided[:] = [i for i in undecided if i not in self._certain]
            return not undecided

        batches = {}
        for name, model in models.items():
            if isinstance(model, Engine):
                raise UsageError("adaptive draws from a model in rounds, which engines do not support.")
            try:
                batches[name] = self._batch(model, wanted)
            except (DataError, SetupError) as error:
                role.leave_out(name, error)
        for draws in rounds(plan.voters.size, decided=decided):
            several = max(1, plan.max_rows // len(undecided))
            places = [wanted.index(i) for i in undecided]
            before = {i: len(role.found[i]) for i in undecided}
            for name, batch in batches.items():
                search = role.search_of(name)
                for start in range(0, len(draws), several):
                    some = draws[start : start + several]
                    lists = batch.run(search, STREAMS["voters"], some, places)
                    for i, place in zip(undecided, places, strict=True):
                        role.add(i, name, lists[place])
            for i, known in before.items():
                self._electorates[i].add(role.found[i][known:])
        if plan.escalate and undecided:  # was the last round enough?
            decided()

    def _extend(self, role: Role, models: Mapping[str, Model], wanted: Sequence[int], last: bool) -> None:
        """Add what the models find; members of a panel that fail are left out."""
        failures: dict[int, DataError | SetupError] = {}

        def add(name: str, model: Model, some: Sequence[int]) -> None:
            """If a batch fails, try its inputs one by one."""
            try:
                found = self._search(role, name, model, some)
            except (DataError, SetupError) as error:
                if len(some) == 1 or not role.panel:
                    role.leave_out(name, error)
                    failures[some[0]] = error
                else:
                    for i in some:
                        add(name, model, [i])
                return
            for i, hypotheses in zip(some, found, strict=True):
                role.add(i, name, hypotheses)

        for name, model in models.items():
            add(name, model, wanted)
        for i, failure in failures.items():
            if last and not role.found[i]:
                raise failure

    def _batch(self, model: Model, wanted: Sequence[int]) -> Batch:
        """These inputs, read by the model if they were not before."""
        key = id(model), tuple(wanted)
        if key not in self._read:
            requests = [self._requests[i] for i in wanted]
            inputs, numbers = [one.input for one in requests], [one.number for one in requests]
            self._read[key] = Batch(model, inputs, numbers, self._plan.states)
        return self._read[key]

    def _search(self, role: Role, name: str, model: Model, wanted: Sequence[int]) -> list[list[Hypothesis]]:
        """All hypotheses of a search, at least one for each input."""
        search = role.search_of(name)
        hypotheses = self._batch(model, wanted).search(search, STREAMS[role.name], self._plan.max_rows)
        for i, found in zip(wanted, hypotheses, strict=True):
            if not found:
                filtered = "" if search.copy_filter is None else " that pass the copy filter"
                raise DataError(
                    f"the search {str(search)!r} found no {role.name}{filtered}.",
                    field=f"inputs[{self._requests[i].number}]",
                )
        return hypotheses
