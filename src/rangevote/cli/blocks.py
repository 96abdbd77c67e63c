"""`rangevote vote` of plain ballot files: blocks of lines go through the compiled kernels, which read, elect
and write with the GIL released; whatever is unusual in a block goes line by line through `Voting.lines`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rangevote.cli.resume import check_last, input_too_short
from rangevote.errors import DataError
from rangevote.formats.jsonl import decoder
from rangevote.formats.reader import Entry, SeenIds, line_entry, repeated
from rangevote.formats.results import ResultLine, ResultShape
from rangevote.hypothesis import Ballot, Hypotheses
from rangevote.parallel import map_in_order
from rangevote.similarity.base import Measure, pair_limit

if TYPE_CHECKING:
    from rangevote.cli.output import Sink
    from rangevote.cli.vote import Voting
    from rangevote.formats.stream import Stream

Unusual = tuple[int, int, int]


class ElectedBlock(NamedTuple):
    """What became of a block: how many lines it has, and for each that is not blank its line of output, or
    where it stands (number, start, end) if it is unusual; the ids of the ballots that were elected, and the
    most candidates that one of them had."""

    block: bytes
    number: int
    answers: list[bytes | Unusual]
    ids: list[str | int | None]
    candidates: int = 0


class BlockVoting:
    """Elections of whole blocks, in order, each ballot id once."""

    def __init__(self, voting: Voting) -> None:
        settings, shape = voting.settings, voting.shape
        assert settings.at_once is not None
        assert isinstance(settings.measure, Measure)
        on = settings.measure.signature_on(Hypotheses([""]))
        self._elect = partial(
            settings.at_once.lines,
            text=shape.text,
            scores=shape.scores,
            by_probability=settings.signature_around("probability", on),
            by_count=settings.signature_around("count", on),
            most_pairs=2**62 if settings.measure.linear else pair_limit(),
        )
        self._voting, self._decode = voting, decoder(voting.reading)
        self._seen = SeenIds() if voting.reading.unique_ids else None

    @staticmethod
    def can(voting: Voting, format: str | None) -> bool:
        """Whether neither the format nor an option asks for more than blocks can do."""
        shape = voting.shape
        return (
            format == "jsonl"
            and voting.settings.at_once is not None
            and voting.settings.preset != "consensus"  # which warns where the candidates vote
            and voting.reading.plain
            and shape == ResultShape(text=shape.text, scores=shape.scores)
        )

    def suits(self, stream: Stream) -> bool:
        """Whether most of what was read so far is usual, so that threads do more than processes would."""
        head = stream.peek(1)
        _, answers, _, _ = self._elect(head[: head.rfind(b"\n") + 1])
        return 2 * sum(isinstance(answer, bytes) for answer in answers) >= len(answers)

    def lines(self, stream: Stream, sink: Sink, workers: int) -> Iterator[ResultLine]:
        """The lines of output, but for those that an earlier run has written."""
        number = done = 0  # lines of the input, and lines of output
        for elected in map_in_order(self._elected, self._blocks(stream), workers, batch=1):
            results: Iterator[tuple[Entry, ResultLine | None]]
            if isinstance(elected, DataError):
                where = elected.where or f"{stream.name}:{number + 1}"
                results = iter([(Entry(where, error=elected.at(where)), None)])
            else:
                results = self._results(elected, stream.name, number)
            for entry, line in results:
                done += 1
                if done > sink.done:
                    yield next(self._voting.lines([entry])) if line is None else line
                elif done == sink.done:
                    check_last(entry, sink, text=self._voting.shape.text)
            number += 1 if isinstance(elected, DataError) else elected.number
        if done < sink.done:
            raise input_too_short(sink, done)

    def _blocks(self, stream: Stream) -> Iterator[bytes | DataError]:
        try:
            yield from stream.blocks(self._voting.reading.max_line_bytes)
        except DataError as error:  # the end of what can be read
            yield error.placed(stream.name)

    def _elected(self, block: bytes | DataError) -> ElectedBlock | DataError:
        if isinstance(block, DataError):
            return block
        try:
            return ElectedBlock(block, *self._elect(block))
        except MemoryError:  # of one ballot among them, which is found line by line
            unusual = list(_places(block))
            return ElectedBlock(block, block.count(b"\n"), [*unusual], [None] * len(unusual))

    def _results(
        self, elected: ElectedBlock, name: str, before: int
    ) -> Iterator[tuple[Entry, ResultLine | None]]:
        """An entry for each ballot, with its line where the block has one; `before`: lines before it."""
        block, new = elected.block, self._seen
        for i, (answer, id) in enumerate(zip(elected.answers, elected.ids, strict=True)):
            if isinstance(answer, bytes):
                if id is None or new is None or new.add(id):
                    yield Entry("", Ballot((), id=id)), ResultLine(answer, None, elected.candidates)
                    continue
                where = f"{name}:{before + list(_places(block))[i][0] + 1}"
                entry = Entry(where, error=repeated(id, where))
            else:
                number, start, end = answer
                where = f"{name}:{before + number + 1}"
                line = block[start:end].removesuffix(b"\r")
                entry = line_entry(where, line, self._decode, torn=end == len(block))
                id = None if entry.ballot is None else entry.ballot.id
                if id is not None and new is not None and not new.add(id):
                    entry = Entry(where, error=repeated(id, where))
            yield entry, None


def _places(block: bytes) -> Iterator[Unusual]:
    """Number, start and end of each line that is not blank."""
    start = 0
    for number, line in enumerate(block.split(b"\n")):
        if line and not line.isspace():
            yield number, start, start + len(line)
        start += len(line) + 1
