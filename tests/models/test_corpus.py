"""Texts to learn from: how words are numbered, what is unknown, and what is refused."""

from __future__ import annotations

import gzip

import pytest

from rangevote.errors import DataError, UsageError
from rangevote.models.ngram import read_corpus


def shown(corpus) -> str:
    return " ".join(corpus.words[token] for token in corpus.tokens)


def test_sentences_stand_between_marks_and_words_are_numbered_as_they_come():
    corpus = read_corpus(["the  cat\tsat ", "", "cat the"])
    assert corpus.words == ["<unk>", "<s>", "</s>", "the", "cat", "sat"]
    assert corpus.tokens.tolist() == [1, 3, 4, 5, 2, 1, 2, 1, 4, 3, 2]


def test_a_file_and_its_lines_are_the_same_text(tmp_path):
    lines = ["ein Häuschen", "", "zwei\u00a0drei vier\u2028fünf", "x"]
    plain, packed = tmp_path / "text", tmp_path / "packed"
    plain.write_bytes("\r\n".join(lines).encode("utf-8-sig"))
    packed.write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))
    expected = read_corpus(lines)
    assert "zwei\u00a0drei" in expected.words  # only ASCII white space divides words, as in KenLM
    for source in (plain, str(plain), packed, iter(lines)):
        found = read_corpus(source)
        assert found.words == expected.words
        assert found.tokens.tolist() == expected.tokens.tolist()


def test_more_lines_than_fit_one_batch_are_numbered_as_one_text():
    corpus = read_corpus(f"w{i % 7} w{i % 11}" for i in range(150_000))
    assert len(corpus.words) == 3 + 11
    assert corpus.tokens.size == 4 * 150_000


def test_rare_words_become_unknown_and_the_others_are_numbered_anew():
    corpus = read_corpus(["a b a", "c a c"], min_count=2)
    assert corpus.words == ["<unk>", "<s>", "</s>", "a", "c"]
    assert shown(corpus) == "<s> a <unk> a </s> <s> c a c </s>"


def test_words_outside_the_vocabulary_become_unknown_and_those_never_seen_are_kept():
    corpus = read_corpus(["a b a", "c a c"], vocabulary=["zebra", "c", "<unk>"])
    assert corpus.words == ["<unk>", "<s>", "</s>", "zebra", "c"]
    assert shown(corpus) == "<s> <unk> <unk> <unk> </s> <s> c <unk> c </s>"


def test_the_unknown_word_may_stand_in_the_text_in_both_spellings():
    assert shown(read_corpus(["a <unk>", "<UNK> b"])) == "<s> a <unk> </s> <s> <unk> b </s>"


@pytest.mark.parametrize("mark", ["<s>", "</s>"])
def test_marks_in_the_text_are_refused_with_their_line(mark, tmp_path):
    lines = ["a b", "c", f"a {mark} b"]
    with pytest.raises(DataError, match=r"^sentences:3: contains the word <s> or </s>"):
        read_corpus(lines)
    path = tmp_path / "text"
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"text:3: contains the word <s> or </s>"):
        read_corpus(path)


def test_a_mark_that_makes_up_for_another_is_refused_too():
    assert (
        shown(read_corpus(["a<s>", "</s>b"])) == "<s> a<s> </s> <s> </s>b </s>"
    )  # parts of words are no marks
    with pytest.raises(DataError, match="sentences:1"):
        read_corpus(["</s> <s>"])


def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"a b\nc \xff d\n")
    with pytest.raises(DataError, match=r"text:2: is not text in UTF-8"):
        read_corpus(path)
    with pytest.raises(DataError, match=r"sentences:2: contains a lone surrogate"):
        read_corpus(["a", "\ud800"])


def test_nothing_to_learn_from_is_refused(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"")
    for source, name in (([], "sentences"), (path, "text")):
        with pytest.raises(DataError, match=rf"{name}: contains no sentences"):
            read_corpus(source)


def test_options_that_cannot_be_meant_are_refused():
    with pytest.raises(UsageError, match="both a vocabulary and min_count"):
        read_corpus(["a"], min_count=2, vocabulary=["a"])
    with pytest.raises(UsageError, match="'a b', word 2 of the vocabulary, is empty or has a space"):
        read_corpus(["a"], vocabulary=["c", "a b"])
    with pytest.raises(UsageError, match="sentences:2: expected a text, got list"):
        read_corpus(["a", ["b"]])
