"""Why a larger beam does worse: other candidates, or other voters' preferences (section 4.2.1).

A sentence that was elected from a small beam may be missing from the larger one, or be there and not be
chosen again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rangevote.errors import DataError
from rangevote.hypothesis import Ballot


@dataclass(frozen=True)
class Selection:
    """What became of the winners of a small beam: counts of items.

    `absent` are not in the larger beam at all, `again` were chosen again; the rest are in it and lost.
    """

    items: int
    absent: int
    again: int

    @property
    def absent_share(self) -> float:
        """Percent of the winners that the larger beam does not hold."""
        return 100 * self.absent / self.items

    @property
    def again_share(self) -> float:
        """Percent of the winners that were chosen again."""
        return 100 * self.again / self.items


def selection(
    winners: Sequence[str], beam: Sequence[Sequence[str]], winners_of_beam: Sequence[str]
) -> Selection:
    """What became of `winners`, item by item, in the larger `beam` and among its own winners.

    >>> selection(["a", "b", "c"], [["a", "x"], ["b", "x"], ["x"]], ["a", "x", "x"])
    Selection(items=3, absent=1, again=1)
    """
    if not len(winners) == len(beam) == len(winners_of_beam):
        raise DataError(
            f"there are {len(winners):,} winners, {len(beam):,} larger beams and {len(winners_of_beam):,} "
            f"winners of these; they must go in step."
        )
    if not winners:
        raise DataError("there are no winners, so there is nothing to look for.")
    absent = sum(text not in candidates for text, candidates in zip(winners, beam, strict=True))
    again = sum(text == other for text, other in zip(winners, winners_of_beam, strict=True))
    return Selection(len(winners), absent, again)


def texts_of(ballot: Ballot) -> list[str]:
    """The candidates' texts, as `selection` takes a beam."""
    texts = [candidate.text for candidate in ballot.candidates]
    if None in texts:
        raise DataError(
            "has no text; winners are looked for by their text.", field=f"candidates[{texts.index(None)}]"
        )
    return [text for text in texts if text is not None]
