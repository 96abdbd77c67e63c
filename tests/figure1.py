"""Figure 1 of the paper: ten captions of one photograph, found by beam search, with their probabilities."""

from __future__ import annotations

import math

FIGURE_1 = {
    "a couple of people that are sitting on a bench": 0.00230,
    "a man sitting on a bench next to a dog": 0.00132,
    "a black and white photo of a man sitting on a bench": 0.00079,
    "a couple of people sitting on a bench": 0.00075,
    "a man sitting on a bench with a dog": 0.00066,
    "a man and a woman sitting on a bench": 0.00064,
    "a man and a woman sitting on a park bench": 0.00048,
    "a black and white photo of a man and a horse": 0.00046,
    "a black and white photo of a man and a dog": 0.00033,
    "a black and white photo of a man on a horse": 0.00025,
}
CAPTIONS = list(FIGURE_1)
PROBABILITIES = list(FIGURE_1.values())
LOGPROBS = [math.log(p) for p in PROBABILITIES]
TOTAL = math.fsum(PROBABILITIES)

#: What the caption of the figure says range voting with overlap_2 selects.
WINNER = "a black and white photo of a man sitting on a bench"
