"""Results and, if wanted, ballots: two files that keep in step, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rangevote.cli.output import File, Sink, sink
from rangevote.errors import SetupError, UsageError


class Outputs:
    """Takes a result and its ballot at a time; the ballot is written first."""

    def __init__(self, results: Sink, ballots: Sink | None) -> None:
        self.results, self.ballots = results, ballots
        self._all = [results] if ballots is None else [ballots, results]
        self._files = [place for place in self._all if isinstance(place, File)]
        self.done = min((file.done for file in self._files), default=0)
        for file in self._files:
            if file.done > self.done:  # the run stopped between the two lines
                file.cut(self.done)

    @property
    def front(self) -> Sink:
        """The place that tells how far an earlier run came."""
        return self._files[-1] if self._files else self.results

    def write(self, result: bytes, ballot: bytes) -> None:
        """Write one line to each."""
        if self.ballots is not None:
            self.ballots.write(ballot)
        self.results.write(result)

    def flush(self) -> None:
        """Hand what was written to the system: it took long to find."""
        for place in self._all:
            place.flush()

    def finish(self) -> None:
        """All lines are there."""
        self.flush()  # a full disk is met before one of the files gets its name
        for place in self._all:
            place.finish()

    def abandon(self) -> str:
        """Stop early; returns how to go on, or nothing."""
        return ([hint for place in self._all if (hint := place.abandon())] or [""])[-1]


@contextmanager
def outputs(
    results: str | None,
    ballots: str | None,
    source: str,
    options: Mapping[str, object],
    *,
    resume: bool,
    force: bool,
) -> Iterator[Outputs]:
    """The places for `-o` and `--ballots`; results go to standard output if no file is named."""
    to_file = results is not None and results != "-"
    if ballots == "-":
        raise UsageError("--ballots needs a file; standard output has the results.")
    if ballots is not None and results is not None and Path(ballots).absolute() == Path(results).absolute():
        raise UsageError(f"results and ballots are the same file {ballots}; write to two.")
    if resume and ballots is not None and to_file:
        _check_both_or_none(Path(str(results)), Path(ballots))
    if resume and not to_file and ballots is None:
        raise UsageError("--resume needs -o FILE; standard output cannot be resumed.")
    with ExitStack() as files:
        kept = (
            None
            if ballots is None
            else files.enter_context(sink(ballots, source, options, resume=resume, force=force))
        )
        place = files.enter_context(sink(results, source, options, resume=resume and to_file, force=force))
        yield Outputs(place, kept)


def _check_both_or_none(results: Path, ballots: Path) -> None:
    """One file without the other would have to be thrown away."""
    partial = [path.with_name(path.name + ".partial") for path in (results, ballots)]
    there = [path for path in partial if path.exists()]
    if len(there) == 1:
        [missing] = [path for path in partial if path not in there]
        raise SetupError(
            f"cannot resume {there[0]}: {missing}, which goes with it, is missing. Use --force to start "
            f"again."
        )
