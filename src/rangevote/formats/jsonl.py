"""The ballot file: JSON Lines, one election a line.

    {"id": "42", "source": "...", "references": ["..."],
     "candidates": [{"text": "...", "logprob": -12.3, "tokens": [5, 9]}, "a plain text", ...],
     "voters": [... same shape; absent: the candidates vote]}

The common line is decoded straight into `Hypothesis` objects. Such a decoder keeps the last of two
equal keys without a word; so the keys that the objects account for are counted against the colons
of the line. Whenever the fast reading is not sure, the careful one decides and names the fault.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from rangevote.errors import DataError, UsageError
from rangevote.formats.careful import ballot_of
from rangevote.formats.exact import REFUSALS, distinct_keys, parse
from rangevote.formats.mass import doubt_mass
from rangevote.formats.reader import Decode, ReadOptions
from rangevote.formats.score import Scale, scale_of
from rangevote.hypothesis import LOGPROB_SLACK, Ballot, Hypothesis
from rangevote.kernel import count_keys

_PLAIN = ReadOptions()
_AS_IS = Scale(1.0)


class Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line of objects as it stands; UNSET tells an absent key from an explicit null."""

    candidates: list[Hypothesis] | UnsetType = UNSET
    hypotheses: list[Hypothesis] | UnsetType = UNSET
    voters: list[Hypothesis] | UnsetType | None = UNSET
    id: str | int | UnsetType | None = UNSET
    source: str | UnsetType | None = UNSET
    references: list[str] | UnsetType = UNSET


class MixedLine(Line, forbid_unknown_fields=True, gc=False):
    """A line in which plain strings stand for objects; takes a little longer."""

    candidates: list[Hypothesis | str] | UnsetType = UNSET  # type: ignore[assignment]
    hypotheses: list[Hypothesis | str] | UnsetType = UNSET  # type: ignore[assignment]
    voters: list[Hypothesis | str] | UnsetType | None = UNSET  # type: ignore[assignment]


_decode = msgspec.json.Decoder(Line).decode
_decode_mixed = msgspec.json.Decoder(MixedLine).decode


def decoder(options: ReadOptions) -> Decode:
    """What makes a ballot of a line under these options."""
    if options.sign == -1:
        raise UsageError("--sign - does not apply to the format 'jsonl': a logprob is never positive.")
    scale = scale_of(options)
    if scale == _AS_IS:
        return lambda line: decode_ballot(line, options)
    return lambda line: _rescaled(line, scale, options)


def decode_ballot(line: bytes, options: ReadOptions = _PLAIN) -> Ballot:
    """The ballot of one line, with its log-probabilities as they stand there."""
    quick = quickly(line)
    if quick is not None and quick[1] <= 1:
        return quick[0]
    ballot = quick[0] if quick is not None else ballot_of(parse(line), options)
    doubt_mass(ballot, options)
    return ballot


def quickly(line: bytes) -> tuple[Ballot, float] | None:
    """The ballot of a line about which there is no doubt, and its larger sum of P; else None."""
    found, strings = _found(line)
    if found is None:
        return None
    candidates = found.candidates if found.hypotheses is UNSET else found.hypotheses
    if candidates is UNSET or (found.candidates is not UNSET and found.hypotheses is not UNSET):
        return None
    voters = None if found.voters is UNSET else found.voters
    mass = _beyond_doubt(line, candidates, voters, _keys(found) - strings)
    if mass is None:
        return None
    ballot = Ballot(
        candidates,
        voters,
        None if found.id is UNSET else found.id,
        None if found.source is UNSET else found.source,
        () if found.references is UNSET else found.references,
    )
    return ballot, mass


def _found(line: bytes) -> tuple[Line | None, int]:
    """The decoded line, and how many plain strings were made into objects."""
    try:
        return _decode(line), 0
    except REFUSALS:
        pass
    try:
        mixed = _decode_mixed(line)
    except REFUSALS:
        return None, 0
    strings = 0
    for role in ("candidates", "hypotheses", "voters"):
        listed = getattr(mixed, role)
        if listed:
            strings += sum(isinstance(item, str) for item in listed)
            made = [Hypothesis(item) if isinstance(item, str) else item for item in listed]
            setattr(mixed, role, made)
    return mixed, strings


