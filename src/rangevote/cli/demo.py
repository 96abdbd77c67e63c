"""`rangevote demo`: the election of the paper's figure 1, and elections among a chat model's answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from operator import eq
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from rangevote.cli.options import HelpCommand, option
from rangevote.cli.progress import loading
from rangevote.election.summary import Quote, why
from rangevote.errors import DataError, UsageError, need, without_warnings
from rangevote.hypothesis import Ballot, Hypotheses, Hypothesis
from rangevote.text import escape_controls

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

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

#: Populous countries whose capital has one name and one spelling.
# fmt: off
CAPITALS = {
    "India": "New Delhi", "China": "Beijing", "Indonesia": "Jakarta", "Pakistan": "Islamabad",
    "Nigeria": "Abuja", "Bangladesh": "Dhaka", "Russia": "Moscow", "Ethiopia": "Addis Ababa",
    "Mexico": "Mexico City", "Japan": "Tokyo", "Egypt": "Cairo", "the Philippines": "Manila",
    "Vietnam": "Hanoi", "Iran": "Tehran", "Turkey": "Ankara", "Germany": "Berlin", "Thailand": "Bangkok",
    "the United Kingdom": "London", "France": "Paris", "Italy": "Rome", "Kenya": "Nairobi",
    "South Korea": "Seoul", "Sudan": "Khartoum", "Uganda": "Kampala", "Spain": "Madrid",
    "Algeria": "Algiers", "Iraq": "Baghdad", "Argentina": "Buenos Aires", "Afghanistan": "Kabul",
    "Poland": "Warsaw", "Canada": "Ottawa", "Morocco": "Rabat", "Angola": "Luanda",
    "Uzbekistan": "Tashkent", "Malaysia": "Kuala Lumpur", "Mozambique": "Maputo", "Ghana": "Accra",
    "Peru": "Lima", "Saudi Arabia": "Riyadh", "Madagascar": "Antananarivo", "Nepal": "Kathmandu",
    "Venezuela": "Caracas", "Niger": "Niamey", "Australia": "Canberra", "North Korea": "Pyongyang",
    "Syria": "Damascus", "Mali": "Bamako", "Burkina Faso": "Ouagadougou", "Zambia": "Lusaka",
    "Malawi": "Lilongwe",
}
# fmt: on
#: Ways to ask for a capital, good and bad; written before any of them was tried.
PROMPTS = (
    "What is the capital of {}?",
    "What is the capital of {}? Answer with the name of the city only.",
    "Name the capital city of {} in one word.",
    "Complete the sentence: The capital of {} is",
    "Norway: Oslo. Greece: Athens. Cuba: Havana. {}:",
    "{}",
    "Which city should I visit in {}?",
)
#: An answer is the last name in it: words that begin with a capital letter.
LAST_NAME = r"exact:regex:([A-Z]\w+(?: [A-Z]\w+)*)[^A-Z]*$"
SHORT_TOKENS = 16

#: The open question, and the room that its answers have, so that they end by themselves.
QUESTION = "Why is the sky blue? Answer in two sentences."
SAMPLES, OPEN_TOKENS = 10, 160

LIMITS = (
    "What this does not show: one small model, one list of questions, one way to read an answer from a text. "
    "Other questions come out differently, and the best prompt can beat the vote. Results on translations, "
    "captions, summaries and mathematics are in experiments/RESULTS.md."
)


@click.command(
    cls=HelpCommand, sections={"Election": ("--similarity",)}, example="rangevote demo --model smollm2"
)
@option("-s --similarity NAME", "How voters grade candidates.", default="overlap_2")
@option("-m --model NAME", "Chat model that answers questions, for example smollm2.")
@option("--export FILE", "With --model: write the elections to an HTML page.")
def demo(similarity: str, model: str | None, export: str | None) -> None:
    """Hold the election of the paper's figure 1: ten captions that vote for each other.

    With --model, a chat model then answers 50 questions through seven prompts, and the prompts vote on
    each answer. Last it answers an open question ten times; the elected answer and the most likely one
    are marked.
    """
    from rich.console import Console

    from rangevote.election.elect import elect

    if export is not None:
        if model is None:
            raise UsageError("--export belongs to --model; rangevote show has figure 1 as a page.")
        need("starlette", "web", "a page")  # before the work, not after
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 100
    result = elect(figure_1(), similarity=similarity)
    console.print("Captions of one image (figure 1), and how they vote for each other:\n")
    console.print(result, _why(result), sep="\n")
    if model is not None:
        with without_warnings():  # the tables show who has no share or support
            _answers(console, model, similarity, export)


def figure_1() -> Ballot:
    """The ten captions of the paper's figure 1."""
    captions = [Hypothesis(text, logprob=math.log(p)) for text, p in FIGURE_1.items()]
    source = "a photograph (figure 1 of Borgeaud and Emerson 2020: ten captions found by beam search)"
    return Ballot(captions, id="figure 1", source=source)


