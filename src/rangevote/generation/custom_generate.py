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

from rangevote.decoding import get_search
from rangevote.decoding.base import Search
from rangevote.decoding.beam import Beam
from rangevote.decoding.run import MAX_ROWS
from rangevote.decoding.sample import Sample
from rangevote.election.result import Result
from rangevote.election.settings import Grader, Settings
from rangevote.errors import DataError, UsageError, choose, need
from rangevote.generation.batch import Request, elect_batch
from rangevote.generation.plan import GenerationPlan
from rangevote.similarity.tokens import Tokenise

if TYPE_CHECKING:
    from torch import Tensor

#: What `generate` can be asked to return and an election does not have.
NOT_KEPT = ("output_logits", "output_attentions", "output_hidden_states")


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
        names, arguments = {field.name for field in fields(self)}, locals()
        given = {name: arguments[name] for name in names if arguments.get(name) is not None}
        need("torch", "models", "generation")
        call = GenerateCall(
            model, input_ids, logits_processor, stopping_criteria, generation_config, model_kwargs
        )
        return call.elect(replace(self, **given))


custom_generate = CustomGenerate()


@dataclass(frozen=True)
class GenerateCall:
    """The arguments that `generate` calls a decoding method with."""

    model: Any
    ids: Tensor  # (rows, length), several equal rows for each input
    processors: Any
    criteria: Any
    config: Any
    kwargs: dict[str, Any]

    def elect(self, options: CustomGenerate) -> Any:
        """The elected sequences (inputs * num_return_sequences, length), or an object that has them."""
        from rangevote.models.huggingface.model import Continued
        from rangevote.models.huggingface.prepare import Prepared

        self._check()
        prepared = Prepared.of(self.model, self.ids, self.processors, self.config, self.kwargs)
        model = Continued(prepared, options.tokenizer)
        plan = self._plan(options)
        requests = [Request.of(number, number) for number in model.inputs]
        # One batch, whatever its size: what was prepared can be read once.
        results = [elected.result for elected in elect_batch(model, requests, plan)]
        return self._output(results, plan.settings.winners, model.ends)

    def _check(self) -> None:
        """Refuse what cannot be honoured, rather than leave it out."""
        from transformers.generation.stopping_criteria import EosTokenCriteria, MaxLengthCriteria

        for criterion in self.criteria:
            if not isinstance(criterion, (MaxLengthCriteria, EosTokenCriteria)):
                raise UsageError(
                    f"the stopping criterion {type(criterion).__name__} cannot be kept in an election: only "
                    f"lengths and end tokens can. Leave it out."
                )
        asked = [name for name in NOT_KEPT if getattr(self.config, name, None)]
        if asked:
            raise UsageError(f"{asked[0]}=True has no meaning for an election; leave it out.")

    def _plan(self, options: CustomGenerate) -> GenerationPlan:
        settings = Settings(
            similarity=options.similarity,
            preset=options.preset,
            weights=options.weights,
            temperature=options.voting_temperature,
            rule=options.rule,
            winners=self._winners(options),
            tokenize=options.tokenize,
            normalize=options.normalize,
            merge=options.merge,
        )
        candidates = self._candidates() if options.candidates is None else get_search(options.candidates)
        voters = None if options.voters is None else self._limited(get_search(options.voters))
        return GenerationPlan.of(
            settings,
            self._limited(candidates),
            voters,
            adaptive=options.adaptive,
            max_rows=options.max_rows,
        )

    def _winners(self, options: CustomGenerate) -> int:
        """`num_return_sequences`; but as many samples as that, without beams, are one election."""
        config = self.config
        only_samples = config.do_sample and (config.num_beams or 1) == 1 and options.candidates is None
        return 1 if only_samples else config.num_return_sequences or 1

    def _candidates(self) -> Search:
        """The search that the generation configuration asks for."""
        import torch

        config = self.config
        several = max(config.num_beams or 1, config.num_return_sequences or 1)
        if several == 1:
            raise UsageError(
                "one candidate is no election: set num_beams=10, or do_sample=True with "
                "num_return_sequences=10, or candidates='beam:10'."
            )
        if config.do_sample:  # temperature, top_k and the like are among the processors
            return Sample(several, seed=int(torch.randint(1 << 31, ())))  # as torch.manual_seed has it
        return Beam(
            several,
            finish="transformers",
            length_penalty=1.0 if config.length_penalty is None else config.length_penalty,
            early_stopping=config.early_stopping or False,
        )

    def _limited(self, search: Search) -> Search:
        """Lengths are `generate`'s to say."""
        return replace(search, max_new_tokens=self.config.max_length - self.ids.shape[1])

    def _output(self, results: list[Result], winners: int, ends: Any) -> Any:
        """What `generate` returns."""
        import torch
        from transformers.generation import utils

        sequences, scores = [], []
        every = len(self.ids) // len(results)
        for prompt, result in zip(self.ids[::every].tolist(), results, strict=True):
            if len(result.elected) < winners:
                raise DataError(
                    f"{winners} sequences are to be returned, but only {len(result.elected)} were found; use "
                    f"more beams, or a smaller num_return_sequences."
                )
            for index in result.elected:
                winner = result.candidates[index]
                end = [ends[0]] if winner.finished and ends else []
                sequences.append([*prompt, *(winner.tokens or ()), *end])
                scores.append(winner.logprob if winner.ranked_by is None else winner.ranked_by)
        padded = self._padded(sequences, ends)
        if not self.config.return_dict_in_generate:
            return padded
        encoder = self.model.config.is_encoder_decoder
        kind: Any = utils.GenerateBeamEncoderDecoderOutput if encoder else utils.GenerateBeamDecoderOnlyOutput
        return kind(sequences=padded, sequences_scores=torch.tensor(scores, device=self.ids.device))

    def _padded(self, sequences: list[list[int]], ends: Any) -> Tensor:
        pad = self.config._pad_token_tensor
        fill = int(pad.flatten()[0]) if pad is not None else ends[0] if ends else -1
        longest = max(map(len, sequences))
        rows = [[*tokens, *[fill] * (longest - len(tokens))] for tokens in sequences]
        return self.ids.new_tensor(rows)
