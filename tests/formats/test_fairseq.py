from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from rangevote.errors import DataError, UsageError
from rangevote.formats import Entry
from rangevote.hypothesis import Ballot

Entries = Callable[..., list[Entry]]
Ballots = Callable[..., list[Ballot]]

GENERATED = b"""\
2024-01-01 10:00:00 | INFO | fairseq_cli.generate | NOTE: hypothesis and token scores are output in base 2
S-7\thead massager
T-7\tKopfmassage
H-7\t-0.2639\tKopf@@ massa@@ ger
D-7\t-0.2639\tKopfmassager
P-7\t-0.2926 -0.7546 -0.0085 0.0000
H-7\t-1.5\tKopf@@ kissen
D-7\t-1.5\tKopfkissen
P-7\t-0.2926 -3.5 -0.7074
S-2\tyes
T-2\tja
H-2\t-0.5\tja
D-2\t-0.5\tja
P-2\t-0.6 -0.4
2024-01-01 10:00:09 | INFO | fairseq_cli.generate | Translated 2 sentences
"""


def without(kind: bytes) -> bytes:
    return b"".join(x for x in GENERATED.splitlines(keepends=True) if not x.startswith(kind))


def test_the_log_probability_is_the_sum_over_tokens_in_base_2(ballots: Ballots) -> None:
    second, seventh = ballots(GENERATED)
    assert seventh.candidates[0].logprob == pytest.approx(-1.0557 * math.log(2))
    assert seventh.candidates[1].logprob == pytest.approx(-4.5 * math.log(2))
    assert second.candidates[0].logprob == pytest.approx(-math.log(2))


def test_ballots_come_in_the_order_of_the_corpus(ballots: Ballots) -> None:
    found = ballots(GENERATED)
    assert [ballot.id for ballot in found] == [2, 7]
    assert found[1].source == "head massager"
    assert found[1].references == ["Kopfmassage"]
    assert [h.text for h in found[1].candidates] == ["Kopfmassager", "Kopfkissen"]


def test_the_order_of_kinds_does_not_matter(ballots: Ballots) -> None:
    lines = GENERATED.splitlines(keepends=True)
    assert ballots(b"".join(sorted(lines))) == ballots(GENERATED)
    assert ballots(b"".join(sorted(lines, reverse=True)), format="fairseq")[1].id == 7


def test_texts_are_subwords_where_there_are_no_others(ballots: Ballots) -> None:
    assert ballots(without(b"D-"))[1].candidates[1].text == "Kopf@@ kissen"


def test_old_files_in_natural_logs_are_read_if_said(ballots: Ballots) -> None:
    assert ballots(GENERATED, log_base="e")[0].candidates[0].logprob == pytest.approx(-1.0)


def test_without_token_scores_the_option_is_named(entries: Entries) -> None:
    with pytest.raises(UsageError, match=r"no P- lines.*--normalisation length .*--log-base e"):
        entries(without(b"P-"))


def test_means_are_multiplied_by_the_number_of_tokens_with_the_end(ballots: Ballots) -> None:
    second, seventh = ballots(without(b"P-"), normalisation="length")
    assert seventh.candidates[0].logprob == pytest.approx(-0.2639 * 4 * math.log(2))
    assert second.candidates[0].logprob == pytest.approx(-0.5 * 2 * math.log(2))
    old = ballots(without(b"P-"), normalisation="none", log_base="e", strict=False)
    assert old[0].candidates[0].logprob == -0.5


def test_lengths_are_not_guessed_from_detokenised_text(fault: Callable[..., DataError]) -> None:
    data = b"D-0\t-0.5\tja\n"
    assert "has no H- lines" in str(fault(data, normalisation="length"))


def test_scores_may_be_scaled_or_ignored(ballots: Ballots) -> None:
    assert [h.logprob for h in ballots(GENERATED, score_scale="count")[1].candidates] == [None, None]
    weights = [math.exp(h.logprob or 0) for h in ballots(GENERATED, score_scale=1)[1].candidates]
    odds = math.exp(-0.2639 + 1.5)
    assert weights == pytest.approx([odds / (1 + odds), 1 / (1 + odds)])


def test_empty_texts_crlf_and_a_blank_end_are_read(ballots: Ballots) -> None:
    data = b"H-0\t-0.5\t\r\nP-0\t-0.5\r\nH-0\t-1\r\nP-0\t-3\r\n\r\n"
    (ballot,) = ballots(data)
    assert [h.text for h in ballot.candidates] == ["", ""]


def test_lines_that_do_not_match_are_named(fault: Callable[..., DataError]) -> None:
    data = b"H-0\t-0.5\ta\nH-0\t-0.6\tb\nP-0\t-0.5\n"
    assert str(fault(data)) == "input:1: lines of sample 0 do not match: 2 H-, 0 D-, 1 P-"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"H-0\tx\ta\n", "input:1: H-: expected a number, got 'x'"),
        (b"H-0\t-1\ta\nP-0\t-1 nan\n", "input:2: P-: NaN is not a score"),
        (b"H-0\t-1\ta\nP-0\tinf -inf\n", r"input:1: candidates\[0\].logprob: nan is not a log-prob"),
        (b"H-0\t-1\ta\nP-0\t1e308 1e308\n", r"input:1: candidates\[0\].logprob: inf is not a log-prob"),
        (b"H-0\t-1\t\xff\n", r"input:1: invalid UTF-8"),
        (b"H-0\t-1\ta\nP-0\t1 1\n", r"input:1: candidates\[0\].logprob: 1.38\d+ is not a log-prob"),
    ],
)
def test_a_bad_line_spoils_its_sample_only(entries: Entries, data: bytes, message: str) -> None:
    good = b"H-9\t-1\tgood\nP-9\t-1\n"
    bad, fine = entries(data + good)
    assert fine.get().id == 9
    with pytest.raises(DataError, match=message):
        bad.get()


def test_a_sum_below_all_numbers_is_no_chance_at_all(ballots: Ballots) -> None:
    (ballot,) = ballots(b"H-0\t-1\ta\nP-0\t-1e308 -1e308\n")
    assert ballot.candidates[0].logprob == -math.inf
