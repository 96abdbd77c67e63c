"""Generate outputs by election."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rangevote.decoding.base import Search
from rangevote.decoding.run import MAX_ROWS
from rangevote.election.result import Result
from rangevote.election.settings import ElectionOptions, Settings
from rangevote.errors import UsageError
from rangevote.generation.batch import Request, elections
from rangevote.generation.plan import GenerationPlan
from rangevote.models.protocol import Engine, LanguageModel

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
    """Search the model's outputs for each input, and elect one; a `Result` for each input, in order.

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
