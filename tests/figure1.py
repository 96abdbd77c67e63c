"""Figure 1 of the paper: ten captions of one photograph, found by beam search, with their probabilities."""

from __future__ import annotations

import math

from rangevote.cli.demo import FIGURE_1

CAPTIONS = list(FIGURE_1)
PROBABILITIES = list(FIGURE_1.values())
LOGPROBS = [math.log(p) for p in PROBABILITIES]
TOTAL = math.fsum(PROBABILITIES)

#: What the caption of the figure says range voting with overlap_2 selects.
WINNER = "a black and white photo of a man sitting on a bench"
