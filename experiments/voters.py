"""Figure 3 as steps: more and more voters for fixed candidates."""

from __future__ import annotations

from experiments.measuring import evaluate_voters
from experiments.settings import Voters
from experiments.stage import Stage
from experiments.trial import Needs, Trial
from experiments.voting import vote_with_voters


def figure_of(trial: Trial, voters: Voters) -> Stage:
    """The numbers behind the figure."""
    votes = [
        _vote(trial, voters, kind, number, roll)
        for kind in voters.searches
        for number, roll in _rolls(trial, voters, kind).items()
    ]
    report = trial.settings.report
    options = {"metrics": report.metrics, "words": report.words}
    needs: Needs = {"items": trial.data["test"], "outputs": votes}
    return trial.stage("evaluate", "voters", "voters.json", evaluate_voters, options, needs)


def _rolls(trial: Trial, voters: Voters, kind: str) -> dict[int, Stage]:
    """number -> the list that has at least so many voters; samples are drawn once."""
    template = voters.searches[kind]
    if kind in voters.sampled:
        most = trial.search("test", kind, template, max(voters.numbers), voters.items)
        return dict.fromkeys(voters.numbers, most)
    return {number: trial.search("test", kind, template, number, voters.items) for number in voters.numbers}


def _vote(trial: Trial, voters: Voters, kind: str, number: int, roll: Stage) -> Stage:
    options = {
        "kind": kind,
        "number": number,
        "measures": voters.measures,
        "words": trial.settings.vote.words,
        "subset": kind in voters.sampled,
        "seed": trial.seed,
    }
    needs = {"candidates": trial.lists[voters.candidates, voters.k], "voters": roll}
    if trial.profiles:
        needs["profile"] = trial.profiles[max(trial.profiles)]
    file = f"voters/{kind}-{number}.json.gz"
    return trial.stage("vote", f"{number} voters by {kind}", file, vote_with_voters, options, needs)
