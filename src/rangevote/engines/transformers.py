"""Hypotheses from the output of transformers' `generate(return_dict_in_generate=True)`.

    output = model.generate(**inputs, num_beams=10, num_return_sequences=10, output_logits=True,
                            return_dict_in_generate=True)
    hypotheses_of(output, ends=[tokenizer.eos_token_id], inputs=len(prompts), decode=tokenizer.decode)

`sequences_scores` is divided by a power of the length, so log P is summed over the tokens:

* `output_logits=True`: log P of the model itself, for beams and samples.
* beams with `output_scores=True` only: the sum that the search used, changed by logits processors; without
  processors, the model's log P.
* samples with `output_scores=True` only: the scores belong to the changed distribution that the samples were
  drawn from, so log P is unknown. Samples count once each and do not need it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from rangevote.engines import Decode
from rangevote.errors import DataError, UsageError
from rangevote.hypothesis import LOGPROB_SLACK, Hypothesis


def hypotheses_of(
    output: Any,
    *,
    ends: Collection[int],
    inputs: int,
    prompt: int | None = None,
    decode: Decode | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each input, in the output's order.

    `ends` are the tokens that end a sequence, and `decode` turns tokens into text. `inputs` is the number of
    inputs, since an output has the sequences of all inputs in one list, those of the first input first.
    `prompt` is the number of prompt tokens in front of each sequence (1 for encoder-decoders); it is not
    needed if the output has scores, logits or beam indices.
    """
    if not hasattr(output, "sequences"):
        raise UsageError(
            f"expected an output with sequences, got {type(output).__name__}; call generate with "
            f"return_dict_in_generate=True."
        )
    rows = len(output.sequences)
    if inputs < 1 or rows % inputs:
        raise UsageError(
            f"{rows} sequences cannot be those of {inputs} inputs; pass the number of inputs as inputs=."
        )
    reader = _Output(output, frozenset(ends), prompt, decode)
    rows_of_input = rows // inputs
    return [
        [one for row in range(i, i + rows_of_input) if (one := reader.hypothesis(row)) is not None]
        for i in range(0, rows, rows_of_input)
    ]


class _Output:
    """The output of one call, as rows of hypotheses."""

    def __init__(self, output: Any, ends: Collection[int], prompt: int | None, decode: Decode | None) -> None:
        self._output, self._ends, self._decode = output, ends, decode
        beams = getattr(output, "beam_indices", None)  # (rows, steps), -1 after the end
        self._beams = None if beams is None else beams.tolist()
        self._sampled = not hasattr(output, "beam_indices")  # outputs of beams have the field, perhaps None
        self._prompt = self._length_of_prompt() if prompt is None else prompt
        self._steps = self._log_probs()

    def hypothesis(self, row: int) -> Hypothesis | None:
        """One row: its tokens after the prompt, up to the end; None for a beam that was never filled."""
        sequence: list[int] = self._output.sequences[row].tolist()[self._prompt :]
        if self._beams is None:  # what follows the first end is padding, which may consist of ends
            length = next((i for i, token in enumerate(sequence, 1) if token in self._ends), len(sequence))
        else:
            length = sum(beam >= 0 for beam in self._beams[row])
            if not length:
                return None
        sequence = sequence[:length]
        finished = bool(sequence) and sequence[-1] in self._ends
        tokens = sequence[:-1] if finished else sequence
        return Hypothesis(
            None if self._decode is None else self._decode(tokens),
            tokens=tuple(tokens),
            logprob=None if self._steps is None else self._logprob(row, sequence, self._steps),
            finished=finished,
            sampled=self._sampled,
        )

    def _logprob(self, row: int, sequence: list[int], steps: list[tuple[Any, Any]]) -> float:
        """The sum of the scores of the tokens, each in the row of its beam at that step."""
        total = 0.0
        for i, token in enumerate(sequence):
            at, (values, mass) = row if self._beams is None else self._beams[row][i], steps[i]
            total += float(values[at, token]) - (0.0 if mass is None else float(mass[at]))
        if not total <= LOGPROB_SLACK:  # true for NaN too
            raise DataError(
                f"the scores of its tokens add up to {total!r}, which is not a log-probability: processors "
                f"have changed the scores. Call generate with output_logits=True.",
                field=f"sequences[{row}]",
            )
        return min(total, 0.0)

    def _log_probs(self) -> list[tuple[Any, Any]] | None:
        """The scores of every step (rows, vocabulary), and what to subtract for log P (rows,).

        None if log P is unknown.
        """
        if not self._sampled and self._beams is None:
            return None  # it is unknown which beam a token came from
        logits, scores = (getattr(self._output, name, None) for name in ("logits", "scores"))
        if logits is not None:
            return [(step, step.double().logsumexp(-1)) for step in logits]
        return None if self._sampled or scores is None else [(step, None) for step in scores]

    def _length_of_prompt(self) -> int:
        length = int(self._output.sequences.shape[1])
        if self._beams is not None:
            return length - max(int(sum(beam >= 0 for beam in row)) for row in self._beams)
        for name in ("scores", "logits"):
            if getattr(self._output, name, None) is not None and self._sampled:
                return length - len(getattr(self._output, name))
        raise DataError("the length of the prompt is unknown; pass its number of tokens as prompt=.")
