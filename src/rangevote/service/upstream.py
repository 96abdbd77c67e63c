"""Answers from another server: sample there, or search if it can, and elect here."""

from __future__ import annotations

import time
from types import TracebackType

from rangevote.decoding import get_search
from rangevote.election.rules import WITHOUT_VOTERS
from rangevote.errors import DataError, UsageError
from rangevote.service.metrics import Metrics
from rangevote.service.outcome import Outcome
from rangevote.service.polling import Polling
from rangevote.service.problem import Problem, of_upstream, wrong
from rangevote.service.request import Order
from rangevote.service.sampled import Sampled, characters
from rangevote.service.settings import ServiceSettings
from rangevote.service.workers import Workers
from rangevote.sources.openai.endpoint import Endpoint, Samples, UpstreamError
from rangevote.sources.openai.endpoint import Limits as CallLimits
from rangevote.sources.openai.messages import choices_of, usage_of

#: Log-probabilities of the tokens themselves.
LOGPROBS: dict[str, bool | int] = {"chat": True, "completions": 1}
#: Parameters that have no meaning for a beam search.
OF_SAMPLING = frozenset({"temperature", "top_p", "top_k", "min_p", "seed"})
PATHS = {"chat": "/chat/completions", "completions": "/completions"}
#: Seconds for which a list of models is believed.
MODELS_KEPT = 60.0
#: Characters of samples that are looked through at once; more are looked through in a thread.
FEW = 256 * 2**10


class Upstream:
    """One OpenAI-compatible server behind the service."""

    def __init__(self, settings: ServiceSettings, metrics: Metrics, *, key: str | None = None) -> None:
        assert settings.upstream is not None
        limits = settings.limits
        self._settings, self._metrics = settings, metrics
        self._workers = Workers(limits.workers, "election")
        self._endpoint = Endpoint(
            settings.upstream,
            key=key,
            limits=CallLimits(
                limits.connect_seconds,
                limits.read_seconds,
                limits.total_seconds,
                limits.response_bytes,
                limits.retries,
            ),
            concurrency=limits.upstream_calls,
        )
        self._models: tuple[str, ...] = ()
        self._asked_at = -MODELS_KEPT

    async def __aenter__(self) -> Upstream:
        await self._endpoint.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workers.close()
        await self._endpoint.__aexit__(kind, error, trace)

    async def models(self) -> tuple[str, ...]:
        """The models that clients may ask for: those of the configuration, or those that the server lists."""
        if self._settings.models:
            return self._settings.models
        if time.monotonic() - self._asked_at > MODELS_KEPT:
            try:
                self._models = tuple(await self._endpoint.models())
            except UpstreamError as error:
                if not self._models:  # else the last list will do
                    raise of_upstream(error) from None
            self._asked_at = time.monotonic()
        return self._models

    async def check_ready(self) -> None:
        """Ask the server how it is."""
        try:
            await self._endpoint.models()
        except UpstreamError as error:
            raise of_upstream(error) from None

    def check(self, order: Order) -> None:
        """Refuse what this kind of server cannot do."""
        options = order.options
        try:
            self._settings.check_searches(options)
        except UsageError as error:
            raise Problem(
                400, f"rangevote: {error}"[:300], code="invalid_value", param="rangevote.candidates"
            ) from None
        most = options.candidates
        if isinstance(most, str):
            most = get_search(most).size
            if most > self._settings.limits.samples:
                raise wrong("rangevote.candidates", f"must be at most {self._settings.limits.samples} beams")
        if most is not None and most < order.n:
            raise wrong("n", f"must be at most the number of candidates, {most}")

    async def elect(self, order: Order, deadline: float) -> Outcome:
        """Search for beams if they are to stand, sample, in rounds if that may save some, and elect."""
        options, longest = order.options, self._settings.limits.candidate_tokens
        beams = None
        if isinstance(options.candidates, str):
            beams = await self._beams(order, options.candidates, deadline)
        sampled, certain = Sampled(longest), False
        polling = Polling(order, sampled, beams)
        for wanted in polling.rounds():
            if not await self._round(order, sampled, wanted, deadline):
                break
            polling.check_size(self._settings.limits.pairwise_chars)
            if wanted.stop < options.samples and len(sampled.usable) >= options.min_votes:
                certain = polling.decided() if polling.quick else await self._workers.run(polling.decided)
                if certain:
                    break
        polling.check_quorum()
        if polling.quick:
            return polling.outcome(certain)
        return await self._workers.run(lambda: polling.outcome(certain))

    async def _round(self, order: Order, sampled: Sampled, wanted: range, deadline: float) -> bool:
        """Ask for samples; False where none came though some had before, which then must do."""
        began, seed = time.monotonic(), order.seed
        try:
            samples = await self._endpoint.sample(
                PATHS[order.kind],
                self._body(order),
                len(wanted),
                seed=None if seed is None else seed + wanted.start,
                deadline=deadline,
            )
        except UpstreamError as error:
            if not sampled.usable:
                raise of_upstream(error) from None
            sampled.asked += len(wanted)
            sampled.fail([error], len(wanted))
            return False
        finally:
            self._metrics.upstream_seconds.add(time.monotonic() - began)
        if characters(samples) <= FEW:
            sampled.add(samples, len(wanted))
        else:
            await self._workers.run(lambda: sampled.add(samples, len(wanted)))
        return True

    def _body(self, order: Order) -> dict[str, object]:
        """What the client said; with log-probabilities where its election is to weigh by them."""
        body = dict(order.body)
        settings = order.options.settings(order.n)
        if settings.weights == "probability" or settings.rule in WITHOUT_VOTERS:
            body["logprobs"] = LOGPROBS[order.kind]
        return body

    async def _beams(self, order: Order, named: str, deadline: float) -> Sampled:
        """The beams of a server that can search; without their log-probabilities they are none."""
        search = get_search(named)
        body = {name: value for name, value in order.body.items() if name not in OF_SAMPLING}
        body |= {"n": search.size, "use_beam_search": True, "temperature": 0.0, "length_penalty": 0.0}
        body |= {"include_stop_str_in_output": True, "logprobs": LOGPROBS[order.kind]}  # the end counts
        path, began = PATHS[order.kind], time.monotonic()
        try:
            answer = await self._endpoint.call(path, body, deadline=deadline)
            choices = choices_of(answer, path)
        except UpstreamError as error:
            raise of_upstream(error) from None
        except DataError as error:
            raise _no_beams(str(error)) from None
        finally:
            self._metrics.upstream_seconds.add(time.monotonic() - began)
        beams = Sampled(self._settings.limits.candidate_tokens)
        beams.add(Samples(choices[: search.size], usage_of(answer), 1, []), search.size)
        if not beams.usable or any(choice.logprob is None for choice in beams.usable):
            raise _no_beams("no log-probabilities")
        return beams


def _no_beams(note: str) -> Problem:
    return Problem(502, "the model's server did not answer with beams", code="upstream_beams", note=note)
