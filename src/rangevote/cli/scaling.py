"""Options for many ballots: engine, processes, shards, format of the output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from rangevote.cli.options import Command, grouped
from rangevote.errors import UsageError

if TYPE_CHECKING:
    from rangevote.scale.shard import Shard

#: Of these options, those that change how a run goes but not what it writes.
FREE = frozenset({"engine", "ray_address", "workers", "to", "trust_ids"})


@dataclass(frozen=True)
class Scaling:
    """How the work is shared out, and in which format the results are written."""

    engine: str
    ray_address: str | None
    workers: int
    shard: Shard | None
    to: str | None
    trust_ids: bool

    @property
    def in_chunks(self) -> bool:
        """Whether ballots are taken in chunks; else one by one, each answered as it comes."""
        return self.workers > 1 or self.shard is not None

    def table(self, output: str | None) -> bool:
        """Whether the results are written as Parquet."""
        named = output is not None and output.endswith(".parquet")
        return self.to == "parquet" or (self.to is None and named)


def scaling_options(command: Command) -> Command:
    """How to share the work out; the command gets `scaling`, a `Scaling`."""
    options = {
        "engine": click.option(
            "--engine",
            type=click.Choice(["local", "ray"]),
            default="local",
            show_default=True,
            help="This machine, or Ray Data on one or many.",
        ),
        "ray_address": click.option(
            "--ray-address", metavar="ADDRESS", help="A running Ray cluster, as 'auto' or HOST:PORT."
        ),
        "workers": click.option(
            "--workers",
            type=click.IntRange(min=0),
            default=1,
            show_default=True,
            help="Processes that share the work; 0: one for each core.",
        ),
        "shard": click.option(
            "--shard", metavar="I/N", help="Only every N-th ballot from the I-th on; see rangevote merge."
        ),
        "to": click.option(
            "--to",
            type=click.Choice(["jsonl", "parquet"]),
            help="Format of the output; else by its name (.parquet).",
        ),
        "trust_ids": click.option(
            "--trust-ids", is_flag=True, help="Do not check that no two ballots have the same id."
        ),
    }
    return grouped(command, "scaling", options, _scaling)


def _scaling(
    engine: str, ray_address: str | None, workers: int, shard: str | None, to: str | None, trust_ids: bool
) -> Scaling:
    from rangevote.scale.local import cores
    from rangevote.scale.shard import Shard

    if ray_address is not None and engine != "ray":
        raise UsageError("--ray-address belongs to --engine ray.")
    if engine == "ray" and (workers != 1 or shard is not None):
        raise UsageError("--workers and --shard belong to --engine local; Ray shares the work out itself.")
    part = None if shard is None else Shard.parse(shard)
    return Scaling(engine, ray_address, workers or cores(), part, to, trust_ids)
