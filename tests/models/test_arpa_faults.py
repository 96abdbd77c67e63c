"""Bad ARPA files are named with the line, what stands there and what is expected; nothing is half written."""

from __future__ import annotations

import gzip
import math
import os

import numpy as np
import pytest

from rangevote.errors import DataError, SetupError
from rangevote.models.ngram import NgramModel
from tests.models.oracle import arpa

LINES = arpa(
    ["-1 <unk> -0.4", "-99 <s> -0.3", "-0.5 </s>", "-0.6 a -0.2", "-0.7 b -0.1", "-0.8 c"],
    ["-0.2 <s> a -0.4", "-0.3 a b -0.15", "-0.35 b c", "-0.1 c </s>"],
    ["-0.11 <s> a b", "-0.12 a b c"],
).splitlines()
GOOD = "\n".join(LINES) + "\n"


@pytest.fixture
def file(tmp_path):
    def write(text: bytes | str):
        path = tmp_path / "model.arpa"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def refuse(path, line, message):
    with pytest.raises(DataError) as caught:
        NgramModel.read(path)
    assert str(caught.value).startswith(f"{path}:{line}: {message}")


def test_the_file_that_is_spoiled_below_is_good(file):
    assert math.isfinite(NgramModel.read(file(GOOD)).logprob("a b c"))


# line, what is put there, what is said
@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (1, "hello", "expected \\data\\ at the beginning, got 'hello'"),
        (
            1,
            "mmap lm http://kheafield.com/code format version 5",
            "is a binary file of KenLM; give the ARPA file",
        ),
        (2, "ngram 1=six", "expected 'ngram 1=' and a number, got 'ngram 1=six'"),
        (3, "ngram 3=4", "expected 'ngram 2=' and a number, got 'ngram 3=4'"),
        (6, "\\2-grams:", "expected \\1-grams:, got '\\\\2-grams:'"),
        (10, "x a", "expected a log10 probability, 1 word and perhaps a back-off, got 'x a'"),
        (10, "-1 a x", "expected a log10 probability, 1 word and perhaps a back-off, got '-1 a x'"),
        (10, "-1", "expected a log10 probability, 1 word and perhaps a back-off, got '-1'"),
        (10, "nan a", "log10 probability nan; it must be 0 or less"),
        (10, "0.6 a", "log10 probability 0.6; it must be 0 or less"),
        (10, "inf a", "log10 probability inf; it must be 0 or less"),
        (10, "-1 a -inf", "log10 back-off -inf; it must be finite"),
        (12, "-1 a", "'a' is already in line 10"),
        (12, "-1 <UNK>", "'<UNK>' is already in line 7"),
        (17, "-1 b", "expected a log10 probability, 2 words and perhaps a back-off, got '-1 b'"),
        (17, "-1 b c -1 -1", "expected a log10 probability, 2 words and perhaps a back-off, got '-1 b c -1"),
        (17, "-1 a b", "'a b' is already in line 16"),
        (17, "-1 b d", "the word 'd' is not among the 1-grams"),
        (22, "-1 b a c", "the context 'b a' is not among the 2-grams"),
        (22, "-1 a b c -1", "back-off -1 of one of the longest n-grams, which have none"),
        (22, "-1 a b", "expected a log10 probability, 3 words, got '-1 a b'"),
        (24, "more", "there are more 3-grams than the 2 of the header"),
        (24, "\\4-grams:", "expected \\end\\ after the last n-gram, got '\\\\4-grams:'"),
    ],
)
def test_a_bad_line_is_named_with_what_is_expected(line, text, message, file):
    refuse(file("\n".join([*LINES[: line - 1], text, *LINES[line:]])), line, message)


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (0, "expected \\data\\ at the beginning, the file ends"),
        (1, "expected 'ngram 1=' and a number, the file ends"),
        (4, "expected \\1-grams:, the file ends"),
        (8, "only 2 1-grams, where the header says 6; the file was cut off"),
        (13, "expected \\2-grams:, the file ends"),
        (16, "only 2 2-grams, where the header says 4; the file was cut off"),
        (23, "expected \\end\\ after the last n-gram, the file ends"),
    ],
)
def test_a_file_that_was_cut_off_is_refused(kept, message, file):
    refuse(file("".join(line + "\n" for line in LINES[:kept])), kept + 1, message)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("ngram 2=4", "ngram 2=5", 20, "only 4 2-grams, where the header says 5"),
        ("ngram 2=4", "ngram 2=3", 18, "there are more 2-grams than the 3 of the header"),
        ("ngram 1=6", "ngram 1=5", 12, "there are more 1-grams than the 5 of the header"),
        ("ngram 3=2", "ngram 3=99", 24, "only 2 3-grams, where the header says 99"),
        ("ngram 1=6\nngram 2=4\nngram 3=2\n", "", 3, "expected 'ngram 1=' and a number, got '\\\\1-grams:'"),
        ("\\end\\\n", "\\end\\\nmore\n", 25, "expected nothing after \\end\\, got 'more'"),
    ],
)
def test_counts_that_are_wrong_and_text_after_the_end_are_refused(old, new, line, message, file):
    assert old in GOOD
    refuse(file(GOOD.replace(old, new)), line, message)


