from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import pytest

from rangevote.errors import DataError, UsageError
from rangevote.formats import ReadOptions, read, writer
from rangevote.formats.nbest import moses_row
from rangevote.hypothesis import Ballot, Hypothesis
from tests.formats.ballots import Ballots, Entries, Fault, logprobs, texts

# Moses, Marian, cdec

MARIAN = b"""\
0 ||| Das ist gut . ||| F0= -2.41205 ||| -0.48241
0 ||| Das ist fein . ||| F0= -3.5 ||| -0.7
1 ||| Ja . ||| F0= -0.9 ||| -0.3
"""
MOSES = b"""\
0 ||| the house  ||| LM0= -12.3 Distortion0= 0 TM0= -1 -2 -0.5 ||| -4.5
0 ||| a house  ||| LM0= -13.1 Distortion0= 0 TM0= -1 -2 -0.9 ||| -5.5
"""


def test_marians_feature_is_the_log_probability(ballots: Ballots) -> None:
    first, second = ballots(MARIAN)
    assert (first.id, second.id) == (0, 1)
    assert [(h.text, h.logprob) for h in first.candidates] == [
        ("Das ist gut .", -2.41205),
        ("Das ist fein .", -3.5),
    ]
    assert len(second.candidates) == 1


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        ("a b ||| F0= -1 ||| -1", "a b"),
        ("a ||| b ||| F0= -1 ||| -1", "a ||| b"),
        ("||| ||| F0= -1 ||| -1", ""),
        ("||| a ||| F0= -1 ||| -1", "||| a"),
        ("a ||| 0-0 1-1 ||| F0= -1 ||| -1", "a"),
        ("a ||| 0-0 ||| WordScores= -0.1 -0.9 ||| F0= -1 ||| -1", "a"),
        ("a ||| WordScores= -0.1 ||| F0= -1 ||| -1", "a"),
        ("a b ||| 0.6,0.4 0.1,0.9 1.2e-05,0.99999 ||| F0= -1 ||| -1", "a b"),
        ("a ||| 0.6,0.4 1,0 ||| WordScores= -0.1 -0.9 ||| F0= -1 ||| -1", "a"),
        ("a ||| 1 1 ||| F0= -1 ||| -1", "a"),  # the source is empty, and its end has the whole share
        ("a ||| 3 5 ||| F0= -1 ||| -1", "a ||| 3 5"),
        ("0.6,0.4 ||| F0= -1 ||| -1", "0.6,0.4"),
        ("a b |||  ||| F0= -1 ||| -1", "a b"),
        ("a b |||  ||| WordScores= -0.1 ||| F0= -1 ||| -1", "a b"),
        ("0-0 1-1 ||| F0= -1 ||| -1", "0-0 1-1"),
        ("a ||| b ||| LM= -1 ||| -1 ||| 0-0 1-1", "a ||| b"),
        ("a ||| LM= -1 ||| -1 ||| 0-1=0-1 2-2=2-2 ||| 0-0 1-1", "a"),
        ("-1 ||| F0= -1 ||| -1e-05", "-1"),
        ("x= 1 ||| F0= -1 ||| -inf", "x= 1"),
        ("a ||| -1.5 -2 3 ||| -4", "a"),
        ("a ||| cdec_lm=-1.5 Glue=2 ||| -4", "a"),
    ],
)
def test_bars_and_other_columns_do_not_break_the_text(rest: str, text: str) -> None:
    assert moses_row(f" {rest}").text == text


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (b"0 ||| a ||| F0=-1.5 ||| -1.5\n", {}, [-1.5]),
        (b"0 ||| a b c ||| F0= -2 ||| -2\n", {"log_base": "2"}, [-2 * math.log(2)]),
        (b"0 ||| a b c ||| F0= -2 ||| -2\n", {"normalisation": "length"}, [-8.0]),
        # the members of an ensemble are averaged
        (b"0 ||| a ||| F0= -1 F1= -2 ||| -1.5\n0 ||| b ||| F0= -3.5 F1= -4 ||| -3.75\n", {}, [-1.5, -3.75]),
        (MOSES, {"score_scale": 2}, [-math.log1p(math.exp(-2)), -math.log1p(math.exp(2))]),  # of -9 and -11
        # however steep, equal scores are equal shares
        (b"0 ||| a ||| x= 1 ||| 5\n0 ||| b ||| x= 1 ||| 5\n", {"score_scale": 1e300}, [math.log(0.5)] * 2),
        (MOSES, {"score_scale": "count"}, [None, None]),
        (b"0 ||| no scores here\n", {"score_scale": "count"}, [None]),
    ],
)
def test_scores_are_read_as_the_options_say(
    ballots: Ballots, data: bytes, options: dict[str, Any], expected: list[float | None]
) -> None:
    [ballot] = ballots(data, **options)
    assert logprobs(ballot) == (expected if None in expected else pytest.approx(expected))


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (MOSES, {}, r"input:1: the features 'LM0= -12.3 .* --score-scale X"),
        (b"0 ||| a ||| F1= -2 ||| -1.5\n", {}, r"'F1= -2' are not Marian's F0"),
        (b"H-0\t-1\ta\n", {}, r"no P- lines.*--length-normalised length .*--log-base e"),
        (b"a\n", {"format": "mbrs"}, "the format 'mbrs' needs --per-source N"),
    ],
)
def test_scores_and_lists_that_a_file_does_not_settle_are_asked_about(
    entries: Entries, data: bytes, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        entries(data, **options)


def test_crlf_empty_texts_blank_lines_and_lists_of_any_length_are_read(ballots: Ballots) -> None:
    data = b"3 |||  ||| F0= -1 ||| -1\r\n3 ||| a ||| F0= -2 ||| -2\r\n5 ||| b ||| F0= -1 ||| -1\r\n\r\n"
    assert [(ballot.id, texts(ballot)) for ballot in ballots(data)] == [(3, ["", "a"]), (5, ["b"])]


def test_ids_that_are_no_numbers_are_kept_as_text(ballots: Ballots) -> None:
    names = ["doc1.s2", "007", "\u0664", "1" * 5000]
    data = "".join(f"{name} ||| a ||| F0= -.5e0 ||| -1\n" for name in names).encode()
    assert [ballot.id for ballot in ballots(data)] == names


@pytest.mark.parametrize(
    ("data", "good", "message"),
    [
        (
            MARIAN + b"0 ||| noch eins ||| F0= -4 ||| -1\n",
            [True, True, False],
            "input:4: id: the id 0",
        ),
        (MARIAN.replace(b"F0= -3.5 ||| -0.7", b"F0= -3.5"), [False, True], "input:2: expected 'id"),
        (MARIAN.replace(b"0 ||| Das ist fein", b"Das ist fein"), [False, True], "input:2: expected 'id"),
        (MARIAN.replace(b"F0= -3.5", b"F0= nan"), [False, True], "input:2: F0: NaN is not a score"),
        (MARIAN.replace(b"fein", b"f\xff"), [False, True], "input:2: invalid UTF-8"),
    ],
)
def test_a_bad_line_spoils_its_list_and_no_other(
    entries: Entries, data: bytes, good: list[bool], message: str
) -> None:
    found = entries(data)
    assert [entry.ballot is not None for entry in found] == good
    assert str(found[good.index(False)].error).startswith(message)


def test_infinite_scores_cannot_be_weighed(fault: Fault) -> None:
    error = fault(b"0 ||| a ||| x= 1 ||| inf\n", score_scale=1.0)
    assert "scores cannot be weighed: the highest is inf" in error.problem


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"0 ||| a ||| F0= nan ||| -1", "F0: NaN is not a score"),
        (b"0 ||| a ||| F0= 1 ||| -1", r"candidates\[0\].logprob: 1.0 is not a log-probability"),
        (b"0 ||| caf\xe9 ||| F0= -1 ||| -1", r"invalid UTF-8 at byte 10 of the line \(0xe9\)"),
        (b" ||| a ||| F0= -1 ||| -1", "expected 'id"),
    ],
)
def test_bad_lines_are_named(fault: Fault, line: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        raise fault(line + b"\n", format="moses")


@pytest.mark.parametrize(
    "text",
    ["1-" + "111-" * 20_000 + "x", "1 " * 50_000 + "x", "0.5," * 50_000, "a=" * 50_000, "-" * 100_000],
)
def test_no_text_takes_long_to_tell_from_a_column(text: str) -> None:
    assert moses_row(f" {text} ||| {text} ||| F0= -1 ||| -1").text.startswith(text.strip())
    with pytest.raises(DataError, match="expected 'id"):
        moses_row(f" a ||| {text} ||| -1 x ||| {text}")


@pytest.mark.parametrize(
    "line", ["0 ||| a ||| {} ||| -1", "0 ||| a ||| F0= -1 ||| {}", "0 ||| a ||| x={} ||| 1"]
)
def test_many_digits_take_no_longer_than_other_signs(fault: Fault, line: str) -> None:
    """Where digits could be told apart in many ways, this would take hours."""
    assert "expected 'id ||| text ||| features ||| score'" in str(
        fault(line.format("1" * 100_000 + "x").encode())
    )


# fairseq

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


def test_samples_of_fairseq_come_in_the_order_of_the_corpus(ballots: Ballots) -> None:
    second, seventh = ballots(GENERATED)
    assert (second.id, texts(second)) == (2, ["ja"])
    assert (seventh.id, texts(seventh)) == (7, ["Kopfmassager", "Kopfkissen"])
    assert (seventh.source, seventh.references) == ("head massager", ["Kopfmassage"])
    assert texts(ballots(without(b"D-"))[1]) == ["Kopf@@ massa@@ ger", "Kopf@@ kissen"]


def test_the_order_of_kinds_does_not_matter(ballots: Ballots) -> None:
    lines = GENERATED.splitlines(keepends=True)
    assert ballots(b"".join(sorted(lines))) == ballots(GENERATED)
    assert ballots(b"".join(sorted(lines, reverse=True)), format="fairseq")[1].id == 7


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (GENERATED, {}, [-1.0557 * math.log(2), -4.5 * math.log(2)]),  # the sum over tokens, in base 2
        (GENERATED, {"log_base": "e"}, [-1.0557, -4.5]),  # files from before 2020
        (without(b"P-"), {"normalisation": "length"}, [-0.2639 * 4 * math.log(2), -1.5 * 3 * math.log(2)]),
        (without(b"P-"), {"normalisation": "none", "log_base": "e"}, [-0.2639, -1.5]),
        (GENERATED, {"score_scale": "count"}, [None, None]),
        (GENERATED, {"score_scale": 1}, [-math.log1p(math.exp(-1.2361)), -math.log1p(math.exp(1.2361))]),
    ],
)
def test_scores_of_fairseq_become_natural_log_sums(
    ballots: Ballots, data: bytes, options: dict[str, Any], expected: list[float | None]
) -> None:
    found = logprobs(ballots(data, warn=lambda message: None, **options)[1])
    assert found == (expected if None in expected else pytest.approx(expected))


