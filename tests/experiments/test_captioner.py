"""A tiny Show and Tell learns to name what its features say; what is refused."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'rangevote[models]'")

from experiments.training.captioner import as_written, train_captioner

from rangevote.decoding.run import search
from rangevote.errors import DataError, UsageError
from tests.experiments.tasks import CAPTIONER, animals


def test_a_captioner_learns_to_tell_what_is_there(tmp_path):
    features, captions = animals(60, seed=1)
    model = train_captioner(*animals(200), features, captions, CAPTIONER, tmp_path, quiet=True)
    found = search(model, list(features), "beam:2")
    for two, texts in zip(found, as_written(captions, plain=True), strict=True):
        assert {one.text for one in two} == set(texts)
        assert sum(np.exp(one.logprob) for one in two) > 0.7  # of all captions that there are


def test_captions_are_learned_in_lower_case_without_punctuation_or_as_they_are():
    assert as_written([["A dog , again !"]], plain=True) == [["a dog again"]]
    assert as_written([["A dog , again !"]], plain=False) == [["A dog , again !"]]


def test_what_is_no_captions_is_refused(tmp_path):
    features, captions = animals(4)
    good = (features, captions)

    def train(features, captions, dev=good):
        train_captioner(features, captions, *dev, CAPTIONER, tmp_path)

    with pytest.raises(DataError, match=r"features: features of shape \(4, 9\) for the captions of 3 images"):
        train(features, captions[:3])
    with pytest.raises(DataError, match="dev_features: a feature is infinite or no number"):
        train(features, captions, (features * np.nan, captions))
    with pytest.raises(UsageError, match=r"captions\[0\] must be a list of texts, got 'A "):
        train(features, [texts[0] for texts in captions])
    with pytest.raises(DataError, match="there are no captions"):
        train(features, [[]] * 4)
