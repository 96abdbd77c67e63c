"""Features of images from a file, and what is said where they cannot be had."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'rangevote[models]'")

from experiments.inception import Inception, StoredFeatures

from rangevote.errors import DataError, MissingExtra, SetupError


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "features.npz"
    np.savez(
        path, names=np.array(["one.jpg", "two.jpg"]), features=np.arange(6, dtype=np.float16).reshape(2, 3)
    )
    return StoredFeatures(path)


def test_features_are_found_by_the_name_of_the_file_whatever_its_folder(stored):
    found = stored(["images/two.jpg", "one.jpg", "/elsewhere/two.jpg"])
    assert found.dtype == np.float32
    assert found.tolist() == [[3, 4, 5], [0, 1, 2], [3, 4, 5]]


def test_an_image_without_features_is_named_with_the_nearest(stored):
    with pytest.raises(
        DataError, match=r"no features of 'tow\.jpg' in .*features\.npz\. Did you mean 'two\.jpg'"
    ):
        stored(["tow.jpg"])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SetupError, match=r"cannot read the features .*none\.npz: No such file"):
        StoredFeatures(tmp_path / "none.npz")


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("no features")
    with pytest.raises(SetupError, match=r"text\.npz is no file of features"):
        StoredFeatures(tmp_path / "text.npz")
    np.save(tmp_path / "array.npy", np.zeros((2, 3)))
    with pytest.raises(SetupError, match=r"array\.npy is no file of features"):
        StoredFeatures(tmp_path / "array.npy")
    np.savez(tmp_path / "other.npz", names=np.array(["a"]))
    with pytest.raises(SetupError, match=r"must be an \.npz file with the arrays 'names' and 'features'"):
        StoredFeatures(tmp_path / "other.npz")
    np.savez(tmp_path / "uneven.npz", names=np.array(["a"]), features=np.zeros((2, 3)))
    with pytest.raises(SetupError, match=r"1 names, but features of shape \(2, 3\)"):
        StoredFeatures(tmp_path / "uneven.npz")


def test_a_file_with_pickled_objects_is_refused(tmp_path):
    names = np.array(["a", None], dtype=object)
    np.savez(tmp_path / "pickled.npz", names=names, features=np.zeros((2, 3)))
    with pytest.raises(SetupError, match="is no file of features"):
        StoredFeatures(tmp_path / "pickled.npz")


@pytest.mark.skipif(importlib.util.find_spec("torchvision") is not None, reason="torchvision is installed")
def test_without_torchvision_it_is_said_what_to_install():
    with pytest.raises(MissingExtra, match=r"need torchvision, .* pip install torchvision"):
        Inception()
