"""`rangevote generate` with a server: searches become requests, elections keep the order of the inputs.

Servers have their own defaults (llama.cpp draws from the 40 best tokens, vLLM follows the model's
configuration). Requests switch off whatever would change the distribution, as far as the server has a
parameter for it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from rangevote.decoding import NAMES, STREAMS
from rangevote.decoding.base import Search
from rangevote.decoding.beam import Beam
from rangevote.decoding.sample import MinP, Nucleus, Sample, Sampling, TopK
from rangevote.engines.openai.client import Client, UpstreamError
from rangevote.engines.openai.sample_and_elect import (
    Query,
    SamplePool,
    ServerElection,
    needs_logprobs,
)
from rangevote.engines.openai.sampling import Samples
from rangevote.errors import DataError, UsageError, choose, warn
from rangevote.formats.choices import CHAT, COMPLETIONS, error_text
from rangevote.generation.generate import Elected, Request
from rangevote.generation.plan import GenerationPlan, derived_seed

#: Fields of a request that users cannot set.
OURS = frozenset({"model", "messages", "prompt", "n", "stream", "stream_options", "best_of"})
#: Statuses that concern one request and not the server.
BAD_REQUEST = frozenset({400, 413, 422})
#: Statuses after which further requests would fail too.
USELESS = frozenset({401, 403, 404})


@dataclass(frozen=True)
class Dialect:
    """A kind of server: the searches it has, and the fields that switch off unwanted truncation."""

    searches: tuple[type[Search], ...]
    off: Mapping[str, float]
    min_tokens: str | None = None


#: --engine -> what such a server supports
DIALECTS = {
    "openai": Dialect((Sample, Nucleus), {"top_p": 1.0}),
    "llama_cpp": Dialect(
        (Sample, Nucleus, TopK, MinP), {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0}
    ),
    "vllm": Dialect(
        (Sample, Nucleus, TopK, MinP, Beam),
        {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
        min_tokens="min_tokens",
    ),
}


#: The field that asks for the log-probabilities of the tokens themselves.
LOGPROBS: dict[str, bool | int] = {CHAT: True, COMPLETIONS: 1}


def beam_fields(path: str, length_penalty: float = 0.0) -> dict[str, Any]:
    """Fields for vLLM's beams, ranked by log P including the end of the sequence."""
    return {
        "use_beam_search": True,
        "length_penalty": length_penalty,
        "temperature": 0.0,
        "include_stop_str_in_output": True,
        "logprobs": LOGPROBS[path],
    }


@dataclass(frozen=True)
class RequestBuilder:
    """Makes the request for a search over an input.

    `chat`: texts are messages of a user, otherwise prompts to be continued. `extra` has further fields of the
    request, which override those of the search; null removes a field. Several `models` of the server are a
    panel; `voter_models` only vote.
    """

    kind: str
    models: tuple[str, ...]
    chat: bool = True
    logprobs: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    voter_models: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        kind: str,
        models: Sequence[str],
        plan: GenerationPlan,
        *,
        chat: bool,
        extra: Mapping[str, Any],
        voter_models: Sequence[str] = (),
    ) -> RequestBuilder:
        """Check that a server of this kind can carry out the plan.

        Log-probabilities are requested only if the election needs them: not every server reports them.
        """
        choose("engine", kind, DIALECTS)
        for search in (plan.candidates, plan.voters):
            if search is not None:
                check_search(search, kind)
        if plan.states:
            raise UsageError("servers do not give hidden states; use another similarity, and no --states.")
        if taken := sorted(OURS & set(extra)):
            raise UsageError(
                f"the field {taken[0]!r} of a request is set by the command and cannot be changed."
            )
        settings = plan.settings
        decide = needs_logprobs(settings) or settings.weights == "importance"
        return cls(kind, tuple(models), chat, decide, extra, tuple(voter_models))

    def query(self, search: Search, request: Request, role: str) -> Query:
        path, body = self._input(request.input)
        members = self.voter_models if role == "voters" and self.voter_models else self.models
        dialect = DIALECTS[self.kind]
        body |= {"model": members[0], "max_tokens": search.max_new_tokens}
        if search.min_new_tokens and dialect.min_tokens:
            body[dialect.min_tokens] = search.min_new_tokens
        if isinstance(search, Beam):
            body |= beam_fields(path, search.length_penalty)
        else:
            assert isinstance(search, Sampling)
            truncation = search.truncation()
            body |= {**dialect.off, "temperature": truncation.temperature}
            if truncation.cut is not None:
                body[truncation.cut] = truncation.amount
        if self.logprobs:
            body["logprobs"] = LOGPROBS[path]
        body = {name: value for name, value in {**body, **self.extra}.items() if value is not None}
        if isinstance(search, Beam):
            return Query(path, body, search.size, beams=True, members=members)
        seed = None
        if self.extra.get("seed", "") is not None:
            # depends on the input's number in the run, so that a resumed run draws the same samples
            seed = derived_seed(search.seed, STREAMS[role], request.number)
        return Query(path, body, search.size * len(members), seed, members=members)

    def _input(self, input: Any) -> tuple[str, dict[str, Any]]:
        """The path and field for a text, token ids, or a conversation."""
        if isinstance(input, str):
            if self.chat:
                return CHAT, {"messages": [{"role": "user", "content": input}]}
            return COMPLETIONS, {"prompt": input}
        if input and all(isinstance(item, dict) for item in input):
            if not self.chat:
                raise DataError("a conversation cannot be asked with --no-chat; give a text.")
            return CHAT, {"messages": input}
        if not input:
            raise DataError("the prompt is empty.")
        return COMPLETIONS, {"prompt": input}


