"""The n-gram model: as a model to search, and its Kneser-Ney estimates against lmplz and the equations."""

from __future__ import annotations

import gzip
import itertools
import math
from collections import Counter

import numpy as np
import pytest

from rangevote.errors import DataError, UsageError
from rangevote.models import ngram
from rangevote.models.ngram import END, START, NgramModel, discounts, read_corpus
from tests.models.contract import ModelContract, chain

TEXT = """a dog runs on the grass
a dog sits
the cat sits on the grass
a cat runs
the dog runs
a cat sits on a dog on the grass""".splitlines()


class TestTrained(ModelContract):
    @pytest.fixture(params=[1, 3])
    def model(self, request):
        return NgramModel.train(TEXT, request.param)

    @pytest.fixture
    def inputs(self):
        return ["a dog", "", "the cat sits on the zebra", [3, 4]]


@pytest.fixture
def model():
    return NgramModel.train(TEXT, 3)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_the_steps_along_a_sentence_give_its_log_probability(order):
    model = NgramModel.train(TEXT, order)
    for sentence in [*TEXT, "", "zebra", "the the the dog zebra cat a"]:
        tokens = [*model.source(sentence), END]
        log_probs = chain(model, "", tokens[:-1]).log_probs
        assert model.logprob(sentence) == pytest.approx(
            sum(log_probs[i, token] for i, token in enumerate(tokens)), abs=1e-12
        )


def test_a_prompt_goes_on_where_its_words_as_tokens_would(model):
    for prompt in TEXT:
        whole = model.step(model.start([prompt]), None).log_probs
        np.testing.assert_array_equal(whole[0], chain(model, "", model.source(prompt)).log_probs[-1])


def test_text_and_source_go_both_ways(model):
    assert model.text(model.source("  the  dog\tzebra ")) == "the dog <unk>"
    assert model.text([]) == ""
    assert model.source("") == []
    assert model.ends == (END,)
    assert model.words[END] == "</s>"
    assert model.room(model.start([""])) is None
    assert model.step(model.start([""]), None).hidden is None


def test_a_model_of_words_seen_and_unseen_learns_the_unknown_word():
    rare = NgramModel.train([*TEXT, "a zebra sits", "the gnu sits"], 3, min_count=2)
    assert "zebra" not in rare.words
    assert rare.logprob("a tapir sits") > NgramModel.train(TEXT, 3).logprob("a tapir sits")


def test_a_text_of_one_empty_line_makes_a_model_that_ends():
    model = NgramModel.train([""], 2)
    log_probs = model.step(model.start([""]), None).log_probs[0]
    assert np.exp(log_probs).tolist() == pytest.approx([0.125, 0, 0.875])  # D = 0.5 at both lengths, |V| = 2


def test_what_cannot_be_a_prompt_is_refused(model):
    for prompt in ("a <s> dog", "a dog </s>", [3, END], [START]):
        with pytest.raises(DataError, match="contains <s> or </s>"):
            model.start(["a", prompt])
    with pytest.raises(DataError, match="lone surrogate"):
        model.logprob("\ud800")
    with pytest.raises(UsageError, match="inputs is one text, 'a dog'; give a list of prompts"):
        model.start("a dog")
    for tokens in ([-1], [len(model.words)]):
        with pytest.raises(UsageError, match=r"tokens .* the model knows 0 to \d+"):
            model.start([tokens])
    with pytest.raises(UsageError, match="order 0: an n-gram model has order 1 or more"):
        NgramModel.train(TEXT, 0)


# Learning


@pytest.mark.parametrize(
    ("lines", "min_count", "words", "text"),
    [
        (
            ["the  cat\tsat ", "", "cat the"],
            1,
            "the cat sat",
            "<s> the cat sat </s> <s> </s> <s> cat the </s>",
        ),
        (["a b a", "c a c"], 2, "a c", "<s> a <unk> a </s> <s> c a c </s>"),
        (["a <unk>", "<UNK> b"], 1, "a b", "<s> a <unk> </s> <s> <unk> b </s>"),
    ],
)
def test_sentences_stand_between_marks_and_words_are_numbered_as_they_come(lines, min_count, words, text):
    found, tokens = read_corpus(lines, min_count)
    assert found == ["<unk>", "<s>", "</s>", *words.split()]
    assert " ".join(found[token] for token in tokens) == text


