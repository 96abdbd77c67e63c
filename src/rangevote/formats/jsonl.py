"""The ballot file: JSON Lines, one election per line; and JSON for all other readers of it.

    {"id": "42", "source": "...", "references": ["..."],
     "candidates": [{"text": "...", "logprob": -12.3, "tokens": [5, 9]}, "a plain text", ...],
     "voters": [... same shape; absent: the candidates vote]}

Hypotheses in which there is nothing to refuse become columns at once. All others are put into the shape of a
`Hypothesis` (unknown fields are dropped, `prob` becomes `logprob`) and checked one by one; an error names the
field that does not fit.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
import numpy as np

from rangevote.election.weights import MASS_SLACK, distinct_mass
from rangevote.errors import DataError, UsageError, nearest
from rangevote.formats.logprobs import AS_IS, Scale, ballot_scale, number
from rangevote.formats.reader import Decode, ReadOptions
from rangevote.hypothesis import Ballot, Hypotheses, Hypothesis, check

T = TypeVar("T")

#: What a line should look like, for messages.
SCHEMA = '{"id": "42", "candidates": [{"text": "...", "logprob": -12.3}, ...]}'
#: `prob` and `logprob` may differ by this much, relatively: one of them may have been rounded.
AGREEMENT = 1e-2
#: Integers of more digits are refused: converting them takes quadratic time.
MAX_DIGITS = 4300
#: What a decoder may raise on invalid input.
REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
ROLES = ("candidates", "hypotheses", "voters")


class BallotLine(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of a line: `hypotheses` are candidates, and what is in the lists is decoded, not checked."""

    candidates: list[Any] | None = None
    hypotheses: list[Any] | None = None
    voters: list[Any] | None = None
    id: str | int | None = None
    source: str | None = None
    references: list[str] | None = None


#: Names that look like those of scores.
_SCORE = re.compile(
    r"(?:.*_)?(?:log_?p(?:rob)?s?|(?:log_?)?probabilit(?:y|ies)|probs?|scores?|(?:log_?)?likelihoods?|nlls?)"
)
BALLOT_FIELDS = BallotLine.__struct_fields__
HYPOTHESIS_FIELDS = (*Hypothesis.__struct_fields__, "prob")
#: Fields that may be numbers: `scores` is an object, so a number of that name is asked about.
_READ_SCORES = tuple(name for name in HYPOTHESIS_FIELDS if name != "scores")
_decode_line = msgspec.json.Decoder(BallotLine).decode


def decoder(options: ReadOptions) -> Decode:
    """The function from a line to its ballot under these options."""
    scale = ballot_scale(options) if options.score_options else AS_IS
    return partial(decode_ballot, options=options, scale=scale)


def decode_ballot(line: bytes, options: ReadOptions | None = None, scale: Scale | None = AS_IS) -> Ballot:
    """The ballot of one line."""
    options = options or ReadOptions()
    try:
        decoded = _decode_line(line)
    except REFUSALS:
        return ballot_of(parse(line), options, scale)
    return _ballot(decoded, options, scale)


def ballot_of(value: Any, options: ReadOptions, scale: Scale | None = AS_IS) -> Ballot:
    """The ballot that a JSON value describes."""
    try:
        line = msgspec.convert(value, BallotLine)
    except REFUSALS:
        line = convert(_known_fields(value, options), BallotLine)
    return _ballot(line, options, scale)


def _known_fields(value: Any, options: ReadOptions) -> dict[str, Any]:
    """What a line has in the fields of a ballot; others are reported, or asked about."""
    if not isinstance(value, dict):
        hint = "; jq -c '.[]' makes lines of an array" if isinstance(value, list) else ""
        raise DataError(f"expected {SCHEMA}, got {kind_of(value)}{hint}")
    carried = {
        name for path in options.carried.values() for name in (path, path.partition(".")[0].partition("[")[0])
    }
    unknown = [name for name in value if name not in BALLOT_FIELDS and name not in carried]
    for role in ROLES:
        if isinstance(value.get(role), list) and all(isinstance(item, str) for item in value[role]):
            ask_about_lists(value, unknown, len(value[role]), options)
    report_unknown(unknown, BALLOT_FIELDS, "", options)
    return {name: value[name] for name in BALLOT_FIELDS if name in value}


