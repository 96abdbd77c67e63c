"""bertscore by the package bert-score itself, where it is installed, with a tiny BERT of random weights."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import rangevote as rv
from rangevote.errors import SetupError
from rangevote.similarity.neural import Bertscore
from tests.similarity.samples import columns
from tests.similarity.test_neural import Scorer

bert_score = pytest.importorskip("bert_score", reason="bert-score is not installed")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEXTS = ["the dog runs in the house", "the dog runs", "a cat sleeps under a tree", "the man", "a man sits"]


@pytest.fixture(scope="module", params=["bert", "roberta"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with 20 positions, in a folder that does not tell how long a text may be."""
    from tests.models.huggingface.tiny import DECODER, make_tokenizer

    kinds = {
        "bert": (transformers.BertConfig, transformers.BertModel, 20),
        "roberta": (transformers.RobertaConfig, transformers.RobertaModel, 21),
    }
    config, network, positions = kinds[request.param]
    torch.manual_seed(1)
    place = tmp_path_factory.mktemp("models") / request.param
    network(config(**{**DECODER, "max_position_embeddings": positions})).save_pretrained(place)
    make_tokenizer().save_pretrained(place)
    return place


def test_grades_are_the_packages_own_f1(folder):
    grades = Bertscore(str(folder), layer=1).matrix(columns(TEXTS), columns(TEXTS, "voters"))
    network = transformers.AutoModel.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    found = [vectors(text, network, tokenizer) for text in TEXTS]
    expected = [[f1(candidate, voter) for candidate in found] for voter in found]
    np.testing.assert_allclose(grades, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.diag(grades), 1, rtol=0, atol=1e-6)
    assert np.ptp(grades) > 0.1  # the model tells texts apart


def vectors(text: str, network, tokenizer) -> np.ndarray:
    """Unit vectors of a text's tokens after the first layer, (tokens, size)."""
    with torch.no_grad():
        found = network(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
    states = found.hidden_states[1][0].double().numpy()
    return states / np.linalg.norm(states, axis=1, keepdims=True)


def f1(candidate: np.ndarray, voter: np.ndarray) -> float:
    """BERTScore by its definition (Zhang et al. 2020): each token has its best match."""
    cosines = candidate @ voter.T
    precision, recall = float(cosines.max(axis=1).mean()), float(cosines.max(axis=0).mean())
    return 2 * precision * recall / (precision + recall)


def test_a_text_beyond_the_models_length_is_cut_and_not_an_error(folder):
    long = " ".join(["dog", "cat"] * 30)
    grades = Bertscore(str(folder), layer=2).matrix(columns([long]), columns([long + " runs"], "voters"))
    np.testing.assert_allclose(grades, 1, rtol=0, atol=1e-6)


def test_nothing_is_written_to_the_terminal(folder, capfd):
    rv.elect(TEXTS, similarity=f"bertscore:{folder}@2")
    assert capfd.readouterr() == ("", "")


def test_a_layer_that_the_model_does_not_have_is_told(folder):
    with pytest.raises(SetupError, match=r"num_layers should be between 0 and 2"):
        rv.elect(TEXTS, similarity=f"bertscore:{folder}@9")


@pytest.mark.parametrize("call", ["__init__", "score"])
def test_the_stand_in_of_the_other_tests_has_the_packages_own_arguments(call):
    own = inspect.signature(getattr(bert_score.BERTScorer, call)).parameters
    assert list(inspect.signature(getattr(Scorer, call)).parameters) == list(own)
