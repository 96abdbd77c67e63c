from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest

from rangevote.errors import DataError
from rangevote.formats import ReadOptions, read, writer
from rangevote.formats.jsonl import decode_ballot, write_ballot
from rangevote.hypothesis import Ballot, Hypotheses, Hypothesis

BALLOTS = [
    Ballot([Hypothesis("a b", logprob=-1.25), Hypothesis("", logprob=-2.0)], id=7),
    Ballot([Hypothesis("c ' \u2028 d", logprob=-0.1), Hypothesis("e", logprob=-math.inf)], id=8),
]


def test_a_line_is_short_and_valid_json() -> None:
    ballot = Ballot([Hypothesis("é", logprob=-1.5)], id="x")
    line = '{"candidates":[{"text":"é","logprob":-1.5}],"id":"x"}\n'
    assert write_ballot(ballot) == line.encode()


def test_probability_zero_is_written_without_infinity() -> None:
    line = write_ballot(BALLOTS[1])
    assert b"nfinity" not in line
    assert b'"prob": 0' in line
    assert decode_ballot(line) == BALLOTS[1]


def test_arrays_and_columns_are_written_as_lists() -> None:
    state = np.array([0.5, 1.0])
    listed = Ballot([Hypothesis("a", np.array([1, 2]), state=state)])  # type: ignore[arg-type]
    assert decode_ballot(write_ballot(listed)).candidates == [Hypothesis("a", [1, 2], state=[0.5, 1.0])]
    columns = Ballot(Hypotheses.of(["a", "b"], logprobs=[-1.0, -math.inf]))
    found = decode_ballot(write_ballot(columns)).candidates
    assert [(h.text, h.logprob) for h in found] == [("a", -1.0), ("b", -math.inf)]


def test_what_could_not_be_read_is_not_written() -> None:
    with pytest.raises(DataError, match=r"voters\[1\].logprob: 3.0 is not"):
        write_ballot(Ballot([Hypothesis("a")], [Hypothesis("a"), Hypothesis("b", logprob=3.0)]))
    for logprob in (-1.0, -math.inf):
        with pytest.raises(DataError, match=r"contains a lone surrogate \(U\+D800\)"):
            write_ballot(Ballot([Hypothesis("\ud800", logprob=logprob)]))


def test_moses_lines_are_read_back() -> None:
    write = writer("moses")
    data = b"".join(map(write, BALLOTS))
    assert data.split(b"\n")[0] == b"7 ||| a b ||| F0= -1.25 ||| -1.25"
    assert [entry.get() for entry in read(io.BytesIO(data))] == BALLOTS


def test_ballots_without_id_are_numbered() -> None:
    write = writer("moses")
    ballot = Ballot([Hypothesis("a", logprob=-1.0)])
    assert [write(ballot)[:2], write(ballot)[:2]] == [b"0 ", b"1 "]


@pytest.mark.parametrize(
    ("ballot", "message"),
    [
        (Ballot([Hypothesis("a\nb", logprob=-1.0)]), r"\[0\].text: contains a line end, which the format"),
        (Ballot([Hypothesis("a ||| b", logprob=-1.0)]), r"\[0\].text: contains '\|\|\|', which separates"),
        (Ballot([Hypothesis("a")]), r"\[0\].logprob: has no log-probability, which the format 'moses'"),
        (Ballot([Hypothesis(None, [1])]), r"\[0\].text: has no text, which the format 'moses' needs"),
        (Ballot([Hypothesis("a", logprob=-1.0, sampled=True)]), r"candidates\[0\]: is a sample or has"),
        (Ballot([Hypothesis("a", logprob=-1.0, weight=1.0)]), r"keep it in the format 'jsonl'"),
        (Ballot([Hypothesis("a", logprob=-1.0)], []), "voters: the format 'moses' cannot have voters"),
        (Ballot([], id="a b"), "id: 'a b' cannot be an id in the format 'moses'"),
        (Ballot([], id="a|||b"), "cannot be an id"),
        (Ballot([], id=""), "cannot be an id"),
        (Ballot([Hypothesis("\udc00", logprob=-1.0)]), r"\[0\].text: contains a lone surrogate"),
    ],
)
def test_what_moses_cannot_hold_is_refused(ballot: Ballot, message: str) -> None:
    with pytest.raises(DataError, match=message):
        writer("moses")(ballot)


def test_flat_text_and_its_scores_are_read_back(tmp_path: Path) -> None:
    scores = tmp_path / "lprobs"
    scores.write_bytes(b"".join(map(writer("mbrs-logprobs"), BALLOTS)))
    text = b"".join(map(writer("mbrs"), BALLOTS))
    options = ReadOptions(per_source=2, logprobs=scores)
    found = [entry.get().candidates for entry in read(io.BytesIO(text), options)]
    assert found == [ballot.candidates for ballot in BALLOTS]


def test_flat_text_needs_lists_of_one_size() -> None:
    write = writer("mbrs")
    write(BALLOTS[0])
    with pytest.raises(DataError, match="has 1 candidates where the first ballot has 2; the format"):
        write(Ballot([Hypothesis("a")]))
