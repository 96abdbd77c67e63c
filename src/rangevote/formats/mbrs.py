"""Flat text as mbrs takes it: N lines for each source, and a second file with one log P a line.

What scores mean: natural log of P, summed. Every line is a hypothesis, also an empty one; an id is
the number of the source, from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rangevote.errors import DataError, UsageError
from rangevote.formats.exact import decoded
from rangevote.formats.mass import doubt_mass
from rangevote.formats.reader import Entry, ReadOptions
from rangevote.formats.score import Scale, number, scale_of
from rangevote.formats.stream import Stream, open_stream
from rangevote.hypothesis import Ballot, Hypothesis


def reader(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    """One entry for each N lines; one list is held in memory."""
    if options.per_source is None:
        raise UsageError("the format 'mbrs' needs --per-source N: how many lines each source has.")
    scale = scale_of(options)
    if options.logprobs is None or scale is None:
        return _entries(stream, None, None, options)
    return _with_scores(stream, options, scale)


def _with_scores(stream: Stream, options: ReadOptions, scale: Scale) -> Iterator[Entry]:
    assert options.logprobs is not None
    with open_stream(options.logprobs, max_expansion=options.max_expansion) as scores:
        yield from _entries(stream, scores, scale, options)


def _entries(
    stream: Stream, scores: Stream | None, scale: Scale | None, options: ReadOptions
) -> Iterator[Entry]:
    size = options.per_source or 1
    lines = stream.lines(options.max_line_bytes)
    values = scores.lines(options.max_line_bytes) if scores is not None else iter(())
    for source, start in _counted(size):
        group = list(islice(lines, size))
        given = list(islice(values, len(group)))
        if not group:
            break
        where = f"{stream.name}:{start}"
        if len(group) < size and not any(group):
            break  # blank lines at the end
        try:
            entry = Entry(where, _ballot(source, group, given, scores, scale, size))
            doubt_mass(entry.get(), options)
        except DataError as error:
            entry = Entry(where, error=error.at(where))
        yield entry
    if scores is not None and any(value.strip() for value in values):
        problem = f"there are more lines in {scores.name} than in {stream.name}"
        yield Entry(scores.name, error=DataError(problem, where=scores.name))


def _counted(size: int) -> Iterator[tuple[int, int]]:
    """Number of the source, and of its first line."""
    source = 0
    while True:
        yield source, source * size + 1
        source += 1


def _ballot(
    source: int,
    group: list[bytes],
    given: list[bytes],
    scores: Stream | None,
    scale: Scale | None,
    size: int,
) -> Ballot:
    if len(group) < size:
        raise DataError(f"source {source} has {len(group)} lines where --per-source says {size}")
    texts = [decoded(line) for line in group]
    if scale is None or scores is None:
        return Ballot([Hypothesis(text) for text in texts], id=source)
    if len(given) < size:
        raise DataError(f"source {source} has {len(given)} log-probabilities in {scores.name}")
    first = source * size + 1
    values = [number(x.strip(), f"{scores.name}:{first + i}") for i, x in enumerate(given)]
    logprobs = scale.logprobs(values, [len(text.split()) + 1 for text in texts])
    hypotheses = [Hypothesis(text, logprob=p) for text, p in zip(texts, logprobs, strict=True)]
    return Ballot(hypotheses, id=source)
