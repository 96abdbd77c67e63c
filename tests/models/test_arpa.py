"""ARPA files: scores as KenLM's, writing and reading back, and bad files named with line and expectation."""

from __future__ import annotations

import gzip
import itertools
import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from rangevote.errors import DataError, SetupError
from rangevote.models.ngram import NgramModel


def arpa(*sections: Sequence[str]) -> str:
    """An ARPA file with these lines in its sections; a space after the first field stands for a tab."""
    text = "\\data\\\n" + "".join(f"ngram {n}={len(section)}\n" for n, section in enumerate(sections, 1))
    for n, section in enumerate(sections, 1):
        text += f"\n\\{n}-grams:\n" + "".join(f"{_tabbed(line, n)}\n" for line in section)
    return text + "\n\\end\\\n"


def _tabbed(line: str, n: int) -> str:
    fields = line.split(" ")
    return "\t".join([fields[0], " ".join(fields[1 : n + 1]), *fields[n + 1 :]])


def kenlm_scores(path: Path, sentences: Sequence[str]) -> list[np.ndarray]:
    """KenLM's natural log P of each word and of the end, for each sentence."""
    kenlm = pytest.importorskip("kenlm", reason="kenlm, the judge of n-gram scores, is not installed")
    config = kenlm.Config()
    config.show_progress, config.arpa_complain = False, kenlm.ARPALoadComplain.NONE
    model = kenlm.Model(str(path), config)
    return [
        np.array([logprob for logprob, _, _ in model.full_scores(sentence)]) * math.log(10)
        for sentence in sentences
    ]


def every_sentence(words: Sequence[str], length: int) -> list[str]:
    """All sentences of up to `length` of these words."""
    found, last = [""], [""]
    for _ in range(length):
        last = [f"{sentence} {word}".strip() for sentence in last for word in words]
        found += last
    return found


UNIGRAMS = ["-1 <unk> -0.4", "-99 <s> -0.3", "-0.5 </s>", "-0.6 a -0.2", "-0.7 b -0.1", "-0.8 c"]
BIGRAMS = [
    "-0.2 <s> a -0.4",
    "-0.3 a b -0.15",
    "-0.35 b c",
    "-0.4 c <unk> -0.2",
    "-0.45 <unk> a",
    "-0.1 c </s>",
]
TRIGRAMS = ["-0.11 <s> a b", "-0.12 a b c", "-0.13 c <unk> a", "-0.14 b c </s>"]
PLAIN = arpa(UNIGRAMS, BIGRAMS, TRIGRAMS)


@pytest.fixture
def file(tmp_path):
    def write(text: str | bytes):
        path = tmp_path / "model.arpa"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def agree(path, sentences, judged=None):
    """Every word's score is KenLM's, and so is every sentence's."""
    model = NgramModel.read(path)
    for sentence, expected in zip(sentences, kenlm_scores(judged or path, sentences), strict=True):
        found = model.scores(sentence)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5, err_msg=sentence)
        assert model.logprob(sentence) == pytest.approx(expected.sum(), abs=1e-4)


SENTENCES = every_sentence(["a", "b", "c", "zebra"], 4)
BY_HAND = {
    "plain": PLAIN,
    "missing back-offs": arpa([line.replace(" -0.2", "") for line in UNIGRAMS], BIGRAMS, TRIGRAMS),
    "no <unk>": arpa(UNIGRAMS[1:], [line for line in BIGRAMS if "unk" not in line], TRIGRAMS[:2]),
    "<UNK>": PLAIN.replace("<unk>", "<UNK>"),
    "<s> with probability 1": PLAIN.replace("-99\t<s>", "0\t<s>"),
    "positive back-off": PLAIN.replace("a\t-0.2", "a\t0.25"),
    "a word without probability": PLAIN.replace("-0.8\tc", "-inf\tc"),
    "bigrams only": arpa(UNIGRAMS, [line.removesuffix(" -0.4") for line in BIGRAMS[:1]]),
    "no trigrams": arpa(UNIGRAMS, BIGRAMS, []),
    "no bigrams": arpa(UNIGRAMS, []),
    "nothing but words": arpa(UNIGRAMS, [], [], []),
    "back-off 0 of the longest": PLAIN.replace("-0.11\t<s> a b", "-0.11\t<s> a b\t0"),
    "order 5": arpa(
        UNIGRAMS,
        [*BIGRAMS, "-0.5 b </s>", "-0.4 b a -0.1"],
        [*TRIGRAMS, "-0.2 a b a -0.1", "-0.25 b a b", "-0.3 b c a"],
        ["-0.1 <s> a b c -0.3", "-0.2 <s> a b a", "-0.15 a b a b", "-0.12 a b c a"],
        ["-0.05 <s> a b c a", "-0.06 <s> a b c </s>", "-0.07 <s> a b a b"],
    ),
    "carriage returns": PLAIN.replace("\n", "\r\n"),
    "comments and blank lines": "\n# made by hand\n\n" + PLAIN.replace("-0.3\ta b", "\n-0.3\ta b"),
}


