"""Answers from a model in this process: candidates by beam search, voters by sampling."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from secrets import randbelow
from types import TracebackType
from typing import Any

import msgspec
import numpy as np

from rangevote.decoding import get_search
from rangevote.decoding.arrays import Array, library
from rangevote.decoding.base import Search, SearchSum
from rangevote.decoding.sample import Nucleus, Sample
from rangevote.engines.openai.choices import ServerChoice, Usage
from rangevote.engines.openai.sample_and_elect import ElectionOutcome, is_json
from rangevote.errors import DataError, RangevoteError, SetupError, UsageError
from rangevote.generation.generate import Elected, Request, elect_batch
from rangevote.generation.plan import GenerationPlan
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.models.protocol import Integers, LanguageModel, ModelWrapper, Step
from rangevote.service.config import ServiceConfig
from rangevote.service.errors import ApiError, insufficient_votes, invalid
from rangevote.service.metrics import Metrics
from rangevote.service.requests import CompletionRequest
from rangevote.service.upstream import count_votes
from rangevote.similarity.answers import split_reasoning

#: The default search for candidates.
CANDIDATES = "beam:10"
#: The default length of an answer.
MAX_TOKENS = 256
#: Parameters that a local model supports; the others are refused.
SUPPORTED = frozenset({"model", "messages", "prompt", "temperature", "top_p", "seed", "user"})
SUPPORTED |= {"max_tokens", "max_completion_tokens", "stop", "presence_penalty", "frequency_penalty"}
SUPPORTED |= {"metadata", "store"}  # which change nothing
#: Values that ask for nothing, of parameters that are not supported otherwise.
PLAIN: dict[str, tuple[Any, ...]] = {
    "response_format": ({"type": "text"}, {"type": "json_object"}),
    "logprobs": (False,),
    "tools": ([],),
    "tool_choice": ("none",),
}
#: Tokens, beside those that a stop text can have, in which it is looked for.
TAIL = 8


class Stopped(Exception):
    """Nobody waits for the answer any more."""


class RequestModel(ModelWrapper):
    """A model as a request wants it: outputs end at a `stop` text, tokens that were written are penalised,
    and the search can be given up (`gone`) between two tokens.

    An output that has come to a stop text can only end: its log-probability is that of all up to there. A
    state is the model's own, with the tokens that each row has written.
    """

    def __init__(self, model: LanguageModel[Any], gone: threading.Event, body: Mapping[str, Any]) -> None:
        super().__init__(model)
        self._gone, self._stops = gone, stops_of(body)
        self._presence = float(body.get("presence_penalty", 0.0))
        self._frequency = float(body.get("frequency_penalty", 0.0))
        self._tail = max(map(len, self._stops), default=0) + TAIL
        self._remembers = bool(self._stops or self._presence or self._frequency)

    def start(self, inputs: Sequence[Any]) -> Any:
        self._check()
        return super().start(inputs), [()] * len(inputs)

    def select(self, state: Any, rows: Integers) -> Any:
        inner, written = state
        return super().select(inner, rows), [written[row] for row in rows.tolist()]

    def room(self, state: Any) -> Integers | None:
        return super().room(state[0])

    def step(self, state: Any, tokens: Integers | None) -> Step[Any]:
        self._check()
        inner, written = state
        step = super().step(inner, tokens)
        if tokens is not None and self._remembers:
            written = [(*before, token) for before, token in zip(written, tokens.tolist(), strict=True)]
            for scores in (step.log_probs, step.ranking):
                if scores is not None:
                    self._bend(scores, written)
        return replace(step, state=(step.state, written))

    def _bend(self, scores: Array, written: Sequence[tuple[int, ...]]) -> None:
        """Penalise and end, in place; (rows, vocabulary)."""
        for row, before in enumerate(written):
            if self._presence or self._frequency:
                for token, times in Counter(before).items():
                    scores[row, token] -= self._presence + self._frequency * times
                own = scores[row]
                scores[row] -= np.logaddexp.reduce(own) if library(own) is np else own.logsumexp(0)
            text = self.text(before[-self._tail :]) if self._stops else None
            if text is not None and any(stop in text for stop in self._stops):
                scores[row] = -math.inf
                scores[row, self.ends[0]] = 0.0

    def _check(self) -> None:
        if self._gone.is_set():
            raise Stopped


def stops_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The texts at which an answer ends."""
    stop = body.get("stop", ())
    return (stop,) if isinstance(stop, str) else tuple(stop)


