"""The paper's numbers are as printed, and its claims hold of its own tables."""

from __future__ import annotations

import re

import pytest
from experiments.claims import verdicts
from experiments.findings import Findings
from experiments.paper import SAMPLING, TABLES
from experiments.settings import ROOT

from tests.experiments.made_up import results

PAPER = ROOT.parent / "shared" / "paper.tex"


@pytest.mark.skipif(not PAPER.is_file(), reason="no paper.tex beside the repository")
@pytest.mark.parametrize("experiment", ["captions", "translation"])
def test_every_row_stands_in_the_paper_number_by_number(experiment):
    printed = re.findall(r"\d+\.\d+|\d+", re.sub(r"\\textbf\{([\d.]+)\}", r"\1", PAPER.read_text()))
    text = " ".join(printed)
    for metric, published in TABLES[experiment].items():
        decimals = 0 if metric.startswith("distinct") else 2
        for row in published.rows.values():
            assert " ".join(f"{value:.{decimals}f}" for value in row) in text, (metric, row)
    for value in SAMPLING[experiment].values():
        assert f" {value:.2f} " in text


@pytest.mark.parametrize("experiment", ["captions", "translation"])
def test_the_papers_claims_hold_of_the_papers_tables(experiment):
    """Else they would be asked wrongly."""
    found = [
        (claim, verdict)
        for claim, verdict in verdicts(Findings(results(experiment)))
        if claim.where != "beyond"
    ]
    assert [claim.text for claim, verdict in found if not verdict.holds] == []
    assert len(found) >= 10


def test_a_claim_about_a_method_that_was_not_run_is_left_out():
    asked = {claim.text for claim, _ in verdicts(Findings(results("captions")))}
    assert not any("blend" in text or "Tuned" in text for text in asked)
    told = results("captions", bleu_4={"blend": {1: 25.39, 2: 27.0, 10: 28.0, 100: 29.0}})
    held = {claim.text: verdict.holds for claim, verdict in verdicts(Findings(told))}
    assert held["blend is above every baseline at every k."]


def test_a_claim_that_does_not_hold_says_by_how_much():
    told = results("captions", bleu_4={"blend": {1: 25.39, 2: 26.0, 10: 28.0, 100: 29.0}})
    found = {claim.text: verdict for claim, verdict in verdicts(Findings(told))}
    verdict = found["blend is above every baseline at every k."]
    assert not verdict.holds
    assert "-0.83 at k = 2" in verdict.numbers
