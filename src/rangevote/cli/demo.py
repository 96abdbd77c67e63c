"""`rangevote demo`: the election of the paper's figure 1 as a table, or a chat model's own answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rangevote.cli.options import MODEL_SECTIONS, HelpCommand, option
from rangevote.cli.progress import loading
from rangevote.election.summary import Quote, most_likely, why
from rangevote.errors import UsageError, need
from rangevote.text import differences, escape_controls

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from rangevote.election.result import Result
    from rangevote.election.settings import Settings

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

#: Chosen among 23 short prompts because the two answers differ, as `CHOSEN` says.
PROMPTS = (
    "What does a teacher do?",
    "How can I save money?",
    "What is a good way to learn a language?",
)
CHOSEN = (
    "These prompts were chosen because the two answers differ: with smollm2 and overlap_2 they did for 9 of "
    "23 short prompts that were tried. The sum was chosen because the vote gets it right; of most others "
    "that were tried it elected a wrong answer."
)
BEAMS, LONGEST = 10, 40

#: A question whose answer is right or wrong: samples vote on the last number in them.
SUM, RIGHT = "Anna has 3 apples and buys 4 more. How many apples does she have?", "7"
SAMPLES, SUM_MEASURE = 16, "exact:last_number"

#: The measures under which an election is held again, to see how firm it is.
OTHERS = ("overlap_1", "overlap_2", "overlap_1-4@0.25", "bleu_4", "chrf")


@click.command(cls=HelpCommand, sections=MODEL_SECTIONS, example="rangevote demo --model smollm2")
@option("-s --similarity TEXT", "How voters grade candidates.", default="overlap_2")
@option("-m --model NAME", "Let this chat model answer questions, for example smollm2.")
@option("--export FILE", "With --model: write the elections to an HTML page.")
def demo(similarity: str, model: str | None, export: str | None) -> None:
    """Hold the election of the paper's figure 1: ten captions that vote for each other.

    With --model, a chat model answers three questions by beam search. The most likely answer is shown
    beside the elected one, with the words that differ, why it was elected, and how firm that is. Then
    samples vote on a sum.
    """
    from rich.console import Console

    if export is not None:
        if model is None:
            raise UsageError("--export belongs to --model; rangevote show has figure 1 as a page.")
        need("starlette", "web", "a page")  # before the work, not after
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 100
    if model is None:
        _figure_1(console, similarity)
    else:
        _answers(console, model, similarity, export)


def _figure_1(console: Console, similarity: str) -> None:
    from rich.table import Table

    from rangevote.election.elect import elect

    result = elect(list(FIGURE_1), [math.log(p) for p in FIGURE_1.values()], similarity=similarity)
    console.print("Captions of one image (figure 1), and how they vote for each other:\n")
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("caption")
    table.add_column("P(c)", justify="right")
    table.add_column("score", justify="right")
    table.add_column("")
    likely = most_likely(result.candidates)
    for index in result.ranking:
        marks = [mark for mark, at in (("elected", result.leader), ("most likely", likely)) if at == index]
        caption, style = str(result.candidates.content(index)), "bold" if index == result.leader else None
        score, mark = f"{result.scores[index]:.4f}", ", ".join(marks)
        table.add_row(caption, f"{FIGURE_1[caption]:.5f}", score, mark, style=style)
    console.print(table)
    console.print("\nElected:", result.winner, style="bold")
    console.print(
        "Margin:", "no rival" if result.margin is None else f"{result.margin:.6f} over the runner-up"
    )
    explanation = result.explain()
    if explanation.ngrams:
        parts = ", ".join(f"{part.ngram} ({part.score:.3f})" for part in explanation.ngrams[:5])
        console.print(f"Most of its score comes from: {parts}")
    console.print(f"Signature: {result.signature}", soft_wrap=True)


def _answers(console: Console, model: str, similarity: str, export: str | None) -> None:
    """Answer the prompts and show what was likely, what was elected, why, and what the vote cost."""
    from rich.console import Console

    from rangevote.decoding.beam import Beam
    from rangevote.decoding.sample import Sample
    from rangevote.election.settings import Settings
    from rangevote.generation.generate import Request, elections
    from rangevote.generation.plan import GenerationPlan
    from rangevote.models.load import load

    beams = GenerationPlan.of(Settings(similarity), Beam(BEAMS, max_new_tokens=LONGEST))
    samples = GenerationPlan.of(
        Settings(SUM_MEASURE), Sample(SAMPLES, temperature=0.7, seed=1, max_new_tokens=LONGEST)
    )
    with loading(model):
        network = load(model)
    with Console(stderr=True).status(f"answering {len(PROMPTS)} prompts, {BEAMS} beams each ...") as status:
        requests = [Request.of(number, prompt) for number, prompt in enumerate(PROMPTS)]
        elected = list(elections(network, requests, beams))
        status.update(f"drawing {SAMPLES} answers to a sum ...")
        [voted] = elections(network, [Request.of(0, SUM)], samples)
    for prompt, one in zip(PROMPTS, elected, strict=True):
        console.print(_side_by_side(prompt, one.result, console.is_terminal))
        console.print(_why(one.result))
        console.print(_firm(one.result))
        console.print()
    _sum(console, voted.result)
    console.print(CHOSEN)
    searching, voting = (
        sum(getattr(one, stage) for one in (*elected, voted)) for stage in ("searching", "voting")
    )
    console.print(f"Searching took {searching:.1f} s, voting {voting:.4f} s.")
    if export is not None:
        _write_page(export, [one.result for one in elected], Settings(similarity))
        console.print(f"\nThe elections as a page: open {export} in a browser.")


def _side_by_side(prompt: str, result: Result, terminal: bool) -> Table:
    from rich.table import Table

    likely = most_likely(result.candidates) or 0
    table = Table(title=prompt, title_justify="left", expand=True, show_lines=True)
    for heading in ("most likely", "elected" if likely != result.leader else "elected (the same)"):
        table.add_column(heading, ratio=1)
    texts = [_answer(result, index) for index in (likely, result.leader)]
    table.add_row(_marked(texts[0], texts[1], terminal), _marked(texts[1], texts[0], terminal))
    logprobs = [result.candidates.logprob(index) or 0.0 for index in (likely, result.leader)]
    scores = [result.scores[index] for index in (likely, result.leader)]
    table.add_row(
        *(f"log P {log:.2f}, score {score:.3f}" for log, score in zip(logprobs, scores, strict=True))
    )
    return table


def _marked(text: str, other: str, terminal: bool) -> Text:
    """The text; words that the other text does not have are marked, by stars where there is no terminal."""
    from rich.text import Text

    marked = Text()
    for piece, own in differences(text, other):
        marked.append(f"*{piece}*" if own and not terminal else piece, style="bold reverse" if own else "")
    return marked


def _why(result: Result) -> Text:
    """The sentence that the page has too, with what it quotes between quotation marks."""
    from rich.text import Text

    parts = [f'"{part}"' if isinstance(part, Quote) else part for part in why(result)]
    return Text(escape_controls("".join(parts)))


def _firm(result: Result) -> str:
    """By how much it won, and how many other measures elect the same."""
    from rangevote.election.elect import elect

    same = [elect(list(result.candidates), similarity=name).leader == result.leader for name in OTHERS]
    margin = "no rival" if result.margin is None else f"{result.margin:.3f} ahead of the next"
    return f"How firm: {margin}; {sum(same)} of {len(OTHERS)} measures elect the same ({', '.join(OTHERS)})."


def _sum(console: Console, result: Result) -> None:
    """The samples' answers to the sum, and how many give each."""
    from rich.table import Table
    from rich.text import Text

    answers = result.answers
    if answers is None or not answers.votes:
        console.print(f"{SUM} None of {SAMPLES} samples has a number in it.\n")
        return
    console.print(Text(f"{SUM} ({SAMPLES} samples vote; {RIGHT} is right)", style="italic"))
    table = Table("answer", "votes", "")
    for answer, votes in answers.votes.items():
        marks = [mark for mark, right in (("elected", result.answer), ("right", RIGHT)) if answer == right]
        table.add_row(answer, str(votes.count), ", ".join(marks))
    if answers.abstained:
        table.add_row("none", str(answers.abstained), "")
    console.print(table)
    console.print(Text(f"Elected: {_answer(result, result.leader)}"))
    console.print(_why(result))
    console.print()


def _write_page(path: str, results: Sequence[Result], settings: Settings) -> None:
    from rangevote.cli.progress import Notes
    from rangevote.cli.show import export_page
    from rangevote.hypothesis import Ballot
    from rangevote.web.app import Ballots, ElectionPage

    ballots = [
        Ballot(list(result.candidates), id=number, source=prompt)
        for number, (prompt, result) in enumerate(zip(PROMPTS, results, strict=True), 1)
    ]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    page = ElectionPage([Ballots("demo", ballots)], settings, kept=len(ballots))
    export_page(page, path, force=True, quiet=True, notes=Notes(quiet=True))


def _answer(result: Result, index: int) -> str:
    """The model's text on one line; nothing in it is a command to the terminal."""
    answer = result.candidates[index]
    text = answer.text if answer.text is not None else " ".join(map(str, answer.tokens or ()))
    return escape_controls(" ".join(text.split())) + ("" if answer.finished else " ...")
