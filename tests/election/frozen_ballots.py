"""Elections with known winners and scores: `python -m tests.election.frozen_ballots` writes their file.

The sentences below were written for it. An n-gram model of them gives beams and samples, and other ballots
are made by hand for what goes wrong most easily.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rangevote as rv
from rangevote.models.ngram import NgramModel

FILE = Path(__file__).with_suffix(".jsonl")
SIZE = 200
NEAR = 1e-9

SENTENCES = """
the train to the coast leaves at ten
the train to the coast leaves at ten o'clock
the night train leaves at eleven from the last platform
a train leaves for the coast every hour
the bus to the harbour leaves at ten
the bus is late because of the snow
a bus stops in front of the library
the library opens at nine on weekdays
the library is closed on sundays and holidays
the museum opens at ten and closes at six
the museum in front of the harbour is closed
a woman reads a letter on a bench in the park
a woman reads the news on the train
a man with a red umbrella waits for the bus
a man with a small dog waits in front of the library
a small dog sleeps under the bench in the park
the dog of the neighbour barks at every train
two children play football behind the museum
two children feed the birds in the park
the birds fly to the south when the snow comes
the snow on the roof melts in the sun
the sun rises behind the harbour at six
the ferry to the island leaves from the harbour at noon
the ferry is late because of the wind
the wind blows the umbrella of the woman into the water
the water in the harbour is cold in march
we meet at noon in front of the museum
we meet on the last platform at eleven
you can buy a ticket at the station or on the train
you can buy fresh bread at the market on weekdays
the market opens at six and closes at noon
the station is behind the market
"""

#: name -> what it is, for whoever computes it anew. Words are what white space separates.
MEASURES = {
    "overlap_1": "|set_1(v) & set_1(c)| / |set_1(v)|, set_n the distinct n-grams; an empty text abstains",
    "overlap_2": "the same with set_2; a text of fewer than n words has itself as its only n-gram",
    "overlap_1-4": "mean of overlap_1 to overlap_4",
    "overlap_1-4@0.25": "mean over n = 1 to 4 of |set_n(v) & set_n(c)| / (|set_n(v)|^0.75 |set_n(c)|^0.25)",
    "precision_2": "|bag_2(v) & bag_2(c)| / |bag_2(v)|, bag_n the n-grams as often as they occur",
    "precision_1-2@0.5": "mean over n = 1, 2 of |bag_n(v) & bag_n(c)| / (|bag_n(v)|^0.5 |bag_n(c)|^0.5)",
    "bleu_4": "sentence BLEU of c against v, unsmoothed, brevity penalty, from 0 to 1",
    "smoothed_bleu_4": "the same with 1 added to matches and totals of orders above 1 (sacrebleu: add-k)",
    "chrf": "chrF2 of sacrebleu (characters to order 6, no words) of c against v, from 0 to 1",
    "chrf++": "the same with words of orders 1 and 2 (sacrebleu: word_order 2)",
    "ter": "1 - TER of sacrebleu of c against v (shifts, lower case), at least -1; an empty text abstains",
    "exact": "1 where the texts are equal, else 0",
    "exact:last_number": "1 where the last numbers in the texts are equal; without one a text abstains",
    "states": "cosine of the two vectors `state`",
    "rouge_l": "F1 of the longest common subsequence of words",
    "edit": "1 - edit distance in words / length of the longer text",
    "0.5*overlap_2+0.5*chrf": "that sum",
}

ABOUT = (
    "score(c) = sum over voters v of P(v) sim(v, c); without `voters` the candidates vote. weights: "
    "probability: P(v) is proportional to exp(logprob / temperature), each distinct voter counted once; "
    "count: every voter counts the same. The highest score wins, then the highest logprob, then the first."
)


def written_by_hand() -> Iterator[dict[str, Any]]:
    """Ballots of what goes wrong most easily."""
    lists = [
        ["one candidate alone"],
        ["the same", "the same", "the same"],
        ["", "a", "a b"],
        ["", "", "word"],
        ["a", "b", "c"],
        ["a b a b a b", "a b", "b a", "a a a a"],
        ["  spaces   at\tends \n", "spaces at ends", "spaces at the ends"],
        ["naïve café", "naïve cafe", "na\u0131ve café", "nai\u0308ve cafe\u0301"],
        ["東京 へ 行く", "東京 に 行く", "京都 へ 行く"],
        ["東京へ行く", "東京に行く", "京都へ行く"],
        ["Straße", "strasse", "STRASSE", "Straße !"],
        ["😀 😀 yes", "😀 yes", "👩‍👩‍👧 yes yes"],
        ["Я еду домой", "Я еду на работу", "я еду домой"],
        ["so it is 42", "the answer is 42.", "41", "it must be 42", "no idea"],
        ["x = 1,000", "it is 1000", "about 1e3", "1000.0", "999"],
        ["-3", "minus 3", "it is -3.0", "3"],
        ["no number", "none here either"],
        ["Yes.", "yes", "Yes", "no"],
        ["a " * 60 + "end", "a " * 59 + "end", "end"],
        ["word " * 3 + "tail", "word tail", "tail word word word"],
        ["It's ten o'clock.", "It 's ten o'clock .", "its ten oclock"],
        ["a-b c", "a - b c", "ab c"],
        ['quote " and \\ back', "quote and back", 'quote " and back'],
        ["Zug um zehn", "der Zug fährt um zehn", "der Zug um zehn fährt", "um zehn fährt der Zug"],
    ]
    for texts in lists:
        yield {"weights": "count", "candidates": [{"text": text} for text in texts]}
    for probabilities in ([0.5, 0.25, 0.125], [1e-9, 2e-9, 1e-30], [0.3, 0.3, 0.3]):
        texts = ["the train leaves", "the train leaves at ten", "a train leaves at ten"]
        yield {
            "weights": "probability",
            "temperature": 1,
            "candidates": [
                {"text": text, "logprob": round(math.log(p), 6)}
                for text, p in zip(texts, probabilities, strict=True)
            ],
        }


def drawn_from_a_model() -> Iterator[dict[str, Any]]:
    """Beams, and samples that vote for them, of a model of the sentences; states by chance."""
    model = NgramModel.train(SENTENCES.strip().splitlines(), order=3)
    prompts = sorted({" ".join(line.split()[:2]) for line in SENTENCES.strip().splitlines()})
    rng = np.random.default_rng(20)
    for number in range(SIZE):
        prompt, kind = prompts[number % len(prompts)], number % 4
        size = int(rng.integers(2, 5))
        [found] = rv.search(model, [prompt], rv.Beam(size, max_new_tokens=9))
        rows = [{"text": h.text, "logprob": round(float(h.logprob or 0.0), 6)} for h in found]
        if kind == 3:
            rows = [{**row, "state": [round(float(x), 3) for x in rng.normal(size=3)]} for row in rows]
        made: dict[str, Any] = {
            **(
                {"weights": "count"} if kind == 1 else {"weights": "probability", "temperature": kind % 2 + 1}
            ),
            "candidates": rows,
        }
        if kind == 1:
            [sampled] = rv.search(model, [prompt], rv.Sample(int(rng.integers(3, 8)), seed=number))
            made["voters"] = [{"text": voter.text} for voter in sampled]
        yield made


def expected(ballot: dict[str, Any]) -> dict[str, Any]:
    """Winner and scores under every measure that the ballot has what it takes for."""
    found = {}
    for measure in MEASURES:
        if measure == "states" and "state" not in ballot["candidates"][0]:
            continue
        result = rv.elect(
            [rv.Hypothesis(**row) for row in ballot["candidates"]],
            voters=[rv.Hypothesis(**row) for row in ballot["voters"]] if "voters" in ballot else None,
            similarity=measure,
            weights=ballot["weights"],
            temperature=ballot.get("temperature"),
        )
        best, *others = sorted(result.scores.tolist(), reverse=True)
        if any(0 < best - other < NEAR for other in others):
            return {}  # another system could round it otherwise
        found[measure] = {"winner": result.index, "scores": result.scores.tolist()}
    return found


def made() -> str:
    lines: list[dict[str, Any]] = [
        {"format": "rangevote selftest", "version": 1, "about": ABOUT, "measures": MEASURES}
    ]
    for ballot in [*written_by_hand(), *drawn_from_a_model()]:
        found = expected(ballot)
        if found and len(lines) <= SIZE:
            lines.append({"id": len(lines), **ballot, "expected": found})
    return "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)


if __name__ == "__main__":
    FILE.write_text(made(), encoding="utf-8")
