"""Elections of whatever was read: somebody on the list wins, and both kernels count the same."""

from __future__ import annotations

import importlib
import io
import math
import re
import warnings
from contextlib import suppress
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np

from fuzz.formats import entries
from rangevote.cli.vote import Voting
from rangevote.election.elect import elect_ballot
from rangevote.election.settings import Settings, settings_of
from rangevote.errors import RangevoteError
from rangevote.evaluation.panel_report import agreement_of, panel_report
from rangevote.formats import ReadOptions
from rangevote.formats.jsonl import parse
from rangevote.formats.reader import Chunk
from rangevote.formats.result_writer import ResultShape
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.kernel import plain
from rangevote.similarity import WITH_MODELS
from rangevote.similarity.exact import KEYS, get_key

#: Measures and rules that run different code; heavy ones are left out.
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"preset": "blend", "merge": True, "normalize": "NFKC"},
    {"similarity": "precision_1-3@0.5", "tokenize": "chars"},
    {"similarity": "smoothed_bleu_4", "weights": "count"},
    {"similarity": "chrf", "rule": "reweighted", "winners": 2},
    {"similarity": "exact:last_number", "temperature": 0.01},
    {"similarity": "states"},
    {"similarity": "overlap_2", "tokenize": "tokens"},
    {"rule": "most_likely"},
    {"rule": "length_normalised"},
    {"rule": "cluster", "similarity": "overlap_1", "min_share": 0.5},
    {"scores": {"reward": 0.5}, "likelihood": 0.1, "cutoff": 0.3},
)
#: Of elections that the kernels hold many at a time.
CHUNKS: tuple[dict[str, Any], ...] = (
    {"similarity": "overlap_2"},
    {"similarity": "overlap_1-4@0.25", "temperature": 2.0, "likelihood": 0.5},
    {"similarity": "smoothed_bleu_4", "weights": "count"},
)
MOST = 12  # candidates and voters of one election


def _compiled() -> ModuleType | None:
    try:
        return importlib.import_module("rangevote._kernels")
    except ImportError:
        return None


def elections(data: bytes) -> None:
    """A winner from the list or none, a finite score, and the same result whoever votes first."""
    for entry in islice(entries(io.BytesIO(data), None), 3):
        ballot = entry.get()
        if len(ballot.candidates) <= MOST and len(ballot.voters or ()) <= MOST:
            for options in OPTIONS:
                with suppress(RangevoteError):
                    _check_election(ballot, options)


def _check_election(ballot: Ballot, options: dict[str, Any]) -> None:
    settings = Settings(**options)
    result = elect_ballot(ballot, settings)
    assert result.no_winner if result.index is None else result.index < len(ballot.candidates)
    assert sorted(result.ranking) == list(range(len(ballot.candidates)))
    if len(result.voters):
        assert np.isfinite(result.scores).all()
        assert (
            (np.abs(result.scores) <= 1 + 1e-9).all() or "@" in settings.measure.name or settings.has_evidence
        )
        total = result.weights.sum()
        assert total < 1 + 1e-9
        assert options.get("rule") == "cluster" or not result.weights.any() or total > 1 - 1e-9
    if ballot.voters is not None and not options.get("merge"):
        turned = Ballot(ballot.candidates, ballot.voters[::-1], ballot.id, ballot.source)
        assert elect_ballot(turned, settings).scores.tobytes() == result.scores.tobytes(), (
            "the order of voters counts"
        )


def panels(data: bytes) -> None:
    """A file of panel members: shares by agreement are shares, and the report counts every ballot."""
    listed = entries(io.BytesIO(data), "jsonl")[:MOST]
    if sum(len(entry.ballot.candidates) for entry in listed if entry.ballot is not None) > 4 * MOST:
        return
    settings = Settings(similarity="exact:plain", shares="agreement")
    shares = agreement_of(listed, settings).shares
    assert min(shares.values()) >= 0
    assert math.isclose(sum(shares.values()), 1.0)
    report = panel_report(listed, settings)
    assert report.elected <= report.ballots <= len(listed)


def merged(data: bytes) -> None:
    """JSON samples merged field by field: every value is one that a sample wrote, and shares are shares."""
    for entry in islice(entries(io.BytesIO(data), "jsonl"), 3):
        ballot = entry.get()
        if len(ballot.candidates) > MOST:
            continue
        with suppress(RangevoteError):
            found = elect_ballot(ballot, Settings(rule="merge")).merged
            assert found is None or all(0 <= share <= 1 + 1e-9 for share in found.shares.values())


def options(data: bytes) -> None:
    """Options of an election, as a profile or a request has them: settings, or an error that says why."""
    given = parse(data)
    if isinstance(given, dict) and not _heavy(str(given.get("similarity"))):
        settings = settings_of(given)  # type: ignore[arg-type]
        with suppress(RangevoteError):
            elect_ballot(Ballot([Hypothesis("a b", logprob=-1.0), Hypothesis("a c", logprob=-2.0)]), settings)


def _heavy(name: str) -> bool:
    """Whether a measure would load a model or start a program."""
    return any(word in name.lower() for word in (*WITH_MODELS, "command"))


def answer_keys(data: bytes) -> None:
    """Every key of `exact` on any text: an answer that can be counted, or None."""
    text = data.decode("utf-8", "replace")
    for key in (*KEYS.values(), get_key("json:a[0].b"), get_key("line:last"), get_key("after:answer")):
        answer = key(text)
        assert answer is None or (isinstance(answer, str) and hash(answer) is not None)


def kernels(data: bytes) -> None:
    """Lines as sequences, the last ones as voters: compiled and plain kernels give the same bits."""
    compiled = _compiled()
    texts = data.decode("utf-8", "replace").split("\n")[:MOST]
    half = len(texts) // 2 + 1
    candidates, voters = texts[:half], texts[half:]
    if compiled is None or not voters:
        return
    weights = np.full(len(voters), 1 / len(voters))
    for unit, orders, bag, short in (
        ("space", [1, 2], False, True),
        ("words", [1, 2], False, True),
        ("space", [1, 2, 3, 4], True, False),
        ("chars", [1, 2, 3], True, False),
    ):
        counts = []
        for kernel in (plain, compiled):
            index = kernel.Index(candidates, unit, orders, bag, short)
            index.add(voters)
            counts.append([one.tobytes() for one in _counts(index, weights, bag and not short)])
        assert counts[0] == counts[1], f"kernels differ on {unit} {orders}"


def _counts(index: Any, weights: Any, bleu: bool) -> list[Any]:
    counts = [index.tally(weights, 0.25, False), index.grades(1.0, False)]
    if bleu:
        counts += [index.tally(weights, 0.0, False, "smoothed_bleu"), index.grades(2.0, False, "chrf")]
    return counts


def lines(data: bytes) -> None:
    """Lines that are read together give the bytes and the errors that they give one by one."""
    for options in CHUNKS:
        one_by_one = re.findall(rb"[^\n]*\n|[^\n]+", data)
        assert _written([data], options) == _written(one_by_one, options), options


def _written(blocks: list[bytes], options: dict[str, Any]) -> list[tuple[bytes, str]]:
    reading = ReadOptions(format="jsonl", warn=lambda message: None)
    voting = Voting(Settings(**options), ResultShape(scores=True), reading, "jsonl", allow_empty=False)
    found, number = [], 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in blocks:
            found += [
                (line.content, str(line.error or "")) for line in voting.elect(Chunk("", number, block))
            ]
            number += block.count(b"\n")
    return found
