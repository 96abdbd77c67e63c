"""Flat text as mbrs takes it: N lines for each source, and a second file with one log P a line.

What scores mean: natural log of P, summed. Every line is a hypothesis, also an empty one; an id is
the number of the source, from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count, islice

from rangevote.errors import DataError, UsageError
from rangevote.formats.jsonl import decode_text
from rangevote.formats.logprobs import Scale, accept, number, scale_of, scored_ballot
from rangevote.formats.reader import Entry, ReadOptions, entry_at
from rangevote.formats.stream import Stream, open_stream
from rangevote.hypothesis import Ballot


def reader(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    """One entry for each N lines; one list is in memory at a time."""
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
    for source in count():
        group = list(islice(lines, size))
        given = list(islice(values, len(group)))
        if not group:
            break
        where = f"{stream.name}:{source * size + 1}"
        if len(group) < size and not any(group):
            break  # blank lines at the end
        ballot = partial(_ballot, source, group, given, scores, scale, options)
        yield entry_at(where, ballot)
    if scores is not None and any(value.strip() for value in values):
        problem = f"there are more lines in {scores.name} than in {stream.name}"
        yield Entry(scores.name, error=DataError(problem, where=scores.name))


def _ballot(
    source: int,
    group: list[bytes],
    given: list[bytes],
    scores: Stream | None,
    scale: Scale | None,
    options: ReadOptions,
) -> Ballot:
    size = options.per_source or 1
    if len(group) < size:
        raise DataError(f"source {source} has {len(group)} lines where --per-source says {size}")
    texts = [decode_text(line) for line in group]
    if scale is None or scores is None:
        return scored_ballot(texts, [None] * size, source)
    if len(given) < size:
        raise DataError(f"source {source} has {len(given)} log-probabilities in {scores.name}")
    first = source * size + 1
    values = [number(x.strip(), f"{scores.name}:{first + i}") for i, x in enumerate(given)]
    logprobs = scale.logprobs(values, [len(text.split()) + 1 for text in texts])
    return accept(scored_ballot(texts, logprobs, source), options)
