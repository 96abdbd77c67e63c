"""Caption pictures with a Hugging Face model, by election, and say which words decided it.

pip install "rangevote[models]"
python examples/caption.py photo.jpg                          # downloads the model, 1 GB
python examples/caption.py photo.jpg --model my-folder
"""

from __future__ import annotations

import argparse

import rangevote as rv


def main() -> None:
    """Twenty captions of each picture vote for each other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pictures", nargs="+")
    parser.add_argument("--model", default="nlpconnect/vit-gpt2-image-captioning")
    given = parser.parse_args()
    model = rv.load(given.model)
    # `blend` was fixed on translations and then tried on captions: see "The paper, and here" in the docs
    results = rv.generate(model, given.pictures, candidates=rv.Beam(20, max_new_tokens=30), preset="blend")
    for picture, result in zip(given.pictures, results, strict=True):
        ngrams = ", ".join(part.ngram for part in (result.explain().ngrams or ())[:3])
        print(f"{picture}: {result.winner}")
        print(f"  score {result.score:.3f}, most of it for: {ngrams}")


if __name__ == "__main__":
    main()
