"""`rangevote vote --engine ray`: Ray Data reads, distributes the elections, writes, and keeps a checkpoint.

Where ballots have ids, a checkpoint beside the output has the ids of those with results, which a resumed run
skips. Its name has a digest of the options, so that results under different options are never mixed. A file
`_SUCCESS` in the output marks a complete run.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from rangevote.batch_elect import Elect, ray_session
from rangevote.cli.output import Interrupted
from rangevote.errors import DataError, RangevoteError, SetupError, UsageError, need
from rangevote.formats import ReadOptions

if TYPE_CHECKING:
    from rangevote.election.settings import Settings
    from rangevote.formats.result_writer import ResultShape

#: Rows of a task, whose results are one file.
ROWS = 10_000


def vote_on_ray(
    files: Sequence[str],
    given: Mapping[str, Any],
    settings: Settings,
    shape: ResultShape,
    reading: ReadOptions,
    options: Mapping[str, str],
) -> tuple[int, int]:
    """Elect all ballots of the file; returns the number of results, and how many of them are errors.
    `given` has the options of the command, `options` those that decide the content of the output."""
    local = {
        f"--{name.replace('_', '-')}": given[name] for name in ("text", "voters", "allow_empty", "carry")
    }
    local |= {"--workers": given["workers"] != 1, "--shares agreement": settings.shares == "agreement"}
    for option, value in local.items():
        if value:
            raise UsageError(f"{option} belongs to --engine local.")
    if len(files) > 1:
        raise UsageError(
            "--engine ray reads one file: write the outputs of all members as the candidates of one ballot, "
            "each with its member, or use --engine local."
        )
    ballots, output, force = files[0], given["output"], given["force"]
    if ballots == "-" or output in (None, "-") or given["to"] not in (None, "parquet"):
        raise UsageError(
            "--engine ray reads files and writes a folder of Parquet: give BALLOTS and -o FOLDER."
        )
    if reading.format not in (None, "jsonl", "parquet") or reading != ReadOptions(
        format=reading.format, strict=reading.strict
    ):
        raise UsageError("--engine ray reads ballots as jsonl or parquet: make them with rangevote convert.")
    # absolute, since the processes of Ray have other working directories
    ballots, output = (path if "://" in path else os.path.abspath(path) for path in (ballots, output))
    digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()
    checkpoint = f"{output.rstrip('/')}.checkpoint-{digest[:16]}"
    _check_output(output, checkpoint, resume=given["resume"], force=force)
    on_error = "keep" if given["on_error"] == "skip" else "stop"
    elect = Elect(
        settings=settings,
        all_scores=shape.scores,
        explain=shape.explain,
        strict=reading.strict,
        keep=False,
        on_error=on_error,
    )
    parquet = (reading.format or ballots.rstrip("/").rpartition(".")[2]) == "parquet"
    hint = f"Results so far are kept in {output}; continue with --resume."
    try:
        with ray_session(given["ray_address"]) as ray:
            _elect_all(ray, ballots, output, checkpoint, elect, parquet=parquet, force=force)
            return _finish(output)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted. {hint}") from None
    except RangevoteError as error:
        raise type(error)(f"{error}\n{hint}" if _exists(checkpoint) else str(error)) from error


def _check_output(output: str, checkpoint: str, *, resume: bool, force: bool) -> None:
    """Refuse to mix results with those of other runs; with `force`, delete the checkpoint."""
    if force and _exists(checkpoint):
        system, name = _located(checkpoint)
        system.delete_dir(name)
    elif not force and _exists(f"{output}/_SUCCESS"):
        raise SetupError(f"{output} is complete. Use --force to replace it.")
    elif resume and not force and not _exists(checkpoint):
        raise SetupError(
            f"cannot resume: {checkpoint}, the checkpoint of a run with these options, does not exist. Use "
            f"--force to start again."
        )
    elif not resume and not force and _exists(output):
        raise SetupError(
            f"{output} exists from an unfinished run. Use --resume to continue it, or --force to start again."
        )


def _elect_all(
    ray: Any, ballots: str, output: str, checkpoint: str, elect: Elect, *, parquet: bool, force: bool
) -> None:
    from ray.data.checkpoint import CheckpointConfig

    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # an error is ours to report
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.read_op_min_num_blocks = 1  # with the many blocks of the default, the checkpoint's filter is slow
    try:
        read = ray.data.read_parquet if parquet else ray.data.read_json
        schema = read(ballots).schema()
        if schema is None:
            return
        if "id" in schema.names:  # a dataset has the checkpoint that is set when it is made
            context.checkpoint_config = CheckpointConfig("id", checkpoint)
            context.checkpoint_config.checkpoint_actor_memory_bytes = 64 * 2**20
        data = read(ballots).repartition(target_num_rows_per_block=ROWS)
        data = data.map_batches(elect, batch_size=256, batch_format="pyarrow")
        data.write_parquet(output, mode="overwrite" if force else "append")
    except Exception as error:  # Ray raises errors of many kinds
        bad = re.search(rf"{DataError.__module__}.DataError: (.+)", str(error))  # Ray keeps only the text
        raise DataError(bad[1]) if bad else SetupError(f"Ray: {shorten(str(error), 500)}") from error
    finally:
        context.checkpoint_config = None


def _finish(output: str) -> tuple[int, int]:
    """Mark the output as complete; returns the number of results, and how many are errors."""
    dataset = need("pyarrow.dataset", "ray", "--engine ray")
    if not _exists(output):  # Ray makes no folder for no rows
        return 0, 0
    system, name = _located(output)
    results = dataset.dataset(name, filesystem=system)
    errors = results.count_rows(filter=dataset.field("error").is_valid())
    system.open_output_stream(f"{name}/_SUCCESS").close()
    return results.count_rows(), errors


def _located(path: str) -> tuple[Any, str]:
    try:
        system, name = need("pyarrow.fs", "ray", "--engine ray").FileSystem.from_uri(path)
    except (ValueError, OSError) as error:
        raise SetupError(f"cannot use {path}: {shorten(str(error), 500)}") from None
    return system, name


def _exists(path: str) -> bool:
    system, name = _located(path)
    return bool(system.get_file_info(name).type.name != "NotFound")
