"""Options of commands that run a model: which one, and how its outputs are searched for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import click

from rangevote.cli.options import Command, grouped

if TYPE_CHECKING:
    from rangevote.decoding.base import Search
    from rangevote.election.settings import Settings
    from rangevote.generation.plan import GenerationPlan
    from rangevote.models.protocol import LanguageModel


@dataclass(frozen=True)
class Searching:
    """How candidates and voters are found."""

    candidates: Search
    voters: Search | None
    adaptive: float | None
    states: bool
    max_rows: int

    def plan(self, settings: Settings) -> GenerationPlan:
        """Joined with how they vote."""
        from rangevote.generation.plan import GenerationPlan

        return GenerationPlan.of(
            settings,
            self.candidates,
            self.voters,
            adaptive=self.adaptive,
            states=self.states or None,
            max_rows=self.max_rows,
        )


def searching_options(command: Command) -> Command:
    """How to search; the command gets `searching`, a `Searching`."""
    options = {
        "candidates": click.option(
            "--candidates",
            default="beam:10",
            show_default=True,
            metavar="SEARCH",
            help="Who can be elected; of servers sample:10.",
        ),
        "voters": click.option(
            "--voters", metavar="SEARCH", help="Who votes, as sample:100; else the candidates."
        ),
        "adaptive": click.option(
            "--adaptive",
            is_flag=False,
            flag_value=0.99,
            type=float,
            metavar="[CONFIDENCE]",
            help="Draw voters only until the winner is certain; 0.99 if no number follows.",
        ),
        "max_new_tokens": click.option(
            "--max-new-tokens", type=int, metavar="N", help="Longest output, in both searches."
        ),
        "seed": click.option("--seed", type=int, metavar="N", help="For searches by chance."),
        "copy_filter": click.option(
            "--copy-filter",
            type=float,
            metavar="SHARE",
            help="Prune outputs that copy this share of the input.",
        ),
        "states": click.option("--states", is_flag=True, help="Keep hidden states in the ballots."),
        "max_rows": click.option(
            "--max-rows", type=int, default=256, show_default=True, help="Outputs extended at a time."
        ),
    }

    def build(
        candidates: str,
        voters: str | None,
        adaptive: float | None,
        states: bool,
        max_rows: int,
        **common: Any,
    ) -> Searching:
        roll = None if voters is None else search_of(voters, common)
        return Searching(search_of(_at_server(candidates), common), roll, adaptive, states, max_rows)

    return grouped(command, "searching", options, build)


def _at_server(candidates: str) -> str:
    """Most servers have no beams, so without a wish they sample."""
    context = click.get_current_context()
    wished = context.get_parameter_source("candidates") is click.core.ParameterSource.COMMANDLINE
    return candidates if wished or context.params.get("engine") is None else "sample:10"


def search_of(spec: str, common: Mapping[str, Any]) -> Search:
    """The search that a spec names, with the common options that it has and does not itself set.

    >>> str(search_of("sample:5,seed=3", {"seed": 1, "max_new_tokens": 9}))
    'sample:5,max_new_tokens=9,seed=3'
    """
    from rangevote.decoding import get_search

    search = get_search(spec)
    said = {option.partition("=")[0].strip() for option in spec.split(",")[1:]}
    known = {field.name for field in fields(search)} - said
    return replace(search, **{k: v for k, v in common.items() if k in known and v is not None})


def model_options(command: Command) -> Command:
    """Which model; the command gets `load`, a `Loading`."""
    options = {
        "model": click.option(
            "-m",
            "--model",
            required=True,
            metavar="NAME",
            help="A Hugging Face name, a folder, a GGUF or ARPA file, smollm2, or its name at the server.",
        ),
        "device": click.option("--device", metavar="NAME", help="As cuda or cpu."),
        "dtype": click.option(
            "--dtype", metavar="NAME", help="As float32 or bfloat16; else as the weights are."
        ),
        "no_chat": click.option(
            "--no-chat", is_flag=True, help="Give inputs as they are to a model with a chat template."
        ),
    }

    return grouped(command, "load", options, Loading)


@dataclass(frozen=True)
class Loading:
    """Which model; called, it loads it."""

    model: str
    device: str | None
    dtype: str | None
    no_chat: bool

    def __call__(self) -> LanguageModel[Any]:
        return load_model(model=self.model, device=self.device, dtype=self.dtype, no_chat=self.no_chat)


def load_model(model: str, device: str | None, dtype: str | None, no_chat: bool) -> LanguageModel[Any]:
    """The model of this name."""
    from rangevote.models.load import load

    return load(model, device=device, dtype=dtype, chat=not no_chat)


def reads_images(model: LanguageModel[Any]) -> bool:
    """Whether the model's inputs are images."""
    network = getattr(model, "hf", None)
    if network is None:
        return False
    from rangevote.models.huggingface.inputs import sees

    return sees(network)
