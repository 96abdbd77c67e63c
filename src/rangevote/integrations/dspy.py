"""A DSPy module that runs another one several times and returns the elected prediction.

answer = ElectModule(dspy.ChainOfThought("question -> answer"), samples=16, similarity="exact")
answer(question="What is 17 + 25?").answer
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dspy

from rangevote.election.elect import elect
from rangevote.election.settings import ElectionOptions, settings_of
from rangevote.errors import DataError, UsageError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rangevote.election.result import Result


class ElectModule(dspy.Module):
    """Runs `module` on `samples` rollouts of its model, up to `threads` at a time, and elects a prediction by
    its `field` (by default the last output field).

    Rollouts that fail do not vote; if all fail, the first error is raised. The other options are those of
    `rangevote.elect`; `temperature` is that of the votes, not of the samples.
    """

    def __init__(
        self,
        module: dspy.Module,
        *,
        samples: int = 10,
        sampling_temperature: float = 1.0,
        field: str | None = None,
        threads: int = 8,
        **options: Unpack[ElectionOptions],
    ) -> None:
        super().__init__()
        if samples < 1:
            raise UsageError(f"samples is {samples}; it must be at least 1.")
        settings_of(options)
        self.module = module
        self.samples, self.sampling_temperature = samples, sampling_temperature
        self.field, self.threads = field, threads
        self.options = options

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """The elected prediction."""
        predictions, result = self.election(**inputs)
        return predictions[result.leader]

    def election(self, **inputs: Any) -> tuple[list[dspy.Prediction], Result]:
        """All predictions, and the result of their election."""
        model = self.module.get_lm() or dspy.settings.lm
        runs = []
        for rollout in range(self.samples):
            run = self.module.deepcopy()
            run.set_lm(model.copy(rollout_id=rollout, temperature=self.sampling_temperature))
            runs.append((run, inputs))
        parallel = dspy.Parallel(
            num_threads=min(self.threads, self.samples),
            max_errors=self.samples + 1,  # never reached, so the others still vote
            return_failed_examples=True,
            disable_progress_bar=True,
        )
        outcomes, _, errors = parallel(runs)
        predictions = [outcome for outcome in outcomes if outcome is not None]
        if not predictions:
            raise errors[0] if errors else DataError("no rollout returned a prediction.")
        texts = [str(prediction[self.field or list(prediction.keys())[-1]]) for prediction in predictions]
        return predictions, elect(texts, **self.options)