class LocalModel:
    """One model, which answers one request at a time in a thread of its own."""

    def __init__(self, model: LanguageModel[Any], name: str, config: ServiceConfig, metrics: Metrics) -> None:
        self._model, self._name, self._config, self._metrics = model, name, config, metrics
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="rangevote-model")

    async def __aenter__(self) -> LocalModel:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def models(self) -> tuple[str, ...]:
        return (self._name,)

    async def check_ready(self) -> None:
        """It is loaded before the service starts."""

    def check(self, request: CompletionRequest) -> None:
        """Refuse what is not supported."""
        for name, value in request.body.items():
            if name not in SUPPORTED and value not in PLAIN.get(name, ()):
                raise invalid(name, "is not supported by a local model", "unsupported_parameter")
        if isinstance(request.options.candidates, int):
            raise invalid("rangevote.candidates", f"must be a search, as {CANDIDATES!r}, for a local model")
        self._input(request)
        self._check_length(request)
        plan = self._plan(request)
        most = self._config.limits.samples
        if plan.candidates.size > most:
            raise invalid("rangevote.candidates", f"must search for at most {most}")
        if plan.candidates.size < request.n:
            raise invalid("n", f"must be at most the number of candidates, {plan.candidates.size}")

    def _check_length(self, request: CompletionRequest) -> None:
        """Refuse answers of more tokens than are allowed; they would be cut off without a word."""
        most = self._config.limits.max_tokens
        for name in ("max_tokens", "max_completion_tokens"):
            if request.body.get(name, 0) > most:
                raise invalid(name, f"must be at most {most} (limits.max_tokens of the service)")
        if (own_length(self._search(request)) or 0) > most:
            message = f"may search for at most {most} new tokens (limits.max_tokens of the service)"
            raise invalid("rangevote.candidates", message)

    async def elect(self, request: CompletionRequest, deadline: float) -> ElectionOutcome:
        """Search and elect; cancelling stops the search."""
        stop, began = threading.Event(), time.monotonic()
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._worker, lambda: self._outcome(request, stop))
        finally:
            stop.set()
            self._metrics.upstream_seconds.add(time.monotonic() - began)

    def _outcome(self, request: CompletionRequest, stop: threading.Event) -> ElectionOutcome:
        plan, input = self._plan(request), self._read(request)
        model = RequestModel(self._model, stop, request.body)
        try:
            elected = elect_batch(model, [Request.of(0, input)], plan)[0]
        except DataError as error:
            raise ApiError(
                400, "the model cannot read this input", code="unreadable_input", note=str(error)
            ) from None
        except SetupError as error:  # memory
            raise ApiError(503, "the model could not answer", code="model_failed", note=str(error)) from None
        return self._among_ended(request, plan, elected, self._length(input))

    def _among_ended(
        self, request: CompletionRequest, plan: GenerationPlan, elected: Elected, read: int
    ) -> ElectionOutcome:
        """The election among what the model ended itself; `read` are the tokens of the input."""
        ballot, result, least = elected.ballot, elected.result, request.options.min_votes
        drawn = len(ballot.voters or ())
        wanted = plan.voters.size if plan.voters is not None else 0
        everyone = [*ballot.candidates, *(ballot.voters or ())]
        standing, choices = _answers(ballot.candidates, request)
        voters = None if ballot.voters is None else _answers(ballot.voters, request)[0]
        if [*standing, *(voters or ())] != everyone:
            ballot = Ballot(standing, voters, source=ballot.source)
            result = count_votes(ballot, plan.settings)
        written = sum(len(one.tokens or ()) + one.finished for one in everyone)
        voting = elected.ballot.voters or elected.ballot.candidates
        cut = sum(not one.finished for one in voting)
        ended = [_choice(one, request) for one in voting if one.finished and request.json]
        wrong = sum(not is_json(choice.text or "") for choice in ended)
        counts = {"usable": len(voting) - cut - wrong, "length": cut, "invalid_json": wrong}
        certain = request.options.adaptive is not None and drawn < wanted
        if wanted > 1 and not certain and len(result.voters) < least:
            raise insufficient_votes(len(result.voters), drawn, least)
        return ElectionOutcome(
            ballot,
            result,
            plan.settings,
            Usage(read, written, read + written),
            len(voting),
            {name: count for name, count in counts.items() if count},
            wanted - drawn,
            certain=certain,
            choices=choices,
            seconds=elected.voting,
        )

    def _search(self, request: CompletionRequest) -> Search:
        return get_search(str(request.options.candidates or CANDIDATES))

    def _plan(self, request: CompletionRequest) -> GenerationPlan:
        """The searches that the request asks for."""
        options, body = request.options, request.body
        search = self._search(request)
        default = own_length(search) or min(MAX_TOKENS, self._config.limits.max_tokens)
        tokens = body.get("max_completion_tokens", body.get("max_tokens", default))
        candidates = _limited(search, request, tokens)
        voters = None if options.voters == "candidates" else _voters(request, tokens)
        adaptive = options.adaptive if isinstance(voters, (Sample, Nucleus)) and request.n == 1 else None
        try:
            within = 0.0 if adaptive is None else options.within
            return GenerationPlan.of(
                options.settings(request.n), candidates, voters, adaptive=adaptive, within=within
            )
        except UsageError as error:
            raise ApiError(
                400, f"rangevote: {error}"[:300], code="invalid_value", param="rangevote"
            ) from None

    def _input(self, request: CompletionRequest) -> Any:
        """What the model is given: a chat if it has a template for them, else the one text there is."""
        if request.endpoint == "completions":
            return request.body["prompt"]
        messages = [_plain(message, i) for i, message in enumerate(request.body["messages"])]
        if self._chats:
            return messages
        if len(messages) != 1 or messages[0]["role"] != "user":
            raise invalid("messages", "must be one user's text: this model knows no conversations")
        return messages[0]["content"]

    @property
    def _chats(self) -> bool:
        return getattr(getattr(self._model, "tokenizer", None), "chat_template", None) is not None

    def _read(self, request: CompletionRequest) -> Any:
        """The same in tokens, where a prompt would else be put into the template; for the model's thread."""
        input = self._input(request)
        if self._chats and isinstance(input, str):
            return list(self._model.tokenizer(input)["input_ids"])  # type: ignore[attr-defined]
        return input

    def _length(self, input: Any) -> int:
        """Tokens of the input."""
        tokenizer = getattr(self._model, "tokenizer", None)
        if isinstance(input, list) and input and isinstance(input[0], dict) and tokenizer is not None:
            text = tokenizer.apply_chat_template(input, add_generation_prompt=True, tokenize=False)
            return len(tokenizer(text, add_special_tokens=False)["input_ids"])
        try:
            return len(input) if isinstance(input, list) else len(self._model.source(input))
        except RangevoteError:
            return 0