def test_empty_texts_crlf_and_a_blank_end_are_read(ballots: Ballots) -> None:
    data = b"H-0\t-0.5\t\r\nP-0\t-0.5\r\nH-0\t-1\r\nP-0\t-3\r\n\r\n"
    (ballot,) = ballots(data)
    assert [h.text for h in ballot.candidates] == ["", ""]


def test_samples_that_do_not_fit_are_named(fault: Fault) -> None:
    data = b"H-0\t-0.5\ta\nH-0\t-0.6\tb\nP-0\t-0.5\n"
    assert str(fault(data)) == "input:1: lines of sample 0 do not match: 2 H-, 0 D-, 1 P-"
    # lengths are not guessed from detokenised text
    assert "has no H- lines" in str(fault(b"D-0\t-0.5\tja\n", normalisation="length"))


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


# mbrs

TEXT = b"a b\na c\n\nd\ne f\nd\n"


@pytest.mark.parametrize(
    ("data", "size", "expected"),
    [
        (TEXT, 3, [["a b", "a c", ""], ["d", "e f", "d"]]),
        (b"a\r\nb\r\n\r\n", 2, [["a", "b"]]),  # a blank end
        (b"0 ||| a ||| b\nc\n", 2, [["0 ||| a ||| b", "c"]]),
    ],
)
def test_every_n_lines_are_one_ballot(
    ballots: Ballots, data: bytes, size: int, expected: list[list[str]]
) -> None:
    found = ballots(data, per_source=size)
    assert [(ballot.id, texts(ballot)) for ballot in found] == list(enumerate(expected))