@pytest.mark.parametrize("text", BY_HAND.values(), ids=BY_HAND)
def test_files_made_by_hand_score_as_kenlm_scores_them(text, file):
    agree(file(text), SENTENCES)


def test_a_file_of_single_words_scores_as_kenlm_scores_it_with_an_empty_list_of_pairs(file, tmp_path):
    # KenLM itself takes no model of order 1
    judged = tmp_path / "judged.arpa"
    judged.write_text(arpa([line.rsplit(" -0", 1)[0] for line in UNIGRAMS], []))
    agree(file(arpa([line.rsplit(" -0", 1)[0] for line in UNIGRAMS])), SENTENCES, judged)


@pytest.mark.parametrize("seed", range(6))
def test_files_with_pruned_last_words_score_as_kenlm_scores_them(seed, file):
    """`a b c` may be listed where `b c` is not, as SRILM's pruning leaves it."""
    rng = np.random.default_rng(seed)
    words = ["<unk>", "a", "b", "c", "d", "e"]
    order = 3 + seed % 2
    sections = [[("<s>",), ("</s>",), *((word,) for word in words)]]
    for n in range(2, order + 1):
        share = 0.8 if n < order else 0.3  # KenLM has room for half as many pruned ones as there are others
        longer = itertools.product(sections[-1], [*words, "</s>"])
        sections.append([(*u, w) for u, w in longer if u[-1] != "</s>" and rng.random() < share])
    listed = {gram for section in sections for gram in section}
    assert any(gram[1:] not in listed for gram in listed if len(gram) > 2)
    lines = [
        [
            f"{-rng.random() * 2:.6f} {' '.join(gram)}"
            + (f" {-rng.random():.6f}" if rng.random() < 0.8 else "")
            for gram in section
        ]
        for section in sections[:-1]
    ]
    last = [f"{-rng.random():.6f} {' '.join(gram)}" for gram in sections[-1]]
    sentences = [" ".join(rng.choice([*words, "zebra"], size=rng.integers(12))) for _ in range(300)]
    agree(file(arpa(*lines, last)), sentences)


@pytest.mark.parametrize("order", [2, 3, 5])
@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz"])
def test_a_written_model_is_read_by_kenlm_and_by_us_with_the_same_scores(order, name, tmp_path):
    rng = np.random.default_rng(order)
    drawn = (rng.zipf(1.5, size=rng.integers(12)) % 40 for _ in range(400))
    text = [" ".join(f"wörd{number}" for number in sentence) for sentence in drawn]
    model, path = NgramModel.train(text, order), tmp_path / name
    model.write(path)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    again = NgramModel.read(path)
    assert again.words == model.words
    sentences = [*text[:50], "wörd1 zebra wörd2", "", "zebra"]
    for sentence, expected in zip(sentences, kenlm_scores(path, sentences), strict=True):
        np.testing.assert_allclose(model.scores(sentence), expected, rtol=0, atol=1e-5)
        np.testing.assert_allclose(again.scores(sentence), model.scores(sentence), rtol=0, atol=1e-7)
        assert model.logprob(sentence) == pytest.approx(expected.sum(), abs=1e-4)


def test_sentences_shorter_than_the_order_make_a_model_of_what_there_is(tmp_path):
    short, long = NgramModel.train(["a", "b", "a"], 3), NgramModel.train(["a", "b", "a"], 6)
    assert [level.keys.size for level in long.levels] == [5, 4, 2, 0, 0, 0]
    long.write(tmp_path / "model.arpa")
    expected = kenlm_scores(tmp_path / "model.arpa", sentences := every_sentence(["a", "b", "c"], 3))
    for sentence, scores in zip(sentences, expected, strict=True):
        np.testing.assert_allclose(long.scores(sentence), scores, rtol=0, atol=1e-5)
    assert short.levels[0].logprobs.tolist() == long.levels[0].logprobs.tolist()


def test_a_file_that_was_read_is_written_back_as_it_was(file, tmp_path):
    again = tmp_path / "again.arpa"
    NgramModel.read(file(PLAIN)).write(again)
    lines = [line.removesuffix("\t0") for line in again.read_text().splitlines()]
    assert lines[:14] == PLAIN.splitlines()[:14]  # the words keep their order; longer n-grams are sorted
    assert sorted(lines) == sorted(PLAIN.splitlines())


