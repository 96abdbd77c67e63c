"""What n stored samples are worth: the vote of n, coverage, early stopping, and stages that ask a larger
model only where the answers of a cheap one differ.

Game of 24: 100 puzzles with 100 samples of GPT-4 each (tree-of-thought-llm, Yao et al. 2023). GSM8K: 659 test
questions with the stored answers of 18 members, four prompts of each of three OpenAI models among them. A
missing answer counts as a sample without one.

Settings are chosen on the questions of even number (development) and reported once on those of odd number:

    stopping   the lowest of `CONFIDENCES` whose accuracy there is not below that of asking all
    coverage   the lowest share of the vote that keeps a risk of `MAX_RISK` there (`risk_curve`)
    stages     the cheap panel of `CHEAP` and the share in `BELOW` with which the fewest questions go on to
               the larger model while the accuracy there is not below that of its single answer

Differences are paired, with 95 % intervals by bootstrap over questions. Where several orders of the samples,
or several prompts of the larger model, would do, the numbers of a question are means over them.

    make reproduce NAME=samples     # writes results/samples.json and RESULTS.md
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from experiments.settings import HERE, Folders
from experiments.steps import write_json
from experiments.tables import difference_cell
from rangevote.evaluation.plot import Curve, Panel, plot_curves
from rangevote.evaluation.risk_coverage import STEPS, risk_curve
from rangevote.evaluation.samples import Question, sample_report, stop_sampling
from rangevote.evaluation.significance import paired_bootstrap
from rangevote.evaluation.tables import Column, Table, TableRow, to_markdown
from rangevote.hypothesis import Array, Hypotheses
from rangevote.similarity import get_similarity

CONFIDENCES = (0.8, 0.9, 0.95, 0.99)
#: Random orders in which the samples of a question arrive.
ORDERS, SEED = 20, 1
MAX_RISK = 0.05
PROMPTS = ("vanilla", "vanilla-re2", "cot", "cot-re2")
#: Panels whose answers cost little, by name, and the larger model.
CHEAP = {
    "4 prompts of gpt-3.5-turbo": tuple(f"gpt-3.5-turbo-{prompt}" for prompt in PROMPTS),
    "2 prompts of gpt-3.5-turbo": tuple(f"gpt-3.5-turbo-{prompt}" for prompt in PROMPTS[:2]),
    "4 prompts of text-davinci-003": tuple(f"text-davinci-003-{prompt}" for prompt in PROMPTS),
}
LARGE = tuple(f"gpt-4o-mini-{prompt}" for prompt in PROMPTS)
#: A question goes on where the leading answer has a lower share of the vote than this.
BELOW = (0.5, 0.75, 1.0)
#: Fixed before this run: it was first seen on all 1,319 test questions, of which these are every second one.
ASKED = ("4 prompts of gpt-3.5-turbo", 1.0)
FIGURE = "samples"

Found = Mapping[str, Any]


class Answers(NamedTuple):
    """The answers to one question by the name of who gave them, None for no answer, and the right ones."""

    given: dict[str, Hashable]
    right: frozenset[Hashable]

    def of(self, names: Sequence[str] | None = None) -> list[Hashable]:
        return [self.given.get(name) for name in (self.given if names is None else names)]

    def question(self, names: Sequence[str] | None = None) -> Question:
        return Question.of(self.of(names), self.right)


def read_puzzles(path: Path) -> list[Answers]:
    """Game of 24: an answer is what stands behind "Answer:"; the file says which samples are right."""
    measure, read = get_similarity("exact:after:Answer:"), []
    for task in json.loads(gzip.decompress(path.read_bytes())):
        keys = measure.keys(Hypotheses.of(task["ys"]))
        right = {key for key, info in zip(keys, task["infos"], strict=True) if info["r"] and key is not None}
        read.append(Answers({str(i): key for i, key in enumerate(keys)}, frozenset(right)))
    return read


def read_questions(path: Path) -> list[Answers]:
    """GSM8K: the final numbers that are stored with the texts."""
    measure = get_similarity("exact:last_number")

    def keys(texts: Sequence[str | None]) -> list[Hashable]:
        return measure.keys(Hypotheses.of([text or "" for text in texts]))

    ballots = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    members = dict.fromkeys(one["member"] for ballot in ballots for one in ballot["candidates"])
    read = []
    for ballot in ballots:
        answers = keys([one["answer"] for one in ballot["candidates"]])
        given = dict(zip((one["member"] for one in ballot["candidates"]), answers, strict=True))
        right = frozenset(keys([ballot["gold"]]))
        read.append(Answers({member: given.get(member) for member in members}, right))
    return read


def halves(questions: Sequence[Answers]) -> tuple[Sequence[Answers], Sequence[Answers]]:
    """To choose on, and to report."""
    return questions[::2], questions[1::2]


def difference(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    """In points of a per cent, question by question."""
    rows = [np.column_stack([100 * np.asarray(one), np.ones(len(one))]) for one in (ours, theirs)]
    found = paired_bootstrap(lambda sums: sums[..., 0] / sums[..., 1], *rows)
    return {"difference": found.value, "interval": list(found.interval), "p": found.p}


def worth(questions: Sequence[Question]) -> dict[str, Any]:
    """maj@n, pass@n, risk at each tenth of coverage, calibration: without any choice, on all questions."""
    found = sample_report(questions, get_similarity("exact"))
    assert found.curve is not None
    points = found.curve.points
    curve = {f"{step:.1f}": next(p for p in points if p.coverage >= step - 1e-12) for step in STEPS}
    kept = ("questions", "samples", "abstained", "maj_at", "pass_at", "share", "entropy", "calibration_error")
    data = found.to_dict()
    return {name: data[name] for name in kept} | {
        "area": found.curve.area,
        "coverage": {step: {"share": p.threshold, "risk": p.risk} for step, p in curve.items()},
    }


def stopping(questions: Sequence[Answers]) -> dict[str, Any]:
    """How many samples the rule draws at each confidence, and what becomes of the accuracy."""
    chosen_on, reported = halves(questions)
    looked_at = {str(c): _stopped(chosen_on, c) for c in CONFIDENCES}
    enough = [c for c, one in looked_at.items() if one["accuracy"] >= one["all"] - 1e-12]
    chosen = enough[0] if enough else str(CONFIDENCES[-1])
    return {
        "looked_at": len(CONFIDENCES),
        "development": looked_at,
        "chosen": chosen,
        "reported": {str(c): _stopped(reported, c) for c in CONFIDENCES},
    }


def _stopped(questions: Sequence[Answers], confidence: float) -> dict[str, Any]:
    lists: tuple[list[float], ...] = ([], [], [], [])
    drawn, early, wrong, right = lists
    for number, answers in enumerate(questions):
        keys, all_of_them = answers.of(), answers.question()
        most = {key for key in keys if key is not None and keys.count(key) == max(all_of_them.counts)}
        runs = []
        for order in range(ORDERS):
            chance = np.random.default_rng([SEED, number, order]).permutation(len(keys))
            used, answer = stop_sampling([keys[i] for i in chance], confidence)
            before = used < len(keys)
            # a tie of all is broken by chance, not by who came first
            kept = answer in answers.right if before else all_of_them.accuracy
            runs.append((used, before, before and answer not in most, float(kept)))
        columns = zip(*runs, strict=True)
        for values, column in zip(lists, columns, strict=True):
            values.append(fmean(column))
    asked = [answers.question().accuracy for answers in questions]
    size = round(fmean(drawn))
    fixed = [answers.question().maj_right([size])[0] for answers in questions]
    return {
        "drawn": fmean(drawn),
        "of": len(questions[0].given),
        "early": 100 * fmean(early),
        "wrong": 100 * fmean(wrong),
        "accuracy": 100 * fmean(right),
        "all": 100 * fmean(asked),
        "against_all": difference(right, asked),
        "fixed": {"n": size, "accuracy": 100 * fmean(fixed)},
        "against_fixed": difference(right, fixed),
    }


def coverage(questions: Sequence[Answers], names: Sequence[str] | None) -> dict[str, Any]:
    """A share below which nothing is answered, chosen on one half; coverage and risk on the other."""
    chosen_on, reported = ([one.question(names) for one in half] for half in halves(questions))
    curve = risk_curve([q.share for q in chosen_on], [1 - q.accuracy for q in chosen_on], max_risk=MAX_RISK)
    if curve.chosen is None:
        return {"max_risk": MAX_RISK, "share": None}
    least = curve.chosen.threshold
    answered = [q for q in reported if q.share >= least - 1e-12]
    return {
        "max_risk": MAX_RISK,
        "share": least,
        "coverage": len(answered) / len(reported),
        "risk": 1 - fmean(q.accuracy for q in answered),
        "risk_of_all": 1 - fmean(q.accuracy for q in reported),
    }


class Staged(NamedTuple):
    """What became of each question: did it go on, and how right is the answer."""

    escalated: Array
    right: Array


def stage(
    questions: Sequence[Answers], names: Sequence[str], below: float, large: Sequence[str] = LARGE
) -> Staged:
    """The cheap panel's answer, or that of the larger model where the panel's share is below the limit.

    The larger model is asked once, with one of these prompts: the mean over them.
    """
    cheap = [one.question(names) for one in questions]
    escalated = np.array([question.share < below - 1e-12 for question in cheap])
    own = np.array([question.accuracy for question in cheap])
    return Staged(escalated, np.where(escalated, large_alone(questions, large), own))


def large_alone(questions: Sequence[Answers], large: Sequence[str] = LARGE) -> Array:
    """How often one answer of the larger model is right."""
    return np.array([fmean(key in one.right for key in one.of(large)) for one in questions])


def stages(questions: Sequence[Answers]) -> dict[str, Any]:
    """Every cheap panel and limit on both halves, the chosen one, and the one that was asked for on all."""
    chosen_on, reported = halves(questions)
    settings = [(name, below) for name in CHEAP for below in BELOW]

    def points(half: Sequence[Answers]) -> list[dict[str, Any]]:
        found = []
        for name, below in settings:
            escalated, right = stage(half, CHEAP[name], below)
            numbers = {"escalated": 100 * escalated.mean(), "accuracy": 100 * right.mean()}
            found.append({"panel": name, "below": below, **{k: float(v) for k, v in numbers.items()}})
        return found

    development, alone = points(chosen_on), 100 * float(large_alone(chosen_on).mean())
    enough = [one for one in development if one["accuracy"] >= alone - 1e-9]
    best = (
        min(enough, key=lambda one: one["escalated"])
        if enough
        else max(development, key=lambda one: one["accuracy"])
    )
    return {
        "looked_at": len(settings),
        "development": {"points": development, "alone": alone},
        "chosen": {"panel": best["panel"], "below": best["below"]},
        "reported": _against_large(reported, best["panel"], best["below"]) | {"points": points(reported)},
        "asked": {"panel": ASKED[0], "below": ASKED[1], "by_prompt": _by_prompt(questions)}
        | _against_large(questions, *ASKED),
    }


def _by_prompt(questions: Sequence[Answers]) -> dict[str, Any]:
    """The same with each prompt of the larger model by itself."""
    found = {}
    for prompt in LARGE:
        _, right = stage(questions, CHEAP[ASKED[0]], ASKED[1], [prompt])
        alone = large_alone(questions, [prompt])
        found[prompt] = {"accuracy": 100 * float(right.mean()), "alone": 100 * float(alone.mean())}
    return found


def _against_large(questions: Sequence[Answers], panel: str, below: float) -> dict[str, Any]:
    escalated, right = stage(questions, CHEAP[panel], below)
    alone = large_alone(questions)
    cheap = [one.question(CHEAP[panel]).accuracy for one in questions]
    four = [one.question(LARGE).accuracy for one in questions]
    return {
        "questions": len(questions),
        "escalated": 100 * float(escalated.mean()),
        "accuracy": 100 * float(right.mean()),
        "cheap": 100 * fmean(cheap),
        "alone": 100 * float(alone.mean()),
        "four": 100 * fmean(four),
        "against_alone": difference(right.tolist(), alone.tolist()),
        "against_cheap": difference(right.tolist(), cheap),
    }


#: Who samples, for votes of n and coverage; the last two of coverage were added after the first look at it.
SETS: dict[str, Sequence[str] | None] = {
    "18 members": None,
    "4 prompts of gpt-3.5-turbo": CHEAP["4 prompts of gpt-3.5-turbo"],
    "4 prompts of gpt-4o-mini": LARGE,
}
COVERED: dict[str, Sequence[str] | None] = {**CHEAP, "18 members": None, "4 prompts of gpt-4o-mini": LARGE}


def measured(puzzles: Sequence[Answers], questions: Sequence[Answers]) -> dict[str, Any]:
    """All that is recorded."""
    return {
        "game24": {"worth": worth([one.question() for one in puzzles]), "stopping": stopping(puzzles)},
        "gsm8k": {
            "worth": {name: worth([one.question(who) for one in questions]) for name, who in SETS.items()},
            "stopping": stopping(questions),
            "coverage": {name: coverage(questions, who) for name, who in COVERED.items()},
            "stages": stages(questions),
        },
    }


def section(data: Found) -> Iterator[str]:
    """The chapter of RESULTS.md."""
    game, gsm = data["game24"], data["gsm8k"]
    yield "## What n samples are worth"
    yield (
        f"Game of 24 ({game['worth']['questions']} puzzles, 100 samples of GPT-4 each) and GSM8K "
        f"({gsm['stages']['asked']['questions']} questions, stored answers of 18 members), by "
        "`make reproduce NAME=samples`. maj@n is the per cent of right answers when n of the samples vote, "
        "over all subsets, with ties counted in equal parts; pass@n is the per cent with at least one right "
        "answer among n (unbiased). 95 % intervals are over questions. Shares by agreement for the 18 "
        "members are in the chapter on panels."
    )
    worths = {"Game of 24": game["worth"], **{f"GSM8K, {name}": one for name, one in gsm["worth"].items()}}
    for name, one in worths.items():
        rows = [TableRow(n, [_span(one["maj_at"][n]), _span(one["pass_at"][n])]) for n in one["maj_at"]]
        notes = [
            f"Risk if questions below a share of the vote are not answered: {one['area']:.3f} in the mean "
            "over all coverages; "
            + ", ".join(
                f"{one['coverage'][c]['risk']:.3f} at {100 * float(c):.0f} %" for c in ("1.0", "0.8", "0.5")
            )
            + f" coverage. Expected calibration error of the share {one['calibration_error']:.3f}."
        ]
        yield to_markdown(Table([Column("maj@n"), Column("pass@n")], rows, "n", name, notes))
    yield "### Stopping early"
    yield (
        f"Samples arrive in random order ({ORDERS} orders per question) until the stopping rule decides. The "
        f"confidence was chosen among {game['stopping']['looked_at']} on the even questions, as the lowest "
        "one with at least the accuracy of asking all; the tables show the odd questions. A wrong decision "
        'is an early one for another answer than all samples elect. "Fixed n" is the vote of the same mean '
        "number of samples for every question."
    )
    for name, one in (("Game of 24", game["stopping"]), ("GSM8K, 18 members", gsm["stopping"])):
        rows = [_stopping_row(c, by, c == one["chosen"]) for c, by in one["reported"].items()]
        columns = [
            *("samples drawn", "decided early (%)", "wrong decisions (%)", "right (%)", "right - all"),
            "right - fixed n",
        ]
        yield to_markdown(Table(list(map(Column, columns)), rows, "confidence", name))
    yield "### Answering only where the share is large"
    rows = [TableRow(name, list(_coverage_cells(one))) for name, one in gsm["coverage"].items()]
    columns = ["least share", "answered (%)", "wrong of these (%)", "wrong if all are answered (%)"]
    notes = [
        "The share was chosen on the even questions, so that with 95 % confidence at most "
        f"{100 * MAX_RISK:.0f} % of the answers to new questions are wrong; the other columns show the odd "
        "questions. 'none' means that the even questions cannot show this for any share. The last two rows "
        "were added after the first three had been seen."
    ]
    yield to_markdown(Table(list(map(Column, columns)), rows, "GSM8K", notes=notes))
    yield from _stages_section(gsm["stages"])


def _stages_section(found: Found) -> Iterator[str]:
    yield "### Stages: a larger model only where cheap answers differ"
    asked, reported, chosen = found["asked"], found["reported"], found["chosen"]
    yield (
        "A cheap panel answers first. If the share of its leading answer is below a limit, gpt-4o-mini is "
        f"asked once (the mean over its four prompts). Fixed before the run: {asked['panel']}, escalate "
        "unless all agree. This setting was first seen on all 1,319 test questions, of which these are every "
        "second one. There it was 0.2 points above the larger model alone (94.3 and 94.1 %); here it is not "
        f"above it. Chosen on the even questions among {found['looked_at']} settings, as the one that "
        "escalates least without being below the larger model alone: "
        f"{chosen['panel']}, limit {chosen['below']:g}."
    )
    names = ["escalated (%)", "right (%)", "cheap panel alone", "larger model alone", "its own vote of four"]
    fields = ("escalated", "accuracy", "cheap", "alone", "four")
    rows = [
        TableRow(
            f"{title}, {one['questions']} questions",
            [*(one[field] for field in fields), difference_cell(one["against_alone"])],
        )
        for title, one in (("fixed before", asked), ("chosen", reported))
    ]
    yield to_markdown(Table([*map(Column, names), Column("right - larger alone")], rows, "stages"))
    rows = [
        TableRow(f"{one['panel']}, limit {one['below']:g}", [one["escalated"], one["accuracy"]])
        for one in reported["points"]
    ]
    by_prompt = ", ".join(
        f"{name} {one['accuracy']:.2f} (alone {one['alone']:.2f})" for name, one in asked["by_prompt"].items()
    )
    yield f"Per cent right with the setting fixed before, by the prompt of the larger model: {by_prompt}."
    title = f"Every setting on the {reported['questions']} odd questions"
    yield to_markdown(Table([Column("escalated (%)"), Column("right (%)")], rows, "setting", title))
    yield f"![Votes of n samples, risk against coverage, accuracy against escalated](figures/{FIGURE}.svg)"


def _span(score: Found) -> str:
    low, high = score["interval"]
    return f"{score['value']:.2f} [{low:.2f}, {high:.2f}]"


def _stopping_row(confidence: str, one: Found, chosen: bool) -> TableRow:
    cells = [
        f"{one['drawn']:.1f} of {one['of']}",
        *(one[f] for f in ("early", "wrong", "accuracy")),
    ]
    fixed = difference_cell(one["against_fixed"])
    cells += [difference_cell(one["against_all"]), f"{fixed} (n = {one['fixed']['n']})"]
    return TableRow(f"{confidence}, chosen" if chosen else confidence, cells)


def _coverage_cells(one: Found) -> list[str]:
    if one["share"] is None:
        return ["none", "", "", ""]
    shares = (one["coverage"], one["risk"], one["risk_of_all"])
    return [f"{one['share']:.2f}", *(f"{100 * share:.1f}" for share in shares)]


def draw(data: Found, folder: Path) -> None:
    """The curves as one picture."""
    game, gsm = data["game24"]["worth"], data["gsm8k"]
    sets = {"Game of 24": game, "18 members": gsm["worth"]["18 members"]}
    votes = [
        Curve(
            f"{name}, {what}@n", list(map(int, one[field])), [s["value"] for s in one[field].values()], dashed
        )
        for name, one in sets.items()
        for what, field, dashed in (("maj", "maj_at", False), ("pass", "pass_at", True))
    ]
    risks = [
        Curve(name, list(map(float, one["coverage"])), [p["risk"] for p in one["coverage"].values()])
        for name, one in gsm["worth"].items()
    ]
    points = gsm["stages"]["reported"]["points"]
    alone = gsm["stages"]["reported"]["alone"]
    escalated = [
        Curve(name, [p["escalated"] for p in some], [p["accuracy"] for p in some])
        for name in CHEAP
        if (some := [p for p in points if p["panel"] == name])
    ]
    escalated.append(Curve("larger model alone", [0, 100], [alone, alone], baseline=True))
    panels = [
        Panel("right (%)", votes, x_label="samples n"),
        Panel("risk, GSM8K", risks, x_label="coverage", logarithmic=False),
        Panel("right (%), GSM8K", escalated, x_label="escalated (%)", logarithmic=False),
    ]
    for kind in ("svg", "png"):
        plot_curves(panels, folder / f"{FIGURE}.{kind}")


def main() -> None:
    from experiments.page import write_page

    folders = Folders.usual()
    puzzles = read_puzzles(folders.given("llm", "game24_gpt4_cot_100samples.json.gz"))
    questions = read_questions(folders.given("panels", "gsm8k.jsonl.gz"))
    write_json(HERE / "results" / "samples.json", measured(puzzles, questions))
    write_page(HERE / "results", HERE)
