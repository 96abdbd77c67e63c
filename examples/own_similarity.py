"""Vote with a similarity of your own: any function of a voter and a candidate, from -1 to 1.

python examples/own_similarity.py    # needs the core alone
"""

from __future__ import annotations

import numpy as np

import rangevote as rv

TEXTS = [
    "the meeting is on monday at 10",
    "the meeting was moved to tuesday at 11",
    "it was moved to tuesday, 11 o'clock",
    "monday at 10, as always, is when the meeting is",
    "tuesday 11",
]
DETAILS = {"monday", "tuesday", "10", "11"}


def same_details(voter: str, candidate: str) -> float:
    """How many of the voter's details (day, hour) the candidate has too; wrong ones count against it."""
    wanted, found = (DETAILS & set(text.replace(",", " ").split()) for text in (voter, candidate))
    return (len(wanted & found) - len(found - wanted)) / max(1, len(wanted))


def many_at_once(voters: list[str], candidates: list[str]) -> np.ndarray:
    """The same for all pairs in one call, as a neural measure would want it: shape (voters, candidates)."""
    return np.array([[same_details(voter, candidate) for candidate in candidates] for voter in voters])


def main() -> None:
    """By words, by details, by details in one call, and by both together."""
    print("by words:  ", rv.elect(TEXTS, similarity="overlap_2").winner)
    print("by details:", rv.elect(TEXTS, similarity=same_details).winner)
    batched = rv.Custom(many_at_once, name="same_details", batched=True)
    print("in one call:", rv.elect(TEXTS, similarity=batched).winner)
    both = rv.Mixture([(0.5, rv.get_similarity("overlap_2")), (0.5, batched)])
    result = rv.elect(TEXTS, similarity=both)
    print("by both:   ", result.winner)
    print(result.signature)


if __name__ == "__main__":
    main()
