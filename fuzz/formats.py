"""Lists of every format: ballots, or errors with a place; what is read can be written and read again."""

from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Iterable
from typing import Any

from fuzz import places
from rangevote.errors import DataError, RangevoteError
from rangevote.formats import Entry, ReadOptions, read
from rangevote.formats.inputs import Asked, read_inputs
from rangevote.formats.jsonl import ballot_of, decode_ballot, decode_text, parse
from rangevote.formats.stream import open_stream
from rangevote.formats.write import write_ballot
from rangevote.hypothesis import LOGPROB_SLACK, Ballot, Hypothesis


def _quiet(message: str) -> None:
    pass


class Trickle(io.RawIOBase):
    """The same bytes as a pipe gives them: a few at a time."""

    def __init__(self, data: bytes) -> None:
        self._data, self._piece = data, max(1, len(data) // 7)

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next few."""
        piece, self._data = self._data[: self._piece], self._data[self._piece :]
        return piece


def entries(file: Any, format: str | None, **options: Any) -> list[Entry]:
    """All that a reader gives."""
    with read(file, ReadOptions(format, warn=_quiet, **options)) as reading:
        return list(reading)


def told(listed: Iterable[Entry]) -> list[object]:
    """Entries as they can be compared: errors have no equality of their own."""
    return [(one.where, repr(one.ballot), str(one.error)) for one in listed]


def checked(data: bytes, format: str | None, **options: Any) -> list[Ballot]:
    """The ballots of the bytes, after all that must hold of them was checked."""
    listed = entries(io.BytesIO(data), format, **options)
    if format != "parquet" and not data.startswith(b"PAR1"):
        assert told(entries(Trickle(data), format, **options)) == told(listed), "pieces make a difference"
    found = []
    for one in listed:
        assert (one.ballot is None) != (one.error is None)
        assert one.error is None or one.error.where, "an error without a place"
        if one.ballot is not None:
            sound(one.ballot)
            found.append(one.ballot)
    return found


def sound(ballot: Ballot) -> None:
    """Log-probabilities are some, and the ballot comes back as it was written."""
    for one in (*ballot.candidates, *(ballot.voters or ())):
        assert one.logprob is None or one.logprob <= LOGPROB_SLACK, "no log-probability"
    again = decode_ballot(write_ballot(ballot), ReadOptions(warn=_quiet))
    assert plain(again) == plain(ballot), "written and read again it is another ballot"


def plain(ballot: Ballot) -> object:
    """A ballot as lists and texts: readers may use other sequences; prob 0 is logprob -inf."""
    voters = None if ballot.voters is None else list(map(_plain, ballot.voters))
    candidates = list(map(_plain, ballot.candidates))
    return candidates, voters, ballot.id, ballot.source, list(ballot.references)


def _plain(one: Hypothesis) -> object:
    tokens = None if one.tokens is None else list(one.tokens)
    state = None if one.state is None else list(one.state)
    marks = (one.finished, one.sampled, one.weight, one.ranked_by)
    return one.text, tokens, one.logprob, state, marks


def detected(data: bytes) -> None:
    """Any bytes, as `rangevote vote FILE` takes them."""
    checked(data, None)


def ballots(data: bytes) -> None:
    """The ballot file; a line decoded at once is what its parsed value is converted to."""
    checked(data, "jsonl")
    checked(data, "jsonl", score_scale=0.5, strict=True)
    checked(data, "jsonl", normalisation="length", log_base="2")
    options = ReadOptions(warn=_quiet)
    for line in data.split(b"\n"):
        try:
            decoded = decode_ballot(line, options)
        except DataError:
            continue
        assert plain(decoded) == plain(ballot_of(parse(line), options)), "decoding and converting differ"


def json_values(data: bytes) -> None:
    """JSON of any kind is what Python's own reader makes of it."""
    value = parse(data)
    other = json.loads(decode_text(data), strict=False, parse_constant=float)
    assert repr(value) == repr(other) or _has_big(value), "two parsers, two values"


def _has_big(value: Any) -> bool:
    """Whether a number is so large that parsers may read it as an integer or as a float."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return any(map(_has_big, value))
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not abs(value) < 2**63


def moses(data: bytes) -> None:
    """`id ||| text ||| features ||| score`."""
    for options in ({}, {"score_scale": "count"}, {"score_scale": 2.0}, {"normalisation": 1.5, "sign": -1}):
        try:
            checked(data, "moses", **options)
        except RangevoteError:  # under these options; others may do
            continue


def fairseq(data: bytes) -> None:
    """`H-0<TAB>-0.1<TAB>text`."""
    for options in ({}, {"normalisation": "length"}, {"score_scale": 0.1}):
        try:
            checked(data, "fairseq", **options)
        except RangevoteError:
            continue


def sockeye(data: bytes) -> None:
    """Sockeye's JSON lines."""
    for options in ({"normalisation": "length"}, {"score_scale": 3.0}, {"normalisation": "none", "sign": 1}):
        checked(data, "sockeye", **options)


def mbrs(data: bytes) -> None:
    """N lines a source; the second half of the bytes are the log-probabilities."""
    texts, _, scores = data.partition(b"\0")
    for ballot in checked(texts, "mbrs", per_source=2):
        assert len(ballot.candidates) == 2
    path = places.file("logprobs.txt", scores)
    checked(texts, "mbrs", per_source=3, logprobs=path)


def vllm(data: bytes) -> None:
    """Dumped outputs of vLLM."""
    checked(data, "vllm")


def openai(data: bytes) -> None:
    """Batches of OpenAI's API."""
    checked(data, "openai")
    checked(data, "openai", score_scale="count")


def pipeline(data: bytes) -> None:
    """What a pipeline of Hugging Face returns."""
    checked(data, "pipeline")


def compressed(data: bytes) -> None:
    """Compressed lines; and any bytes come back from gzip as they were."""
    packed = io.BytesIO(gzip.compress(data, 1, mtime=0))
    with open_stream(packed) as stream:
        kept = b"".join(stream.chunks())
    assert kept == data.removeprefix(b"\xef\xbb\xbf"), "gzip brings other bytes back"
    with open_stream(io.BytesIO(data), max_expansion=100.0) as stream:
        lines = list(stream.lines_or_errors(limit=1000))
    assert all(isinstance(line, DataError) or len(line) <= 1000 for line in lines)


def inputs(data: bytes) -> None:
    """What `rangevote generate` is asked, as text and as JSON lines."""
    for name, format in (("inputs.txt", "text"), ("inputs.jsonl", "jsonl")):
        path = places.file(name, data)
        try:
            with read_inputs(str(path), format=format) as found:
                listed = list(found)
        except RangevoteError:
            continue
        assert all(isinstance(one, Asked) or one.error is not None for one in listed)
        ended = found.total is None or (listed[-1:] and listed[-1].error is not None)
        assert ended or found.total == len(listed), "the bar would not come to its end"


def scores(data: bytes) -> None:
    """Numbers as programs print them: under every option a log-probability, or an error that says why."""
    from rangevote.formats.scores import number, scale_of

    values = [number(word, "score") for word in data.split()[:50]]
    lengths = [1 + i for i in range(len(values))]
    for options in (
        ReadOptions(),
        ReadOptions(sign=-1, log_base="10"),
        ReadOptions(normalisation=700.5),
        ReadOptions(score_scale=1e300),
        ReadOptions(score_scale=0.01),
    ):
        scale = scale_of(options)
        assert scale is not None
        try:
            found = scale.logprobs(values, lengths)
        except RangevoteError:
            continue
        assert all(one <= LOGPROB_SLACK for one in found), "no log-probability"
        assert (
            not scale.softmax or not found or math.isclose(math.fsum(map(math.exp, found)), 1, abs_tol=1e-6)
        )