@pytest.mark.parametrize("mark", ["<s>", "</s>"])
def test_a_file_without_the_marks_of_sentences_is_refused(mark, file):
    words = [f"-1 {word}" for word in ("<unk>", "<s>", "</s>", "a") if word != mark]
    refuse(file(arpa(words)), 9, f"{mark} is not among the 1-grams; sentences need it")


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (GOOD.encode().replace(b"\tc\n", b"\t\xff\xfe\n"), 12, "the word b'\\xff\\xfe' is not text in UTF-8"),
        (GOOD.encode("utf-16"), 1, "expected \\data\\ at the beginning, got"),
        (np.random.default_rng(1).bytes(5000), 1, "expected \\data\\ at the beginning, got"),
        (gzip.compress(GOOD.encode(), mtime=0)[:20], 1, "damaged or cut off gzip data"),
        (b"\x1f\x8b" + b"\0" * 60, 1, "damaged or cut off gzip data"),
    ],
)
def test_what_is_not_text_is_refused(data, line, message, file):
    refuse(file(data), line, message)


def test_no_damage_to_a_file_raises_anything_else(file):
    rng = np.random.default_rng(5)
    whole = GOOD.encode()
    for _ in range(400):
        at, other = rng.integers(len(whole)), rng.integers(256)
        damaged = bytearray(whole if rng.random() < 0.7 else whole[: rng.integers(len(whole))])
        damaged[at : at + rng.integers(3)] = bytes([other])
        try:
            model = NgramModel.read(file(bytes(damaged)))
        except DataError:
            continue
        assert math.isfinite(model.logprob("a b zebra")) or b"inf" in damaged


def test_a_file_that_is_not_there_is_a_matter_of_setup(tmp_path):
    for path in (tmp_path / "nothing.arpa", tmp_path, "nul\0byte"):
        with pytest.raises(SetupError, match="cannot read"):
            NgramModel.read(path)
    with pytest.raises(SetupError, match=r"cannot read .*no such file"):
        NgramModel.train(tmp_path / "nothing.txt")


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "model.arpa"
    path.write_text("old")
    model = NgramModel.train(["a b", "b a"], 2)
    model.words[3] = "\ud800"  # half a character, which UTF-8 cannot hold
    with pytest.raises(SetupError, match="cannot write"):
        model.write(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["model.arpa"]
    with pytest.raises(SetupError, match=r"cannot write .*no such file"):
        model.write(tmp_path / "nowhere" / "model.arpa")


def test_logarithms_at_the_end_of_all_numbers(file):
    text = "\\data\\\nngram 1=3\n\n\\1-grams:\n-99 <s>{}\n{} </s>\n-0.3 a\n\n\\end\\\n"
    assert NgramModel.read(file(text.format("", "-1e308"))).logprob("a") == -math.inf
    with pytest.raises(DataError, match=r"log10 back-off 1e\+308; it must be finite"):
        NgramModel.read(file(text.format(" 1e308", "-1")))
