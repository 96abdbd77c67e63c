"""Many elections: in order, lazily, on any number of threads, with the same bits."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

import rangevote as rv
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.parallel import AHEAD, BATCH
from tests.similarity.samples import EVERY, full, sentences

THREADS = [1, 3]
on_any_number_of_threads = pytest.mark.parametrize("threads", THREADS)


def ballots(size: int, seed: int = 0) -> list[Ballot]:
    rng = np.random.default_rng(seed)
    made = []
    for i in range(size):
        candidates = full(rng, sentences(rng, int(rng.integers(1, 9))))
        voters = full(rng, sentences(rng, 6)) if i % 3 == 0 else None
        made.append(Ballot(candidates=candidates, voters=voters, id=i))
    return made


@pytest.mark.parametrize("label", EVERY)
def test_every_measure_gives_the_same_bits_on_any_number_of_threads(label):
    similarity, tokenize = EVERY[label]
    options = {"similarity": similarity, "tokenize": tokenize, "weights": "probability"}
    given = ballots(20)
    expected = [rv.elect(ballot, **options) for ballot in given]
    for threads in THREADS:
        results = list(rv.elect_many(given, threads=threads, **options))
        assert [r.scores.tobytes() for r in results] == [r.scores.tobytes() for r in expected]
        assert [r.ranking for r in results] == [r.ranking for r in expected]
        assert [r.signature for r in results] == [r.signature for r in expected]


@on_any_number_of_threads
def test_ballots_are_taken_as_results_are_asked_for(threads):
    taken = itertools.count()
    endless = (["a", f"b {next(taken)}"] for _ in itertools.count())
    results = rv.elect_many(endless, threads=threads)
    assert next(taken) == 0  # nothing was read before the first result is asked for
    for _ in range(10):
        next(results)
    ahead = 10 + (AHEAD * threads + 1) * BATCH
    assert next(taken) <= ahead + 2
    results.close()


@on_any_number_of_threads
def test_a_caller_who_stops_early_leaves_no_thread_behind(threads):
    before = threading.active_count()
    results = rv.elect_many(([f"a {i}"] for i in itertools.count()), threads=threads)
    assert next(results).winner == "a 0"
    results.close()
    assert threading.active_count() == before


@on_any_number_of_threads
@pytest.mark.parametrize("place", [0, 5, BATCH - 1, BATCH, 100])
def test_a_bad_ballot_surfaces_in_its_place(threads, place):
    texts = [["a", "b"]] * place + [[]] + [["a", "b"]] * 50
    results = rv.elect_many(texts, threads=threads)
    assert [next(results).index for _ in range(place)] == [0] * place
    with pytest.raises(rv.DataError, match=r"candidates: there are no candidates"):
        next(results)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True, None])
def test_threads_are_a_whole_number_from_1(threads):
    with pytest.raises(rv.UsageError, match=r"threads must be a whole number from 1, got"):
        rv.elect_many([["a"]], threads=threads)


def test_options_are_those_of_elect():
    options = {"similarity": "chrf", "weights": "count", "rule": "reweighted", "winners": 2}
    (many,) = rv.elect_many([["ab", "abc", "x"]], **options)
    one = rv.elect(["ab", "abc", "x"], **options)
    assert (many.elected, many.signature) == (one.elected, one.signature)
    (blend,) = rv.elect_many([Ballot([Hypothesis(text="a", logprob=-1.0)])], preset="blend", merge=True)
    assert "|sim:overlap_1-4@0.25|on:words|w:probability|T:2|merge:text|" in blend.signature
