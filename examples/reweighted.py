"""Elect several outputs that speak for different voters, by reweighted range voting.

python examples/reweighted.py        # needs the core alone
"""

from __future__ import annotations

import math

import rangevote as rv

#: Captions of one photograph with their probabilities: figure 1 of Borgeaud and Emerson (2020), shortened.
CAPTIONS = {
    "a couple of people that are sitting on a bench": 0.00230,
    "a man sitting on a bench next to a dog": 0.00132,
    "a black and white photo of a man sitting on a bench": 0.00079,
    "a couple of people sitting on a bench": 0.00075,
    "a man and a woman sitting on a bench": 0.00064,
    "a black and white photo of a man and a horse": 0.00046,
    "a black and white photo of a man on a horse": 0.00025,
}


def main() -> None:
    """The three best by score, beside three that share the voters out among them."""
    texts, logprobs = list(CAPTIONS), [math.log(p) for p in CAPTIONS.values()]
    highest = rv.elect(texts, logprobs, winners=3)
    shared = rv.elect(texts, logprobs, winners=3, rule="reweighted")
    print("the three highest scores:")
    for text in highest.winners:
        print("  ", text)
    print("reweighted: who got what they wanted counts less in the next round:")
    for text in shared.winners:
        print("  ", text)


if __name__ == "__main__":
    main()
