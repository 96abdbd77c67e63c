"""Panels: outputs of several models or files, each of which has its share of the vote, however many they are.

    score(c) = sum over members m of share(m) * sum over the voters v of m of P_m(v) sim(v, c)

The candidates of all members stand and vote, or voters that are given beside them vote alone. Within a member
voters are weighed as always (`weights`), by what is known of them alone. A member without voters is left out,
and the others divide its share in proportion to theirs. A member whose share is 0 stands and does not vote,
unless all that are there have none: then they vote with equal shares.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from rangevote.errors import DataError, UsageError, shown, warn
from rangevote.hypothesis import Hypotheses, is_number
from rangevote.similarity.base import number_text

Shares = Mapping[str, float]
#: Shares by the agreement of members over many ballots: `rangevote.election.agreement`.
AGREEMENT: Final = "agreement"
#: In a signature these stand for themselves nowhere else.
_ESCAPES = str.maketrans({mark: f"%{ord(mark):02X}" for mark in "%|,="})


class PanelShares(NamedTuple):
    """The members' shares, by name, summing to 1, and those that are left out since they have no voters."""

    shares: dict[str, float]
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        """For signatures: `panel:a=0.7,b=0.3`, `panel:a=1|out:b`."""
        shares = (f"{name.translate(_ESCAPES)}={number_text(share)}" for name, share in self.shares.items())
        out = "|out:" + ",".join(name.translate(_ESCAPES) for name in self.left_out) if self.left_out else ""
        return f"panel:{','.join(shares)}{out}"


def check_shares(name: str, shares: Shares | str) -> None:
    """Refuse what cannot be a panel's shares; they need not sum to 1."""
    if shares == AGREEMENT:
        return
    if not isinstance(shares, Mapping) or not shares:
        raise UsageError(
            f"{name} must be a number for each member of the panel, such as {{'a': 0.7, 'b': 0.3}}, or "
            f"{AGREEMENT!r}; got {shown(shares)}."
        )
    for member, share in shares.items():
        if not isinstance(member, str) or not is_number(share) or not 0 <= share <= sys.float_info.max:
            raise UsageError(
                f"the share of {member!r} must be a number from 0, got {shown(share)}; 0 is for a member "
                f"that is not to vote."
            )
    if not any(shares.values()):
        raise UsageError("every member has the share 0, so nobody votes; give one of them a number above 0.")


def warn_of_self_election(panel: PanelShares, candidates: Hypotheses) -> None:
    """Warn of a member whose only candidate the others cannot outvote. (Of two members with equal shares
    neither outvotes the other.)"""
    most = 0.5 if len(panel.shares) > 2 else math.nextafter(0.5, 1.0)
    for name in [name for name, share in panel.shares.items() if share >= most and len(panel.shares) > 1]:
        if (candidates.members or []).count(name) == 1:
            warn(
                f"the member {name!r} has one output and at least half of the shares, so it elects itself: "
                f"the others cannot outvote it. Give it a smaller share, or more outputs."
            )


def panel_of(voters: Hypotheses, shares: Shares | str | None) -> PanelShares | None:
    """The panel that these voters are; None where they belong to no members."""
    if isinstance(shares, str):
        raise UsageError(
            f"shares={shares!r} is found over many ballots, and this is one: use elect_many(ballots, "
            f"shares='agreement', ...), or give rangevote.agreement_shares(ballots, ...).shares."
        )
    if voters.members is None:
        if shares is not None:
            raise UsageError(
                "shares are for a panel; give candidates or voters by member ({'a': [...], 'b': [...]}), "
                "or each of them a member; on the command line, give a file for each member."
            )
        return None
    if shares is None:
        return _equal_shares(frozenset(voters.members))
    present = sorted(set(voters.members))
    for name in present:
        if name not in shares:
            raise DataError(
                f"{name!r} has no share; shares are given for {', '.join(map(repr, shares))}.",
                field=f"{voters.role}[{voters.members.index(name)}].member",
            )
    largest = max(shares[name] for name in present)  # their sum neither overflows nor vanishes
    scaled = {name: shares[name] / largest if largest else 1.0 for name in present}
    total = math.fsum(scaled.values())
    return PanelShares(
        {name: share / total for name, share in scaled.items()},
        tuple(sorted(name for name in shares if name not in scaled)),
    )


@lru_cache(maxsize=64)
def _equal_shares(members: frozenset[str]) -> PanelShares:
    """Kept for the next ballot, which most often has the same members."""
    return PanelShares(dict.fromkeys(sorted(members), 1.0 / len(members)), ())