def check_search(search: Search, kind: str) -> None:
    """Refuse a search that such a server does not support."""
    dialect = DIALECTS[kind]
    if type(search) not in dialect.searches:
        offered = ", ".join(sorted(NAMES[each] for each in dialect.searches))
        others = [name for name, other in DIALECTS.items() if type(search) in other.searches]
        hint = f" --engine {' or '.join(others)} can." if others else ""
        raise UsageError(
            f"a server of the kind {kind!r} cannot search by {str(search)!r}, only by: {offered}.{hint}"
        )
    if search.copy_filter is not None:
        raise UsageError("a server cannot prune while it searches; leave the copy filter out.")
    if isinstance(search, Beam) and search.early_stopping:
        raise UsageError("a server continues its beams up to the maximum length; leave early_stopping out.")
    if search.min_new_tokens and dialect.min_tokens is None:
        raise UsageError(f"a server of the kind {kind!r} has no minimum length; leave min_new_tokens out.")


class InputElection(ServerElection):
    """The election for one input: missing samples give a warning, none at all an error."""

    def __init__(
        self, client: Client, builder: RequestBuilder, plan: GenerationPlan, request: Request
    ) -> None:
        candidates = builder.query(plan.candidates, request, "candidates")
        voters = None if plan.voters is None else builder.query(plan.voters, request, "voters")
        super().__init__(
            dict.fromkeys((*builder.models, *builder.voter_models), client),
            plan.settings.about(request.blank.source),
            candidates,
            voters,
            confidence=plan.confidence,
            within=plan.within,
            escalate=plan.escalate,
        )
        self._request = request

    async def fetch(self, member: str, query: Query, draws: range) -> Samples:
        return await super().fetch(member, replace(query, body={**query.body, "model": member}), draws)

    def left_out(self, member: str, error: UpstreamError) -> None:
        where = f"inputs[{self._request.number}]"
        warn(f"{where}: panel member {member!r} failed and is not asked again: {_with_detail(error)}")

    def received(self, query: Query, pool: SamplePool, samples: Samples, asked: int) -> None:
        role = "candidates" if query is self.candidates else "voters"
        if not samples.choices and len(query.members) == 1:
            raise samples.failed[0]
        super().received(query, pool, samples, asked)
        if not samples.choices:
            return
        if len(samples.choices) < asked:
            why = f": {_with_detail(samples.failed[0])}" if samples.failed else "."
            where = f"inputs[{self._request.number}]"
            warn(f"{where}: the server returned only {len(samples.choices)} of {asked} {role}{why}")
        if not self.more and all(choice.kind not in ("text", "tool_calls") for choice in pool.usable):
            kinds = Counter(choice.kind for choice in samples.choices)
            counts = ", ".join(f"{count} of kind {kind!r}" for kind, count in kinds.items())
            raise DataError(f"the server returned no text for {role}, only choices without text: {counts}.")


class ServerElector:
    """Elects for requests with one server, many at a time and in order.

    With `skip`, an input for which the server fails gets an error, and the run goes on.
    """

    def __init__(
        self, client: Client, builder: RequestBuilder, plan: GenerationPlan, *, skip: bool = False
    ) -> None:
        self._client, self._builder, self._plan, self._skip = client, builder, plan, skip

    def __call__(self, requests: Iterable[Request]) -> Generator[Elected | DataError, None, None]:
        """The election for each request, or its error, in order; some elections run ahead."""
        loop, under_way = asyncio.new_event_loop(), deque[asyncio.Task[Elected | DataError]]()
        try:
            loop.run_until_complete(self._client.__aenter__())
            for request in requests:
                under_way.append(loop.create_task(self._result(request)))
                while under_way and not loop.run_until_complete(self._room(under_way)):
                    yield under_way.popleft().result()
            while under_way:
                yield loop.run_until_complete(under_way[0])
                under_way.popleft()
        finally:
            loop.run_until_complete(self._close(under_way))
            loop.close()

    async def _room(self, under_way: Sequence[asyncio.Task[Any]]) -> bool:
        """Wait until the server has room for another election (True) or the first one is done (False).

        An election starts only when its calls can, so that the first ones finish first and their results are
        written while others wait.
        """
        room = asyncio.create_task(self._client.room())
        full = len(under_way) >= 2 * self._client.concurrency
        pending = {under_way[0]} if full else {under_way[0], room}
        await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        room.cancel()
        return not under_way[0].done()

    async def _close(self, under_way: Iterable[asyncio.Task[Any]]) -> None:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await self._client.__aexit__(None, None, None)

    async def _result(self, request: Request) -> Elected | DataError:
        try:
            return await self._elect(request)
        except DataError as error:
            return error.at(f"inputs[{request.number}]")
        except UpstreamError as error:
            message = _with_detail(error)
            fatal = error.kind in ("connect", "rate", "redirect") or error.status in USELESS
            if error.status in BAD_REQUEST or (self._skip and not fatal):
                return DataError(message, field=f"inputs[{request.number}]")
            raise UpstreamError(message, kind=error.kind, status=error.status) from error

    async def _elect(self, request: Request) -> Elected:
        outcome = await InputElection(self._client, self._builder, self._plan, request).elect()
        candidates, voters = outcome.ballot.candidates, outcome.ballot.voters
        ballot = msgspec.structs.replace(request.blank, candidates=candidates, voters=voters)
        reasoning = outcome.choices[outcome.result.leader].reasoning if outcome.result.elected else ""
        asked = [name for name, number in outcome.members.items() if number] if self._plan.escalate else ()
        return Elected(ballot, outcome.result, reasoning, asked)


def _with_detail(error: UpstreamError) -> str:
    """The message with the server's own, which the user of the command may see."""
    if error.status is None:  # there was no response
        return str(error)
    words = error_text(error.answer)
    return f"{error} The server's message: {words}" if words else str(error)
