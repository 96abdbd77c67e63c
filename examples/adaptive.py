"""Draw voters only until the winner is certain.

    python examples/adaptive.py          # needs the core alone

A model that is sure of itself needs few voters, one that wavers needs many. `adaptive=0.99` draws 4, then
as many again, and so on, and stops for each input by itself; a wrong winner is called certain with
probability at most 1 %.
"""

from __future__ import annotations

import rangevote as rv
from rangevote.models.ngram import NgramModel

#: What the model has read: of trains always the same, of dogs now this, now that.
LINES = [
    *["the train leaves at ten"] * 60,
    *["the bus leaves at noon"] * 30,
    *["a dog runs on the grass"] * 20,
    *["a dog sleeps under the tree"] * 18,
]


def main() -> None:
    """The same election with all voters, and with as many as it takes."""
    model = NgramModel.train(LINES, order=3)  # a Hugging Face model does as well: rv.load(name)
    inputs = ["the train", "a dog"]
    settings = {"candidates": rv.Beam(5), "voters": rv.Sample(2000, seed=1), "similarity": "overlap_1"}
    whole = rv.generate(model, inputs, **settings)
    early = rv.generate(model, inputs, **settings, adaptive=0.99)
    for text, all_voters, few in zip(inputs, whole, early, strict=True):
        print(f"{text!r}: {all_voters.winner!r} by {len(all_voters.voters)} voters")
        print(f"{' ' * len(repr(text))}  {few.winner!r} by {len(few.voters)}")


if __name__ == "__main__":
    main()