def _hypotheses(
    items: list[Any], role: str, options: ReadOptions, scale: Scale | None
) -> Sequence[Hypothesis | str]:
    """Columns; or rows, where something needs a closer look or has to be converted."""
    name = "candidates" if role == "hypotheses" else role
    if scale is AS_IS and (columns := Hypotheses.of_usual(items, name)) is not None:
        return columns
    try:
        return msgspec.convert(items, list[Hypothesis | str])
    except REFUSALS:
        fields = [_hypothesis_fields(item, role, i, options) for i, item in enumerate(items)]
        return convert(fields, list[Hypothesis | str], role)


def _hypothesis_fields(item: Any, role: str, index: int, options: ReadOptions) -> Any:
    """The known fields of a hypothesis that is an object; other values unchanged."""
    if not isinstance(item, dict):
        return item
    if item.get("logprob") is None and item.get("prob") is None:
        ask_about_scores(item, _READ_SCORES, f"{role}[{index}]", options)
    report_unknown(item, (*HYPOTHESIS_FIELDS, *options.score_field), f"{role}[].", options)
    fields = {name: item[name] for name in HYPOTHESIS_FIELDS if name in item}
    scores = dict(fields["scores"]) if isinstance(fields.get("scores"), dict) else {}
    for name in options.score_field:
        if isinstance(score := item.get(name), str):  # a cell of a table
            score = number(score.strip().encode(), f"{role}[{index}].{name}") if score.strip() else None
        scores[name] = scores.get(name) if score is None else score
    if scores:
        fields["scores"] = {name: score for name, score in scores.items() if score is not None}
    if type(fields.get("logprob")) is int:
        fields["logprob"] = _float(fields["logprob"])
    prob = fields.pop("prob", None)
    if prob is not None:
        fields["logprob"] = _logprob(prob, fields.get("logprob"), f"{role}[{index}].prob")
    return fields


def _logprob(prob: Any, logprob: Any, field: str) -> Any:
    """The logarithm of a probability, which must agree with `logprob` where that is given too."""
    if type(prob) not in (int, float):
        raise DataError(f"expected a number, got {kind_of(prob)}", field=field)
    if not 0 <= prob <= 1:
        raise DataError(f"{_float(prob)!r} is not a probability from 0 to 1", field=field)
    if logprob is None:
        return math.log(prob) if prob else -math.inf
    if type(logprob) is float:
        implied = math.exp(min(logprob, 0.0))
        if not math.isclose(implied, prob, rel_tol=AGREEMENT, abs_tol=1e-6):
            raise DataError(
                f"{prob!r} disagrees with logprob {logprob!r}, whose probability is {implied:.4g}; give one "
                f"of them",
                field=field,
            )
    return logprob


def _float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer beyond all floats
        return math.inf if number > 0 else -math.inf


def _ballot(line: BallotLine, options: ReadOptions, scale: Scale | None) -> Ballot:
    candidates: Any = line.candidates
    role = "candidates"
    if candidates is None:
        candidates, role = line.hypotheses, "hypotheses"
    elif line.hypotheses is not None:
        raise DataError("has both candidates and hypotheses, which mean the same; give one of them")
    if candidates is None:
        raise DataError(
            f"has no candidates; expected {SCHEMA}, or name what has them with --field, or what "
            f"single samples are to be grouped by with --group-by"
        )
    candidates = _hypotheses(candidates, role, options, scale)
    voters = None if line.voters is None else _hypotheses(line.voters, "voters", options, scale)
    # a plain text is a hypothesis, which `check` makes of it
    ballot = Ballot(candidates, voters, line.id, line.source, line.references or ())  # type: ignore[arg-type]
    return accept(ballot, options, role, scale)


def accept(
    ballot: Ballot, options: ReadOptions, role: str = "candidates", scale: Scale | None = AS_IS
) -> Ballot:
    """The ballot with its log-probabilities under `scale`, if all its values are valid.

    `role` is what the file calls the candidates. Probabilities of distinct sequences that sum to more than 1
    are reported.
    """
    if scale is not AS_IS:
        apply = _without_logprobs if scale is None else scale.apply
        voters = None if ballot.voters is None else apply(_objects(ballot.voters), "voters")
        candidates = apply(_objects(ballot.candidates), role)
        ballot = msgspec.structs.replace(ballot, candidates=candidates, voters=voters)
    ballot = check(ballot, role)
    if scale is None or scale.complete:
        _check_mass(ballot.candidates, "candidates", options)
        if ballot.voters is not None:
            _check_mass(ballot.voters, "voters", options)
    return ballot