def test_a_file_and_its_lines_are_the_same_text(tmp_path):
    lines = ["ein Häuschen", "", "zwei\u00a0drei vier\u2028fünf", "x"]
    plain, packed = tmp_path / "text", tmp_path / "packed"
    plain.write_bytes("\r\n".join(lines).encode("utf-8-sig"))
    packed.write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))
    words, tokens = read_corpus(lines)
    assert "zwei\u00a0drei" in words  # only ASCII white space divides words, as in KenLM
    for source in (plain, str(plain), packed, iter(lines)):
        found, numbers = read_corpus(source)
        assert found == words
        assert numbers.tolist() == tokens.tolist()


@pytest.mark.parametrize(
    ("lines", "where", "problem"),
    [
        ([b"a b", b"c", b"a <s> b"], 3, "contains the word <s> or </s>"),
        ([b"a </s>"], 1, "contains the word <s> or </s>"),
        ([b"a b", b"c \xff d"], 2, "is not text in UTF-8"),
        ([], None, "contains no sentences"),
    ],
)
def test_lines_that_cannot_be_learned_from_are_named(lines, where, problem, tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(DataError, match=problem) as caught:
        read_corpus(path)
    assert caught.value.where == (str(path) if where is None else f"{path}:{where}")


def test_sentences_that_are_not_texts_are_named():
    with pytest.raises(UsageError, match="sentences:2: expected a text, got list"):
        read_corpus(["a", ["b"]])
    with pytest.raises(DataError, match="sentences:2: contains a lone surrogate"):
        read_corpus(["a", "\ud800"])
    with pytest.raises(DataError, match="sentences: contains no sentences"):
        read_corpus([])


# The text and the model that lmplz -o 2 made of it, as printed in kenlm issue 405 (log10).
TEXT_405 = [
    "I went to",
    "I go to",
    "You went to",
    "You go to",
    "Joe went to",
    "Joe go to",
    "Anna went ski",
    "Anna went ski",
]
UNIGRAMS_405 = {
    "<unk>": (-1.30103, 0),
    "<s>": (-math.inf, -0.059768215),
    "</s>": (-1.1249387, 0),
    "I": (-1.0579919, -0.5228788),
    "went": (-0.6726411, -0.022929981),
    "to": (-1.1249387, -0.30103),
    "go": (-0.82390875, 0),
    "You": (-1.0579919, -0.5228788),
    "Joe": (-1.0579919, -0.5228788),
    "Anna": (-1.0579919, -0.059768215),
    "ski": (-1.0579919, -0.059768215),
}
BIGRAMS_405 = {
    "to </s>": -0.26962152,
    "ski </s>": -0.7123581,
    "<s> I": -0.9649993,
    "I went": -0.383262,
    "You went": -0.383262,
    "Joe went": -0.383262,
}


def test_the_model_of_a_small_text_is_the_one_lmplz_makes(monkeypatch):
    # lmplz counts "ski", the last word, as 2 instead of 1 (same issue): t = 4, 3, 1, 1, hence these discounts
    taken = iter([lambda counts: np.array([0, 0.4, 1.6, 1.4]), discounts])
    monkeypatch.setattr(ngram, "discounts", lambda counts: next(taken)(counts))
    model = NgramModel.train(TEXT_405, 2)
    words, (unigrams, bigrams) = model.words, model.levels
    assert words == list(UNIGRAMS_405)
    found = np.stack([unigrams.logprobs, unigrams.backoffs], axis=1) / math.log(10)
    np.testing.assert_allclose(found, list(UNIGRAMS_405.values()), rtol=0, atol=2e-7)
    logprobs = {
        f"{words[key // len(words)]} {words[key % len(words)]}": logprob / math.log(10)
        for key, logprob in zip(bigrams.keys, bigrams.logprobs, strict=True)
    }
    assert len(logprobs) == 16
    assert {gram: logprobs[gram] for gram in BIGRAMS_405} == pytest.approx(BIGRAMS_405, abs=2e-7)


@pytest.mark.parametrize(
    "counts",
    [
        [0],
        [1, 1, 1],
        [1, 1, 2, 4],  # no 3
        [2, 2, 3, 4],  # no 1
        [1, 2, 3, 3, 3, 3, 3],  # D_2 = 2 - 3 * 1/3 * 5 < 0
        [1, 1, 2, 3, 4, 4, 4, 4],  # D_3 = 3 - 4 * 1/2 * 4 < 0
    ],
)
def test_discounts_that_cannot_be_estimated_are_those_of_lmplz_discount_fallback(counts):
    assert discounts(np.array(counts)).tolist() == [0, 0.5, 1, 1.5]


class Naive:
    """The equations at the top of ngram.py, with dictionaries of tuples of words."""

    def __init__(self, lines: list[str], order: int) -> None:
        self.order = order
        lengths = range(1, order + 1)
        sentences = [["<s>", *line.split(), "</s>"] for line in lines]
        c = [Counter(tuple(s[i : i + n]) for s in sentences for i in range(len(s) - n + 1)) for n in lengths]
        del c[0][("<s>",)]
        self.a = []
        for n in lengths:
            kept = {u: count for u, count in c[n - 1].items() if n == order or u[0] == "<s>"}
            before = Counter(v[1:] for v in c[n]) if n < order else Counter()
            self.a.append({u: kept.get(u, before[u]) for u in c[n - 1]})
        self.d = [self.discounts(a) for a in self.a]
        self.vocabulary = {"<unk>", "</s>", *(word for s in sentences for word in s[1:])}

    @staticmethod
    def discounts(a):
        t = [sum(count == k for count in a.values()) for k in range(5)]
        try:
            d = [k - (k + 1) * t[1] * t[k + 1] / ((t[1] + 2 * t[2]) * t[k]) for k in (1, 2, 3)]
        except ZeroDivisionError:
            return (0, 0.5, 1, 1.5)
        return (0, *d) if all(0 < d[k - 1] <= k for k in (1, 2, 3)) and t[3] else (0, 0.5, 1, 1.5)

    def p(self, w, u):
        """P(w | u) with the last order - 1 words of u."""
        u = tuple(u)[max(0, len(u) - self.order + 1) :]
        a, d = self.a[len(u)], self.d[len(u)]
        after = {v[-1]: count for v, count in a.items() if v[:-1] == u}
        lower = self.p(w, u[1:]) if u else 1 / len(self.vocabulary)
        if not after:
            return lower
        own = after.get(w, 0)
        taken = sum(d[min(count, 3)] for count in after.values())
        return (own - d[min(own, 3)]) / sum(after.values()) + taken / sum(after.values()) * lower


def sample(seed: int, words: int, lines: int) -> list[str]:
    """Sentences of 0 to 8 words, some words far more frequent than others."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, words + 1)
    return [
        " ".join(f"w{word}" for word in rng.choice(words, size=rng.integers(9), p=shares / shares.sum()))
        for _ in range(lines)
    ]


def histories(words: list[str], contexts: list[tuple[str, ...]], order: int) -> np.ndarray:
    """The contexts, of up to order - 1 words, as rows of word numbers."""
    rows = [[-1] * (order - 1 - len(u)) + [words.index(word) for word in u] for u in contexts]
    return np.array(rows, np.int64).reshape(len(rows), order - 1)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize(("size", "lines"), [(4, 6), (12, 40)])
def test_probabilities_are_those_of_the_equations(order, size, lines):
    text = [*sample(order, size, lines), ""]
    naive = Naive(text, order)
    model = NgramModel.train(text, order)
    words = model.words
    rng = np.random.default_rng(7)
    sentences = [["<s>", *line.split(), "</s>"] for line in text]
    seen = {tuple(s[i : i + order - 1]) for s in sentences for i in range(len(s))}
    drawn = {tuple(rng.choice(words, size=rng.integers(order)).tolist()) for _ in range(30)}
    contexts = sorted(seen)[:30] + sorted(drawn)
    expected = [[0.0 if w == "<s>" else naive.p(w, u) for w in words] for u in contexts]
    found = np.exp(model.step(histories(words, contexts, order), None).log_probs)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("order", [1, 3])
def test_probabilities_sum_to_one_after_every_context_seen_or_not(order):
    model = NgramModel.train(sample(order, 8, 60), order)
    words = model.words
    lengths = range(min(order, 4))
    contexts = [u for n in lengths for u in itertools.product(words, repeat=n)]  # <s>, </s> and <unk> too
    rows = model._log_probs(histories(words, contexts, order))  # before they are divided by their sum
    np.testing.assert_allclose(np.exp(rows).sum(axis=1), 1, rtol=0, atol=1e-13)
    assert (rows[:, START] == -np.inf).all()
    assert np.isfinite(np.delete(rows, START, axis=1)).all()
