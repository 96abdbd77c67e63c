"""`rangevote vote` of plain ballot files: blocks of lines go through the compiled kernels, which read, elect
and write with the GIL released; whatever is unusual in a block goes line by line through `Voting.lines`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from rangevote.cli.resume import check_last, input_too_short
from rangevote.errors import DataError
from rangevote.formats.jsonl import decoder
from rangevote.formats.parquet import entries_of, plain_columns, record_batches
from rangevote.formats.reader import Entry, SeenIds, line_entry, repeated
from rangevote.formats.result_writer import ResultLine, ResultShape
from rangevote.formats.stream import PARQUET
from rangevote.hypothesis import Ballot, Hypotheses
from rangevote.parallel import map_in_order
from rangevote.similarity.base import pair_limit

if TYPE_CHECKING:
    from rangevote.cli.output import Sink
    from rangevote.cli.vote import Voting
    from rangevote.formats.stream import Stream

Unusual = tuple[int, int, int]

#: Lines of JSON, or rows of Parquet (a `pyarrow.RecordBatch`).
Block = Any


class ElectedBlock(NamedTuple):
    """What became of a block: how many lines or rows it has; the lines of output of its usual ballots; the
    ids of all ballots, None of unusual ones; where those stand (number, start, end), by their index among
    the ballots; and the most candidates that a usual one has."""

    block: Block
    number: int
    written: bytes
    ids: list[str | int | None]
    unusual: dict[int, Unusual]
    candidates: int = 0


class BlockVoting:
    """Elections of whole blocks, in order, each ballot id once."""

    def __init__(self, voting: Voting) -> None:
        settings, shape = voting.settings, voting.shape
        assert settings.one_call is not None
        on = settings.measure.signature_on(Hypotheses([""]))
        how: dict[str, Any] = {
            "text": shape.text,
            "scores": shape.scores,
            "by_probability": settings.signature_around("probability", on),
            "by_count": settings.signature_around("count", on),
            "most_pairs": 2**62 if settings.measure.linear else pair_limit(),
        }
        self._elect, self._elect_rows = (
            partial(kernel, **how) for kernel in (settings.one_call.lines, settings.one_call.rows)
        )
        self._voting, self._decode = voting, decoder(voting.reading)
        self._seen = SeenIds() if voting.reading.unique_ids else None

    @staticmethod
    def can(voting: Voting, format: str | None) -> bool:
        """Whether neither the format nor an option asks for more than blocks can do."""
        shape = voting.shape
        return (
            format in ("jsonl", "parquet")
            and voting.settings.one_call is not None
            and voting.settings.preset != "consensus"  # which warns where the candidates vote
            and voting.reading.plain
            and shape == ResultShape(text=shape.text, scores=shape.scores)
        )

    def suits(self, stream: Stream) -> bool:
        """Whether most of what was read so far is usual, so that threads do more than processes would."""
        head = stream.peek(1)
        if head.startswith(PARQUET):
            return True
        _, _, ids, unusual, _ = self._elect(head[: head.rfind(b"\n") + 1])
        return 2 * len(unusual) <= len(ids)

    def lines(self, stream: Stream, sink: Sink, workers: int) -> Iterator[ResultLine]:
        """The lines of output, but for those that an earlier run has written."""
        number = done = 0  # lines of the input, and lines of output
        for elected in map_in_order(self._elected, self._blocks(stream), workers, batch=1):
            results: Iterable[tuple[Entry, ResultLine | None]] = ()
            if isinstance(elected, DataError):
                where = elected.where or f"{stream.name}:{number + 1}"
                results = [(Entry(where, error=elected.at(where)), None)]
            elif done < sink.done or elected.unusual or not self._new(elected.ids):
                results = self._results(elected, stream.name, number)
            elif elected.ids:  # there is nothing to look at line by line
                done += len(elected.ids)
                yield ResultLine(elected.written, None, elected.candidates, len(elected.ids))
            for entry, line in results:
                done += 1
                if done > sink.done:
                    yield next(self._voting.lines([entry])) if line is None else line
                elif done == sink.done:
                    check_last(entry, sink, text=self._voting.shape.text)
            number += 1 if isinstance(elected, DataError) else elected.number
        if done < sink.done:
            raise input_too_short(sink, done)

    def _blocks(self, stream: Stream) -> Iterator[Block | DataError]:
        reading = self._voting.reading
        try:
            if stream.peek(1).startswith(PARQUET):
                yield from record_batches(stream, reading, many=True)
            else:
                yield from stream.blocks(reading.max_line_bytes)
        except DataError as error:  # the end of what can be read
            yield error.placed(stream.name)

    def _elected(self, block: Block | DataError) -> ElectedBlock | DataError:
        if isinstance(block, DataError):
            return block
        try:
            if isinstance(block, bytes):
                return ElectedBlock(block, *self._elect(block))
            columns = plain_columns(block)
            if columns is not None:
                return ElectedBlock(block, *self._elect_rows(*columns))
        except MemoryError:  # of one ballot among them, which is found line by line
            pass
        places = _places(block)
        number = block.count(b"\n") if isinstance(block, bytes) else len(block)
        return ElectedBlock(block, number, b"", [None] * len(places), dict(enumerate(places)))

    def _new(self, ids: list[str | int | None]) -> bool:
        """Whether all ids are new, which then are taken in; else none of them is."""
        return self._seen is None or self._seen.add_all([id for id in ids if id is not None])

    def _results(
        self, elected: ElectedBlock, name: str, before: int
    ) -> Iterator[tuple[Entry, ResultLine | None]]:
        """An entry for each ballot, with its line where the block has one; `before`: lines before it."""
        block, new = elected.block, self._seen
        lines = iter(elected.written.splitlines(keepends=True))
        for i, id in enumerate(elected.ids):
            if i not in elected.unusual:
                line = ResultLine(next(lines), None, elected.candidates)
                if id is None or new is None or new.add(id):
                    yield Entry("", Ballot((), id=id)), line
                    continue
                where = f"{name}:{before + _places(block)[i][0] + 1}"
                entry = Entry(where, error=repeated(id, where))
            else:
                place = elected.unusual[i]
                where = f"{name}:{before + place[0] + 1}"
                entry = self._entry(block, place, name, where)
                id = None if entry.ballot is None else entry.ballot.id
                if id is not None and new is not None and not new.add(id):
                    entry = Entry(where, error=repeated(id, where))
            yield entry, None

    def _entry(self, block: Block, place: Unusual, name: str, where: str) -> Entry:
        """What the careful way reads there."""
        _, start, end = place
        if isinstance(block, bytes):
            line = block[start:end].removesuffix(b"\r")
            return line_entry(where, line, self._decode, torn=end == len(block))
        number = int(where.rpartition(":")[2])
        return next(entries_of(block.slice(start, 1), name, [number], self._voting.reading))


def _places(block: Block) -> list[Unusual]:
    """Number, start and end of each line that is not blank, or of each row."""
    if not isinstance(block, bytes):
        return [(row, row, row + 1) for row in range(len(block))]
    places, start = [], 0
    for number, line in enumerate(block.split(b"\n")):
        if line and not line.isspace():
            places.append((number, start, start + len(line)))
        start += len(line) + 1
    return places
