"""Ask a chat model the same question many times, and take the answer most samples agree on.

pip install "rangevote[models]"
python examples/answers.py                                    # downloads the model, 270 MB
python examples/answers.py my-folder "What is 17 + 25?"
"""

from __future__ import annotations

import sys

import rangevote as rv

QUESTION = "Anna has 12 apples and buys 30 more. How many apples does she have? Think, then give the number."


def main(name: str = "HuggingFaceTB/SmolLM2-135M-Instruct", question: str = QUESTION) -> None:
    """Draw 32 answers; elect by their last number, and by what they say."""
    model = rv.load(name)
    [samples] = rv.search(model, [question], rv.Sample(32, temperature=0.8, seed=1, max_new_tokens=80))
    texts = [sample.text for sample in samples]
    # samples count once each: answers come as often as they are probable
    by_number = rv.elect(texts, similarity="exact:last_number")
    by_words = rv.elect(texts, similarity="overlap_1-4@0.25", merge=True)
    if by_number.no_support:
        print("no sample has a number in it")
    else:
        print(f"{by_number.score:.0%} of the samples end on the number of this one:")
        print(by_number.winner)
    print("the most representative answer by its words:")
    print(by_words.winner)


if __name__ == "__main__":
    main(*sys.argv[1:])
