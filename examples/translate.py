"""Translate with a Hugging Face model: the most likely translation beside the elected one.

pip install "rangevote[models]"
python examples/translate.py                                  # downloads the model, 300 MB
python examples/translate.py my-folder "A man is asleep."     # a model of yours, your own sentences
"""

from __future__ import annotations

import sys

import rangevote as rv


def main(name: str = "Helsinki-NLP/opus-mt-en-de", *sentences: str) -> None:
    """Search ten beams for each sentence, and let 100 samples vote on them."""
    inputs = list(sentences) or ["The train leaves at ten.", "Two dogs are playing in the snow."]
    model = rv.load(name)
    beams, samples = rv.Beam(10, max_new_tokens=64), rv.Sample(100, seed=1, max_new_tokens=64)
    results = rv.generate(model, inputs, candidates=beams, voters=samples)
    for sentence, result in zip(inputs, results, strict=True):
        likely = rv.elect(list(result.candidates), rule="most_likely")
        print(sentence)
        print("  most likely:", likely.winner)
        print("  elected:    ", result.winner)
        print(f"  {len(result.groups)} different candidates, {len(result.voters)} voters")


if __name__ == "__main__":
    main(*sys.argv[1:])
