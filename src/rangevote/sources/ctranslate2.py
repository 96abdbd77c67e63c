"""What CTranslate2's `translate_batch` and `generate_batch` give back.

    results = translator.translate_batch(sources, beam_size=10, num_hypotheses=10, return_scores=True,
                                         min_decoding_length=0)
    hypotheses_of(results, text="".join)

A score is the natural log of P, with the end of the sequence, divided by its length to the power of
`length_penalty` (1 unless said otherwise): here it is multiplied again. Without `return_scores` only the
sequences are known. `min_decoding_length=0` (of generators: `min_length=0`) makes it the model's own P: as it
stands, CTranslate2 forbids the end as the first token and shares its probability out among the others.
Penalties for repetition or coverage and forbidden n-grams bend it as well, and it is given a target prefix;
what the model says of whole sequences is told by `score_batch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rangevote.errors import DataError
from rangevote.formats.score import checked
from rangevote.hypothesis import Hypothesis
from rangevote.sources.outputs import each

#: The longest output where the call says nothing else: of translators and of generators.
LONGEST = {"hypotheses": 256, "sequences": 512}


def hypotheses_of(
    results: Iterable[Any],
    *,
    text: Callable[[list[str]], str] = " ".join,
    length_penalty: float = 1.0,
    max_length: int | None = None,
    end: str = "</s>",
    sampled: bool = False,
) -> list[list[Hypothesis]]:
    """The hypotheses of each result, in its order.

    `text` joins tokens. `length_penalty`, `max_length` (`max_decoding_length`) and `sampled` (whether tokens
    were drawn: `beam_size=1` with `sampling_topk` other than 1) must be those of the call. Generators must be
    called with `include_prompt_in_result=False`. Asynchronous results are waited for.
    """
    call = _Call(text, length_penalty, max_length, end, sampled)
    return [call.hypotheses(result) for result in each(results)]


@dataclass(frozen=True)
class _Call:
    """The options of one call, which its scores depend on."""

    text: Callable[[list[str]], str]
    length_penalty: float
    max_length: int | None
    end: str
    sampled: bool

    def hypotheses(self, result: Any) -> list[Hypothesis]:
        """All of one input; generators tell the numbers of their tokens, too."""
        result = result.result() if hasattr(result, "result") else result
        kind = next((name for name in LONGEST if hasattr(result, name)), None)
        if kind is None:
            raise DataError(f"expected a TranslationResult or GenerationResult, got {type(result).__name__}.")
        sequences = getattr(result, kind)
        unknown = [None] * len(sequences)
        ids, scores = getattr(result, "sequences_ids", None) or unknown, result.scores or unknown
        longest = self.max_length or LONGEST[kind]
        return [
            self._hypothesis(i, *row, longest)
            for i, row in enumerate(zip(sequences, ids, scores, strict=True))
        ]

    def _hypothesis(
        self, index: int, tokens: list[str], ids: Sequence[int] | None, score: float | None, longest: int
    ) -> Hypothesis:
        """The end is counted in a score's length, whether `return_end_token` shows it or not.

        A sequence that has come to the greatest length without it was cut off there.
        """
        shown = bool(tokens) and tokens[-1] == self.end
        finished = shown or len(tokens) < longest
        length = len(tokens) + (finished and not shown)
        kept = len(tokens) - shown
        return Hypothesis(
            self.text(tokens[:kept]),
            tokens=None if ids is None else tuple(ids[:kept]),
            logprob=None if score is None else checked(score * length**self.length_penalty, index, "scores"),
            finished=finished,
            sampled=self.sampled,
        )
