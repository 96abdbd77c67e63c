"""Lists of every format: ballots, or errors with a location; what is read can be written and read again."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from fuzz.targets import scratch_file
from rangevote.errors import DataError, RangevoteError
from rangevote.formats import Entry, ReadOptions, read, writer
from rangevote.formats.jsonl import ballot_of, decode_ballot, decode_text, parse, write_ballot
from rangevote.formats.prompts import ModelInput, read_inputs
from rangevote.hypothesis import LOGPROB_SLACK, Ballot, Hypothesis
from rangevote.text import open_stream


def _quiet(message: str) -> None:
    pass


class Trickle(io.RawIOBase):
    """The same bytes as a pipe gives them: a few at a time."""

    def __init__(self, data: bytes) -> None:
        self._data, self._piece = data, max(1, len(data) // 7)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        most = self._piece if size < 0 else min(size, self._piece)
        piece, self._data = self._data[:most], self._data[most:]
        return piece


def entries(file: Any, format: str | None, **options: Any) -> list[Entry]:
    """All that a reader gives."""
    with read(file, ReadOptions(format, warn=_quiet, **options)) as reading:
        return list(reading)


def comparable(listed: Iterable[Entry]) -> list[object]:
    """Entries as they can be compared: errors have no equality of their own, and how far a file was read when
    damage was met depends on the pieces."""
    place = re.compile("near byte [0-9,]+")
    return [(one.where, repr(one.ballot), place.sub("", str(one.error))) for one in listed]


def checked(data: bytes, format: str | None, **options: Any) -> list[Ballot]:
    """The ballots of the bytes, after everything that must be true of them was checked."""
    listed = entries(io.BytesIO(data), format, **options)
    if format != "parquet" and not data.startswith(b"PAR1"):
        in_pieces = entries(Trickle(data), format, **options)
        assert comparable(in_pieces) == comparable(listed), "pieces make a difference"
    ballots = []
    for one in listed:
        assert (one.ballot is None) != (one.error is None)
        assert one.error is None or one.error.where, "an error without a location"
        if one.ballot is not None:
            sound(one.ballot)
            ballots.append(one.ballot)
    return ballots


def sound(ballot: Ballot) -> None:
    """Log-probabilities are some, and the ballot comes back as it was written."""
    for one in (*ballot.candidates, *(ballot.voters or ())):
        assert one.logprob is None or one.logprob <= LOGPROB_SLACK, "no log-probability"
    again = decode_ballot(write_ballot(ballot), ReadOptions(warn=_quiet))
    assert plain(again) == plain(ballot), "written and read again it is another ballot"


def plain(ballot: Ballot) -> object:
    """A ballot as lists and texts: readers may use other sequences; prob 0 is logprob -inf."""
    voters = None if ballot.voters is None else list(map(_plain_hypothesis, ballot.voters))
    candidates = list(map(_plain_hypothesis, ballot.candidates))
    return candidates, voters, ballot.id, ballot.source, list(ballot.references)


def _plain_hypothesis(one: Hypothesis) -> object:
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


def under_each(format: str, *variants: dict[str, Any]) -> Callable[[bytes], None]:
    """A target that reads a format under several options: what one refuses another may read."""

    def target(data: bytes) -> None:
        for options in variants:
            with suppress(RangevoteError):
                checked(data, format, **options)

    return target


COUNT, LENGTH = {"score_scale": "count"}, {"normalisation": "length"}
moses = under_each("moses", {}, COUNT, {"score_scale": 2.0}, {"normalisation": 1.5, "sign": -1})
fairseq = under_each("fairseq", {}, LENGTH, {"score_scale": 0.1})
sockeye = under_each("sockeye", LENGTH, {"score_scale": 3.0}, {"normalisation": "none", "sign": 1})
vllm = under_each("vllm", {})
openai = under_each("openai", {}, COUNT)
documents = under_each("json", {}, {"field": "outputs"}, {"group_by": "id"})
records = under_each(
    "jsonl",
    {"field": "a"},
    {"group_by": "id"},
    {"field": "a[*].t", "logprob_field": "p"},
    {"text_field": "t"},
)
csv = under_each("csv", {}, {"group_by": "id"}, {"field": "outputs", "carry": ("id",)})
tsv = under_each("tsv", {}, {"group_by": "id", "text_field": "text"})
parquet = under_each("parquet", {})


def mbrs(data: bytes) -> None:
    """N lines a source; the second half of the bytes are the log-probabilities."""
    texts, _, scores = data.partition(b"\0")
    for ballot in checked(texts, "mbrs", per_source=2):
        assert len(ballot.candidates) == 2
    checked(texts, "mbrs", per_source=3, logprobs=scratch_file("logprobs.txt", scores))


def compressed(data: bytes) -> None:
    """Compressed lines; and any bytes come back from gzip as they were."""
    packed = io.BytesIO(gzip.compress(data, 1, mtime=0))
    with open_stream(packed) as stream:
        content = b"".join(stream.chunks())
    assert content == data.removeprefix(b"\xef\xbb\xbf"), "gzip brings other bytes back"
    with open_stream(io.BytesIO(data)) as stream:
        lines = list(stream.lines_or_errors(limit=1000))
    assert all(isinstance(line, DataError) or len(line) <= 1000 for line in lines)


def inputs(data: bytes) -> None:
    """What `rangevote generate` is asked, as text and as JSON lines."""
    for name, format in (("inputs.txt", "text"), ("inputs.jsonl", "jsonl")):
        path = scratch_file(name, data)
        try:
            with read_inputs(str(path), format=format) as prompts:
                listed = list(prompts)
        except RangevoteError:
            continue
        assert all(isinstance(one, ModelInput) or one.error is not None for one in listed)
        ended = prompts.total is None or (listed[-1:] and listed[-1].error is not None)
        assert ended or prompts.total == len(listed), "the bar would not come to its end"


def scores(data: bytes) -> None:
    """Numbers as programs print them: under every option a log-probability, or an error that says why."""
    from rangevote.formats.logprobs import number, scale_of

    values = [number(word, "score") for word in data.split()[:50]]
    hypotheses = [Hypothesis(tokens=[0] * i, logprob=value) for i, value in enumerate(values)]
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
            logprobs = [h.logprob or 0.0 for h in scale.apply(hypotheses)]
        except RangevoteError:
            continue
        assert all(one <= LOGPROB_SLACK for one in logprobs), "no log-probability"
        total = math.fsum(map(math.exp, logprobs))
        assert not scale.softmax or not logprobs or math.isclose(total, 1, abs_tol=1e-6)


def parquet_rows(data: bytes) -> None:
    """A line of JSON is a row: what Arrow can hold is read as it would be in the ballot file, or refused."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    listed = [parse(line) for line in data.split(b"\n") if line.strip()]
    try:
        table = pa.Table.from_pylist([row for row in listed if isinstance(row, dict)])
        file = io.BytesIO()
        pq.write_table(table, file)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError, KeyError):
        return  # no table
    checked(file.getvalue(), "parquet")


def parquet_written(data: bytes) -> None:
    """Ballots of the ballot file come back from Parquet as they were."""
    listed = checked(data, "jsonl")
    try:
        content = b"".join(writer("parquet")(listed))
    except DataError:  # ids of two kinds, or numbers that no column holds
        return
    again = [entry.get() for entry in entries(io.BytesIO(content), "parquet")]
    assert repr([*map(plain, again)]) == repr([*map(plain, listed)]), "another ballot in Parquet"
