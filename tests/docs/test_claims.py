"""Sentences of the pages that speak of recorded runs say what the records say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from rangevote.tuning.grid import EXPONENTS, LIKELIHOODS, SIMILARITIES, TEMPERATURES
from tests.docs.blocks import DOCS, ROOT
from tests.figure1 import CAPTIONS as FIGURE
from tests.figure1 import PROBABILITIES, TOTAL

EXPERIMENTS = [
    (ROOT / "experiments" / name).read_text(encoding="utf-8").split("\n## ")
    for name in ("RESULTS.md", "TABLES.md")
]
CAPTIONS, TRANSLATION, PUBLISHED = (
    "\n".join(next(part for part in page if part.startswith(title)) for page in EXPERIMENTS)
    for title in (
        "Image captioning on Flickr8k",
        "Machine translation on Multi30k",
        "Machine translation on newstest2014, English to French, by OPUS-MT (opus)",
    )
)
BENCHMARKS = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
BLEU = {CAPTIONS: "BLEU-4", TRANSLATION: "BLEU"}
BLEND = "blend (overlap_1-4@0.25, T = 2)"
#: Rows of the tables that are no election by a measure that was fixed beforehand.
OTHERS = ("Beam search", "Length normalisation", "Diverse", "tuned", "Top-k", "Nucleus")

Table = dict[str, dict[str, float]]


def table(chapter: str, title: str) -> Table:
    """The table under **title, ...**: row -> column -> number of ours."""
    part = chapter.split(f"**{title}, here and in the paper")[1].split("\n\n")[1]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()]
    found: Table = {}
    for name, *cells in rows:
        numbers = {k: re.sub(r"[*]|±.*", "", cell) for k, cell in zip(head[1:], cells, strict=True)}
        found[name.replace("\\", "")] = {
            k: float(number) for k, number in numbers.items() if number and not k.startswith("paper")
        }
    return found


def found(chapter: str, claim: str) -> str:
    """What the record says of a claim of the paper: yes or no."""
    [row] = [line for line in chapter.splitlines() if line.startswith(f"| {claim}")]
    return row.split("|")[3].strip()


def measured(row: str) -> float:
    """The number in the column "measured" (the third) of a row of the benchmarks."""
    [line] = [line for line in BENCHMARKS.splitlines() if line.startswith(f"| {row}")]
    return float(re.findall(r"[0-9.]+", line.split("|")[3])[0])


def falls(row: str) -> list[float]:
    """By how much BLEU falls from its best beam to the largest one, for both tasks."""
    tables = [table(chapter, BLEU[chapter])[row] for chapter in (CAPTIONS, TRANSLATION)]
    return [max(numbers.values()) - numbers["k=100"] for numbers in tables]


def less(row: str, other: str) -> bool:
    """Whether one falls less than the other, for both tasks."""
    return all(one < two for one, two in zip(falls(row), falls(other), strict=True))


def best_of_the_fixed(chapter: str) -> str:
    numbers = table(chapter, BLEU[chapter])
    fixed = {row: cells["k=100"] for row, cells in numbers.items() if not row.startswith(OTHERS)}
    assert len(fixed) > 6
    return max(fixed, key=lambda row: fixed[row])


def lengths(*rows: str) -> list[float]:
    numbers = table(CAPTIONS, "length")
    return [numbers[row]["k=100"] for row in rows]


class Claim(NamedTuple):
    page: str
    sentence: str
    holds: Callable[[], bool]


CLAIMS = [
    Claim(
        "how/voting.md",
        "with 29 % of the probability in the list",
        lambda: round(100 * PROBABILITIES[0] / TOTAL) == 29,
    ),
    Claim(
        "how/voting.md",
        "four captions of a black and white photo",
        lambda: sum("photo" in text for text in FIGURE) == 4,
    ),
    Claim(
        "tutorials/translate.md",
        "**The default preset, `blend`,** held up best of the fixed settings as beams grew",
        lambda: best_of_the_fixed(TRANSLATION) == BLEND,
    ),
    Claim(
        "tutorials/captions.md",
        "more different captions than beam search at large k",
        lambda: found(CAPTIONS, "Voting keeps more different captions than beam search at large k") == "yes",
    ),
    Claim(
        "tutorials/captions.md",
        "Unigram and bigram voting write long captions; the exponent of `blend` corrects that",
        lambda: min(lengths("overlap_1", "overlap_2")) > max(lengths("Beam search", BLEND)),
    ),
    Claim(
        "reference/similarities.md",
        "`rangevote tune` tries 400 settings",
        lambda: len(SIMILARITIES) * len(EXPONENTS) * len(TEMPERATURES) * len(LIKELIHOODS) == 400,
    ),
    Claim(
        "performance.md",
        "its time grows with their number, not with its square",
        lambda: measured("CPU time | <= ") < 15,  # for ten times as many
    ),
    Claim(
        "performance.md",
        "Voting is a small part of the time that the search takes",
        lambda: all(0 < share < 1 for share in shares()) and len(shares()) == 2,
    ),
    Claim(
        "performance.md",
        "In the [recorded run](../faults/RESULTS.md), nothing was lost",
        lambda: "| **0** |" in (ROOT / "faults" / "RESULTS.md").read_text(encoding="utf-8"),
    ),
    Claim(
        "paper.md",
        "dropping it alone takes back part of what beam search loses",
        lambda: 0 < falls("Beam search, empty dropped")[1] < falls("Beam search")[1],
    ),
]


def shares() -> list[float]:
    """Percent of the time that voting takes of search and vote together."""
    part = BENCHMARKS.split("### Voting\n")[1].split("\n### ")[0]
    return [float(share) for share in re.findall(r"\| ([0-9.]+)% ", part)]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.page}: {claim.sentence}")
def test_a_sentence_is_on_its_page_and_borne_out_by_the_record(claim):
    words = " ".join((DOCS / claim.page).read_text(encoding="utf-8").split())
    assert claim.sentence in words
    assert claim.holds()


#: The rows of the table on the page of the paper: the record's claims about captions and about translations.
PAPER = [
    ("A beam that is too large costs", "Beam search and all baselines drop"),
    ("That drop does not occur for voting", "The drop at large beams is smaller"),
    ("The best voting measure is significantly", "The best voting measure is better than the best beam"),
    ("", "The best voting measure is better than the best length"),
    ("", "overlap\\_2 achieves the best score"),
    ("Sampling performs poorly", "Sampling performs poorly"),
    ("All n-gram measures write longer", "All measures write longer translations than beam"),
    ("Voting keeps more different captions", "All measures write more different bigrams"),
    ("blend is above every baseline", "blend is above every baseline"),
    ("The best blend is significantly better", "The best blend is significantly better"),
]


def test_the_table_of_the_papers_claims_is_the_record():
    lines = (DOCS / "paper.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ")[1:] for line in lines if line.startswith("| ")][2:]
    assert rows == [
        [found(CAPTIONS, one) if one else "-", found(TRANSLATION, other), found(PUBLISHED, other)]
        for one, other in PAPER
    ]


OPUS = json.loads((ROOT / "experiments" / "results" / "translation-opus.json").read_bytes())
RECORDED = OPUS["systems"]["int8"]["seeds"]["1"]["methods"]


def bleu(digits: int, *methods: str) -> list[str]:
    """The best of some methods at k = 4, 10, 30, as recorded."""
    return [f"{max(RECORDED[method][k]['bleu'] for method in methods):.{digits}f}" for k in ("4", "10", "30")]


NORMALISED = ("length_normalised", "reranked")


def record(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "experiments" / "results" / f"{name}.json").read_bytes())


def over_baseline(name: str, system: str, k: int) -> str:
    """What `blend` gains over the best baseline at k."""
    listed = record(name)["systems"][system]["comparisons"]
    [one] = [c for c in listed if c["asked"] == f"blend, best baseline, k = {k}"]
    return gain(one["ours_mean"] - one["theirs_mean"], one["all"]["p"], "BLEU-4" if "cap" in name else "BLEU")


def over_member(panel: str, member: str) -> str:
    """What a panel of translators gains over a member, in BLEU."""
    found = record("panels-translators")["found"][panel]["all"]["bleu"]
    value = found["values"].get(member) or found["members"][member]
    [one] = [d for d in found["differences"] if (d["of"], d["to"]) == ("elected", member)]
    return gain(found["values"]["elected"] - value, one["p"], "BLEU")


def over_best(panel: str) -> str:
    """What shares by agreement gain over the best member, in points; on the half to report."""
    found = record("panels-answers")["found"]["second half"][panel]
    [one] = [d for d in found["differences"] if (d["of"], d["to"]) == ("shares by agreement", "best member")]
    values = found["values"]
    return gain(values["shares by agreement"] - values["best member"], one["p"], "points")


def gain(difference: float, p: float, unit: str) -> str:
    return f"{difference:+.1f} {unit}" if p < 0.05 else "level"


def saved() -> str:
    """How many answers stopping early saves, where it changes no answer."""
    stopping = record("samples")["gsm8k"]["stopping"]
    found = stopping["reported"][stopping["chosen"]]
    assert found["wrong"] == 0
    return f"{1 - found['drawn'] / found['of']:.0%} fewer answers".replace("%", " %")


def test_the_gains_of_panels_over_their_mean_member_are_those_on_record():
    panels = [panel for task in record("panels-translators")["found"].values() for panel in task.values()]
    gains = [
        found["bleu"]["values"]["elected"] - found["bleu"]["values"]["mean member"]
        for found in panels
        if "bleu" in found
    ]
    above = [f"{gain:.1f}" for gain in sorted(gains) if gain > 0]
    claim = f"by {above[0]} to {above[-1]} BLEU in {len(above)} of {len(gains)} panels of translators"
    assert claim in " ".join((DOCS / "tutorials" / "several-models.md").read_text(encoding="utf-8").split())


README_GAINS = [
    over_baseline("captions-local", "show_and_tell", 10),
    over_baseline("captions-local", "show_and_tell", 100),
    over_member("newstest2014 en-fr", "OPUS-MT, length-normalised"),
    over_member("newstest2014 en-fr", "best member"),
    over_member("flores-bn-en", "mean member"),
    over_member("flores-bn-en", "best member"),
    over_best("all"),
    over_best("below 80 %"),
    saved(),
    over_baseline("translation-opus", "int8", 10),
]


def test_the_table_of_the_readme_has_the_recorded_gains():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Does it help?")[2].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][2:]
    assert [cells[-1] for cells in rows] == README_GAINS


def test_the_readme_says_where_panels_lose_and_what_is_not_shown():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    flores = [t["all"] for name, t in record("panels-translators")["found"].items() if "flores" in name]
    scores = [(found.get("bleu") or found["chrf"])["values"] for found in flores]
    below = sum(values["elected"] < values["best member"] for values in scores)
    assert f"in {below} of {len(flores)} directions of FLORES the panel is below its best member" in text
    found = [record("panels-answers")["found"]["second half"][panel] for panel in ("all", "below 80 %")]
    assert "its gain over equal shares may be chance" in text
    pairs = [d for panel in found for d in panel["differences"] if d["to"] == "equal shares"]
    assert all(d["p"] >= 0.05 for d in pairs if d["of"] == "shares by agreement")


@pytest.mark.parametrize(
    ("row", "methods"),
    [
        ("beam search", ("beam",)),
        ("length normalisation (the better of two ways)", NORMALISED),
        ("`paper`", ("overlap_2",)),
        ("`blend`", ("blend",)),
        ("`consensus`", ("consensus",)),
    ],
)
def test_the_page_of_presets_has_the_recorded_numbers(row, methods):
    text = (DOCS / "which.md").read_text(encoding="utf-8")
    assert f"| {row} | {' | '.join(bleu(2, *methods))} |" in text


@pytest.mark.parametrize(
    ("k", "difference", "p"), [(4, "0.27", "0.11"), (10, "0.41", "0.08"), (30, "0.36", "0.19")]
)
def test_the_lead_of_a_consensus_is_told_with_its_chance(k, difference, p):
    listed = OPUS["systems"]["int8"]["comparisons"]
    [one] = [c for c in listed if c["asked"] == f"consensus, best baseline, k = {k}"]
    assert (f"{one['all']['difference']:.2f}", f"{one['all']['p']:.2f}") == (difference, p)
    text = (DOCS / "which.md").read_text(encoding="utf-8")
    assert difference in text
    assert p in text


@pytest.mark.parametrize(
    ("row", "methods"),
    [
        ("beam search", ("Beam search",)),
        (
            "length normalisation (the better of two ways)",
            ("Length normalisation", "Length normalisation, re-ranking"),
        ),
        ("`paper`", ("overlap_2",)),
        ("`blend`", (BLEND,)),
        ("`consensus`", ("consensus (sampled voters, overlap_1-4, L = 0.4)",)),
    ],
)
def test_the_page_of_presets_has_the_recorded_numbers_of_the_small_models(row, methods):
    text = (DOCS / "which.md").read_text(encoding="utf-8")
    numbers = [
        max(table(chapter, BLEU[chapter])[method][k] for method in methods)
        for chapter, ks in ((TRANSLATION, ("k=4", "k=10", "k=100")), (CAPTIONS, ("k=10", "k=100")))
        for k in ks
    ]
    assert f"| {row} | {' | '.join(f'{number:.2f}' for number in numbers)} |" in text


def said(page: str) -> str:
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


def test_the_page_of_panels_has_the_recorded_answers():
    found = {name: one["values"] for name, one in record("panels-answers")["found"]["second half"].items()}
    names = "shares by agreement", "best member", "equal shares"
    (agreed, best, equal), (weak_agreed, weak_best, weak_equal), (with_copies, _, copied) = (
        [f"{found[panel][name]:.1f}" for name in names]
        for panel in ("all", "below 80 %", "below 80 %, 6 further copies of the worst")
    )
    text = said("tutorials/several-models.md")
    for sentence in (
        f"({agreed} and {best} % right)",
        f"together reach {weak_agreed} %, where the best of them has {weak_best} %",
        f"they would elect their own mistakes ({copied} %)",
        f"without copies ({equal} and {weak_equal} %) is not beyond chance on 330 questions",
    ):
        assert sentence in text
    assert with_copies == weak_agreed


def test_the_page_of_samples_has_the_recorded_numbers():
    found, text = record("samples"), said("guides/samples.md")
    game, worth = found["game24"], found["gsm8k"]["worth"]
    votes = {
        name: [worth[f"4 prompts of {name}"]["maj_at"][n]["value"] for n in "14"]
        for name in ("gpt-3.5-turbo", "gpt-4o-mini")
    }
    (old, old_vote), (new, new_vote) = votes.values()
    sure = found["gsm8k"]["coverage"]["4 prompts of gpt-4o-mini"]
    saved = [
        1 - task["stopping"]["reported"]["0.8"]["drawn"] / task["stopping"]["reported"]["0.8"]["of"]
        for task in (game, found["gsm8k"])
    ]
    stages = found["gsm8k"]["stages"]["asked"]
    maj, passed = game["worth"]["maj_at"], game["worth"]["pass_at"]
    for sentence in (
        f"one sample is right for {maj['1']['value']:.0f} % of the puzzles, the vote of 100 for "
        f"{maj['100']['value']:.0f} %, and for {passed['100']['value']:.0f} % at least one",
        f"gains {old_vote - old:.1f} points for gpt-3.5-turbo ({old:.1f} to {old_vote:.1f} %)",
        f"and {new_vote - new:.1f} for gpt-4o-mini ({new:.1f} to {new_vote:.1f} %)",
        f"{sure['coverage']:.0%} of the other half, with {sure['risk']:.1%} wrong".replace("%", " %"),
        f"where answering all has {sure['risk_of_all']:.1%}".replace("%", " %"),
        f"saved {min(saved) * 100:.0f} to {max(saved) * 100:.0f} % of the samples",
        f"{stages['escalated']:.0f} % of the questions go on, and {stages['accuracy']:.1f} % are right",
        f"gpt-4o-mini alone has {stages['alone']:.1f} % (a difference within chance)",
    ):
        assert sentence in text
    assert stages["against_alone"]["p"] >= 0.05


def test_the_page_on_performance_has_the_recorded_cost_of_vote():
    page = " ".join((DOCS / "performance.md").read_text(encoding="utf-8").split())
    said = re.search(
        r"takes (\d+) times as long as decoding .* 10 candidates, and (\d+) times if it has 100", page
    )
    found = [
        re.search(
            rf"vote, default, k = {k}: CPU against msgspec decoding \| <= 5 x \| ([\d.]+) x", BENCHMARKS
        )
        for k in (10, 100)
    ]
    assert said is not None
    assert [int(number) for number in said.groups()] == [round(float(one[1])) for one in found if one]