def _answers(console: Console, model: str, similarity: str, export: str | None) -> None:
    """Ask the model, and show how its answers vote."""
    from rich.console import Console

    from rangevote.decoding import search
    from rangevote.decoding.beam import Beam
    from rangevote.decoding.sample import Sample
    from rangevote.election.elect import elect
    from rangevote.models.load import load

    with loading(model):
        network = load(model)
    answers: dict[str, list[Hypothesis]] = {}
    began = perf_counter()
    with Console(stderr=True).status("") as status:
        for number, prompt in enumerate(PROMPTS, 1):
            status.update(f"{len(CAPITALS)} questions, prompt {number} of {len(PROMPTS)} ...")
            questions = [prompt.format(country) for country in CAPITALS]
            beams = search(network, questions, Beam(1, max_new_tokens=SHORT_TOKENS))
            answers[prompt] = [answer for [answer] in beams]
        status.update(f"the open question, {SAMPLES} answers ...")
        [samples] = search(network, [QUESTION], Sample(SAMPLES, temperature=0.7, max_new_tokens=OPEN_TOKENS))
    spent = perf_counter() - began
    capitals = [
        Ballot(
            [replace(outputs[i], member=prompt.format("...")) for prompt, outputs in answers.items()],
            id=country,
            source=f"The capital of {country} (right: {CAPITALS[country]})",
        )
        for i, country in enumerate(CAPITALS)
    ]
    _prompts(console, model, capitals)
    result = elect(samples, similarity=similarity)
    console.print(f"\n{SAMPLES} answers of {model} to an open question vote by their words:\n")
    console.print(result, _why(result), sep="\n")
    console.print(f"\nThe model took {spent:.0f} s. {LIMITS}")
    if export is not None:
        open_question = Ballot(samples, id="open question", source=QUESTION)
        _write_page(export, [figure_1(), open_question, *capitals], similarity)
        console.print(
            f"\nThe elections as a page, by {similarity} and with equal shares: open {export} in a browser."
        )


def _prompts(console: Console, model: str, ballots: Sequence[Ballot]) -> None:
    """How many answers of each prompt are right, and how many of those that the prompts elect."""
    from rich.table import Table

    from rangevote.election.agreement import agreement_shares
    from rangevote.election.elect import elect_many
    from rangevote.similarity import get_similarity

    console.print(
        f"\nWhich prompt works? {model} answers {len(CAPITALS)} questions through {len(PROMPTS)} prompts, "
        f"which vote on each answer.\nright: of {len(CAPITALS)}; agrees: how often its answer is that of the "
        f"other prompts' vote. Shares by agreement are\nfound from the answers alone, without knowing which "
        f"are right.\n"
    )
    measure, right = get_similarity(LAST_NAME), dict.fromkeys((prompt.format("...") for prompt in PROMPTS), 0)
    for ballot, capital in zip(ballots, CAPITALS.values(), strict=True):
        for candidate, answer in zip(
            ballot.candidates, measure.keys(Hypotheses.of(ballot.candidates)), strict=True
        ):
            right[str(candidate.member)] += answer == capital
    agreement = None
    with suppress(DataError):  # the model gave no names
        agreement = agreement_shares(ballots, similarity=LAST_NAME)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("prompt")
    for heading in ("right", "agrees", "share"):
        table.add_column(heading, justify="right")
    for prompt, number in right.items():
        parts = (agreement.agreement, agreement.shares) if agreement else ()
        table.add_row(prompt, str(number), *(f"{part[prompt]:.0%}" for part in parts))
    table.add_row()
    table.add_row("the mean prompt", f"{sum(right.values()) / len(right):.0f}")
    table.add_row("the best prompt, if you knew it", str(max(right.values())))
    votes = {"equal shares": None} | ({"shares by agreement": agreement.shares} if agreement else {})
    for name, shares in votes.items():
        results = elect_many(ballots, similarity=LAST_NAME, shares=shares)
        elected = sum(map(eq, (result.answer for result in results), CAPITALS.values()))
        table.add_row(f"the vote with {name}", str(elected), style="bold")
    console.print(table)


def _why(result: Result) -> Text:
    """Why the winner won, as on the page; what is quoted there is in quotation marks."""
    from rich.text import Text

    parts = [f'"{part}"' if isinstance(part, Quote) else part for part in why(result)]
    return Text(escape_controls("".join(parts)))


def _write_page(path: str, ballots: Sequence[Ballot], similarity: str) -> None:
    from rangevote.cli.progress import Notes
    from rangevote.cli.show import export_page
    from rangevote.election.settings import Settings
    from rangevote.web.app import Ballots, ElectionPage

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    page = ElectionPage([Ballots("demo", ballots)], Settings(similarity=similarity), kept=len(ballots))
    export_page(page, path, force=True, quiet=True, notes=Notes(quiet=True))
