"""Generation, then election, in one Ray Data pipeline.

    python examples/ray_pipeline.py prompts.parquet winners/ progress/

The prompts have the columns `id` and `prompt`. `Generate` stands for any source of several outputs, here a
small n-gram model; with vLLM it holds a `vllm.LLM`. In progress/ Ray keeps the ids whose results are written,
so that a second run does the rest.
"""

from __future__ import annotations

import sys
from typing import Any

import rangevote as rv
from rangevote.batch_elect import Elect, ray_session
from rangevote.models.ngram import NgramModel


class Generate:
    """Prompts to candidates, as they stand in a ballot file."""

    def __init__(self) -> None:
        self.model = NgramModel.train(
            ["a man sits on a bench", "a man sits on a horse", "a dog sits on a bench", "a dog runs home"]
        )

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        found = rv.search(self.model, [str(prompt) for prompt in batch["prompt"]], rv.Beam(10))
        candidates = [[{"text": h.text, "logprob": h.logprob} for h in listed] for listed in found]
        return {**batch, "candidates": candidates}


def main(prompts: str, winners: str, progress: str) -> None:
    with ray_session(cpus=6) as ray:  # on this machine alone, or what RAY_ADDRESS names
        from ray.data.checkpoint import CheckpointConfig

        config = CheckpointConfig(
            id_column="id", checkpoint_path=progress, delete_checkpoint_on_success=False
        )
        config.checkpoint_actor_memory_bytes = 64 * 2**20
        ray.data.DataContext.get_current().checkpoint_config = config
        data = ray.data.read_parquet(prompts)
        # Half a CPU each: actors that take all CPUs leave none to read with, and wait for ever.
        small: dict[str, Any] = {"num_cpus": 0.5, "concurrency": 1}
        data = data.map_batches(Generate, batch_size=64, **small)
        small["fn_constructor_kwargs"] = {"keep": False}  # winners alone, without the candidates
        data = data.map_batches(Elect, batch_format="pyarrow", batch_size=256, **small)
        data.write_parquet(winners)


if __name__ == "__main__":
    main(*sys.argv[1:])
