"""What the paper says, and whether it was found here: each claim is asked of the recorded numbers.

A claim holds or not by the means over seeds of the main system; the numbers are beside it. Nothing is written
of a claim whose numbers are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from experiments.findings import BASELINES, MBR, VOTING, Findings, label_of

NGRAMS = ("overlap_1", "precision_1", "overlap_2", "precision_2")
#: The paper's own baselines.
PLAIN = ("beam", "length_normalised", "diverse_decoding", "diverse_beam", "no_copy")
#: In place of a search: whichever one's lists are voted on.
VOTED_ON = ""


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds, and the numbers that say so."""

    holds: bool
    numbers: str


Asked = Callable[[Findings], "Verdict | None"]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, where it stands, and how it is asked of the results."""

    text: str
    where: str
    ask: Asked


def at(found: Findings, metric: str, method: str, k: int) -> float:
    """A mean; KeyError where it was not measured, which `verdicts` takes for "cannot be asked"."""
    value = found.mean(metric, (method, k))
    if value is None:
        raise KeyError(method)
    return value


def present(found: Findings, methods: Sequence[str]) -> list[str]:
    """Those that were run; KeyError where none was."""
    known = [method for method in methods if method in found.methods(found.main)]
    if not known:
        raise KeyError(", ".join(methods))
    return known


def fall(found: Findings, method: str) -> float:
    """How much the deciding metric loses from a method's best k to the largest that it was searched at."""
    means = [found.mean(found.metric, (method, k)) for k in found.ks(found.main)]
    values = [value for value in means if value is not None]
    return max(values) - values[-1]


def falls(*methods: str) -> Asked:
    """The methods lose from their best k to the largest."""

    def ask(found: Findings) -> Verdict:
        numbers = {method: fall(found, method) for method in present(found, methods)}
        return Verdict(all(lost > 0 for lost in numbers.values()), _listed(found, numbers, "-"))

    return ask


def falls_less(methods: Sequence[str], than: Sequence[str]) -> Asked:
    """Each of some methods loses less than each of others."""

    def ask(found: Findings) -> Verdict:
        ours = {method: fall(found, method) for method in present(found, methods)}
        theirs = {method: fall(found, method) for method in present(found, than)}
        numbers = f"{_listed(found, ours, '-')}; {_listed(found, theirs, '-')}"
        return Verdict(max(ours.values()) < min(theirs.values()), numbers)

    return ask


def above(methods: Sequence[str], than: str, metric: str = "", *, least: int = 2, sign: int = 1) -> Asked:
    """Each of some methods is above another, at every k from `least` on; below it with `sign` -1.

    `than` VOTED_ON is the search whose lists are voted on.
    """

    def ask(found: Findings) -> Verdict:
        name, rival = metric or found.metric, found.voted_on if than == VOTED_ON else than
        pairs = [
            (method, k, at(found, name, method, k) - at(found, name, rival, k))
            for method in present(found, methods)
            for k in found.ks(found.main)
            if k >= least
        ]
        if not pairs:
            raise KeyError(f"k from {least}")
        held = sum(sign * apart > 0 for *_, apart in pairs)
        method, k, worst = min(pairs, key=lambda pair: sign * pair[2])
        extreme = f"{worst:+.2f} ({label_of(method, found.experiment)}, k = {k})"
        return Verdict(held == len(pairs), f"{held} of {len(pairs)} cases; weakest: {extreme}")

    return ask


def below(methods: Sequence[str], than: str, metric: str = "", *, least: int = 2) -> Asked:
    """Each of some methods is below another, at every k from `least` on."""
    return above(methods, than, metric, least=least, sign=-1)


def rises(method: str, metric: str, *, down: bool = False) -> Asked:
    """A method's metric is higher at the largest k than at k = 2 (`down`: lower)."""

    def ask(found: Findings) -> Verdict:
        last = found.ks(found.main)[-1]
        low, high = at(found, metric, method, 2), at(found, metric, method, last)
        return Verdict(
            (high < low) if down else (high > low), f"{low:.2f} at k = 2, {high:.2f} at k = {last}"
        )

    return ask


