"""`rangevote demo`: the election of the paper's figure 1 as a table, or a chat model's own answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from rangevote.election.result import Result

#: Figure 1 of Borgeaud and Emerson (2020): captions of one image, with their probabilities.
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


@click.command()
@click.option(
    "-s", "--similarity", default="overlap_2", show_default=True, help="How voters grade candidates."
)
@click.option("-m", "--model", metavar="NAME", help="Let this chat model answer instead, as smollm2.")
def demo(similarity: str, model: str | None) -> None:
    """Hold the election of the paper's figure 1: ten captions that vote for each other.

    With --model, a chat model answers three questions by beam search, and the most likely answer of each is
    shown beside the elected one.
    """
    from rich.console import Console

    console = Console(width=None if Console().is_terminal else 110 if model is None else 100)
    if model is None:
        _figure_1(console, similarity)
    else:
        from rangevote.cli.answers import show_answers

        show_answers(console, model, similarity)


def _figure_1(console: Console, similarity: str) -> None:
    from rangevote.election.elect import elect

    result = elect(list(FIGURE_1), [math.log(p) for p in FIGURE_1.values()], similarity=similarity)
    console.print(_table(result))
    console.print(f"\nElected: [bold]{result.winner}[/bold]")
    console.print(f"margin {result.margin:.6f} over the runner-up; {result.signature}", highlight=False)
    explanation = result.explain()
    if explanation.ngrams:
        told = ", ".join(f"{part.ngram} ({part.score:.3f})" for part in explanation.ngrams[:5])
        console.print(f"most of its score comes from: {told}", highlight=False)


def _table(result: Result) -> object:
    from rich.table import Table

    table = Table(title="Captions of one image (figure 1), and how they vote for each other")
    table.add_column("rank", justify="right")
    table.add_column("caption")
    table.add_column("P(c)", justify="right")
    table.add_column("score", justify="right")
    table.add_column("")
    likely = int(result.candidates.logprobs.argmax()) if result.candidates.logprobs is not None else -1
    for rank, index in enumerate(result.ranking, 1):
        marks = [mark for mark, at in (("elected", result.index), ("most likely", likely)) if at == index]
        probability = math.exp(result.candidates.logprob(index) or -math.inf)
        table.add_row(
            str(rank),
            str(result.candidates.content(index)),
            f"{probability:.5f}",
            f"{result.scores[index]:.4f}",
            ", ".join(marks),
            style="bold" if index == result.index else None,
        )
    return table