def _check_mass(hypotheses: Sequence[Hypothesis], name: str, options: ReadOptions) -> None:
    if isinstance(hypotheses, Hypotheses) and hypotheses.mass <= 1:
        return
    mass = distinct_mass(hypotheses)
    if mass > 1 + MASS_SLACK:
        counted = all(h.tokens is not None for h in hypotheses)
        length = " and --length-normalised" if counted else ""
        options.report(
            f"log-probabilities look length-normalised, or are not natural logs: those of distinct "
            f"sequences sum to P = {mass:.4g}. Give sums of natural logs over all tokens, or "
            f"say what they are with --log-base{length}, or ignore them with --score-scale count",
            field=name,
            key=("mass", name),
        )


def _objects(hypotheses: Sequence[Hypothesis | str]) -> list[Hypothesis]:
    return [Hypothesis(item) if isinstance(item, str) else item for item in hypotheses]


def _without_logprobs(hypotheses: Sequence[Hypothesis], role: str) -> list[Hypothesis]:
    return [msgspec.structs.replace(one, logprob=None) for one in hypotheses]


def report_unknown(names: Iterable[str], allowed: Sequence[str], prefix: str, options: ReadOptions) -> None:
    """Warn once of each unknown name; with `strict`, refuse it."""
    for name in names:
        key = ("unknown", prefix, name)
        if name not in (*allowed, *options.ignore_field) and (options.strict or key not in options.warned):
            fate = "" if options.strict else " is ignored"
            options.report(f"unknown field {prefix + name!r}{fate}.{nearest(name, allowed)}", key=key)


def ask_about_scores(item: Mapping[str, Any], read: Iterable[str], path: str, options: ReadOptions) -> None:
    """Stop at a field that looks like a score and has no meaning here, unless an option names it."""
    for name, value in item.items():
        is_score = _SCORE.fullmatch(name.lower()) is not None and _is_numeric(value)
        if is_score and name not in (*read, *options.ignore_field, *options.score_field):
            raise _score_question(f"{path}.{name}".lstrip("."), name)


def ask_about_lists(record: Mapping[str, Any], names: Iterable[str], size: int, options: ReadOptions) -> None:
    """The same for a list beside plain texts with a number, or a list of numbers, for each text."""
    for name in names:
        values = record[name]
        if (
            name not in (*options.ignore_field, *options.score_field)
            and _SCORE.fullmatch(name.lower())
            and isinstance(values, list)
            and len(values) == size > 0
            and all(map(_is_numeric, values))
        ):
            raise _score_question(name, name)


