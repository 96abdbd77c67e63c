"""What transformers' `generate` prepared, decoded by election, and given back as `generate` gives it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers.generation.stopping_criteria import EosTokenCriteria, MaxLengthCriteria
from transformers.generation.utils import GenerateBeamDecoderOnlyOutput, GenerateBeamEncoderDecoderOutput

from rangevote.decoding import get_search
from rangevote.decoding.base import Search
from rangevote.decoding.beam import Beam
from rangevote.decoding.sample import Sample
from rangevote.election.result import Result
from rangevote.election.settings import Settings
from rangevote.errors import DataError, UsageError
from rangevote.generation.batch import Request, elect_batch
from rangevote.generation.plan import Plan
from rangevote.models.huggingface.model import Continued

if TYPE_CHECKING:
    from rangevote.generation.custom import CustomGenerate

#: What `generate` can be asked to return and an election does not have.
NOT_KEPT = ("output_logits", "output_attentions", "output_hidden_states")


@dataclass(frozen=True)
class Call:
    """The arguments that `generate` calls a decoding method with."""

    model: Any
    ids: Tensor  # (rows, length), several equal rows for each input
    processors: Any
    criteria: Any
    config: Any
    kwargs: dict[str, Any]

    def elect(self, options: CustomGenerate) -> Any:
        """The elected sequences (inputs * num_return_sequences, length), or an object that has them."""
        self._check()
        model = Continued.of(
            self.model, self.ids, self.processors, self.config, self.kwargs, tokenizer=options.tokenizer
        )
        plan = self._plan(options)
        requests = [Request.of(number, number) for number in model.inputs]
        # One batch, whatever its size: what was prepared can be read once.
        results = [elected.result for elected in elect_batch(model, requests, plan)]
        return self._output(results, plan.settings.winners, model.ends)

    def _check(self) -> None:
        """Refuse what cannot be honoured, rather than leave it out."""
        for criterion in self.criteria:
            if not isinstance(criterion, (MaxLengthCriteria, EosTokenCriteria)):
                raise UsageError(
                    f"the stopping criterion {type(criterion).__name__} cannot be kept in an election: only "
                    f"lengths and end tokens can. Leave it out."
                )
        asked = [name for name in NOT_KEPT if getattr(self.config, name, None)]
        if asked:
            raise UsageError(f"{asked[0]}=True has no meaning for an election; leave it out.")

    def _plan(self, options: CustomGenerate) -> Plan:
        settings = Settings.of(
            options.similarity,
            options.weights,
            options.voting_temperature,
            options.rule,
            self._winners(options),
            options.tokenize,
            options.preset,
            options.normalize,
            options.merge,
        )
        candidates = self._candidates() if options.candidates is None else get_search(options.candidates)
        voters = None if options.voters is None else self._limited(get_search(options.voters))
        return Plan.of(
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
        sequences, scores = [], []
        every = len(self.ids) // len(results)
        for prompt, result in zip(self.ids[::every].tolist(), results, strict=True):
            if len(result.elected) < winners:
                raise DataError(
                    f"{winners} sequences are to be returned, but only {len(result.elected)} were found; use "
                    f"more beams, or a smaller num_return_sequences."
                )
            for index in result.elected:
                found = result.candidates[index]
                end = [ends[0]] if found.finished and ends else []
                sequences.append([*prompt, *(found.tokens or ()), *end])
                scores.append(found.logprob if found.ranked_by is None else found.ranked_by)
        padded = self._padded(sequences, ends)
        if not self.config.return_dict_in_generate:
            return padded
        encoder = self.model.config.is_encoder_decoder
        kind: Any = GenerateBeamEncoderDecoderOutput if encoder else GenerateBeamDecoderOnlyOutput
        return kind(sequences=padded, sequences_scores=torch.tensor(scores, device=self.ids.device))

    def _padded(self, sequences: list[list[int]], ends: Any) -> Tensor:
        pad = self.config._pad_token_tensor
        fill = int(pad.flatten()[0]) if pad is not None else ends[0] if ends else -1
        longest = max(map(len, sequences))
        rows = [[*tokens, *[fill] * (longest - len(tokens))] for tokens in sequences]
        return torch.tensor(rows, dtype=self.ids.dtype, device=self.ids.device)
