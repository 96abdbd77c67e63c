"""Members of a panel: which draws are theirs, from which seed, and when the next one is asked too."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from rangevote.decoding.base import Search, SearchSum
from rangevote.election.result import SHARE_SLACK, Result
from rangevote.errors import UsageError

_CONDITION = re.compile(r"\s*(share|score|margin)\s*<\s*([0-9.]+)\s*|\s*(undecided)\s*")


def parts(draws: range, members: Sequence[str]) -> dict[str, range]:
    """Draws dealt out to members, one after the other: which of its own each of them makes.

    >>> parts(range(5), ["a", "b"]), parts(range(5, 7), ["a", "b"])
    ({'a': range(0, 3), 'b': range(0, 2)}, {'a': range(3, 4), 'b': range(2, 3)})
    """
    each = len(members)
    return {
        name: range(-((place - draws.start) // each), -((place - draws.stop) // each))
        for place, name in enumerate(members)
    }


def derived_seed(*parts: object) -> int:
    """A seed that depends on all of these, with room for the samples that count on from it, below 2**31.

    >>> derived_seed(0, "a") != derived_seed(0, "b") != derived_seed(1, "b")
    True
    """
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") >> 2


def seeded(search: Search, member: str) -> Search:
    """The search with a seed of the member's own: with one for all, equal models would say the same."""
    if isinstance(search, SearchSum):
        return SearchSum(tuple(seeded(part, member) for part in search.parts))
    seed = getattr(search, "seed", None)
    return search if seed is None else search.with_options(seed=derived_seed(seed, member))


class Escalation(NamedTuple):
    """When those asked so far do not agree: the winner's `share` of the vote, its `score` or its `margin` is
    below a number, or (`undecided`) sampling until the winner is certain did not make it so.

    >>> Escalation.of("share<1"), str(Escalation.of(" undecided"))
    (Escalation(by='share', below=1.0), 'undecided')
    """

    by: str
    below: float = 0.0

    @classmethod
    def of(cls, condition: str) -> Escalation:
        """Read "share<1", "score<0.8", "margin<0.2" or "undecided"."""
        match = _CONDITION.fullmatch(condition)
        try:
            if match is None or (match[3] is None and not 0 < float(match[2]) <= 1):
                raise ValueError
        except ValueError:
            raise UsageError(
                f"escalate says when the next member is asked, as 'share<1', 'score<0.8' or 'margin<0.2', "
                f"with a number above 0 and at most 1, or 'undecided'; got {condition!r:.60}."
            ) from None
        return cls("undecided") if match[3] else cls(match[1], float(match[2]))

    def check(self, members: int, *, adaptive: bool) -> None:
        """Refuse what could never be fulfilled, or always would be."""
        if members < 2:
            raise UsageError(f"escalate={str(self)!r} asks several members in order, so it needs a panel.")
        if self.by == "undecided" and not adaptive:
            raise UsageError("escalate='undecided' needs adaptive, which tells when the winner is certain.")

    def goes_on(self, result: Result, certain: bool) -> bool:
        """Whether the next member is asked; one vote alone agrees with nobody."""
        if self.by == "undecided":
            return not certain
        if len(result.voters) < 2 or not result.elected:
            return True
        if self.by == "share":
            value: float | None = next(g.share for g in result.groups if result.leader in g.candidates)
        else:
            value = result.score if self.by == "score" else result.margin
        return value is not None and value < self.below - SHARE_SLACK

    def __str__(self) -> str:
        return self.by if self.by == "undecided" else f"{self.by}<{self.below:g}"
