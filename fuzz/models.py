"""What models are made of: ARPA files, texts, vocabularies, and the folders of trained ones."""

from __future__ import annotations

import shutil
from functools import lru_cache
from pathlib import Path

import numpy as np
from experiments.vocabulary import Words, read_vocabulary, write_vocabulary

from fuzz import places
from rangevote.errors import RangevoteError
from rangevote.models.arpa import read_arpa, write_arpa
from rangevote.models.ngram import END, START, read_corpus


def arpa(data: bytes) -> None:
    """A model of n-grams: what it says are probabilities; written and read again it is the same model."""
    words, table = read_arpa(places.file("model.arpa", data))
    for level in table.levels:
        assert not np.isnan(level.logprobs).any(), "NaN"
        assert np.isfinite(level.backoffs).all(), "a back-off without end"
    first, second = places.folder() / "first.arpa", places.folder() / "second.arpa"
    write_arpa(first, words, table)
    again, same = read_arpa(first)
    assert again == words
    assert [level.keys.tolist() for level in same.levels] == [level.keys.tolist() for level in table.levels]
    write_arpa(second, again, same)
    assert _alike(first, second), "the written file is read as another model"


def _alike(first: Path, second: Path) -> bool:
    """The same but for the ninth digit, which may be rounded twice."""
    for one, two in zip(*(path.read_bytes().split() for path in (first, second)), strict=True):
        if one != two and not np.isclose(float(one), float(two), rtol=1e-8):
            return False
    return True


def corpus(data: bytes) -> None:
    """Sentences as numbers."""
    path = places.file("corpus.txt", data)
    whole = read_corpus(path)
    assert whole.tokens.min() >= 0
    assert whole.tokens.max() < len(whole.words)
    assert (whole.tokens == START).sum() == (whole.tokens == END).sum()
    assert len(set(whole.words)) == len(whole.words)
    rare = read_corpus(path, min_count=2)
    assert len(rare.tokens) == len(whole.tokens)


def vocabulary(data: bytes) -> None:
    """Words or parts of words."""
    found = read_vocabulary(places.file("vocabulary.json", data))
    path = places.folder() / "again.json"
    write_vocabulary(found, path)
    assert read_vocabulary(path).to_json() == found.to_json()
    if isinstance(found, Words):
        assert all(0 <= token < len(found) for token in found.encode("a dog runs"))


@lru_cache(maxsize=1)
def _trained() -> Path:
    """The folder of a model that was trained here, or might have been."""
    import torch
    from experiments.checkpoint import save_checkpoint
    from experiments.show_and_tell import ShowAndTell, ShowAndTellOptions

    torch.manual_seed(0)
    made = places.folder() / "model"
    save_checkpoint(ShowAndTell(ShowAndTellOptions(3, 4, 5), Words(["a", "dog"])), made)
    return made


def card(data: bytes) -> None:
    """`rangevote.json`, with weights and words that may not fit it."""
    from experiments.checkpoint import load_checkpoint

    (_trained() / "rangevote.json").write_bytes(data)
    load_checkpoint(_trained())


def weights(data: bytes) -> None:
    """`model.safetensors`."""
    from experiments.checkpoint import load_checkpoint, load_weights, read_tensors

    path = places.file("model.safetensors", data)
    tensors, _ = read_tensors(path)
    kept = _trained() / "model.safetensors"
    if not (_trained() / "whole.safetensors").exists():
        shutil.copy(kept, _trained() / "whole.safetensors")
    shutil.copy(_trained() / "whole.safetensors", kept)
    model = load_checkpoint(_trained())
    try:
        load_weights(model.net, tensors, path)
    except RangevoteError:
        return
    assert all(bool(tensor.isfinite().all()) for tensor in model.net.state_dict().values())
