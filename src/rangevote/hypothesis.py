"""What was proposed, how probable it is, who may vote, and which values are valid.

A `Hypothesis` is one output of a model, a `Ballot` one election's worth of them: both frozen, both
read straight from JSON and checked by `check`. `Hypotheses` has many of them as columns, which is what the
measures work on: an election of 100 plain strings never builds 100 objects.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from types import NoneType
from typing import Any, TypeGuard, overload

import msgspec
import numpy as np
from msgspec.structs import astuple

from rangevote.errors import DataError, UsageError, shown
from rangevote.kernel import usual_columns

#: A log-probability may exceed 0 by this much, since sums of float32 logits do.
LOGPROB_SLACK = 1e-6

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


class ToolCall(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A tool call that a model proposes; `arguments` is an object, or the JSON that the model wrote."""

    name: str
    arguments: str | dict[str, Any] = "{}"


class Hypothesis(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """One output of a model: text, token ids or both, or tool calls.

    `logprob` is the natural log of P(sequence), summed over all tokens including the end of the sequence; it
    is never averaged. `state` is the mean of the decoder's states. `finished` says whether the model ended
    the sequence itself. `sampled` says whether it was drawn at random; then it counts as often as it occurs,
    whatever its probability. `weight` is its importance weight if it was drawn without replacement.
    `ranked_by` is the number that the search ordered it by if that is not `logprob`. `member` is the member
    of a panel that it belongs to. If there are `tool_calls`, the vote is on them and not on the text.
    `token_logprobs` has the log-probability of each token, those of reasoning before the text included.
    `scores` has numbers by name that may count beside the votes, such as {"reward": 0.7}.
    """

    text: str | None = None
    tokens: Sequence[int] | None = None
    logprob: float | None = None
    state: Sequence[float] | None = None
    finished: bool = True
    sampled: bool = False
    weight: float | None = None
    ranked_by: float | None = None
    member: str | None = None
    tool_calls: Sequence[ToolCall] | None = None
    token_logprobs: Sequence[float] | None = None
    scores: dict[str, float] | None = None

    @property
    def content(self) -> str | Sequence[int]:
        """The tool calls as JSON if there are any, otherwise the text, otherwise the token ids."""
        if self.tool_calls:
            return written_calls(self.tool_calls)
        if self.text is not None:
            return self.text
        return () if self.tokens is None else self.tokens


def written_calls(calls: Sequence[ToolCall]) -> str:
    """Calls as JSON, the arguments as an object with sorted names where they are one.

    >>> written_calls([ToolCall("add", '{"b": 2, "a": 1}')])
    '[{"name":"add","arguments":{"a":1,"b":2}}]'
    """
    written = [{"name": call.name, "arguments": _arguments(call)} for call in calls]
    return json.dumps(written, ensure_ascii=False, separators=(",", ":"))


def _arguments(call: ToolCall) -> Any:
    arguments = call.arguments
    try:
        value = msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments
        return msgspec.json.decode(msgspec.json.encode(value, order="sorted"))
    except (ValueError, RecursionError):  # msgspec's own errors are among these
        return arguments


class Ballot(msgspec.Struct, frozen=True, omit_defaults=True):
    """One election: who can be elected, and who votes (`voters=None`: the candidates do).

    `carry` has other fields of the input, which are copied into the result.
    """

    candidates: Sequence[Hypothesis]
    voters: Sequence[Hypothesis] | None = None
    id: str | int | None = None
    source: str | None = None
    references: Sequence[str] = ()
    carry: dict[str, Any] = msgspec.field(default_factory=dict)


def as_ballot(item: Any) -> Any:
    """A dict of a ballot file's shape, {"candidates": [...], "voters": [...]}, as a `Ballot`; anything else
    as it is."""
    if not isinstance(item, dict) or "candidates" not in item:
        return item
    known = {name: item[name] for name in Ballot.__struct_fields__ if name in item}
    carry = {name: value for name, value in item.items() if name not in known}
    return Ballot(**{**known, "carry": carry | known.get("carry", {})})


class Hypotheses(Sequence[Hypothesis]):
    """Hypotheses as columns, checked once: the form in which similarities receive them.

    Every column is as long as the list, or None where no hypothesis has the field; entries of `tokens`,
    `numbers` (the log-probabilities), `states` and `tool_calls` may be None. `logprobs` are the same numbers
    as an array in which an unknown one is NaN. `weights` has NaN for members of a panel without weights.
    `members` has the member of a panel that each one belongs to. Tool calls stand among the texts as JSON.
    `finished` is None where all are, and `sampled` says whether any was. `rows` has the `Hypothesis` objects
    if the columns were made of such. `role` is the name that error messages use.
    """

    # not a dataclass: msgspec would write one as an object, not as a list
    __slots__ = (
        *("_logprobs", "_mass", "finished", "members", "numbers", "role", "rows", "sampled"),
        *("states", "texts", "tokens", "tool_calls", "weights"),
    )

    def __init__(
        self,
        texts: Sequence[str] | None,
        numbers: Sequence[float | None] | None = None,
        *,
        role: str = "candidates",
        tokens: Sequence[Sequence[int] | None] | None = None,
        states: Sequence[Sequence[float] | None] | None = None,
        weights: Array | None = None,
        finished: Sequence[bool] | None = None,
        sampled: bool = False,
        rows: Sequence[Hypothesis] | None = None,
        members: Sequence[str] | None = None,
        tool_calls: Sequence[Sequence[ToolCall] | None] | None = None,
    ) -> None:
        self.texts, self.numbers, self.role, self.tokens, self.states = texts, numbers, role, tokens, states
        self.weights, self.sampled, self.rows, self.members = weights, sampled, rows, members
        self.finished, self.tool_calls = finished, tool_calls
        self._mass: float | None = None
        self._logprobs: Array | None = None

    @property
    def _is_plain(self) -> bool:
        """Whether nothing is known but texts, log-probabilities and members."""
        plain = self.texts is not None and self.tokens is None and self.finished is None
        return plain and not self.sampled and self.rows is None

    @property
    def complete(self) -> bool:
        """Whether every log-probability is known."""
        return self.numbers is not None and None not in self.numbers

    @property
    def mass(self) -> float:
        """The sum of the known probabilities: the most that distinct sequences can sum to."""
        if self._mass is None:
            self._mass = sum(math.exp(number) for number in self.numbers or () if number is not None)
        return self._mass

    @property
    def logprobs(self) -> Array | None:
        """The log-probabilities as float64, made when they are first asked for."""
        if self._logprobs is None and self.numbers is not None:
            self._logprobs = np.array(self.numbers, dtype=np.float64)  # None becomes NaN
        return self._logprobs

    @classmethod
    def of(
        cls,
        items: Listed | Mapping[str, Listed],
        logprobs: Logprobs | Mapping[str, Logprobs] = None,
        *,
        role: str = "candidates",
    ) -> Hypotheses:
        """Columns of strings, token-id lists or `Hypothesis` objects; every value is checked.

        Lists by the names of a panel's members become one list, in which each item has its member.
        `role` is the name that error messages use. `logprobs` gives the log-probabilities of items
        that do not carry their own; of a panel by member too.
        """
        if type(items) is not list:
            if isinstance(items, Hypotheses):
                if logprobs is not None:
                    raise UsageError(f"the {role} are checked already and bring their own log-probabilities.")
                return items
            _refuse_tables(items, role)
            if isinstance(items, Mapping) and not any(map(is_number, items.values())):
                return cls._of_panel(items, logprobs, role)
            values_lost = isinstance(items, Mapping) and logprobs is None
            if isinstance(items, (str, bytes)) or not isinstance(items, Iterable) or values_lost:
                raise UsageError(
                    f"{role} is one {type(items).__name__}, not a list: pass a list of texts, token-id lists "
                    f"or Hypothesis objects, or such a list for each member of a panel; log-probabilities of "
                    f"texts go into logprobs=."
                )
        values: list[Any] = list(items)
        kinds = set(map(type, values))
        if kinds == {str}:
            return cls(values, _logprobs_of(logprobs, len(values), role), role=role)
        if kinds != {Hypothesis}:
            values = [_row(item, i, role) for i, item in enumerate(values)]
        usual = None if logprobs is not None else cls._of_rows(values, role)
        return cls._checked_rows(values, logprobs, role) if usual is None else usual

    @classmethod
    def of_usual(
        cls, items: list[Any], role: str, rows: Sequence[Hypothesis] | None = None
    ) -> Hypotheses | None:
        """Columns of hypotheses as JSON has them, texts or objects, in which there is nothing to refuse. None
        if that needs a closer look, or there are no compiled kernels."""
        if usual_columns is None or (columns := usual_columns(items)) is None:
            return None
        texts, numbers, tokens, members, finished, sampled, mass = columns
        made = cls(
            texts,
            numbers,
            role=role,
            tokens=tokens,
            members=members,
            finished=finished,
            sampled=sampled,
            rows=rows,
        )
        made._mass = mass
        return made

    @classmethod
    def _of_rows(cls, rows: Sequence[Hypothesis], role: str) -> Hypotheses | None:
        try:
            return cls.of_usual(msgspec.to_builtins(rows), role, rows)
        except (TypeError, RecursionError):  # an array in it, or what cannot be valid
            return None

    @classmethod
    def _of_panel(
        cls, members: Mapping[str, Listed], logprobs: Logprobs | Mapping[str, Logprobs], role: str
    ) -> Hypotheses:
        """The lists of all members in one."""
        option = "logprobs" if role == "candidates" else "voter_logprobs"
        if logprobs is not None and not isinstance(logprobs, Mapping):
            raise UsageError(f"the {role} are a panel, by member, so {option} must be given by member too.")
        for name in logprobs or ():
            if name not in members:
                raise UsageError(
                    f"{option} names {name!r}, which is not a member; the members are {list(members)!r}."
                )
        given: list[Any] = [] if logprobs is None else [logprobs.get(name) for name in members]
        listed: list[Any] = list(members.values())
        texts, numbers = _flat(listed), _flat(given)
        one_each = not given or (numbers and list(map(len, given)) == list(map(len, listed)))
        if set(map(type, texts)) == set(map(type, members)) == {str} and one_each and _usual(numbers):
            names = [name for name, some in members.items() for _ in some]
            return cls(texts, numbers or None, role=role, members=names)
        lists = [
            cls.of(some, (logprobs or {}).get(name), role=f"{role}[{name!r}]").of_member(name)
            for name, some in members.items()
        ]
        return concatenate([part for part in lists if len(part)], role)

    @classmethod
    def _checked_rows(
        cls, rows: Sequence[Hypothesis], logprobs: Logprobs | Mapping[str, Logprobs], role: str
    ) -> Hypotheses:
        columns = _present(list(zip(*map(astuple, rows), strict=True))) if rows else [None] * 12
        texts, tokens, numbers, states, finished, sampled, weights, _, members, calls, *_ = columns
        check_rows(rows, role)
        if calls is not None:
            texts = [str(row.content) if row.tool_calls else row.text for row in rows]
        if members is not None:
            _check_members(members, role)
        if weights is not None and None in weights and members is None:
            _check_weight(None, f"{role}[{weights.index(None)}].weight")
        if texts is not None and None in texts:
            if tokens is not None and None in tokens:
                raise DataError(
                    "has no text while others have no token ids; give all of them texts, or all of them "
                    "tokens.",
                    field=f"{role}[{texts.index(None)}]",
                )
            texts = None
        if logprobs is not None and numbers is not None:
            raise UsageError(
                f"log-probabilities of the {role} are given twice: in the Hypothesis objects "
                f"and as an argument. Give them once."
            )
        return cls(
            texts,
            _logprobs_of(numbers if logprobs is None else logprobs, len(rows), role),
            role=role,
            tokens=tokens,
            states=states,
            weights=None if weights is None else np.array(weights, dtype=np.float64),
            finished=finished,
            sampled=sampled is not None and True in sampled,
            rows=rows,
            members=members,
            tool_calls=calls,
        )

    def __len__(self) -> int:
        return len(self.texts if self.texts is not None else self.tokens or ())

    @overload
    def __getitem__(self, index: int) -> Hypothesis: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hypothesis]: ...
    def __getitem__(self, index: int | slice) -> Hypothesis | Sequence[Hypothesis]:
        if self.rows is not None:
            return self.rows[index]
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        assert self.texts is not None  # without rows there are only usual fields
        return Hypothesis(
            self.texts[index],
            None if self.tokens is None else self.tokens[index],
            self.logprob(index),
            finished=self.finished is None or self.finished[index],
            sampled=self.sampled,
            member=None if self.members is None else self.members[index],
        )

    def __iter__(self) -> Iterator[Hypothesis]:
        return iter(self.rows) if self.rows is not None else (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Equal to any sequence of the same hypotheses."""
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return repr(list(self))

    __hash__ = None  # type: ignore[assignment]  # as of lists

    def logprob(self, index: int) -> float | None:
        """The log-probability of one hypothesis, None where it is not known."""
        return None if self.numbers is None else self.numbers[index]

    def known_logprobs(self, needed_by: str, instead: str) -> Array:
        """All log-probabilities; the first that is not known is named, with what to do instead."""
        if self.logprobs is not None and self.complete:
            return self.logprobs
        index = 0 if self.numbers is None else self.numbers.index(None)
        raise DataError(
            f"is missing; {needed_by} needs a log-probability for every one of the {self.role}. Give it, or "
            f"{instead}.",
            field=f"{self.role}[{index}].logprob",
        )

    def lengths(self) -> Array:
        """What each log-probability is a sum over: the tokens (the words where not all have token ids), and
        the end of the sequence where the model ended it; at least 1."""
        lengths = [len(ids) for ids in self.tokens or () if ids is not None]
        if len(lengths) < len(self):
            lengths = [len(text.split()) for text in self.texts or ()]
        ends = 1 if self.finished is None else self.finished
        return np.maximum(np.add(lengths, ends, dtype=np.float64), 1.0)

    def content(self, index: int) -> str | Sequence[int]:
        """The text of one hypothesis if it has one, otherwise its token ids."""
        return self.texts[index] if self.texts is not None else self[index].content

    def pick(self, indices: Sequence[int]) -> Hypotheses:
        """A list of some of them, with the same columns."""
        some = list(indices)
        names = ("texts", "numbers", "tokens", "states", "finished", "rows", "members", "tool_calls")
        columns: dict[str, Any] = {
            name: [column[i] for i in some] for name in names if (column := getattr(self, name)) is not None
        }
        weights = None if self.weights is None else self.weights[some]
        return Hypotheses(
            columns.pop("texts", None), role=self.role, sampled=self.sampled, weights=weights, **columns
        )

    def only(self, index: int) -> Hypotheses:
        """A list of this one hypothesis, with the same columns."""
        return self.pick((index,))

    def of_member(self, member: str) -> Hypotheses:
        """The same list as that of one member of a panel."""
        if not isinstance(member, str):
            raise UsageError(f"the name of a member must be a text, got {type(member).__name__} {member!r}.")
        for i, other in enumerate(self.members or ()):
            if other != member:
                raise DataError(f"is {other!r}, but given as {member!r}.", field=f"{self.role}[{i}].member")
        if self._is_plain:
            return Hypotheses(self.texts, self.numbers, role=self.role, members=[member] * len(self))
        return Hypotheses.of([msgspec.structs.replace(row, member=member) for row in self], role=self.role)

    def by_member(self) -> list[tuple[list[int], Hypotheses]]:
        """The lists of a panel's members by name, each with its indices in this one; where there is no
        panel, this list."""
        if self.members is None:
            return [(list(range(len(self))), self)]
        indices: dict[str, list[int]] = {}
        for i, member in enumerate(self.members):
            indices.setdefault(member, []).append(i)
        lists = []
        for member, some in sorted(indices.items()):
            role = f"{self.role}[{member!r}]"
            picked = self.pick(some) if self.rows is None else [self.rows[i] for i in some]
            part = Hypotheses.of(picked, role=role)
            part.role = role
            lists.append((some, part))
        return lists


#: What may be given as candidates or voters, and as their log-probabilities.
Listed = Hypotheses | Iterable[Hypothesis | str | Sequence[int]]
Logprobs = Iterable[float | None] | None


def concatenate(lists: Sequence[Hypotheses], role: str = "voters") -> Hypotheses:
    """One list of all of them."""
    if not lists or not all(part._is_plain for part in lists):
        return Hypotheses.of([row for part in lists for row in part], role=role)
    texts, numbers, members = _present(
        [
            [value for part in lists for value in getattr(part, name) or repeat(None, len(part))]
            for name in ("texts", "numbers", "members")
        ]
    )
    if members is not None:
        _check_members(members, role)
    return Hypotheses(texts, numbers, role=role, members=members)


def _row(item: object, index: int, role: str) -> Hypothesis:
    """One item of a user's list as a Hypothesis."""
    if isinstance(item, Hypothesis):
        return item
    if isinstance(item, str):
        return Hypothesis(text=str(item))  # numpy's strings too
    if isinstance(item, np.ndarray) and item.ndim == 1 and item.dtype.kind in "iu":
        return Hypothesis(tokens=tuple(item.tolist()))
    if isinstance(item, (list, tuple)) and all(
        isinstance(token, (int, np.integer)) and not isinstance(token, bool) for token in item
    ):
        return Hypothesis(tokens=tuple(map(int, item)))
    if is_number(item):
        return Hypothesis(text=str(item).removesuffix(".0"))  # an answer: 5 and 5.0 are one
    if isinstance(item, Mapping):
        return _row_of_fields(item, f"{role}[{index}]")
    raise DataError(
        f"expected a text, a number, a list of token ids, a Hypothesis or a dict of its fields, got "
        f"{type(item).__name__}.",
        field=f"{role}[{index}]",
    )


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a real number, numpy's included; True is not one here."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _row_of_fields(item: Mapping[Any, Any], field: str) -> Hypothesis:
    """A candidate as a ballot file has it, or a chat message."""
    fields = dict(item)
    if "role" in fields and ("content" in fields or "tool_calls" in fields):
        calls = [call.get("function", call) for call in fields.get("tool_calls") or ()]
        calls = [{name: call[name] for name in ("name", "arguments") if name in call} for call in calls]
        fields = {"text": fields.get("content"), "tool_calls": calls or None}
    try:
        return msgspec.convert(fields, Hypothesis)
    except msgspec.ValidationError as error:
        names = ", ".join(Hypothesis.__struct_fields__)
        raise DataError(f"{error}. Fields of a candidate are {names}.", field=field) from None


def _refuse_tables(items: object, role: str) -> None:
    """Refuse a table or a tensor, whose items are not its texts, and name the way to do it."""
    module = type(items).__module__.partition(".")[0]
    if module in ("pandas", "polars", "pyarrow", "datasets") and hasattr(items, "columns"):
        raise UsageError(f'{role} is a {type(items).__name__}; give a column of texts: df["text"].')
    if module in ("torch", "tensorflow", "jaxlib"):
        raise UsageError(
            f"{role} is a {type(items).__name__}; make hypotheses of what a model generates with "
            f"rangevote.engines.transformers.hypotheses_of, or give lists of token ids."
        )


def _present(columns: list[Any]) -> list[Any]:
    """The columns, with None for one that has nothing else in it."""
    size = len(columns[0])
    try:
        return [None if one[0] is None and one.count(None) == size else one for one in columns]
    except ValueError:  # an array in it, which has no single answer to `== None`
        return [None if all(value is None for value in one) else one for one in columns]


def _logprobs_of(
    values: Logprobs | Mapping[str, Logprobs], size: int, role: str
) -> Sequence[float | None] | None:
    """Log-probabilities, unknown ones as None; anything impossible is named and refused."""
    if values is None:
        return None
    if type(values) not in (list, tuple):
        values = values.tolist() if hasattr(values, "tolist") else values  # numpy, torch
        if isinstance(values, Mapping):
            raise UsageError(f"the log-probabilities of the {role} are given by member, but they are a list.")
        if isinstance(values, str) or not isinstance(values, Iterable):
            hint = f" Did you mean similarity={values!r}?" if isinstance(values, str) else ""
            raise UsageError(f"the log-probabilities of the {role} must be a list, got {values!r}.{hint}")
    numbers: tuple[Any, ...] = tuple(values)
    if len(numbers) != size:
        raise UsageError(f"{size} {role} but {len(numbers)} log-probabilities; give exactly one for each.")
    return numbers if _usual(numbers) else [_logprob(value, i, role) for i, value in enumerate(numbers)]


def _usual(numbers: Sequence[Any]) -> bool:
    """Whether these are log-probabilities of which there is nothing to refuse or to round."""
    return not numbers or (
        set(map(type, numbers)) == {float} and max(numbers) <= 0.0 and not math.isnan(sum(numbers))
    )


def _flat(lists: Iterable[Any]) -> list[Any]:
    """One list of all of them; empty unless each is a list."""
    return list(chain.from_iterable(lists)) if set(map(type, lists)) <= {list} else []


def _logprob(value: object, index: int, role: str) -> float | None:
    """One log-probability, checked; None is one that is not known."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise DataError(
            f"expected a number, got {type(value).__name__} {value!r}.", field=f"{role}[{index}].logprob"
        )
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        number = math.inf if value > 0 else -math.inf
    check_logprob(number, f"{role}[{index}].logprob")
    return min(number, 0.0)


def check_logprob(number: float, field: str) -> float:
    """A log-probability that can be one: from -inf to 0, give or take the noise of float32 sums."""
    if number <= LOGPROB_SLACK:  # false for NaN too
        return number
    raise DataError(
        f"{number!r} is not a log-probability; it must be a number from -inf to 0 (natural log of "
        f"P, summed over all tokens).",
        field=field,
    )


# Which values are valid


def check(ballot: Ballot, role: str = "candidates") -> Ballot:
    """The ballot with checked lists; a value that cannot be voted on is refused by the name of its field.
    `role` is what the candidates are called there."""
    candidates = _checked(ballot.candidates, role)
    voters = None if ballot.voters is None else _checked(ballot.voters, "voters")
    if candidates is ballot.candidates and voters is ballot.voters:  # columns, which are checked
        return ballot
    if _may_have_states(candidates) or (voters is not None and _may_have_states(voters)):
        _check_states({role: candidates, "voters": voters or ()})
    return Ballot(candidates, voters, ballot.id, ballot.source, ballot.references, ballot.carry)


def _checked(items: Sequence[Hypothesis | str], role: str) -> Sequence[Hypothesis]:
    """Columns where that takes one step. Others stay rows, since what cannot be elected, such as texts among
    token ids, can still be converted."""
    if isinstance(items, Hypotheses):
        return items
    rows = [Hypothesis(item) if isinstance(item, str) else item for item in items]
    columns = Hypotheses._of_rows(rows, "candidates" if role == "hypotheses" else role)
    if columns is None:
        check_rows(rows, role)
    return rows if columns is None else columns


def _may_have_states(rows: Sequence[Hypothesis]) -> bool:
    return not isinstance(rows, Hypotheses) or rows.states is not None


def _check_states(lists: Mapping[str, Sequence[Hypothesis]]) -> None:
    size: int | None = None
    for role, rows in lists.items():
        for i, row in enumerate(rows):
            if row.state is None:
                continue
            wrong = next((j for j, number in enumerate(row.state) if not math.isfinite(number)), None)
            if wrong is not None:
                problem = f"expected a finite number, got {row.state[wrong]!r}."
                raise DataError(problem, field=f"{role}[{i}].state[{wrong}]")
            size = len(row.state) if size is None else size
            if len(row.state) != size:
                problem = f"has {len(row.state)} numbers while others have {size}."
                raise DataError(problem, field=f"{role}[{i}].state")


def check_rows(rows: Sequence[Hypothesis], role: str) -> None:
    """Refuse a hypothesis with a value that cannot be voted on; states are left to those who use them."""
    for i, row in enumerate(rows):
        # most have a text, perhaps token ids and a log-probability, and none of the others
        tokens, logprob = row.tokens, row.logprob
        if (
            type(row.text) is not str
            or row.weight is not None
            or row.ranked_by is not None
            or type(row.member) not in (NoneType, str)
            or row.tool_calls is not None
            or row.token_logprobs is not None
            or row.scores is not None
            or not (tokens is None or (type(tokens) in (list, tuple) and set(map(type, tokens)) <= {int}))
        ):
            _check_row(row, f"{role}[{i}]")
        if logprob is not None and not (type(logprob) is float and logprob <= 0.0):
            _logprob(logprob, i, role)


def _check_row(row: Hypothesis, field: str) -> None:
    if not isinstance(row.text, (str, NoneType)):
        raise DataError(f"expected a text, got {type(row.text).__name__}.", field=f"{field}.text")
    if row.text is None and row.tokens is None and not row.tool_calls:
        raise DataError("has neither text nor tokens; give at least one.", field=field)
    if row.tokens is not None:
        _check_tokens(row.tokens, f"{field}.tokens")
    if row.tool_calls is not None:
        _check_calls(row.tool_calls, f"{field}.tool_calls")
    for i, logprob in enumerate(row.token_logprobs or ()):
        if not -math.inf < logprob <= LOGPROB_SLACK:
            raise DataError(
                f"{logprob!r} is not the log-probability of a token; it must be a finite number up to 0.",
                field=f"{field}.token_logprobs[{i}]",
            )
    for name, score in (row.scores or {}).items():
        if not is_number(score) or not math.isfinite(score):
            raise DataError(f"expected a finite number, got {score!r}.", field=f"{field}.scores.{name}")
    if row.weight is not None:
        _check_weight(row.weight, f"{field}.weight")
    if row.ranked_by is not None and not math.isfinite(row.ranked_by):
        raise DataError(f"expected a finite number, got {row.ranked_by!r}.", field=f"{field}.ranked_by")
    if not isinstance(row.member, (str, NoneType)):
        raise DataError(f"expected a text, got {type(row.member).__name__}.", field=f"{field}.member")


def _check_tokens(ids: Any, field: str) -> None:
    """Arrays and other sequences of whole numbers are accepted; texts, floats and booleans are not."""
    numbers = ids.tolist() if hasattr(ids, "tolist") else ids
    if isinstance(numbers, (str, bytes)) or not isinstance(numbers, Sequence):
        raise DataError(f"expected a list of token ids, got {type(ids).__name__}.", field=field)
    for token in numbers:
        if isinstance(token, bool) or not isinstance(token, (int, np.integer)):
            raise DataError(f"expected whole numbers, got {type(token).__name__} {token!r}.", field=field)


def _check_calls(calls: object, field: str) -> None:
    if not isinstance(calls, (list, tuple)) or not all(isinstance(call, ToolCall) for call in calls):
        raise DataError(
            "expected a list of ToolCall, such as [ToolCall('search', {'query': 'trains'})].", field=field
        )
    for i, call in enumerate(calls):
        if not isinstance(call.name, str) or not call.name:
            raise DataError("is empty; a call names its tool.", field=f"{field}[{i}].name")
        try:
            json.dumps(call.arguments, allow_nan=False)
            valid = isinstance(call.arguments, (str, dict))
        except (TypeError, ValueError, RecursionError):
            valid = False
        if not valid:
            raise DataError(
                f"expected an object that JSON can hold, or its text, got {shown(call.arguments)}.",
                field=f"{field}[{i}].arguments",
            )


def _check_members(members: Sequence[Any], role: str) -> None:
    if None in members:
        raise DataError(
            "is not given while others have one; in a panel every output belongs to a member.",
            field=f"{role}[{members.index(None)}].member",
        )


def _check_weight(weight: float | None, field: str) -> None:
    if weight is None or not math.isfinite(weight) or weight < 0:
        raise DataError(
            f"{weight!r} is not an importance weight; it must be a finite number >= 0.", field=field
        )
