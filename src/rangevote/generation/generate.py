"""Generate outputs by election: search for candidates, search for voters, vote."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from rangevote.decoding import MAX_ROWS, STREAMS, SearchBatch, search_batch
from rangevote.decoding.base import Search
from rangevote.election.elect import elect_ballot
from rangevote.election.result import Result
from rangevote.election.sequential_test import rounds
from rangevote.election.settings import ElectionOptions, Settings
from rangevote.election.streaming import Electorate
from rangevote.errors import DataError, SetupError, UsageError, warn
from rangevote.generation.plan import GenerationPlan
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.models.protocol import Engine, Integers, LanguageModel, Step

if TYPE_CHECKING:
    from typing_extensions import Unpack


def generate(
    model: LanguageModel[Any] | Engine,
    inputs: Sequence[Any],
    *,
    candidates: Search | str = "beam:10",
    voters: Search | str | None = None,
    adaptive: float | bool | None = None,
    within: float = 0.0,
    states: bool | None = None,
    max_rows: int = MAX_ROWS,
    voter_models: Mapping[str, LanguageModel[Any] | Engine] | None = None,
    **options: Unpack[ElectionOptions],
) -> list[Result]:
    """Search a model's outputs for each input and elect one: a `Result` per input, in order.

    `candidates` and `voters` are searches (`Beam(4, copy_filter=0.5)`, `Sample(1000, seed=1)`) or their
    names as on the command line ("beam:4,copy_filter=0.5", or a sum as "sample:50+nucleus:50"); without
    `voters` the candidates vote, but under `preset="consensus"` 50 samples and 50 of the nucleus.
    `adaptive=0.99` (or True) draws sampled voters in rounds and stops, for each input by itself, when no
    rival can overtake the leader with that confidence, or with `within=0.02` none by more than that.
    `states` keeps hidden states: by default only where the similarity compares them. At most `max_rows`
    hypotheses are extended at a time. `voter_models={"small": other}` lets other models search for the
    voters; several are a panel, with equal `shares` or those given. All other options are those of `elect`.

    >>> from rangevote.models.ngram import NgramModel
    >>> known = ["the train leaves at ten", "a train leaves at ten", "the train leaves at noon", "i know"]
    >>> model = NgramModel.train(2 * known, order=3)
    >>> [result.winner for result in generate(model, ["", "the train"], candidates="beam:4")]
    ['the train leaves at ten', 'leaves at ten']
    """
    settings = Settings(**options)
    plan = GenerationPlan.of(
        settings,
        candidates,
        voters,
        adaptive=adaptive,
        within=within,
        states=states,
        max_rows=max_rows,
        voter_models=voter_models,
    )
    if not hasattr(model, "start") and not hasattr(model, "hypotheses"):
        raise UsageError(
            f"model must be a language model, got {model!r:.60}; rangevote.load makes one of a name, a "
            f"folder or a transformers model."
        )
    if isinstance(inputs, (str, bytes)) or not isinstance(inputs, Sequence):
        raise UsageError(
            f"inputs must be a list, got {type(inputs).__name__}; for one input give a list of one."
        )
    requests = (Request.of(number, input) for number, input in enumerate(inputs))
    return [elected.result for elected in elections(model, requests, plan)]


T = TypeVar("T")

#: How a model names an input of its batch.
INPUT = re.compile(r"^inputs\[(\d+)\]")
#: What torch says, in several wordings, when there is not enough memory.
NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


#: Elections, or errors in their places, in the order of the requests and in lists that come together.
ElectedBatches = Generator[Iterable["Elected | DataError"], None, None]
#: Elects for every request; requests are taken as there is room for them.
Elector = Callable[[Iterable["Request"]], ElectedBatches]


@dataclass(frozen=True)
class Request:
    """One input and its number in the whole run, which fixes its random numbers whatever is beside it.

    `blank` is the ballot to be filled in: id, source and references are there, candidates are not.
    """

    number: int
    input: Any
    blank: Ballot

    @classmethod
    def of(cls, number: int, input: Any) -> Request:
        """A request that knows no more than its input."""
        return cls(number, input, Ballot((), source=input if isinstance(input, str) else None))


@dataclass(frozen=True)
class Elected:
    """One election, and how many seconds went into finding its hypotheses and into voting.

    What a batch did together is shared out evenly. `reasoning` is what a model wrote to itself before the
    winner, where its server tells them apart.
    """

    ballot: Ballot
    result: Result
    searching: float
    voting: float
    reasoning: str = ""


def elections(
    model: LanguageModel[Any] | Engine, requests: Iterable[Request], plan: GenerationPlan
) -> Iterator[Elected]:
    """The election of every request, batch by batch; requests are taken as results are asked for."""
    for batch in batched(requests, plan.batch):
        yield from elect_batch(model, batch, plan)


def batched(requests: Iterable[T], size: int) -> Iterator[list[T]]:
    """The requests in lists of `size`; the last may be shorter."""
    source = iter(requests)
    while batch := list(islice(source, size)):
        yield batch


def elect_batch(
    model: LanguageModel[Any] | Engine, requests: Sequence[Request], plan: GenerationPlan
) -> list[Elected]:
    """The elections of requests that go through the model together; they fail as a whole."""
    try:
        return BatchElections(model, requests, plan).elect()
    except RuntimeError as error:  # torch has no class of its own for this on every device
        if not any(words in str(error).lower() for words in NO_MEMORY):
            raise
        raise SetupError(
            f"out of memory with {plan.batch} inputs at a time, {plan.max_rows} rows; use fewer rows "
            f"(max_rows), shorter outputs (max_new_tokens) or fewer hypotheses."
        ) from error


def elect_each(
    model: LanguageModel[Any] | Engine, requests: Sequence[Request], plan: GenerationPlan
) -> Iterator[Elected | DataError]:
    """The same, with an error for each input that cannot be answered.

    Where they fail together they are tried one by one, in order, as results are asked for.
    """
    try:
        yield from elect_batch(model, requests, plan)
    except DataError as error:
        if len(requests) == 1:
            yield error
        else:
            for request in requests:
                yield from elect_each(model, [request], plan)


def elect_batches(
    model: LanguageModel[Any] | Engine, requests: Iterable[Request], plan: GenerationPlan
) -> ElectedBatches:
    """An `Elector` by a model in this process."""
    for batch in batched(requests, plan.batch):
        yield elect_each(model, batch, plan)


class BatchElections:
    """Inputs that the model reads once, for the candidates and for the voters."""

    def __init__(
        self, model: LanguageModel[Any] | Engine, requests: Sequence[Request], plan: GenerationPlan
    ) -> None:
        self._requests, self._plan = requests, plan
        self._inputs = [request.input for request in requests]
        self._numbers = [request.number for request in requests]
        self._model = self._bound(model)
        self._voters = {name: self._bound(other) for name, other in plan.voter_models.items()}
        self._voting = 0.0  # seconds spent on votes while drawing voters

    def _bound(self, model: LanguageModel[Any] | Engine) -> BatchReading | Engine:
        return model if isinstance(model, Engine) else BatchReading(model, self._inputs, self._numbers)

    def elect(self) -> list[Elected]:
        plan, began = self._plan, perf_counter()
        candidates = self._search(plan.candidates, "candidates")
        voters: Sequence[Sequence[Hypothesis] | None] = [None] * len(candidates)
        electorates: list[Electorate] = []
        if plan.confidence is not None:
            electorates, voters = self._until_decided(candidates, plan.confidence)
        elif plan.voters is not None:
            voters = self._vote_search(plan.voters)
        searching = (perf_counter() - began - self._voting) / len(candidates)
        elected = []
        for i, request in enumerate(self._requests):
            began = perf_counter()
            ballot = msgspec.structs.replace(request.blank, candidates=candidates[i], voters=voters[i])
            try:
                result = electorates[i].result() if electorates else elect_ballot(ballot, plan.settings)
            except DataError as error:
                raise error.at(f"inputs[{request.number}]") from None
            seconds = self._voting / len(candidates) + perf_counter() - began
            elected.append(Elected(ballot, result, searching, seconds))
        return elected

    def _until_decided(
        self, candidates: list[list[Hypothesis]], confidence: float
    ) -> tuple[list[Electorate], list[list[Hypothesis]]]:
        """Elections whose voters are drawn in rounds, for each until it is decided.

        Which draws are made for an election does not depend on the others.
        """
        plan, sources = self._plan, [request.blank.source for request in self._requests]
        assert plan.voters is not None
        electorates = [
            Electorate(some, settings=plan.settings.about(source))
            for some, source in zip(candidates, sources, strict=True)
        ]
        voters: list[list[Hypothesis]] = [[] for _ in candidates]
        undecided = list(range(len(candidates)))

        def decided() -> bool:
            began = perf_counter()
            undecided[:] = [i for i in undecided if not electorates[i].decided(confidence, plan.within)]
            self._voting += perf_counter() - began
            return not undecided

        stream, model = STREAMS["voters"], self._voter_model
        if isinstance(model, Engine):
            raise UsageError("adaptive voting draws from a model in rounds, which an engine does not let it.")
        with SearchBatch(model, self._inputs, plan.voters, self._numbers, plan.states, stream) as reading:
            for draws in rounds(plan.voters.size, decided=decided):
                several = max(1, plan.max_rows // len(undecided))
                drawn: list[list[Hypothesis]] = [[] for _ in candidates]
                for start in range(0, len(draws), several):
                    for i, some in enumerate(reading.draw(draws[start : start + several], undecided)):
                        drawn[i] += some
                began = perf_counter()
                for i in undecided:
                    voters[i] += drawn[i]
                    electorates[i].add(drawn[i])
                self._voting += perf_counter() - began
        return electorates, voters

    @property
    def _voter_model(self) -> BatchReading | Engine:
        return next(iter(self._voters.values()), self._model)

    def _vote_search(self, search: Search) -> list[list[Hypothesis]]:
        """The voters; of several models each is a member of the panel, and one that fails is left out."""
        if len(self._voters) <= 1:
            return self._search(search, "voters", self._voter_model)
        voters: list[list[Hypothesis]] = [[] for _ in self._requests]
        failure: DataError | SetupError | None = None
        for name, model in self._voters.items():
            try:
                found = self._search(search, "voters", model)
            except (DataError, SetupError) as error:
                failure = error
                warn(f"of the panel, {name!r} failed and is left out: {error}")
                continue
            for mine, some in zip(voters, found, strict=True):
                mine += [msgspec.structs.replace(one, member=name) for one in some]
        if failure is not None and not voters[0]:
            raise failure
        return voters

    def _search(
        self, search: Search, role: str, model: BatchReading | Engine | None = None
    ) -> list[list[Hypothesis]]:
        """All hypotheses of a search, at least one for each input."""
        plan, model = self._plan, model or self._model
        hypotheses = search_batch(
            model, self._inputs, search, self._numbers, plan.states, STREAMS[role], plan.max_rows
        )
        for request, some in zip(self._requests, hypotheses, strict=True):
            if not some:
                filtered = "" if search.copy_filter is None else " that the copy filter lets pass"
                raise DataError(
                    f"the search {str(search)!r} found no {role}{filtered}.",
                    field=f"inputs[{request.number}]",
                )
        return hypotheses


class BatchReading:
    """The model, bound to one batch: every `start` gives the same fresh state.

    A fresh state can be selected from any number of times, so candidates and voters share one reading of the
    prompt. `numbers` are those of the inputs in the whole run, by which errors name them.
    """

    def __init__(self, model: LanguageModel[Any], inputs: Sequence[Any], numbers: Sequence[int]) -> None:
        self._model, self._inputs, self._numbers = model, inputs, numbers
        self._state: Any = None

    def start(self, inputs: Sequence[Any]) -> Any:
        assert inputs is self._inputs  # bound to one batch
        if self._state is None:
            try:
                self._state = self._model.start(inputs)
            except DataError as error:
                field = INPUT.sub(lambda match: f"inputs[{self._numbers[int(match[1])]}]", error.field)
                raise DataError(error.problem, field=field, where=error.where) from error
        return self._state

    @property
    def ends(self) -> Sequence[int]:
        return self._model.ends

    def step(self, state: Any, tokens: Integers | None) -> Step[Any]:
        return self._model.step(state, tokens)

    def select(self, state: Any, rows: Integers) -> Any:
        return self._model.select(state, rows)

    def room(self, state: Any) -> Integers | None:
        return self._model.room(state)

    def text(self, tokens: Sequence[int]) -> str | None:
        return self._model.text(tokens)

    def source(self, input: Any) -> Sequence[int]:
        return self._model.source(input)