def _keys(found: Line) -> int:
    """How many keys the outermost object has."""
    lists = (found.candidates, found.hypotheses, found.voters)
    return 6 - (*lists, found.id, found.source, found.references).count(UNSET)


def _beyond_doubt(
    line: bytes, candidates: list[Hypothesis], voters: list[Hypothesis] | None, outer: int
) -> float | None:
    """The larger sum of P if every key is accounted for and every value allowed, else None.

    `left` is the number of colons in the line less the number of keys known to be there. A key is
    one colon at least, so as soon as nothing is left there are no others, and no key is there twice.
    """
    keys = count_keys(line)
    known, mass = _account(candidates)
    everyone = candidates
    if voters is not None:
        more, voters_mass = _account(voters)
        known, mass, everyone = known + more, max(mass, voters_mass), candidates + voters
    left = keys - outer - known
    if left:
        left -= len(everyone) - [h.tokens for h in everyone].count(None)
    if left and not (_rest_is_sound(everyone) and distinct_keys(msgspec.json.decode(line)) == keys):
        return None
    if known < 2 * len(everyone) and any(h.text is None and h.tokens is None for h in everyone):
        return None
    if mass > 1 and any(h.logprob is not None and h.logprob > LOGPROB_SLACK for h in everyone):
        return None
    return mass


def _account(hypotheses: list[Hypothesis]) -> tuple[int, float]:
    """How many texts and log-probabilities there are, and the sum of P."""
    logprobs: list[Any] = [h.logprob for h in hypotheses]
    known = 2 * len(hypotheses) - [h.text for h in hypotheses].count(None)
    try:
        return known, sum(map(math.exp, logprobs))
    except TypeError:  # some are None: rare, and cheaper to stumble over than to look for
        given = [p for p in logprobs if p is not None]
        known += len(given) - len(logprobs)
        return known, sum(math.exp(min(p, 1.0)) for p in given)
    except OverflowError:
        return known, math.inf


def _rest_is_sound(everyone: list[Hypothesis]) -> bool:
    """Weights are not negative, states have one length."""
    lengths = {len(h.state) for h in everyone if h.state is not None}
    return len(lengths) < 2 and all(h.weight is None or h.weight >= 0 for h in everyone)


def _rescaled(line: bytes, scale: Scale | None, options: ReadOptions) -> Ballot:
    """The ballot of a line with log-probabilities as the options say the file's scores are meant."""
    quick = quickly(line)
    return rescaled_ballot(quick[0] if quick is not None else ballot_of(parse(line), options), scale, options)


def rescaled_ballot(ballot: Ballot, scale: Scale | None, options: ReadOptions) -> Ballot:
    """The ballot with its scores read by `scale`."""
    ballot = msgspec.structs.replace(
        ballot,
        candidates=rescaled(ballot.candidates, scale),
        voters=None if ballot.voters is None else rescaled(ballot.voters, scale, "voters"),
    )
    doubt_mass(ballot, options)
    return ballot


def rescaled(
    hypotheses: Sequence[Hypothesis], scale: Scale | None, role: str = "candidates"
) -> list[Hypothesis]:
    """Hypotheses with their scores read by `scale`, without any where that is None."""
    if scale is None:
        return [msgspec.structs.replace(h, logprob=None) for h in hypotheses]
    scores = [(i, h.logprob) for i, h in enumerate(hypotheses) if h.logprob is not None]
    lengths = [_length(hypotheses[i], i, role) if scale.alpha else 1 for i, _ in scores]
    logprobs = scale.logprobs([score for _, score in scores], lengths)
    found = dict(zip((i for i, _ in scores), logprobs, strict=True))
    return [msgspec.structs.replace(h, logprob=found.get(i)) for i, h in enumerate(hypotheses)]


def _length(hypothesis: Hypothesis, index: int, role: str) -> int:
    """Tokens with the end of the sequence; words are not tokens, so the ids are needed."""
    if hypothesis.tokens is None:
        raise DataError(
            "has no token ids, so its length in tokens is not known; a length-normalised "
            "score cannot be turned into a sum",
            field=f"{role}[{index}].tokens",
        )
    return len(hypothesis.tokens) + hypothesis.finished
