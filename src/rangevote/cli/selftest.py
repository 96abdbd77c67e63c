"""`rangevote selftest`: elections whose winners and scores are known, held here and compared.

`selftest.jsonl` has them in a form that any language reads. Its first line says what the measures are; each
of the others is a ballot as in the ballot file, with `weights`, `temperature` and `expected`:

    {"id": 7, "weights": "probability", "temperature": 1,
     "candidates": [{"text": "a b", "logprob": -1.5}, ...],
     "expected": {"overlap_2": {"winner": 0, "scores": [0.25, ...]}, ...}}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import click

from rangevote.cli.options import HelpCommand
from rangevote.errors import DataError, SetupError, UsageError
from rangevote.hypothesis import Hypothesis

#: Scores may differ by this much: exp() is not the same in its last bit on every system.
OURS, OTHERS = 1e-12, 1e-6


class KnownOutcome(NamedTuple):
    """Who won one ballot under one measure, and all scores."""

    ballot: Any
    measure: str
    winner: int
    scores: list[float]


@click.command(cls=HelpCommand, example="rangevote selftest")
@click.option("--compiled", is_flag=True, help="Fail where the plain-Python kernels are in use.")
@click.option("--write", is_flag=True, help="Write the ballots with what is expected to standard output.")
@click.option(
    "--compare",
    metavar="FILE",
    help='Compare another implementation: lines of {"id", "measure", "winner", "scores"} in JSON.',
)
def selftest(compiled: bool, write: bool, compare: str | None) -> int:
    """Hold 200 elections under every measure and compare winners and scores with those expected."""
    from rangevote.kernel import COMPILED

    text = files("rangevote.cli").joinpath("selftest.jsonl").read_text(encoding="utf-8")
    if write:
        click.echo(text, nl=False)
        return 0
    if compiled and not COMPILED:
        raise SetupError("the compiled kernels are not in use; `rangevote doctor` says why.")
    expected = {(one.ballot, one.measure): one for one in outcomes(text)}
    found, missing = (held(text), missing_measures(text)) if compare is None else (read(compare), {})
    differ, same_bits, ballots = [], True, set()
    measures: Counter[str] = Counter()
    for one in found:
        wanted = expected.get((one.ballot, one.measure))
        if wanted is None:
            raise UsageError(
                f"there is no ballot {one.ballot!r} with the measure {one.measure!r} in the set."
            )
        measures[one.measure] += 1
        ballots.add(one.ballot)
        same_bits &= one == wanted
        if not _agree(one, wanted, OURS if compare is None else OTHERS):
            differ.append(f"ballot {one.ballot}, {one.measure}: expected {wanted[2:]}, got {one[2:]}")
    for measure, need in missing.items():
        click.echo(f"rangevote: {measure} is left out: {need}", err=True)
    for line in differ[:20]:
        click.echo(f"rangevote: {line}", err=True)
    kernels = ("compiled" if COMPILED else "plain") + " kernels" if compare is None else compare
    bits = "the same bits" if same_bits else "scores within rounding"
    told = f"{len(differ)} differ" if differ else f"all as expected, {bits}"
    elections = f"{measures.total()} elections on {len(ballots)} ballots with {len(measures)} measures"
    click.echo(f"{elections} ({kernels}): {told}")
    return 3 if differ or not measures else 0


def _agree(one: KnownOutcome, wanted: KnownOutcome, tolerance: float) -> bool:
    return (
        one.winner == wanted.winner
        and len(one.scores) == len(wanted.scores)
        and all(abs(a - b) <= tolerance for a, b in zip(one.scores, wanted.scores, strict=True))
    )


def outcomes(text: str) -> Iterator[KnownOutcome]:
    """What the file expects."""
    for line in text.splitlines()[1:]:
        ballot = json.loads(line)
        for measure, said in ballot["expected"].items():
            yield KnownOutcome(ballot["id"], measure, said["winner"], said["scores"])


def missing_measures(text: str) -> dict[str, str]:
    """Measures of the file that cannot be computed here, with what they need."""
    from rangevote.election.elect import elect

    missing = {}
    for measure in json.loads(text.splitlines()[0])["measures"]:
        try:
            elect([Hypothesis(text="a", state=[1.0])], similarity=measure)
        except SetupError as error:
            missing[measure] = str(error)
    return missing


def held(text: str) -> Iterator[KnownOutcome]:
    """The same elections, held here, under all measures that can be computed."""
    from rangevote.election.elect import elect_ballot
    from rangevote.election.settings import Settings
    from rangevote.formats.jsonl import ballot_of
    from rangevote.formats.reader import ReadOptions

    missing = missing_measures(text)
    for line in text.splitlines()[1:]:
        given = json.loads(line)
        ballot = ballot_of({k: given[k] for k in ("candidates", "voters") if k in given}, ReadOptions())
        for measure in given["expected"]:
            if measure not in missing:
                settings = Settings(measure, weights=given["weights"], temperature=given.get("temperature"))
                result = elect_ballot(ballot, settings)
                yield KnownOutcome(given["id"], measure, result.leader, result.scores.tolist())


def read(path: str) -> Iterable[KnownOutcome]:
    """Results of another implementation."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"cannot read {path}: {error}") from None
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            yield KnownOutcome(row["id"], row["measure"], row["winner"], [float(x) for x in row["scores"]])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise DataError(
                'expected {"id": 7, "measure": "overlap_2", "winner": 0, "scores": [0.25, 0.5]}.',
                where=f"{path}:{number}",
            ) from None
