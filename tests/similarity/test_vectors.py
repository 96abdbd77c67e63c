"""states and embedding: cosines of vectors, with an encoder small enough to check by eye.

With a real encoder: test_embedding_real.py.
"""

from __future__ import annotations

import gc
import math
import sys
import threading

import numpy as np
import pytest

import rangevote as rv
from rangevote.errors import MissingExtra, SetupError
from rangevote.hypothesis import Hypothesis
from rangevote.similarity.vectors import Embedding, folder_of
from tests.similarity.samples import columns, weights_for


def with_states(vectors, role="candidates"):
    return columns([Hypothesis(text=str(i), state=tuple(v)) for i, v in enumerate(vectors)], role)


def cosine(u, v) -> float:
    dot = math.fsum(a * b for a, b in zip(u, v, strict=True))
    return dot / (math.hypot(*u) * math.hypot(*v))


@pytest.mark.parametrize("dimension", [1, 7, 512])
def test_grades_are_cosines(dimension):
    rng = np.random.default_rng(dimension)
    candidates, voters = rng.normal(size=(6, dimension)), rng.normal(size=(9, dimension)) * 1e3
    expected = [[cosine(v, c) for c in candidates] for v in voters]
    measure, standing, electors = rv.States(), with_states(candidates), with_states(voters)
    np.testing.assert_allclose(measure.matrix(standing, electors), expected, rtol=0, atol=1e-13)
    weights = weights_for(rng, 9)
    np.testing.assert_allclose(
        measure.tally(standing, electors, weights), weights @ expected, rtol=0, atol=1e-12
    )


def test_a_zero_vector_is_warned_of_and_its_cosine_is_0():
    hypotheses = [Hypothesis(text="a", state=(0.0, 0.0)), Hypothesis(text="b", state=(1.0, 0.0))]
    with pytest.warns(rv.RangevoteWarning, match=r"candidates\[0\]\.state is a zero vector.*counts as 0"):
        result = rv.elect(hypotheses, similarity="states")
    assert result.scores.tolist() == [0.0, 0.5]


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ([None, None], r"^candidates: have no state vectors, which the measure 'states' needs"),
        ([(1.0, 2.0), None], r"^candidates\[1\]\.state: is missing"),
        ([(1.0, 2.0), (1.0,)], r"^candidates\[1\]\.state: has 1 numbers, others have 2"),
        ([(1.0, 2.0), (1.0, float("nan"))], r"^candidates\[1\]\.state\[1\]: nan is not a finite number"),
        ([(float("inf"), 2.0), (1.0, 1.0)], r"^candidates\[0\]\.state\[0\]: inf is not a finite number"),
        ([(1.0, 2.0), ("x", 2.0)], r"^candidates\[\]\.state: must hold numbers only"),
    ],
)
def test_states_that_cannot_be_compared_are_named(states, message):
    hypotheses = [Hypothesis(text="t", state=state) for state in states]
    with pytest.raises(rv.DataError, match=message):
        rv.elect(hypotheses, similarity="states")


def test_voters_need_states_of_the_candidates_dimension():
    candidates = [Hypothesis(text="c", state=(1.0, 2.0))]
    with pytest.raises(rv.DataError, match=r"voters\[0\]\.state: has 3 numbers, others have 2"):
        rv.elect(candidates, voters=[Hypothesis(text="v", state=(1.0, 2.0, 3.0))], similarity="states")
    with pytest.raises(rv.DataError, match=r"voters: have no state vectors"):
        rv.elect(candidates, voters=["v"], similarity="states")


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
    standing = columns(["dog", "cat", "bank", "not"])
    expected = [[1, 0.8, 0, -1], [0.8, 1, 0.6, -0.8], [0, 0.6, 1, 0], [-1, -0.8, 0, 1]]
    np.testing.assert_allclose(measure.matrix(standing, standing), expected, rtol=0, atol=1e-7)


def test_a_text_is_encoded_once_an_election_however_often_it_comes():
    measure, words = encoder()
    rv.elect(["dog", "cat", "dog"], voters=["dog", "bank", "bank", "cat"], similarity=measure)
    assert words.calls == [["dog", "cat"], ["bank"]]


@pytest.mark.parametrize("empty", ["", "  ", "\u3000\t\u2028"])
def test_the_empty_text_abstains_and_is_not_encoded(empty):
    measure, words = encoder()
    standing = columns([empty, "dog"])
    np.testing.assert_allclose(measure.matrix(standing, standing), [[0, 0], [0, 1]], atol=1e-15)
    assert words.calls == [["dog"]]


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
    ballots = [["dog", "cat"]] * 20
    results = list(rv.elect_many(ballots, similarity=Embedding(Jealous()), threads=2))
    assert len(results) == 20


def test_one_model_is_loaded_for_all_spellings_of_a_folder_and_forgotten_with_the_last(tmp_path, monkeypatch):
    folder, made = tmp_path / "model", []
    folder.mkdir()
    (folder / "modules.json").touch()
    (tmp_path / "link").symlink_to(folder)

    def load(model, measure):
        made.append(model)
        return Words()

    monkeypatch.setattr("rangevote.similarity.vectors.load_encoder", load)
    for spelling in (folder, f"{folder}/", tmp_path / "link", tmp_path / "model" / ".." / "model"):
        one = Embedding(spelling)
        assert rv.elect(["dog", "cat"], similarity=one)
        kept = one
    assert len(made) == 1
    del one, kept
    gc.collect()
    rv.elect(["dog"], similarity=Embedding(folder))
    assert len(made) == 2


@pytest.mark.parametrize("vectors", [[[np.nan, 1.0]], [[1.0], [2.0]], [1.0]], ids=["nan", "two", "flat"])
def test_a_model_that_gives_no_vectors_is_refused(vectors):
    class Odd:
        def encode(self, inputs, **options):
            return np.array(vectors)

    with pytest.raises(SetupError, match=r"embedding:Odd: the model must give one vector of finite numbers"):
        rv.elect(["dog"], similarity=Embedding(Odd()))


def test_without_the_package_the_install_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(
        MissingExtra, match=r"similarity 'embedding:x' needs .*pip install \"rangevote\[embedding\]\""
    ):
        rv.elect(["dog"], similarity=Embedding("x"))


def test_a_folder_is_taken_as_it_is_and_one_without_a_model_refused(tmp_path):
    with pytest.raises(SetupError, match=r"holds no model: there is no modules\.json in it"):
        folder_of(str(tmp_path))
    (tmp_path / "modules.json").touch()
    assert folder_of(str(tmp_path)) == tmp_path


@pytest.mark.parametrize("name", ["./none", "~/none", "/none/here", "a/b/c", "a\\b"])
def test_a_path_that_is_not_there_is_no_name(name):
    with pytest.raises(SetupError, match=r"there is no folder .* to load a model from"):
        folder_of(name)


def test_a_package_is_looked_into_without_being_run(tmp_path, monkeypatch):
    package = tmp_path / "carries_a_model"
    (package / "inside").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemError('imported')")
    (package / "inside" / "modules.json").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert folder_of("carries-a-model") == package / "inside"
    assert folder_of("carries-another") is None
