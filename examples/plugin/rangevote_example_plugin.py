"""One of each that a package can add to rangevote.

rangevote vote answers.jsonl -s jaccard
rangevote vote answers.jsonl -s exact:yes_or_no
rangevote vote answers.txt --format pipes
rangevote generate -m shuffle:2026 -i prompts.txt --candidates sample:5
"""

from __future__ import annotations

import random
import re

import rangevote as rv


def jaccard(argument: str, tokenize: str):
    """`-s jaccard`, or `-s jaccard:3` for runs of 3 characters: what two texts share of all they have."""
    size = int(argument or 0)

    def parts(text):
        return {text[i : i + size] for i in range(len(text))} if size else set(text.split())

    def grade(voter, candidate):
        one, other = parts(voter), parts(candidate)
        return len(one & other) / len(one | other) if one | other else 0.0

    return grade


def yes_or_no(text):
    """`-s exact:yes_or_no`: the last yes or no in the text; None abstains."""
    return next(iter(re.findall(r"\b(yes|no)\b", text.lower())[::-1]), None)


class Pipes:
    """`--format pipes`: lines as `id | output | output | ...`."""

    @staticmethod
    def decoder(options):
        def ballot(line):
            id, *outputs = (part.strip() for part in line.decode().split("|"))
            if not outputs:
                raise rv.DataError("expected id | output | output | ...")
            return rv.Ballot([rv.Hypothesis(text) for text in outputs], id=id)

        return ballot


class Shuffle:
    """`-m shuffle:SEED`: an engine whose outputs are the words of the input in another order."""

    def __init__(self, model):
        self.seed = int(model)

    def hypotheses(self, inputs, search):
        """For each input as many hypotheses as the search asks for."""
        chance = random.Random(self.seed)
        drawn = [
            [chance.sample(text.split(), len(text.split())) for _ in range(search.size)] for text in inputs
        ]
        return [[rv.Hypothesis(" ".join(words), sampled=True) for words in some] for some in drawn]
