"""Elections in one call into the kernels against the general way through Python: same bits, same words."""

from __future__ import annotations

import copy
import pickle
import random
import threading
import time
import warnings
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from rangevote.election.elect import elect_ballot, elect_columns
from rangevote.election.result import Result
from rangevote.election.settings import Settings
from rangevote.hypothesis import Ballot, Hypotheses, Hypothesis
from rangevote.kernel import COMPILED

compiled = pytest.mark.skipif(not COMPILED, reason="there are no compiled kernels")

MEASURES = (
    *("overlap_2", "overlap_1-4@0.25", "overlap_3", "precision_2", "precision_1-3@0.7", "overlap_1@1"),
    *("bleu_4", "bleu_2", "smoothed_bleu_4", "bleu_3", "chrf"),
)
WORDS = st.sampled_from(
    ["a", "b", "c", "ab", "abcdefgh", "abcdefghi", "ein langes Wort", "é", "日本語", "\u00a0", "\u2003", "\n"]
)
TEXTS = st.lists(WORDS, max_size=7).map(" ".join) | st.sampled_from(["", " ", "\ud800", "\x00", "a" * 300])
LOGPROBS = st.sampled_from(
    [-1.0, -2.0, -0.5, 0.0, -0.0, -3, -700.0, -1e308, -np.inf, 1e-7, None]
) | st.floats(-40, 0, allow_nan=False)
HOSTILE = st.sampled_from(
    [1.0, float("nan"), True, "-1", 10**400, -(10**400), np.float64(-1.5), np.float32(-2)]
)
OPTIONS = st.fixed_dictionaries(
    {"similarity": st.sampled_from(MEASURES)},
    optional={
        "temperature": st.sampled_from([1.0, 2.0, 0.5, 1]),
        "likelihood": st.sampled_from([0.0, 0.4, 1, 1e300]),
        "weights": st.sampled_from(["probability", "count"]),
        "tokenize": st.sampled_from(["space", "words", "chars"]),
    },
)


def facts(result: Result) -> dict[str, Any]:
    """All that a result says, its numbers as bits."""
    own = result.evidence
    return {
        "numbers": [
            result.scores.tobytes(),
            result.weights.tobytes(),
            None if own is None else own.tobytes(),
        ],
        "elected": (result.elected, result.index, result.winner, result.winners, result.score),
        "margin": (result.margin, result.near_tie, result.no_support),
        "order": (result.ranking, result.groups),
        "signature": result.signature,
        "panel": (result.panel, result.member, result.members),
        "lists": (list(result.candidates), list(result.voters), result.voters is result.candidates),
    }