def _is_numeric(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(map(_is_numeric, value))
    if isinstance(value, str):
        return re.fullmatch(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", value) is not None
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class UnclearScore(UsageError):
    """A field that looks like a score, under a name that does not say what it means."""

    def __init__(self, question: str, advice: str = "") -> None:
        super().__init__(f"{question} {advice}".rstrip())
        self.question = question


def _score_question(path: str, name: str) -> UnclearScore:
    return UnclearScore(
        f"{path} looks like a score, but may not be a log-probability.",
        f"If it is one, pass --logprob-field {name}, with --length-normalised length if it is a mean over "
        f"the tokens or --log-base if it is not natural. To weigh by softmax(X * score), add --score-scale "
        f"X. If it is a reward or another quality score, pass --score-field {name} --score-weights "
        f"{name}=X to add it to the votes. To ignore it, pass --ignore-field {name}.",
    )


# JSON


def parse(line: bytes) -> Any:
    """The value of a JSON text, in which NaN, Infinity and control characters in strings are allowed.

    msgspec refuses those; Python's own reader accepts them, and names the byte of an error.
    """
    try:
        return msgspec.json.decode(line)
    except REFUSALS:
        pass
    text = decode_text(line)
    try:
        value = json.loads(text, strict=False, parse_int=_integer, parse_constant=float)
        if "\\u" in text:  # the bytes were valid UTF-8, so only an escape can bring a surrogate
            _refuse_surrogates(value, "")
    except json.JSONDecodeError as error:
        byte = len(text[: error.pos].encode()) + 1
        raise DataError(f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]} (byte {byte:,})") from None
    except RecursionError:
        raise DataError("not readable JSON: nested too deeply") from None
    return value


def decode_text(line: bytes) -> str:
    """The text of a line, which must be UTF-8."""
    try:
        return line.decode().removeprefix("\ufeff")  # files with byte-order marks may have been joined
    except UnicodeDecodeError as error:
        raise DataError(
            f"invalid UTF-8 at byte {error.start + 1:,} of the line (0x{line[error.start]:02x})"
        ) from None


def decode_as(line: bytes, kind: type[T]) -> T:
    """A line as an object of `kind`; unknown fields are ignored."""
    return convert(parse(line), kind)


def convert(value: Any, kind: type[T], path: str = "") -> T:
    """A JSON value as an object of `kind`; an error names the field below `path`."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        fault = shape_error(error)
        raise DataError(fault.problem, field=(path + fault.field).rstrip(".")) from None


_PATH = re.compile(r" - at `\$\.?(.*)`$")
_QUOTED = re.compile(r"`([^`]*)`")
_KINDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
}


def shape_error(error: msgspec.ValidationError) -> DataError:
    """msgspec's message in our words: "outputs[0].text: expected a string, got an integer"."""
    message = str(error)
    path = _PATH.search(message)
    problem = _QUOTED.sub(_in_words, _PATH.sub("", message))
    return DataError(problem[:1].lower() + problem[1:], field=path[1] if path else "")


def _in_words(match: re.Match[str]) -> str:
    """`str | null` as "a string"."""
    kinds = [kind for kind in match[1].split(" | ") if kind != "null"] or ["null"]
    return " or ".join(_KINDS.get(kind, kind) for kind in kinds)


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise DataError(f"an integer of {len(digits):,} digits is more than can be read")
    return int(digits)


def _refuse_surrogates(value: Any, path: str) -> None:
    """Refuse lone surrogates, which cannot be encoded."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            half = ord(value[error.start])
            raise DataError(
                f"contains a lone surrogate (U+{half:04X}), which is not a valid character", field=path
            ) from None
    elif isinstance(value, dict):
        for key, inner in value.items():
            _refuse_surrogates(key, f"{path}.(key)".lstrip("."))
            _refuse_surrogates(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            _refuse_surrogates(inner, f"{path}[{i}]")


def kind_of(value: Any) -> str:
    """The kind of a value, for messages."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"the number {value!r}"[:60]
    kind = {"dict": "object", "list": "array"}.get(type(value).__name__, type(value).__name__)
    return "null" if value is None else _KINDS.get(kind, kind)


# Writing


def write_ballot(ballot: Ballot) -> bytes:
    """One line with its line end; P = 0 is written as `"prob": 0`, since JSON has no -Infinity."""
    check(ballot)
    try:
        infinite = any(h.logprob == -math.inf for h in [*ballot.candidates, *(ballot.voters or ())])
        if infinite or ballot.carry:
            return json.dumps(_as_record(ballot), ensure_ascii=False).encode() + b"\n"
        return msgspec.json.encode(ballot, enc_hook=listed) + b"\n"
    except UnicodeEncodeError as error:
        half = ord(error.object[error.start])
        raise DataError(
            f"a text contains a lone surrogate (U+{half:04X}), which is not a valid character"
        ) from None


def write_ballots(ballots: Iterable[Ballot], format: str = "jsonl") -> Iterator[bytes]:
    """A line for each ballot."""
    return map(write_ballot, ballots)


def _as_record(ballot: Ballot) -> Any:
    """The ballot with carried fields beside its own, and with `prob` where P = 0, whose log JSON lacks."""
    plain = msgspec.to_builtins(ballot, enc_hook=listed)
    for name, value in plain.pop("carry", {}).items():
        plain.setdefault(name, value)
    for hypothesis in [*plain["candidates"], *plain.get("voters", ())]:
        if hypothesis.get("logprob") == -math.inf:
            del hypothesis["logprob"]
            hypothesis["prob"] = 0
    return plain


def listed(value: Any) -> Any:
    """Arrays of numpy and sequences of our own as lists."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"cannot write a {type(value).__name__}")


def line_for(ballot: Ballot, format: str, *, voters: bool = False) -> bytes:
    """The line of a ballot to be written in another format, which has no carried fields, and no voters unless
    `voters`; a ballot that is not valid is refused."""
    if ballot.voters is not None and not voters:
        raise DataError(f"the format {format!r} cannot have voters beside candidates", field="voters")
    if ballot.carry:
        raise DataError(f"the format {format!r} cannot have other fields than a ballot's", field="carry")
    return write_ballot(ballot)