def significant(asked: str) -> Asked:
    """A comparison over all seeds comes out in favour of the first, with p < 0.05."""

    def ask(found: Findings) -> Verdict | None:
        answer = found.answer(asked)
        if answer is None:
            return None
        every, (low, high) = answer["all"], answer["all"]["interval"]
        ours, theirs = (
            f"{label_of(m, found.experiment)}, k = {k}" for m, k in (answer["ours"], answer["theirs"])
        )
        difference, p = every["difference"], every["p"]
        text = f"{ours} against {theirs}: {difference:+.2f} [{low:.2f}, {high:.2f}], p = {p:.4f}"
        return Verdict(difference > 0 and p < 0.05, text)

    return ask


def best_is(method: str, among: Sequence[str]) -> Asked:
    """A method has the highest value of all, whatever k."""

    def ask(found: Findings) -> Verdict | None:
        point = found.best(present(found, among))
        if point is None:
            return None
        value = found.mean(found.metric, point)
        return Verdict(
            point[0] == method, f"{label_of(point[0], found.experiment)} at k = {point[1]}: {value:.2f}"
        )

    return ask


def sampling_is_poor(found: Findings) -> Verdict:
    """Every sampling method is below greedy search."""
    greedy = at(found, found.metric, "beam", 1)
    numbers = {m: at(found, found.metric, m, 0) for m in present(found, ("top_k_4", "top_k_10", "nucleus"))}
    text = f"{_listed(found, numbers)}; greedy search {greedy:.2f}"
    return Verdict(all(value < greedy for value in numbers.values()), text)


def more_voters_help(found: Findings) -> Verdict | None:
    """For every kind of voters, the most do better than the fewest."""
    known = found.part("voters")
    if not known:
        return None
    gains = {}
    for kind, measures in known[0]["curves"].items():
        numbers = sorted(map(int, measures["overlap_2"]))
        ends = [
            sum(one["curves"][kind]["overlap_2"][str(n)][found.metric] for one in known) / len(known)
            for n in (numbers[0], numbers[-1])
        ]
        gains[kind] = ends[1] - ends[0]
    gained = ", ".join(f"{kind} {gain:+.2f}" for kind, gain in gains.items())
    return Verdict(all(gain > 0 for gain in gains.values()), gained)


def chosen_again_less(found: Findings) -> Verdict | None:
    """Voting elects the winners of a small beam again less often than beam search does."""
    shares: dict[tuple[str, int], list[float]] = {}
    for seed in found.seeds(found.main):
        for one in found.of(found.main, seed)["selection"]:
            shares.setdefault((one["method"], one["k"]), []).append(one["again"])
    means = {point: sum(values) / len(values) for point, values in shares.items()}
    ks = sorted({k for method, k in means if method == "beam" and ("overlap_2", k) in means})
    if not ks:
        return None
    numbers = "; ".join(f"k = {k}: {means['beam', k]:.0f} % and {means['overlap_2', k]:.0f} %" for k in ks)
    return Verdict(all(means["overlap_2", k] < means["beam", k] for k in ks), numbers)


def beats_baselines(method: str) -> Asked:
    """A method is above the best baseline of each k."""

    def ask(found: Findings) -> Verdict:
        gaps = {}
        for k in found.ks(found.main):
            rival = found.best(BASELINES, k)
            if k > 1 and rival is not None and found.values(found.metric, (method, k)):
                gaps[k] = at(found, found.metric, method, k) - at(found, found.metric, *rival)
        if not gaps:
            raise KeyError(method)
        numbers = ", ".join(f"{gap:+.2f} at k = {k}" for k, gap in gaps.items())
        return Verdict(all(gap > 0 for gap in gaps.values()), numbers)

    return ask


def _listed(found: Findings, values: dict[str, float], sign: str = "") -> str:
    return ", ".join(f"{label_of(m, found.experiment)} {sign}{value:.2f}" for m, value in values.items())


