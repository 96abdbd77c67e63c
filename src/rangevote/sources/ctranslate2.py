"""What CTranslate2's `translate_batch` and `generate_batch` give back.

    results = translator.translate_batch(sources, beam_size=10, num_hypotheses=10, return_scores=True,
                                         min_decoding_length=0)
    hypotheses_of(results, text="".join)

A score is the natural log of P, with the end of the sequence, divided by its length to the power of
`length_penalty` (1 by default): here it is multiplied again. Without `return_scores` only the sequences are
known. `min_decoding_length=0` (of generators: `min_length=0`) makes it the model's own P: by default
CTranslate2 forbids the end as the first token and shares its probability out among the others. Penalties for
repetition or coverage and forbidden n-grams change it as well, and it is conditional on a target prefix;
`score_batch` gives what the model itself says of whole sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rangevote.errors import DataError
from rangevote.formats.scores import checked
from rangevote.hypothesis import Hypothesis
from rangevote.sources import each

#: The longest output where the call sets none: of translators and of generators.
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

    def hypothesis(
        index: int, tokens: list[str], ids: Sequence[int] | None, score: float | None, longest: int
    ) -> Hypothesis:
        """The end is counted in a score's length, whether `return_end_token` shows it or not.

        A sequence that has come to the greatest length without it was cut off there.
        """
        shown = bool(tokens) and tokens[-1] == end
        finished = shown or len(tokens) < longest
        length = len(tokens) + (finished and not shown)
        kept = len(tokens) - shown
        return Hypothesis(
            text(tokens[:kept]),
            tokens=None if ids is None else tuple(ids[:kept]),
            logprob=None if score is None else checked(score * length**length_penalty, index, "scores"),
            finished=finished,
            sampled=sampled,
        )

    return [
        [hypothesis(index, *row) for index, row in enumerate(_rows(result, max_length))]
        for result in each(results)
    ]


def _rows(
    result: Any, max_length: int | None
) -> Iterable[tuple[list[str], Sequence[int] | None, float | None, int]]:
    """Tokens, token ids (of generators), score and greatest length of all outputs for one input."""
    result = result.result() if hasattr(result, "result") else result
    kind = next((name for name in LONGEST if hasattr(result, name)), None)
    if kind is None:
        raise DataError(f"expected a TranslationResult or GenerationResult, got {type(result).__name__}.")
    sequences = getattr(result, kind)
    unknown = [None] * len(sequences)
    ids, scores = getattr(result, "sequences_ids", None) or unknown, result.scores or unknown
    longest = [max_length or LONGEST[kind]] * len(sequences)
    return zip(sequences, ids, scores, longest, strict=True)
