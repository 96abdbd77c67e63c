"""Candidates that say much the same, as families: who stands beside whom in a map, and how they are called.

Average linkage: the two families whose members are most alike on average are joined, again and again. What
was joined while they were more alike than two candidates usually are is a family; the later joins say only
in which order families stand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from rangevote.hypothesis import Array

#: Families that are named; smaller ones stand last, without a name.
MOST = 8
#: Words of a family's name.
LONGEST = 5


def families(alike: Array) -> tuple[list[list[int]], list[int]]:
    """The families of `alike` (n, n), symmetric, and the order of all n in which families stand together."""
    n = len(alike)
    groups: list[list[int]] = [[i] for i in range(n)]
    links = np.array(alike, dtype=np.float64)
    apart = ~np.eye(n, dtype=bool)
    usual = float(links[apart].mean() + links[apart].std()) if n > 1 else 0.0
    np.fill_diagonal(links, -np.inf)
    found: list[list[int]] | None = None
    alive = np.ones(n, dtype=bool)
    for _ in range(n - 1):
        one, other = divmod(int(links.argmax()), n)
        if found is None and links[one, other] <= usual:
            found = [list(group) for group, here in zip(groups, alive, strict=True) if here]
        one, other = sorted((one, other))
        sizes = len(groups[one]), len(groups[other])
        merged = (sizes[0] * links[one] + sizes[1] * links[other]) / sum(sizes)
        links[one] = links[:, one] = merged
        links[one, one] = links[other] = links[:, other] = -np.inf
        groups[one] += groups[other]
        alive[other] = False
    return ([groups[0]] if found is None else found), groups[0] if n else []


def named(members: Sequence[Sequence[int]], words: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Families of several members, largest first, each with the passage that sets it apart.

    That is the one that is in most of its members and in few others, longer ones before shorter.
    """
    passages = [_passages(one) for one in words]
    total = Counter(passage for one in passages for passage in one)
    listed = []
    for family in sorted((list(one) for one in members if len(one) > 1), key=len, reverse=True)[:MOST]:
        inside = Counter(passage for index in family for passage in passages[index])
        shares = {p: (count / len(family), total[p] / len(words)) for p, count in inside.items()}
        best = max(shares, key=lambda passage: _sets_apart(passage, *shares[passage]), default=())
        listed.append({"name": " ".join(best), "members": family})
    return listed


def _sets_apart(passage: tuple[str, ...], inside: float, usual: float) -> tuple[float, tuple[str, ...]]:
    return (inside - usual) * inside * len(passage) ** 0.5, passage


def _passages(words: Sequence[str]) -> set[tuple[str, ...]]:
    return {
        tuple(words[i : i + n]) for n in range(1, LONGEST + 1) for i in range(min(len(words), 300) - n + 1)
    }