def test_log_probabilities_come_from_a_second_file(ballots: Ballots, tmp_path: Path) -> None:
    path = tmp_path / "lprobs"
    path.write_bytes(b"-1.5\r\n-2\r\n-3\r\n-4\r\n-5\r\n-6e0\r\n\r\n")
    found = ballots(TEXT, per_source=3, logprobs=path)
    assert [h.logprob for h in found[1].candidates] == [-4.0, -5.0, -6.0]
    found = ballots(TEXT, per_source=3, logprobs=path, log_base="10")
    assert found[0].candidates[0].logprob == pytest.approx(-1.5 * math.log(10))
    found = ballots(TEXT, per_source=3, logprobs=path, score_scale="count")
    assert found[0].candidates[0].logprob is None


def test_lines_that_are_missing_are_named(entries: Entries) -> None:
    found = entries(TEXT + b"g\n", per_source=3)
    assert [entry.ballot is not None for entry in found] == [True, True, False]
    assert str(found[2].error) == "input:7: source 2 has 1 lines where --per-source says 3"


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (b"-1\n-2\n-3\n-4\n-5\n", "input:4: source 1 has 2 log-probabilities in .*lprobs"),
        (b"-1\n-2\n-3\n-4\n-5\n-6\n-7\n", "there are more lines in .*lprobs than in input"),
        (b"-1\n-2\n-3\n-4\nx\n-6\n", "lprobs:5: expected a number, got 'x'"),
        (b"-1\n-2\n-3\n-4\n1_0\n-6\n", "lprobs:5: expected a number, got '1_0'"),
        (b"-1\n-2\n-3\n-4\n5\n-6\n", r"candidates\[1\].logprob: 5.0 is not a log-probability"),
    ],
)
def test_scores_that_do_not_fit_are_named(fault: Fault, tmp_path: Path, scores: bytes, message: str) -> None:
    path = tmp_path / "lprobs"
    path.write_bytes(scores)
    with pytest.raises(DataError, match=message):
        raise fault(TEXT, per_source=3, logprobs=path)


