"""A result as a table, in a notebook (HTML) or in a terminal (rich)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Literal, NamedTuple

from rangevote.election.explain import NgramVotes
from rangevote.election.summary import Quote, most_likely, why
from rangevote.text import escape_controls

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rangevote.election.result import Result

#: Candidates that are listed, and characters that are shown of each.
MOST_ROWS = 20
MOST_CHARACTERS = 400
#: The column of the candidate's text.
TEXT = 1
#: Answers, and members of a panel, that are listed below them.
MOST_ANSWERS = 5
MOST_MEMBERS = 10

#: Above this number of voters a notebook shows neither the votes of words nor the reason.
MOST_VOTERS = 10_000
SHADES = 5

#: Colours are a tint of what is around the table, so it fits light pages and dark ones.
STYLE = """\
.rangevote-result{color:inherit;font-size:.9em;max-width:60em}
.rangevote-result table{border-collapse:collapse;width:100%;margin:0}
.rangevote-result th,.rangevote-result td{padding:.25em .6em;text-align:left;vertical-align:top;
color:inherit;background:none;border:0;border-bottom:1px solid rgba(128,128,128,.35)}
.rangevote-result .n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.rangevote-result .t{white-space:pre-wrap;overflow-wrap:anywhere}
.rangevote-result .elected td{background:rgba(46,160,67,.18);font-weight:600}
.rangevote-result p{margin:.4em 0 0;overflow-wrap:anywhere}
.rangevote-result span{border-radius:3px}
.rangevote-result .v1{background:rgba(45,105,235,.1)}
.rangevote-result .v2{background:rgba(45,105,235,.19)}
.rangevote-result .v3{background:rgba(45,105,235,.28)}
.rangevote-result .v4{background:rgba(45,105,235,.37)}
.rangevote-result .v5{background:rgba(45,105,235,.46)}"""


class TableColumn(NamedTuple):
    """One column of the table: its head, whether it holds numbers, and the text of a cell."""

    name: str
    numeric: bool
    cell: Callable[[int, int], str]  # of a rank, and the index of the candidate there


class CandidateRow(NamedTuple):
    """One row of the table, with its cells in the order of the columns."""

    candidate: int
    cells: list[str]
    elected: bool


def rows(result: Result, columns: Sequence[TableColumn]) -> list[CandidateRow]:
    """The best candidates in their order, and, however far down, the elected and the most likely one."""
    indices = {*result.ranking[:MOST_ROWS], *result.elected[:MOST_ROWS], most_likely(result.candidates)}
    return [
        CandidateRow(index, [column.cell(rank, index) for column in columns], index in result.elected)
        for rank, index in enumerate(result.ranking, 1)
        if index in indices
    ]


def columns_of(result: Result) -> list[TableColumn]:
    """The columns that there is something to show in."""
    candidates, members, evidence = result.candidates, result.candidates.members, result.evidence
    likely = most_likely(candidates)

    def text(rank: int, index: int) -> str:
        content = candidates.content(index)
        return _cut(content if isinstance(content, str) else " ".join(map(str, content)), MOST_CHARACTERS)

    def marks(rank: int, index: int) -> str:
        words = ["most likely"] if index == likely else []
        if index in result.elected:
            number = f" {result.elected.index(index) + 1}" if len(result.elected) > 1 else ""
            words.insert(0, f"elected{number}")
        return ", ".join(words)

    columns = [
        TableColumn("rank", True, lambda rank, index: str(rank)),
        TableColumn("candidate", False, text),
    ]
    if members is not None:
        columns.append(TableColumn("member", False, lambda rank, index: members[index]))
    columns.append(TableColumn("log P", True, lambda rank, index: _number(candidates.logprob(index), ".2f")))
    if evidence is not None:
        columns.append(
            TableColumn("evidence", True, lambda rank, index: _number(float(evidence[index]), ".4f"))
        )
    columns.append(
        TableColumn("score", True, lambda rank, index: _number(float(result.scores[index]), ".4f"))
    )
    return [*columns, TableColumn("", False, marks)]


def footer(result: Result, shown: int) -> str:
    """How many stood and voted, how clear it was, and how many candidates the table does not show."""
    sizes = f"{_counted(len(result.candidates), 'candidate')}, {_counted(len(result.voters), 'voter')}"
    if result.no_winner is not None:
        clear = f"nobody is elected: {result.no_winner}"
    elif result.margin is None:
        clear = "no rival"
    elif result.no_support:
        clear = "no voter supports any candidate but itself"
    else:
        clear = f"margin {_number(result.margin, '.4g')}{' (near-tie)' if result.near_tie else ''}"
    hidden = len(result.candidates) - shown
    rest = f"; {_counted(hidden, 'candidate')} not shown" if hidden else ""
    return f"{sizes}; {clear}{_answers(result)}{_panel(result)}{rest}"


def _panel(result: Result) -> str:
    """Which members won, and the share of each, largest first."""
    won = f"; won by {', '.join(result.members)}" if result.members else ""
    if result.panel is None:
        return won
    shares = sorted(result.panel.shares.items(), key=lambda item: -item[1])
    out = f"; left out: {', '.join(result.panel.left_out)}" if result.panel.left_out else ""
    return f"{won}; shares: {_list([f'{_cut(name, 40)} {x:.0%}' for name, x in shares], MOST_MEMBERS)}{out}"


def _answers(result: Result) -> str:
    """The answers with most votes."""
    if result.answers is None:
        return ""
    votes = result.answers.votes.items()
    answers = [f"{_cut(name, 40)} ({vote.count}, {vote.share:.0%})" for name, vote in votes]
    abstained = result.answers.abstained
    none = f"; {_counted(abstained, 'voter')} without an answer" if abstained else ""
    return f"; answers: {_list(answers, MOST_ANSWERS) or 'none'}{none}"


def _list(entries: list[str], most: int) -> str:
    more = [f"{len(entries) - most} more"] if len(entries) > most else []
    return ", ".join(entries[:most] + more)


def html(result: Result) -> str:
    """A table for a notebook, words shaded by their votes: all text escaped, no script, nothing loaded."""
    columns = columns_of(result)
    shown = rows(result, columns)
    few = 0 < len(result.voters) <= MOST_VOTERS
    shaded = _shaded(result, shown) if few else [escape(row.cells[TEXT]) for row in shown]
    reason = "".join(f"“{part}”" if isinstance(part, Quote) else part for part in why(result)) if few else ""
    # inline, since notebooks have styles of their own for tables and may drop ours
    kinds = {True: ' class="n" style="text-align:right"', False: ' style="text-align:left"'}
    head = "".join(f'<th scope="col"{kinds[column.numeric]}>{column.name}</th>' for column in columns)
    body = ""
    for row, marked in zip(shown, shaded, strict=True):
        cells = [
            f"<td{kinds[column.numeric]}>{escape(cell)}</td>"
            for column, cell in zip(columns, row.cells, strict=True)
        ]
        cells[TEXT] = f'<td class="t" style="text-align:start" dir="auto">{marked}</td>'
        body += f'<tr class="{"elected" if row.elected else "other"}">{"".join(cells)}</tr>'
    paragraph = f"<p>{escape(reason)}</p>" if reason else ""
    return (
        f'<div class="rangevote-result"><style>{STYLE}</style><table style="table-layout:auto">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{paragraph}"
        f"<p>{escape(footer(result, len(shown)))}</p>"
        f"<p><code>{escape(result.signature)}</code></p></div>"
    )


def _shaded(result: Result, shown: list[CandidateRow]) -> list[str]:
    """The texts as HTML, each word shaded by its votes, full for the best word of all that are shown."""
    votes = NgramVotes(result)
    words = [votes.words(row.candidate) for row in shown]
    largest = max((vote for row in words for _, vote in row or ()), default=0.0)
    return [
        _with_shades(row.cells[TEXT], of_row, largest) if of_row and largest > 0 else escape(row.cells[TEXT])
        for row, of_row in zip(shown, words, strict=True)
    ]


def _with_shades(text: str, words: list[tuple[str, float]], largest: float) -> str:
    """Words are looked for in their order; one that does not stand in the text (tokens of a tokeniser) is
    passed over."""
    parts, done = [], 0
    for word, vote in words:
        begin = text.find(word, done) if word else -1
        if begin < 0:
            continue
        shade = min(SHADES, math.ceil(SHADES * vote / largest))
        end = begin + len(word)
        marked = escape(text[begin:end])
        parts += [
            escape(text[done:begin]),
            f'<span class="v{shade}">{marked}</span>' if shade > 0 else marked,
        ]
        done = end
    return "".join(parts) + escape(text[done:])


def table(result: Result) -> RenderableType:
    """A table for a terminal; texts are shown as they are, never read as rich's markup."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    columns = columns_of(result)
    shown = rows(result, columns)
    drawn = Table()
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.numeric else "left"
        drawn.add_column(column.name, justify=justify, no_wrap=column.numeric)
    for row in shown:
        cells = [Text(escape_controls(cell)) for cell in row.cells]
        drawn.add_row(*cells, style="bold green" if row.elected else None)
    closing = Text(escape_controls(footer(result, len(shown))))
    return Group(drawn, closing, Text(escape_controls(result.signature), style="dim"))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _number(number: float | None, form: str) -> str:
    """A number as it is shown; a dash where there is none to show."""
    return format(number, form) if number is not None and math.isfinite(number) else "–"


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
