"""`rangevote demo`: the election of the paper's figure 1 as a table, or a chat model's own answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rangevote.cli.options import HelpCommand
from rangevote.cli.output import visible
from rangevote.cli.progress import loading

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from rangevote.election.result import Result
    from rangevote.generation.batch import Elected

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

#: Chosen among 23 short prompts because the two answers differ; `CHOSEN` says so to whoever looks at them.
PROMPTS = (
    "What does a teacher do?",
    "How can I save money?",
    "What is a good way to learn a language?",
)
CHOSEN = (
    "These prompts were chosen because the two answers differ: with smollm2 and overlap_2 they did for 9 of "
    "23 short prompts that were tried."
)
BEAMS, LONGEST = 10, 40


@click.command(cls=HelpCommand, example="rangevote demo --model smollm2")
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
        _answers(console, model, similarity)


def _figure_1(console: Console, similarity: str) -> None:
    from rangevote.election.elect import elect

    result = elect(list(FIGURE_1), [math.log(p) for p in FIGURE_1.values()], similarity=similarity)
    console.print(_table(result))
    console.print(f"\nElected: [bold]{result.winner}[/bold]")
    clear = "no rival" if result.margin is None else f"margin {result.margin:.6f} over the runner-up"
    console.print(f"{clear}; {result.signature}", highlight=False)
    explanation = result.explain()
    if explanation.ngrams:
        parts = ", ".join(f"{part.ngram} ({part.score:.3f})" for part in explanation.ngrams[:5])
        console.print(f"most of its score comes from: {parts}", highlight=False)


def _table(result: Result) -> Table:
    from rich.table import Table

    table = Table(title="Captions of one image (figure 1), and how they vote for each other")
    table.add_column("rank", justify="right")
    table.add_column("caption")
    table.add_column("P(c)", justify="right")
    table.add_column("score", justify="right")
    table.add_column("")
    likely = int(result.candidates.logprobs.argmax()) if result.candidates.logprobs is not None else -1
    for rank, index in enumerate(result.ranking, 1):
        marks = [mark for mark, at in (("elected", result.leader), ("most likely", likely)) if at == index]
        probability = math.exp(result.candidates.logprob(index) or -math.inf)
        table.add_row(
            str(rank),
            str(result.candidates.content(index)),
            f"{probability:.5f}",
            f"{result.scores[index]:.4f}",
            ", ".join(marks),
            style="bold" if index == result.leader else None,
        )
    return table


def _answers(console: Console, model: str, similarity: str) -> None:
    """Answer the prompts and show what was likely, what was elected, and what the vote cost."""
    from rich.console import Console

    from rangevote.decoding.beam import Beam
    from rangevote.election.settings import Settings
    from rangevote.generation.batch import Request, elections
    from rangevote.generation.plan import GenerationPlan
    from rangevote.models.load import load

    plan = GenerationPlan.of(Settings(similarity), Beam(BEAMS, max_new_tokens=LONGEST))
    with loading(model):
        network = load(model)
    with Console(stderr=True).status(f"answering {len(PROMPTS)} prompts, {BEAMS} beams each ..."):
        requests = [Request.of(number, prompt) for number, prompt in enumerate(PROMPTS)]
        elected = list(elections(network, requests, plan))
    for prompt, one in zip(PROMPTS, elected, strict=True):
        console.print(_side_by_side(prompt, one.result))
    console.print(CHOSEN, highlight=False)
    console.print(_cost(elected), highlight=False)


def _side_by_side(prompt: str, result: Result) -> Table:
    from rich.table import Table

    likely = int(result.candidates.logprobs.argmax()) if result.candidates.logprobs is not None else 0
    table = Table(title=prompt, title_justify="left", expand=True, show_lines=True)
    for heading in ("most likely", "elected" if likely != result.leader else "elected (the same)"):
        table.add_column(heading, ratio=1)
    table.add_row(_answer(result, likely), _answer(result, result.leader))
    table.add_row(*(_numbers(result, index) for index in (likely, result.leader)))
    return table


def _answer(result: Result, index: int) -> Text:
    """The model's text; nothing in it is read as markup or as a command to the terminal."""
    from rich.text import Text

    answer = result.candidates[index]
    text = answer.text if answer.text is not None else " ".join(map(str, answer.tokens or ()))
    return Text(visible(text.strip().encode()).decode() + ("" if answer.finished else " ..."))


def _numbers(result: Result, index: int) -> str:
    return f"log P {result.candidates.logprob(index) or 0.0:.2f}, score {result.scores[index]:.3f}"


def _cost(elected: Sequence[Elected]) -> str:
    """How the time was spent."""
    searching, voting = sum(one.searching for one in elected), sum(one.voting for one in elected)
    share = 100 * voting / (searching + voting)
    percent = f"{share:.2f} %" if share >= 0.01 else "less than 0.01 %"
    return f"searching took {searching:.1f} s, voting {voting:.4f} s: {percent} of the time"
