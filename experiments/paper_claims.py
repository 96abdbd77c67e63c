"""The paper's claims, experiment by experiment, and those beyond it; `claims.py` says how they are asked."""

from __future__ import annotations

from experiments.claims import (
    NGRAMS,
    PLAIN,
    Asked,
    Claim,
    Verdict,
    above,
    beats_baselines,
    below,
    best_is,
    chosen_again_less,
    falls,
    falls_less,
    more_voters_help,
    rises,
    sampling_is_poor,
    significant,
)
from experiments.findings import Findings
from experiments.methods import BASELINES, MBR, VOTING

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
        above(list(VOTING), "no_copy", least=4),
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
        above(list(VOTING), "no_copy", "distinct_bigrams", least=4),
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
    """The claims that the numbers can answer, with the answers."""
    asked = [(claim, _answer(claim.ask, found)) for claim in CLAIMS[found.experiment]]
    return [(claim, verdict) for claim, verdict in asked if verdict is not None]


def _answer(ask: Asked, found: Findings) -> Verdict | None:
    try:
        return ask(found)
    except KeyError:  # a method that was not run
        return None