def _plain(message: Mapping[str, Any], index: int) -> dict[str, str]:
    """A message of text alone, which is all that is read."""
    content = message.get("content")
    if isinstance(content, list) and all(part.get("type") == "text" for part in content):
        content = "".join(part["text"] for part in content)
    if not isinstance(content, str) or not message.keys() <= {"role", "content", "name"}:
        raise invalid(f"messages[{index}]", "must have a role and a text: a local model reads nothing else")
    return {"role": message["role"], "content": content}


def own_length(search: Search) -> int | None:
    """The greatest length that a search's name states."""
    return search.max_new_tokens if "max_new_tokens" in str(search) else None


def _limited(search: Search, request: CompletionRequest, tokens: int) -> Search:
    """The request's length and seed, where the search's name does not say otherwise."""
    if isinstance(search, SearchSum):
        return SearchSum(tuple(_limited(part, request, tokens) for part in search.parts))
    search = search.with_options(max_new_tokens=min(tokens, own_length(search) or tokens))
    if search.random and getattr(search, "seed", None) == 0:
        search = search.with_options(seed=_seed(request))
    return search


def _voters(request: CompletionRequest, tokens: int) -> Search:
    """Samples as the request wants them; at temperature 0 all are the same, so one is drawn."""
    temperature, p = request.body.get("temperature", 1.0), request.body.get("top_p", 1.0)
    if temperature == 0:
        return get_search("greedy", max_new_tokens=tokens)
    shared: dict[str, Any] = {
        "temperature": float(temperature),
        "seed": _seed(request),
        "max_new_tokens": tokens,
    }
    n = request.options.samples
    return Sample(n, **shared) if p >= 1 else Nucleus(n, p=float(p), **shared)


def _seed(request: CompletionRequest) -> int:
    """The client's, else another one for every request."""
    return randbelow(2**31) if request.seed is None else abs(request.seed)


def _choice(hypothesis: Hypothesis, request: CompletionRequest) -> ServerChoice:
    """An output of the model up to a stop text, with its reasoning apart from its answer."""
    reasoning, text = split_reasoning(hypothesis.text or "", hypothesis.finished)
    for stop in stops_of(request.body):
        text = text.partition(stop)[0]
    return ServerChoice(text, finish_reason="stop" if hypothesis.finished else "length", reasoning=reasoning)


def _answers(
    hypotheses: Sequence[Hypothesis], request: CompletionRequest
) -> tuple[list[Hypothesis], list[ServerChoice]]:
    """The answers, which stand and vote: those that the model ended itself and that are JSON where it was
    asked for, as far as there are any. The tokens of those with more than an answer are not those of it."""
    listed = [(one, _choice(one, request)) for one in hypotheses]
    listed = [both for both in listed if both[0].finished] or listed
    if request.json:
        listed = [both for both in listed if is_json(both[1].text or "")] or listed
    answers = [
        one
        if choice.text == (one.text or "")
        else msgspec.structs.replace(one, text=choice.text, tokens=None)
        for one, choice in listed
    ]
    return answers, [choice for _, choice in listed]
