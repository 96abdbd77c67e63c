"""`rangevote demo --model`: the most likely and the elected answers of a chat model, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rangevote.cli.output import visible
from rangevote.cli.searching import load_model

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from rangevote.election.result import Result
    from rangevote.generation.batch import Elected

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


def show_answers(console: Console, model: str, similarity: str) -> None:
    """Answer the prompts and show what was likely, what was elected, and what the vote cost."""
    from rich.console import Console

    from rangevote.decoding.beam import Beam
    from rangevote.election.settings import Settings
    from rangevote.generation.batch import Request, elections
    from rangevote.generation.plan import GenerationPlan

    plan = GenerationPlan.of(Settings(similarity), Beam(BEAMS, max_new_tokens=LONGEST))
    with Console(stderr=True).status(f"loading {model} ...") as status:
        network = load_model(model, device=None, dtype=None, no_chat=False)
        status.update(f"answering {len(PROMPTS)} prompts, {BEAMS} beams each ...")
        requests = [Request.of(number, prompt) for number, prompt in enumerate(PROMPTS)]
        held = list(elections(network, requests, plan))
    for prompt, one in zip(PROMPTS, held, strict=True):
        console.print(_side_by_side(prompt, one.result))
    console.print(CHOSEN, highlight=False)
    console.print(_cost(held), highlight=False)


def _side_by_side(prompt: str, result: Result) -> Table:
    from rich.table import Table

    likely = int(result.candidates.logprobs.argmax()) if result.candidates.logprobs is not None else 0
    table = Table(title=prompt, title_justify="left", expand=True, show_lines=True)
    for heading in ("most likely", "elected" if likely != result.index else "elected (the same)"):
        table.add_column(heading, ratio=1)
    table.add_row(_answer(result, likely), _answer(result, result.index))
    table.add_row(*(_numbers(result, index) for index in (likely, result.index)))
    return table


def _answer(result: Result, index: int) -> Text:
    """What the model wrote, in which nothing is taken for a command to the terminal or for markup."""
    from rich.text import Text

    found = result.candidates[index]
    text = found.text if found.text is not None else " ".join(map(str, found.tokens or ()))
    return Text(visible(text.strip().encode()).decode() + ("" if found.finished else " ..."))


def _numbers(result: Result, index: int) -> str:
    return f"log P {result.candidates.logprob(index) or 0.0:.2f}, score {result.scores[index]:.3f}"


def _cost(held: Sequence[Elected]) -> str:
    """How the time was spent."""
    searching, voting = sum(one.searching for one in held), sum(one.voting for one in held)
    share = 100 * voting / (searching + voting)
    told = f"{share:.2f} %" if share >= 0.01 else "less than 0.01 %"
    return f"searching took {searching:.1f} s, voting {voting:.4f} s: {told} of the time"