def outcome(elect: Any) -> Any:
    """The facts of an election, or its error; and the warnings, but for that of `elect` itself."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer: Any = facts(elect())
        except Exception as error:
            answer = (type(error), str(error))
    messages = [str(warning.message) for warning in caught]
    own = ("probabilities of the voters sum", "its share was divided")
    return answer, [message for message in messages if not any(part in message for part in own)]


def generally(
    candidates: Any, logprobs: Any = None, voters: Any = None, theirs: Any = None, **options: Any
) -> Result:
    standing = Hypotheses.of(candidates, logprobs)  # first, as its errors are
    electors = None if voters is None else Hypotheses.of(voters, theirs, role="voters")
    return elect_columns(standing, electors, Settings(**options))


@compiled
@given(st.lists(st.tuples(TEXTS, LOGPROBS), max_size=8), st.booleans(), OPTIONS)
def test_one_call_says_what_the_general_way_says(ballot: Any, known: bool, options: Any) -> None:
    texts, logprobs = [text for text, _ in ballot], [number for _, number in ballot] if known else None
    assert outcome(lambda: rv.elect(texts, logprobs, **options)) == outcome(
        lambda: generally(texts, logprobs, **options)
    )


ROWS = st.builds(
    Hypothesis,
    text=TEXTS | st.none(),
    logprob=LOGPROBS | HOSTILE,
    tokens=st.none() | st.lists(st.integers(0, 3) | st.sampled_from([2**63, -1, True, "1"]), max_size=3),
    finished=st.booleans(),
    sampled=st.sampled_from([False, False, True, None]),
    weight=st.sampled_from([None, None, None, 1.0]),
    member=st.sampled_from([None, None, None, "a"]),
)
USUAL_ROWS = st.builds(
    Hypothesis,
    text=TEXTS,
    logprob=LOGPROBS,
    tokens=st.lists(st.integers(0, 3), max_size=3),
    finished=st.booleans(),
)


SHARES = st.none() | st.fixed_dictionaries(
    {"a": st.floats(0, 9), "b": st.sampled_from([1, 0.1, 1e300]), "c": st.floats(0, 9)}
)


@compiled
@given(st.lists(USUAL_ROWS, max_size=8), st.lists(USUAL_ROWS, max_size=8), st.booleans(), SHARES, st.data())
def test_one_call_elects_panels_as_the_general_way_does(
    candidates: Any, voters: Any, vote: bool, shares: Any, data: Any
) -> None:
    options = data.draw(OPTIONS)
    drawn = data.draw(st.sampled_from([False, False, True, None]))

    def of_members(rows: Any) -> Any:
        names = st.sampled_from("abc" if drawn is not None else ["a", "b", "c", "d", None])
        some = {"member": names, "sampled": st.just(drawn) if drawn is not None else st.booleans()}
        return [msgspec.structs.replace(row, **{n: data.draw(s) for n, s in some.items()}) for row in rows]

    candidates, voters = of_members(candidates), of_members(voters) if vote else None
    settings = Settings(**options, shares=shares)
    assert outcome(lambda: elect_ballot(Ballot(candidates, voters), settings)) == outcome(
        lambda: generally(candidates, None, voters, **options, shares=shares)
    )


@compiled
def test_a_panel_is_held_in_one_call() -> None:
    rows = [Hypothesis(f"a b {i}", logprob=-float(i + 1), member=f"m{i % 3}") for i in range(9)]
    panel = {"m0": ["a b", "a c"], "m1": ["a b c"]}
    results = [
        rv.elect(rows),
        rv.elect(rows, shares={"m0": 1, "m1": 1, "m2": 0}),
        rv.elect(panel),
        rv.elect(panel, {"m0": [-1.0, -2.0], "m1": [-1.5]}),
        rv.elect(["a b", "a c"], voters=rows),
        rv.elect(["a b", "a c"], voters=panel),
    ]
    assert all("margin" in result.__dict__ for result in results)
    assert [result.member is None for result in results] == [False] * 4 + [True] * 2
    assert all(result.members == ("m0",) for result in results[:2])


@compiled
@given(st.lists(ROWS | USUAL_ROWS, max_size=6), st.none() | st.lists(USUAL_ROWS, max_size=6), OPTIONS)
def test_one_call_takes_hostile_ballots_as_the_general_way_does(
    candidates: Any, voters: Any, options: Any
) -> None:
    settings = Settings(**options)
    once = outcome(lambda: elect_ballot(Ballot(candidates, voters), settings))
    assert once == outcome(lambda: generally(candidates, None, voters, **options))
    many = outcome(lambda: next(iter(rv.elect_many([Ballot(candidates, voters)], threads=2, **options))))
    assert many == once


@compiled
@pytest.mark.parametrize("similarity", MEASURES)
def test_what_an_earlier_election_left_behind_changes_nothing(similarity: str) -> None:
    """The kernels work in the same memory again, large or small, under other measures between."""
    rng = random.Random(similarity)
    settings = Settings(similarity=similarity)
    assert settings.one_call is not None
    for size in (3, 200, 2, 700, 10):
        words = [f"{rng.randrange(size)}" * rng.randrange(1, 5) for _ in range(60)]
        texts = [" ".join(rng.choices(words, k=rng.randrange(12))) for _ in range(size)]
        logprobs = [-rng.random() * 9 for _ in texts]
        rv.elect(["x y", "x z"], [-1.0, -2.0], similarity=rng.choice(MEASURES))
        assert outcome(lambda: rv.elect(texts, logprobs, similarity=similarity)) == outcome(  # noqa: B023
            lambda: generally(texts, logprobs, similarity=similarity)  # noqa: B023
        )


def test_a_result_can_be_copied_and_sent_before_anything_was_asked_of_it() -> None:
    for similarity in ("overlap_2", "exact"):
        result = rv.elect(["a b", "a c", "a b d"], [-1.0, -2.0, -1.5], similarity=similarity)
        assert facts(copy.copy(result)) == facts(pickle.loads(pickle.dumps(result))) == facts(result)


def test_a_list_that_is_changed_afterwards_changes_no_result() -> None:
    texts, logprobs = ["a b", "a c"], [-1.0, -2.0]
    result = rv.elect(texts, logprobs, similarity="overlap_2")
    texts[:], logprobs[:] = ["x"], [0.0]
    assert result.winner == "a b"
    assert facts(result) == facts(generally(["a b", "a c"], [-1.0, -2.0], similarity="overlap_2"))


def test_kept_settings_tell_options_of_different_types_apart() -> None:
    rv.elect(["a"], winners=1)
    with pytest.raises(rv.UsageError, match="winners must be a whole number"):
        rv.elect(["a"], winners=True)


@compiled
def test_pairs_beyond_the_limit_are_refused_as_in_the_general_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANGEVOTE_MAX_PAIRS", "3")
    with pytest.raises(rv.UsageError, match="over the limit of 3"):
        rv.elect(["a", "b"], similarity="chrf")
    with pytest.raises(rv.UsageError, match="over the limit of 3"):
        list(rv.elect_many([["a", "b"]], similarity="chrf", threads=2))
    assert rv.elect(["a", "b"], similarity="overlap_2").index == 0


@compiled
def test_an_election_of_few_but_long_texts_leaves_other_threads_their_turn():
    texts = [" ".join(str(i * j % 5000) for j in range(100_000)) for i in range(1, 9)]
    election = threading.Thread(target=rv.elect, args=(texts,))
    election.start()
    turns = 0
    while election.is_alive():
        time.sleep(0.001)
        turns += 1
    assert turns >= 5  # a thread that keeps the GIL lets the others have one or two
