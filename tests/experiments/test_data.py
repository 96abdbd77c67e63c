"""Data sets as items, and the features of images."""

from __future__ import annotations

import json

import numpy as np
import pytest
from experiments.data import StoredFeatures, prepare_captions, prepare_translation, read_items
from experiments.prepare_mscoco import prepare

from rangevote.errors import DataError
from tests.experiments.tiny_data import SIZES, make_captions, make_translation


def test_captions_are_plain_words_beside_their_features(tmp_path):
    make_captions(tmp_path)
    folder, output = tmp_path / "tiny-captions", tmp_path / "test.jsonl.gz"
    given = {"captions": folder / "captions.json", "features": folder / "features_test.npz"}
    prepare_captions(output, split="test", **given)
    found = read_items(output)
    assert len(found) == SIZES["test"]
    assert all(text == text.lower() and "." not in text for texts in found.references for text in texts)
    with np.load(given["features"]) as stored:
        assert np.array_equal(found.features, stored["features"])
    assert np.array_equal(found.inputs[3], found.features[3])
    assert len(found.first(4).inputs) == 4
    assert len(found.first(0)) == len(found)
    with pytest.raises(DataError, match="no images of the split 'validation'"):
        prepare_captions(output, split="validation", **given)


def test_sentences_are_paired_line_by_line(tmp_path):
    make_translation(tmp_path)
    folder, output = tmp_path / "tiny-translation", tmp_path / "dev.jsonl.gz"
    prepare_translation(output, split="dev", source=folder / "dev.en.gz", target=folder / "dev.de.gz")
    found = read_items(output)
    assert found.inputs == found.sources
    assert all(source.startswith("A ") and target.startswith("Ein ") for source, target in found.pairs)
    with pytest.raises(DataError, match=r"dev.en.gz: 8 lines but 10 in test.de.gz"):
        prepare_translation(output, split="x", source=folder / "dev.en.gz", target=folder / "test.de.gz")


def test_mscoco_becomes_the_files_that_the_captions_experiment_reads(tmp_path):
    (tmp_path / "annotations").mkdir()
    for part, size in (("train", 5), ("val", 3)):
        images = [{"id": 10 - i, "file_name": f"{part}{10 - i}.jpg"} for i in range(size)]
        notes = [{"id": i, "image_id": 10 - i % size, "caption": f"A  dog {i}\n"} for i in range(2 * size)]
        found = {"images": images, "annotations": notes}
        (tmp_path / "annotations" / f"captions_{part}2014.json").write_text(json.dumps(found))
    seen = []

    def read_features(paths):
        seen.extend(path.relative_to(tmp_path).as_posix() for path in paths)
        return np.ones((len(paths), 4))

    prepare(tmp_path, tmp_path / "out", read_features, held_out=2)
    assert seen[0] == "train2014/train6.jpg"
    assert seen[-1] == "val2014/val10.jpg"
    for split, size in (("train", 3), ("dev", 2), ("test", 3)):
        output = tmp_path / f"{split}.jsonl.gz"
        features = tmp_path / "out" / f"inception_v3_pool_{split}.npz"
        prepare_captions(output, split=split, captions=tmp_path / "out" / "captions.json", features=features)
        assert len(read_items(output)) == size
    assert read_items(tmp_path / "test.jsonl.gz").references[0] == ["a dog 2", "a dog 5"]


def test_features_are_found_by_the_name_of_the_file(tmp_path):
    path, features = tmp_path / "features.npz", np.arange(6, dtype=np.float16).reshape(2, 3)
    np.savez(path, names=np.array(["one.jpg", "two.jpg"]), features=features)
    stored = StoredFeatures(path)
    assert stored(["two.jpg", "one.jpg", "two.jpg"]).tolist() == [[3, 4, 5], [0, 1, 2], [3, 4, 5]]
    assert stored(["one.jpg"]).dtype == np.float16
    with pytest.raises(DataError, match=r"'tow\.jpg' in .*features\.npz\. Did you mean 'two\.jpg'"):
        stored(["tow.jpg"])
