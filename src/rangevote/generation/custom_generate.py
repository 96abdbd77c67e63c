"""Elections inside transformers' own `generate`: its `custom_generate` argument takes `custom_generate`.

    model.generate(**inputs, custom_generate=rangevote.custom_generate, num_beams=10, similarity="overlap_2")

Everything that `generate` prepares is kept: encoder, cache, padding, processors, lengths. Only the
decoding differs: `num_beams` beams (or as many samples, with `do_sample=True`) are the candidates, and
`num_return_sequences` of them are elected. `generate` does not pass its `tokenizer` to functions, so token
ids vote unless you bind one: `custom_generate.with_options(tokenizer=tokenizer)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

from rangevote.decoding import MAX_ROWS, get_search
from rangevote.decoding.base import Search
from rangevote.decoding.beam import Beam
from rangevote.decoding.sample import Sample
from rangevote.election.result import Result, first
from rangevote.election.settings import ElectionOptions, Settings
from rangevote.errors import DataError, UsageError, choose, need
from rangevote.generation.generate import Request, elect_batch
from rangevote.generation.plan import GenerationPlan

if TYPE_CHECKING:
    from torch import Tensor

#: Outputs of `generate` that an election does not have.
NOT_KEPT = ("output_logits", "output_attentions", "output_hidden_states")


#: The options of an election by their names in `generate`, whose own `temperature` is that of sampling.
#: `num_return_sequences` says how many are elected, so there is always a winner.
ELECTION = {
    "vote_temperature" if name == "temperature" else name: name
    for name in ElectionOptions.__annotations__
    if name not in ("winners", "min_score", "min_share")
}
OPTIONS = ("candidates", "voters", *ELECTION, "adaptive", "within", "max_rows")
ARGUMENTS = ("model", "input_ids", "logits_processor", "stopping_criteria", "generation_config")
SIGNATURE = Signature(
    [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ARGUMENTS]
    + [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in OPTIONS]
    + [Parameter("model_kwargs", Parameter.VAR_KEYWORD)]
)


class CustomGenerate:
    """A decoding method for `generate(custom_generate=...)`; options are bound here or passed to `generate`.

    `candidates` and `voters` are searches or their names; `generate` still sets their maximum length. Without
    `candidates` the search follows `num_beams`, `length_penalty`, `early_stopping` and `do_sample`.
    `vote_temperature` is the `temperature` of `rangevote.elect`, since in `generate` that name means the
    temperature of sampling. `tokenizer` can only be bound. The other options are those of
    `rangevote.generate`.
    """

    def __init__(self, **options: Any) -> None:
        for name in options:
            choose("option of custom_generate", name, dict.fromkeys(("tokenizer", *OPTIONS)))
        self.options = options
        # `generate` passes the method what its signature names and the network all other arguments, so the
        # signature must not name any of the network's.
        self.__signature__ = SIGNATURE

    def with_options(self, **options: Any) -> CustomGenerate:
        """A copy with other options."""
        return CustomGenerate(**{**self.options, **options})

    def __call__(
        self,
        model: Any,
        input_ids: Any,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        **named: Any,
    ) -> Any:
        """Called by `generate` with what it has prepared; returns sequences as `generate` does."""
        need("torch", "models", "generation")
        options = {name: value for name in OPTIONS if (value := named.pop(name, None)) is not None}
        call = GenerateCall(model, input_ids, logits_processor, stopping_criteria, generation_config, named)
        return call.elect({**self.options, **options})


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

    def elect(self, options: Mapping[str, Any]) -> Any:
        """The elected sequences (inputs * num_return_sequences, length), or an object that has them."""
        from rangevote.models.huggingface.model import Continued
        from rangevote.models.huggingface.steps import Prepared

        self._check()
        prepared = Prepared.of(self.model, self.ids, self.processors, self.config, self.kwargs)
        model = Continued(prepared, options.get("tokenizer"))
        plan = self._plan(options)
        requests = [Request.of(number, number) for number in model.inputs]
        # One batch of any size: what `generate` prepared can be read only once.
        results = [elected.result for elected in elect_batch({"": model}, requests, plan)]
        return self._output(results, plan.settings.winners, model.ends)

    def _check(self) -> None:
        """Refuse arguments that have no effect on an election."""
        from transformers.generation.stopping_criteria import EosTokenCriteria, MaxLengthCriteria

        for criterion in self.criteria:
            if not isinstance(criterion, (MaxLengthCriteria, EosTokenCriteria)):
                raise UsageError(
                    f"the stopping criterion {type(criterion).__name__} does not work with an election, only "
                    f"lengths and end tokens do; leave it out."
                )
        outputs = [name for name in NOT_KEPT if getattr(self.config, name, None)]
        if outputs:
            raise UsageError(f"{outputs[0]}=True has no meaning for an election; leave it out.")

    def _plan(self, options: Mapping[str, Any]) -> GenerationPlan:
        election = {name: options[alias] for alias, name in ELECTION.items() if alias in options}
        candidates, voters = (options.get(name) for name in ("candidates", "voters"))
        return GenerationPlan.of(
            Settings(**election, winners=self._winners(candidates)),
            self._limited(self._candidates() if candidates is None else get_search(candidates)),
            None if voters is None else self._limited(get_search(voters)),
            adaptive=options.get("adaptive"),
            within=options.get("within", 0.0),
            max_rows=options.get("max_rows", MAX_ROWS),
        )

    def _winners(self, candidates: Search | str | None) -> int:
        """`num_return_sequences`, but one where it is the number of samples (without beams)."""
        config = self.config
        only_samples = config.do_sample and (config.num_beams or 1) == 1 and candidates is None
        return 1 if only_samples else config.num_return_sequences or 1

    def _candidates(self) -> Search:
        """The search that the generation configuration asks for."""
        import torch

        config = self.config
        number = max(config.num_beams or 1, config.num_return_sequences or 1)
        if number == 1:
            raise UsageError(
                "an election needs several candidates: set num_beams=10, or do_sample=True with "
                "num_return_sequences=10, or candidates='beam:10'."
            )
        if config.do_sample:  # temperature, top_k etc. are among the processors
            return Sample(number, seed=int(torch.randint(1 << 31, ())))  # follows torch.manual_seed
        return Beam(
            number,
            finish="transformers",
            length_penalty=1.0 if config.length_penalty is None else config.length_penalty,
            early_stopping=config.early_stopping or False,
        )

    def _limited(self, search: Search) -> Search:
        """The search with the maximum length of `generate`."""
        return search.with_options(max_new_tokens=self.config.max_length - self.ids.shape[1])

    def _output(self, results: list[Result], winners: int, ends: Any) -> Any:
        """The return value of `generate`."""
        import torch
        from transformers.generation import utils

        sequences, scores = [], []
        rows_of_input = len(self.ids) // len(results)
        for prompt, result in zip(self.ids[::rows_of_input].tolist(), results, strict=True):
            if len(result.candidates) < winners:
                raise DataError(
                    f"num_return_sequences is {winners}, but only {len(result.candidates)} candidates were "
                    f"found; use more beams or a smaller num_return_sequences."
                )
            for index in first(result, winners):
                winner = result.candidates[index]
                end = [ends[0]] if winner.finished and ends else []
                sequences.append([*prompt, *(winner.tokens or ()), *end])
                scores.append(winner.logprob if winner.ranked_by is None else winner.ranked_by)
        pad = self.config._pad_token_tensor
        fill = int(pad.flatten()[0]) if pad is not None else ends[0] if ends else -1
        rows = [self.ids.new_tensor(tokens) for tokens in sequences]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=fill)
        if not self.config.return_dict_in_generate:
            return padded
        encoder = self.model.config.is_encoder_decoder
        kind: Any = utils.GenerateBeamEncoderDecoderOutput if encoder else utils.GenerateBeamDecoderOnlyOutput
        return kind(sequences=padded, sequences_scores=torch.tensor(scores, device=self.ids.device))
