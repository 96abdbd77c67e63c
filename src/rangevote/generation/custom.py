"""Elections inside transformers' own `generate`: its `custom_generate` argument takes `custom_generate`.

    model.generate(**inputs, custom_generate=rangevote.custom_generate, num_beams=10, similarity="overlap_2")

Everything that `generate` prepares is kept: encoder, cache, padding, processors, lengths. Only the
decoding differs: `num_beams` beams (or as many samples, with `do_sample=True`) are the candidates, and
`num_return_sequences` of them are elected. `generate` does not hand its `tokenizer` on to functions, so
token ids vote unless one is bound: `custom_generate.with_options(tokenizer=tokenizer)`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rangevote.decoding.run import MAX_ROWS
from rangevote.errors import choose, need

if TYPE_CHECKING:
    from rangevote.decoding.base import Search
    from rangevote.election.settings import Grader
    from rangevote.similarity.tokens import Tokenise


@dataclass(frozen=True)
class CustomGenerate:
    """A decoding method for `generate(custom_generate=...)`; options are bound here, or given to `generate`.

    `candidates` and `voters` are searches or their names, for which `generate` still sets the longest
    output; without `candidates` they come from `num_beams`, `length_penalty`, `early_stopping` and
    `do_sample`. `voting_temperature` is the `temperature` of `rangevote.elect`: in `generate` that word
    means the one of sampling. The other options are those of `rangevote.generate`.
    """

    tokenizer: Any = None
    candidates: Search | str | None = None
    voters: Search | str | None = None
    similarity: Grader = "overlap_2"
    weights: str | None = None
    voting_temperature: float = 1.0
    rule: str = "range"
    tokenize: Tokenise = "words"
    preset: str | None = None
    normalize: str | None = None
    merge: bool = False
    adaptive: float | bool | None = None
    max_rows: int = MAX_ROWS

    def with_options(self, **options: Any) -> CustomGenerate:
        """The same with other options."""
        known = {field.name: field for field in fields(self)}
        for name in options:
            choose("option of custom_generate", name, known)
        return replace(self, **options)

    @property
    def folder(self) -> str:
        """For `generate(custom_generate=folder, trust_remote_code=True)`, which does take a `tokenizer`."""
        return str(Path(__file__).parent / "hub")

    def __call__(
        self,
        model: Any,
        input_ids: Any,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        *,
        candidates: Search | str | None = None,
        voters: Search | str | None = None,
        similarity: Grader | None = None,
        weights: str | None = None,
        voting_temperature: float | None = None,
        rule: str | None = None,
        tokenize: Tokenise | None = None,
        preset: str | None = None,
        normalize: str | None = None,
        merge: bool | None = None,
        adaptive: float | bool | None = None,
        max_rows: int | None = None,
        **model_kwargs: Any,
    ) -> Any:
        """Called by `generate` with all that it has prepared; returns sequences as `generate` does.

        `model_kwargs` are the network's arguments. None of them may be named here: `generate` takes what a
        signature names for options of the method, and would pass them twice.
        """
        given: dict[str, Any] = {
            "candidates": candidates,
            "voters": voters,
            "similarity": similarity,
            "weights": weights,
            "voting_temperature": voting_temperature,
            "rule": rule,
            "tokenize": tokenize,
            "preset": preset,
            "normalize": normalize,
            "merge": merge,
            "adaptive": adaptive,
            "max_rows": max_rows,
        }
        options = replace(self, **{name: value for name, value in given.items() if value is not None})
        need("torch", "models", "generation")
        from rangevote.generation.prepared import Call

        call = Call(model, input_ids, logits_processor, stopping_criteria, generation_config, model_kwargs)
        return call.elect(options)


custom_generate = CustomGenerate()
