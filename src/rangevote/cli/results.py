"""Where results of `vote` go beyond plain lines: as a table, or as one shard of several with its notes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rangevote.cli.output import File, Sink, apart, fingerprint, named, sink
from rangevote.cli.scaling import Scaling
from rangevote.errors import UsageError

if TYPE_CHECKING:
    from rangevote.scale.lines import Shape
    from rangevote.scale.shard import Share


class Results(File):
    """A file whose lines become a table at the end, or which gets a shard's notes beside it."""

    def __init__(
        self,
        path: Path,
        options: Mapping[str, object],
        scaling: Scaling,
        shape: Shape,
        *,
        resume: bool,
        force: bool,
    ) -> None:
        self._table = path.with_name(path.name + ".partial.parquet")
        self._as_table, self._shape, self._shard = scaling.table(path.name), shape, scaling.shard
        self._options = {name: str(value) for name, value in options.items() if name != "shard"}
        self.share: Share | None = None  # set before the end, where there is a shard
        super().__init__(path, options, resume=resume, force=force)

    def finish(self) -> None:
        """Everything is on the disk, then the file gets its name."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            whole = self._made_table() if self._as_table else self.partial
            if self._shard is not None:
                self._write_notes(whole)
            self._file.close()
            os.replace(whole, self.path)
            self.partial.unlink(missing_ok=True)
            self._notes.unlink(missing_ok=True)
        except OSError as error:
            self._fail(error)

    def _made_table(self) -> Path:
        from rangevote.formats.results import kind_of_ids, write_table

        with self.partial.open("rb") as lines:
            ids = kind_of_ids(lines)
        with self.partial.open("rb") as lines, self._table.open("wb") as file:
            write_table(lines, file, self._shape, ids)
            file.flush()
            os.fsync(file.fileno())
        return self._table

    def _write_notes(self, whole: Path) -> None:
        from rangevote.scale.lines import count_errors
        from rangevote.scale.merge import sha256
        from rangevote.scale.shard import ShardNotes

        assert self._shard is not None  # asked by the caller
        assert self.share is not None  # and set by the run
        with self.partial.open("rb") as lines:
            ballots, skipped = count_errors(lines, self._shape)
        ShardNotes(
            self._shard.number,
            self._shard.of,
            fingerprint(self._options),
            self._options,
            ballots,
            skipped,
            sha256(whole),
            self.share.total,
            self.share.digest,
        ).write(self.path)

    def discard(self) -> None:
        """Take the temporary files away."""
        super().discard()
        self._table.unlink(missing_ok=True)


@contextmanager
def results(
    output: str | None,
    source: str,
    options: Mapping[str, object],
    scaling: Scaling,
    shape: Shape,
    *,
    resume: bool,
    force: bool,
) -> Iterator[Sink]:
    """The sink for the results: lines as they come, or a file that is more than lines."""
    to_file = output is not None and output != "-"
    if scaling.table(output) and shape.text:
        raise UsageError("--text writes lines, not Parquet; leave one of the two out.")
    if scaling.table(output) and not to_file:
        raise UsageError("Parquet is written to a file: give -o FILE.")
    if scaling.shard is not None and not to_file:
        raise UsageError("--shard needs -o FILE: beside it stands what rangevote merge must know.")
    if not (scaling.table(output) or scaling.shard is not None):
        with sink(output, source, options, resume=resume, force=force) as lines:
            yield lines
        return
    assert output is not None  # a file, as just seen
    path = named(output)
    apart(path, source)
    if scaling.table(output):
        from rangevote.errors import need

        need("pyarrow.parquet", "parquet", "writing Parquet files")  # before the work, not after
    place = Results(path, options, scaling, shape, resume=resume, force=force)
    try:
        yield place
    finally:
        place.close()
