"""Answers from a model in this process: candidates by beam search, voters by sampling, no upstream at all."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from secrets import randbelow
from types import TracebackType
from typing import Any

from rangevote.decoding import get_search
from rangevote.decoding.base import Search
from rangevote.decoding.sample import Nucleus, Sample
from rangevote.election.settings import Settings
from rangevote.errors import DataError, RangevoteError, SetupError, UsageError
from rangevote.generation.batch import Elected, Request, elect_batch
from rangevote.generation.plan import GenerationPlan
from rangevote.hypothesis import Ballot
from rangevote.models.protocol import LanguageModel
from rangevote.service.metrics import Metrics
from rangevote.service.outcome import Outcome, count_votes, finished, too_few
from rangevote.service.problem import Problem, wrong
from rangevote.service.request import Order
from rangevote.service.settings import ServiceSettings
from rangevote.service.stoppable import Stoppable
from rangevote.service.workers import Workers
from rangevote.sources.openai.messages import Usage

#: Who stands for election where nothing else is said.
CANDIDATES = "beam:10"
#: Tokens of an answer where nothing else is said.
MAX_TOKENS = 256
#: Parameters that a local model honours; the others are refused.
HONOURED = frozenset(
    {
        "model",
        "messages",
        "prompt",
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "seed",
        "user",
    }
)
PLAIN = {"response_format": {"type": "text"}}


class Local:
    """One model, which answers one request at a time in a thread of its own."""

    def __init__(
        self, model: LanguageModel[Any], name: str, settings: ServiceSettings, metrics: Metrics
    ) -> None:
        self._model, self._name, self._settings, self._metrics = model, name, settings, metrics
        self._worker = Workers(1, "model")

    async def __aenter__(self) -> Local:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.close()

    async def models(self) -> tuple[str, ...]:
        """The one model."""
        return (self._name,)

    async def check_ready(self) -> None:
        """It is loaded."""

    def check(self, order: Order) -> None:
        """Refuse what cannot be honoured."""
        for name, value in order.body.items():
            if name not in HONOURED and PLAIN.get(name) != value:
                raise wrong(name, "is not supported by a local model", "unsupported_parameter")
        if isinstance(order.options.candidates, int):
            raise wrong("rangevote.candidates", f"must be a search, as {CANDIDATES!r}, for a local model")
        self._input(order)
        plan = self._plan(order)
        most = self._settings.limits.samples
        if plan.candidates.size > most:
            raise wrong("rangevote.candidates", f"must search for at most {most}")
        if plan.candidates.size < order.n:
            raise wrong("n", f"must be at most the number of candidates, {plan.candidates.size}")

    async def elect(self, order: Order, deadline: float) -> Outcome:
        """Search and elect; whoever stops waiting stops the search."""
        stop, began = threading.Event(), time.monotonic()
        try:
            return await self._worker.run(lambda: self._outcome(order, stop))
        finally:
            stop.set()
            self._metrics.upstream_seconds.add(time.monotonic() - began)

    def _outcome(self, order: Order, stop: threading.Event) -> Outcome:
        plan, input = self._plan(order), self._read(order)
        request = Request.of(0, input)
        try:
            found = elect_batch(Stoppable(self._model, stop), [request], plan)[0]
        except DataError as error:
            raise Problem(
                400, "the model cannot read this input", code="unreadable_input", note=str(error)
            ) from None
        except SetupError as error:  # memory
            raise Problem(503, "the model could not answer", code="model_failed", note=str(error)) from None
        drawn = len(found.ballot.voters or ())
        wanted = plan.voters.size if plan.voters is not None else 0
        return self._finished(order, plan.settings, found, input, wanted, drawn)

    def _finished(
        self, order: Order, settings: Settings, found: Elected, input: Any, wanted: int, drawn: int
    ) -> Outcome:
        """The election among what the model ended itself."""
        ballot, result = found.ballot, found.result
        everybody = [*ballot.candidates, *(ballot.voters or ())]
        if not all(one.finished for one in everybody):
            voters = None if ballot.voters is None else finished(ballot.voters)
            ballot = Ballot(finished(ballot.candidates), voters, source=ballot.source)
            result = count_votes(ballot, settings)
        written = sum(len(one.tokens or ()) + one.finished for one in everybody)
        read = self._length(input)
        cut = sum(not one.finished for one in everybody)
        counts = {"usable": len(everybody) - cut, "length": cut}
        certain = order.options.adaptive is not None and drawn < wanted
        if wanted > 1 and not certain and len(result.voters) < order.options.min_votes:
            raise too_few(len(result.voters), drawn, order.options.min_votes)
        return Outcome(
            ballot,
            result,
            settings,
            Usage(read, written, read + written),
            drawn or len(ballot.candidates),
            {name: count for name, count in counts.items() if count},
            wanted - drawn,
            certain=certain,
            seconds=found.voting,
        )

    def _plan(self, order: Order) -> GenerationPlan:
        """The searches that the request asks for."""
        options, body = order.options, order.body
        tokens = body.get("max_completion_tokens", body.get("max_tokens", MAX_TOKENS))
        tokens = min(tokens, self._settings.limits.max_tokens)
        candidates = _limited(get_search(str(options.candidates or CANDIDATES)), order, tokens)
        voters = None if options.voters == "candidates" else _voters(order, tokens)
        adaptive = options.adaptive if isinstance(voters, (Sample, Nucleus)) and order.n == 1 else None
        try:
            return GenerationPlan.of(options.settings(order.n), candidates, voters, adaptive=adaptive)
        except UsageError as error:
            raise Problem(400, f"rangevote: {error}"[:300], code="invalid_value", param="rangevote") from None

    def _input(self, order: Order) -> Any:
        """What the model is given: a chat if it has a template for them, else the one text there is."""
        if order.kind == "completions":
            return order.body["prompt"]
        messages = [_plain(message, i) for i, message in enumerate(order.body["messages"])]
        if self._chats:
            return messages
        if len(messages) != 1 or messages[0]["role"] != "user":
            raise wrong("messages", "must be one user's text: this model knows no conversations")
        return messages[0]["content"]

    @property
    def _chats(self) -> bool:
        return getattr(getattr(self._model, "tokenizer", None), "chat_template", None) is not None

    def _read(self, order: Order) -> Any:
        """The same in tokens, where a prompt would else be put into the template; for the model's thread."""
        input = self._input(order)
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
        raise wrong(f"messages[{index}]", "must have a role and a text: a local model reads nothing else")
    return {"role": message["role"], "content": content}


def _limited(search: Search, order: Order, tokens: int) -> Search:
    """The request's length and seed, where the search's name does not say otherwise."""
    search = replace(search, max_new_tokens=min(tokens, search.max_new_tokens) if _said(search) else tokens)
    if search.random and getattr(search, "seed", None) == 0:
        search = replace(search, seed=_seed(order))  # type: ignore[call-arg]
    return search


def _said(search: Search) -> bool:
    """Whether a search was given its length."""
    return "max_new_tokens" in str(search)


def _voters(order: Order, tokens: int) -> Search:
    """Samples as the request wants them; at temperature 0 all are the same, so one is drawn."""
    temperature, p = order.body.get("temperature", 1.0), order.body.get("top_p", 1.0)
    if temperature == 0:
        return replace(get_search("greedy"), max_new_tokens=tokens)
    shared: dict[str, Any] = {
        "temperature": float(temperature),
        "seed": _seed(order),
        "max_new_tokens": tokens,
    }
    n = order.options.samples
    return Sample(n, **shared) if p >= 1 else Nucleus(n, p=float(p), **shared)


def _seed(order: Order) -> int:
    """The client's, else another one for every request."""
    return randbelow(2**31) if order.seed is None else abs(order.seed)