CAPTIONS = [
    Claim("A beam that is too large costs beam search BLEU.", "4.1.1", falls("beam")),
    Claim(
        "That drop does not occur for voting (here: it is smaller).",
        "4.1.1",
        falls_less(("overlap_2", "precision_2", "states"), ("beam",)),
    ),
    Claim(
        "Bigram measures and states improve BLEU over beam search for almost all beam sizes.",
        "4.1.1",
        above(("overlap_2", "precision_2", "states"), "beam", least=10),
    ),
    Claim(
        "The best voting measure is significantly better than the best beam search.",
        "4.1.1",
        significant("best voting, best beam search"),
    ),
    Claim("The best measure is lstm_states.", "4.1.1", best_is("states", list(VOTING))),
    Claim(
        "smoothed_bleu_4 gives the best results of all.",
        "4.1.1",
        best_is("smoothed_bleu_4", [*PLAIN, *VOTING, *MBR]),
    ),
    Claim(
        "Length normalisation performs worse than beam search.",
        "4.1.1",
        below(("length_normalised",), "beam", least=10),
    ),
    Claim("Sampling performs poorly.", "4.1.1", sampling_is_poor),
    Claim(
        "All n-gram measures write longer captions than beam search.",
        "4.1.2",
        above(NGRAMS, "beam", "length"),
    ),
    Claim("With overlap_1, length goes on growing with k.", "4.1.2", rises("overlap_1", "length")),
    Claim("MBR writes shorter captions than overlap_1.", "4.1.2", below(list(MBR), "overlap_1", "length")),
    Claim(
        "Beam search writes fewer different captions as k grows.",
        "4.1.3",
        rises("beam", "distinct_outputs", down=True),
    ),
    Claim(
        "Voting keeps more different captions than beam search at large k.",
        "4.1.3",
        above(list(VOTING), "beam", "distinct_outputs", least=10),
    ),
]
TRANSLATION = [
    Claim("Beam search and all baselines drop at large beams.", "4.2.1", falls(*PLAIN)),
    Claim(
        "Voting, by any measure, improves BLEU over the beams that it votes on.",
        "4.2.1",
        above(list(VOTING), VOTED_ON, least=4),
    ),
    Claim(
        "overlap_2 achieves the best score of all.", "4.2.1", best_is("overlap_2", [*PLAIN, *VOTING, *MBR])
    ),
    Claim(
        "The drop at large beams is smaller with overlap_2 than with any baseline.",
        "4.2.1",
        falls_less(("overlap_2",), PLAIN),
    ),
    Claim(
        "The best voting measure is better than the best beam search.",
        "4.2.1",
        significant("best voting, best beam search"),
    ),
    Claim(
        "The best voting measure is better than the best length normalisation.",
        "table 4",
        significant("best voting, best length normalisation"),
    ),
    Claim("Sampling performs poorly.", "4.2.1", sampling_is_poor),
    Claim(
        "Winners of small beams are chosen again less often by overlap_2 than by beam search.",
        "4.2.1",
        chosen_again_less,
    ),
    Claim("Beam search writes shorter translations as k grows.", "4.2.2", rises("beam", "length", down=True)),
    Claim(
        "All measures write longer translations than beam search.",
        "4.2.2",
        above(list(VOTING), "beam", "length", least=4),
    ),
    Claim(
        "All measures write shorter translations than length normalisation.",
        "4.2.2",
        below(list(VOTING), "length_normalised", "length", least=4),
    ),
    Claim(
        "All measures write more different bigrams than the beams that they vote on.",
        "4.2.3",
        above(list(VOTING), VOTED_ON, "distinct_bigrams", least=4),
    ),
    Claim("More voters raise BLEU, whichever way they are found.", "4.2.5", more_voters_help),
]
#: Of both experiments; not the paper's.
BEYOND = [
    Claim("blend is above every baseline at every k.", "beyond", beats_baselines("blend")),
    Claim(
        "blend loses less at the largest k than any baseline.",
        "beyond",
        falls_less(("blend",), list(BASELINES)),
    ),
    Claim(
        "The best blend is significantly better than the best baseline.",
        "beyond",
        significant("blend, best baseline"),
    ),
    Claim("Tuned settings are above every baseline at every tuned k.", "beyond", beats_baselines("tuned")),
    Claim(
        "The best tuned settings are significantly better than the best baseline.",
        "beyond",
        significant("tuned, best baseline"),
    ),
]
CLAIMS = {"captions": [*CAPTIONS, *BEYOND], "translation": [*TRANSLATION, *BEYOND]}


def verdicts(found: Findings) -> list[tuple[Claim, Verdict]]:
    """The claims that the numbers can answer, with the answers; they are about more than one k."""
    if len(found.ks(found.main)) < 2:
        return []
    asked = [(claim, _answer(claim.ask, found)) for claim in CLAIMS[found.experiment]]
    return [(claim, verdict) for claim, verdict in asked if verdict is not None]


def _answer(ask: Asked, found: Findings) -> Verdict | None:
    try:
        return ask(found)
    except KeyError:  # a method that was not run
        return None
