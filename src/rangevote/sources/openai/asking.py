"""Searches as requests: what the kinds of servers are asked for.

Servers have defaults of their own (llama.cpp draws from the 40 best tokens, vLLM does as the model's
configuration says), so whatever would bend the distribution is switched off by name, where the server has a
name for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rangevote.decoding import NAMES
from rangevote.decoding.base import Search
from rangevote.decoding.beam import Beam
from rangevote.decoding.sample import MinP, Nucleus, Sample, Sampling, TopK
from rangevote.election.rules import WITHOUT_VOTERS
from rangevote.errors import DataError, UsageError, choose
from rangevote.generation.plan import GenerationPlan
from rangevote.sources.openai.messages import CHAT, COMPLETIONS

#: Fields of a request that are not the user's to set.
OURS = frozenset({"model", "messages", "prompt", "n", "stream", "stream_options", "best_of"})


@dataclass(frozen=True)
class Dialect:
    """A kind of server: which searches it has, and what switches truncations off that are not wanted."""

    searches: tuple[type[Search], ...]
    off: Mapping[str, float]
    min_tokens: str | None = None


#: --source -> what such a server understands
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


@dataclass(frozen=True)
class Asking:
    """Makes the request for a search over an input.

    `chat`: texts are messages of a user, else prompts to be continued. `extra` are further fields of the
    request, over those that the search sets; null takes a field out.
    """

    kind: str
    model: str
    chat: bool = True
    logprobs: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, kind: str, model: str, plan: GenerationPlan, *, chat: bool, extra: Mapping[str, Any]
    ) -> Asking:
        """Check that a server of this kind can do what is planned.

        Log-probabilities are asked for only where they decide something: not every server gives them.
        """
        dialect = choose("source", kind, DIALECTS)
        for search in (plan.candidates, plan.voters):
            if search is not None:
                _check(search, kind, dialect)
        if plan.states:
            raise UsageError("servers do not give hidden states; use another similarity, and no --states.")
        if taken := sorted(OURS & set(extra)):
            raise UsageError(
                f"the field {taken[0]!r} of a request is set by the command and cannot be given."
            )
        settings = plan.settings
        decide = settings.weights not in (None, "count") or settings.rule in WITHOUT_VOTERS
        return cls(kind, model, chat, decide, extra)

    @property
    def seeded(self) -> bool:
        """Whether requests have a seed."""
        return self.extra.get("seed", "") is not None

    def request(self, search: Search, input: Any) -> tuple[str, dict[str, Any]]:
        """The path and the body, without the number of samples and the seed."""
        path, asked = self._asked(input)
        body = {"model": self.model, **asked, **self._fields(search)}
        if self.logprobs or isinstance(search, Beam):
            body["logprobs"] = True if path == CHAT else 1
        body |= self.extra
        return path, {name: value for name, value in body.items() if value is not None}

    def _asked(self, input: Any) -> tuple[str, dict[str, Any]]:
        """A text, token ids, or a conversation."""
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

    def _fields(self, search: Search) -> dict[str, Any]:
        dialect = DIALECTS[self.kind]
        fields: dict[str, Any] = {"max_tokens": search.max_new_tokens}
        if search.min_new_tokens and dialect.min_tokens:
            fields[dialect.min_tokens] = search.min_new_tokens
        if isinstance(search, Beam):
            # ordered by log P, with the end in the sum; the text is without it all the same
            beam = {"use_beam_search": True, "length_penalty": search.length_penalty}
            return {**fields, **beam, "temperature": 0.0, "include_stop_str_in_output": True}
        assert isinstance(search, Sampling)
        fields |= {"temperature": search.temperature, **dialect.off}
        if isinstance(search, Nucleus):
            fields["top_p"] = search.p
        elif isinstance(search, TopK):
            fields["top_k"] = search.top
        elif isinstance(search, MinP):
            fields["min_p"] = search.p
        return fields


def _check(search: Search, kind: str, dialect: Dialect) -> None:
    if type(search) not in dialect.searches:
        offered = ", ".join(sorted(NAMES[each] for each in dialect.searches))
        others = [name for name, other in DIALECTS.items() if type(search) in other.searches]
        hint = f" Servers of the source {' or '.join(others)} can." if others else ""
        raise UsageError(
            f"a server of the source {kind!r} cannot search by {str(search)!r}, only by: {offered}.{hint}"
        )
    if search.copy_filter is not None:
        raise UsageError("a server cannot prune while it searches; leave the copy filter out.")
    if isinstance(search, Beam) and search.early_stopping:
        raise UsageError("a server searches by beams to the greatest length; leave early_stopping out.")
    if search.min_new_tokens and dialect.min_tokens is None:
        raise UsageError(f"a server of the source {kind!r} has no least length; leave min_new_tokens out.")