def test_a_reading_that_is_left_lets_both_files_go(tmp_path: Path) -> None:
    text, scores = tmp_path / "text", tmp_path / "lprobs"
    text.write_bytes(TEXT)
    scores.write_bytes(b"-1\n" * 6)
    with read(text, ReadOptions(per_source=1, logprobs=scores, strict=True)) as reading:
        assert next(reading).get().candidates[0].logprob == -1.0
    assert list(reading) == []


# Writing

BALLOTS = [
    Ballot([Hypothesis("a b", logprob=-1.25), Hypothesis("", logprob=-2.0)], id=7),
    Ballot([Hypothesis("c ' \u2028 d", logprob=-0.1), Hypothesis("e", logprob=-math.inf)], id=8),
]


def test_moses_lines_are_read_back() -> None:
    data = b"".join(writer("moses")(BALLOTS))
    assert data.split(b"\n")[0] == b"7 ||| a b ||| F0= -1.25 ||| -1.25"
    assert [entry.get() for entry in read(io.BytesIO(data))] == BALLOTS


def test_ballots_without_id_are_numbered() -> None:
    lines = writer("moses")([Ballot([Hypothesis("a", logprob=-1.0)])] * 2)
    assert [line[:2] for line in lines] == [b"0 ", b"1 "]


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
        (Ballot([], id=""), "cannot be an id"),
        (Ballot([Hypothesis("\udc00", logprob=-1.0)]), "a text contains a lone surrogate"),
    ],
)
def test_what_moses_cannot_hold_is_refused(ballot: Ballot, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(writer("moses")([ballot]))
