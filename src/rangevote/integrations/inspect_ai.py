"""Elections in Inspect: a solver that samples and elects, and a reducer that elects among epochs.

    Task(dataset, solver=elect_solver(samples=16, similarity="exact:last_number"), scorer=match(numeric=True))

    Task(dataset, solver=generate(), scorer=match(numeric=True), epochs=Epochs(16, elect_reducer()))

The solver passes one output to the scorer. The reducer lets the scorer see all outputs and keeps the score of
the elected answer. The options are those of `rangevote.elect`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspect_ai.scorer import Score, ScoreReducer, score_reducer
from inspect_ai.solver import Generate, Solver, TaskState, fork, generate, solver
from typing_extensions import (
    Unpack,  # also at run time: Inspect reads annotations
)

from rangevote.election.elect import elect
from rangevote.election.settings import ElectionOptions, settings_of
from rangevote.errors import UsageError

if TYPE_CHECKING:
    from rangevote.election.result import Result


@solver
def elect_solver(
    solve: Solver | None = None, *, samples: int = 10, **options: Unpack[ElectionOptions]
) -> Solver:
    """Run `solve` (by default `generate()`) on `samples` copies of the state and continue with the one whose
    output is elected. The state's metadata has the election under "election"."""
    if samples < 1:
        raise UsageError(f"samples is {samples}; it must be at least 1.")
    settings_of(options)
    each = generate() if solve is None else solve

    async def solved(state: TaskState, generate: Generate) -> TaskState:
        states = await fork(state, [each] * samples)
        result = elect([one.output.completion for one in states], **options)
        elected = states[result.leader]
        elected.metadata["election"] = _facts(result)
        return elected

    return solved


@score_reducer
def elect_reducer(**options: Unpack[ElectionOptions]) -> ScoreReducer:
    """The score of the answer that is elected among all epochs. The scorer must set `Score.answer`; epochs
    without an answer do not vote."""
    settings_of(options)

    def reduced(scores: list[Score]) -> Score:
        answered = [score for score in scores if score.answer is not None]
        if not answered:
            raise UsageError(
                "no score has an answer to elect: elect_reducer needs a scorer that gives Score(answer=...), "
                "such as match(), pattern() or choice()."
            )
        result = elect([str(score.answer) for score in answered], **options)
        elected = answered[result.leader]
        metadata = {**(elected.metadata or {}), "election": _facts(result)}
        return elected.model_copy(update={"metadata": metadata})

    return reduced


def _facts(result: Result) -> dict[str, Any]:
    """The facts about an election for the log."""
    fields = result.fields()
    facts = {name: fields[name] for name in ("candidates", "score", "margin", "signature")}
    return facts | {"elected": result.index is not None, "share": result.groups[0].share}