def test_steps_are_normalised_where_the_file_is_not(file):
    model = NgramModel.read(file(PLAIN))
    log_probs = model.step(model.start(["", "a", "a b", "zebra"]), None).log_probs
    np.testing.assert_allclose(np.exp(log_probs).sum(axis=1), 1, rtol=0, atol=1e-12)
    # after <s>: a 10^-0.2 is listed, the others are backed off by 10^-0.3
    others = [10 ** (-0.3 - p) for p in (1, 0.5, 0.7, 0.8)]
    total = 10**-0.2 + sum(others)
    expected = [others[0], 0, others[1], 10**-0.2, *others[2:]]
    np.testing.assert_allclose(np.exp(log_probs[0]), np.array(expected) / total, rtol=0, atol=1e-12)


def test_a_word_that_no_one_may_say_ends_the_model_where_nothing_else_is_left(file):
    model = NgramModel.read(file(arpa(["-1 <s>", "-inf </s>", "-inf <unk>"])))
    assert model.logprob("") == -math.inf
    with pytest.raises(DataError, match="gives every word probability 0"):
        model.step(model.start([""]), None)


LINES = arpa(UNIGRAMS, [*BIGRAMS[:3], BIGRAMS[5]], TRIGRAMS[:2]).splitlines()
GOOD = "\n".join(LINES) + "\n"


def refuse(path, line, message):
    with pytest.raises(DataError) as caught:
        NgramModel.read(path)
    assert caught.value.where == (str(path) if line is None else f"{path}:{line}")
    assert message in caught.value.problem


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (1, "hello", "expected \\data\\ at the beginning, got 'hello'"),
        (2, "ngram 1=six", "expected 'ngram 1=' and a number, got 'ngram 1=six'"),
        (3, "ngram 3=4", "expected 'ngram 2=' and a number, got 'ngram 3=4'"),
        (6, "\\2-grams:", "expected \\1-grams:"),
        (
            10,
            "x a",
            "expected one of 6 1-grams (a log10 probability, 1 word, perhaps a back-off), got 'x a'",
        ),
        (10, "nan a", "got 'nan a'"),
        (10, "0.1 a", "log10 probability 0.1; it must be 0 or less"),
        (10, "-1 a 1e308", "log10 back-off 1e+308; it must be finite"),
        (12, "-1 a", "'a' is listed twice"),
        (12, "-1 <UNK>", "'<UNK>' is listed twice"),
        (17, "-1 b c -1 -1", "expected one of 4 2-grams"),
        (17, "-1 a b", "'a b' is listed twice"),
        (17, "-1 b d", "a word of 'b d' is not among the 1-grams"),
        (22, "-1 b a c", "the context of 'b a c' is not among the 2-grams"),
        (22, "-1 a b c -1", "back-off -1 of one of the longest, which have none"),
        (24, "more", "expected \\end\\ after the n-grams that the header counts, got 'more'"),
    ],
)
def test_a_bad_line_is_named_with_what_is_expected(line, text, message, file):
    refuse(file("\n".join([*LINES[: line - 1], text, *LINES[line:]])), line, message)


HEAD = "\n".join(LINES[:8]) + "\n"


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        ("", None, "expected \\data\\ at the beginning, the file ends"),
        (HEAD, None, "expected one of 6 1-grams"),
        (
            GOOD.removesuffix("\\end\\\n"),
            None,
            "expected \\end\\ after the n-grams that the header counts, the file",
        ),
        (GOOD.replace("ngram 2=4", "ngram 2=5"), 20, "expected one of 5 2-grams"),
        (
            GOOD.replace("ngram 2=4", "ngram 2=3"),
            18,
            "expected \\3-grams: after the n-grams that the header counts",
        ),
        (GOOD + "more\n", 25, "expected nothing after \\end\\, got 'more'"),
        (arpa(["-1 <unk>", "-1 </s>", "-1 a"]), None, "<s> is not among the 1-grams"),
        (arpa(["-1 <unk>", "-1 <s>", "-1 a"]), None, "</s> is not among the 1-grams"),
        (GOOD.encode().replace(b"\tc\n", b"\t\xff\xfe\n"), 12, "is not text in UTF-8"),
        (GOOD.encode("utf-16"), None, "UTF-16"),
        (gzip.compress(GOOD.encode(), mtime=0)[:20], None, "the gzip data is cut off"),
    ],
)
def test_files_that_are_cut_off_or_say_something_else_than_they_count_are_refused(data, line, message, file):
    refuse(file(data), line, message)


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
    model.words[3] = "\ud800"  # a lone surrogate, which UTF-8 cannot encode
    with pytest.raises(SetupError, match="cannot write"):
        model.write(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["model.arpa"]
    with pytest.raises(SetupError, match=r"cannot write .*no such file"):
        model.write(tmp_path / "nowhere" / "model.arpa")


def test_a_logarithm_below_all_numbers_is_a_probability_of_zero(file):
    assert NgramModel.read(file(arpa(["-99 <s>", "-1e308 </s>", "-0.3 a"]))).logprob("a") == -math.inf
