"""Tables as text, Markdown and LaTeX."""

from __future__ import annotations

import pytest

from rangevote.errors import UnknownName
from rangevote.evaluation.tables import Cell, Column, Table, TableRow, render

# part of table 1 of the paper
PAPER = Table(
    [Column(name, best="highest") for name in ("BLEU-1 10", "BLEU-1 100", "BLEU-4 10")],
    [
        TableRow("Beam search", [67.22, 66.18, 27.16], "baseline"),
        TableRow("overlap_2", [67.36, 67.19, 27.22], "voting"),
        TableRow("lstm", [68.42, Cell(69.10, "***"), 27.96], "voting"),
    ],
    "Beam size k",
    "BLEU on 100 % of the data",
    ["*** p < 0.001"],
)


def test_text_stands_in_columns_with_the_best_marked():
    assert render(PAPER).splitlines() == [
        "BLEU on 100 % of the data",
        "",
        "Beam size k  BLEU-1 10  BLEU-1 100  BLEU-4 10",
        "---------------------------------------------",
        "Beam search      67.22    66.18         27.16",
        "---------------------------------------------",
        "overlap_2        67.36    67.19         27.22",
        "lstm            >68.42   >69.10***     >27.96",
        "",
        "*** p < 0.001",
        "> best of its column",
    ]


def test_markdown_escapes_signs_and_sets_the_best_bold():
    lines = render(PAPER, "markdown").splitlines()
    assert lines[2:4] == [
        "| Beam size k | BLEU-1 10 | BLEU-1 100 | BLEU-4 10 |",
        "| --- | ---: | ---: | ---: |",
    ]
    assert lines[5] == r"| overlap\_2 | 67.36 | 67.19 | 27.22 |"
    assert lines[6] == r"| lstm | **68.42** | **69.10**\*\*\* | **27.96** |"


def test_latex_is_a_tabular_with_lines_and_bold():
    lines = render(PAPER, "latex").splitlines()
    assert lines == [
        "% BLEU on 100 % of the data",
        r"\begin{tabular}{l r r r}",
        r"Beam size k & BLEU-1 10 & BLEU-1 100 & BLEU-4 10 \\",
        r"\hline",
        r"Beam search & 67.22 & 66.18 & 27.16 \\",
        r"\hline",
        r"overlap\_2 & 67.36 & 67.19 & 27.22 \\",
        r"lstm & \textbf{68.42} & \textbf{69.10}$^{***}$ & \textbf{27.96} \\",
        r"\end{tabular}",
        "% *** p < 0.001",
    ]


def test_names_are_escaped_and_cannot_break_out_of_their_cells():
    special = TableRow(r"a_b{c}#$~^\x", ["<|>"])
    rows = [special, TableRow("[x", [1.0]), TableRow("a\nb | c", ["1\n2"])]
    table = Table([Column("50 % & more")], rows, title="t\n\\input{x}")
    assert r"| a b \| c | 1 2 |" in render(table, "markdown")
    latex = render(table, "latex")
    for text in (
        r"50 \% \& more",
        r"a\_b\{c\}\#\$\textasciitilde{}\textasciicircum{}\textbackslash{}x",
        r"\textless{}\textbar{}\textgreater{}",
        "\n{}[x & 1.00",  # otherwise the line end before it would take the bracket for its own
    ):
        assert text in latex
    assert [line for line in latex.splitlines() if line.startswith("%")] == [r"% t \input{x}"]


@pytest.mark.parametrize(
    ("best", "target", "rows"),
    [
        ("highest", None, {2, 3}),
        ("lowest", None, {0}),
        ("closest", 1.9, {1}),
        ("closest", None, set()),
        ("", 1, set()),
    ],
)
def test_the_best_may_be_highest_lowest_or_closest_and_ties_are_all_best(best, target, rows):
    listed = [TableRow(f"{v}", [v]) for v in (1.0, 2.0, 3.001, 3.004)]  # two are written alike
    listed.append(TableRow("references", [9.0], competes=False))
    table = Table([Column("x", best=best, target=target)], listed)
    assert table.best() == {(row, 0) for row in rows}


def test_an_unknown_format_is_refused():
    with pytest.raises(UnknownName, match=r"unknown table format 'html'.*Choose from: latex, markdown, text"):
        render(PAPER, "html")
