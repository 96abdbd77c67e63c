"""comet, bertscore and bleurt by the packages themselves, where they are installed, with tiny models."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rangevote as rv
from rangevote.errors import SetupError
from rangevote.similarity.neural import Bertscore, Bleurt, Comet, quiet_comet
from tests.similarity.samples import columns

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

#: Of what the packages and Lightning say while a model is made; what we ask of them is silent by itself.
pytestmark = pytest.mark.filterwarnings("default")
TEXTS = ["the dog runs in the house", "the dog runs", "a cat sleeps under a tree", "the man", "a man sits"]
SOURCE = "der Hund rennt"
WORDS = ["<s>", "<pad>", "</s>", "<unk>", "the", "a", "dog", "cat", "runs", "der", "Hund", "rennt", "die"]
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.fixture(scope="module")
def comet() -> Any:
    with quiet_comet():
        return pytest.importorskip("comet", reason="unbabel-comet is not installed", exc_type=ImportError)


@pytest.fixture(scope="module")
def comet_folder(comet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A regression model of COMET's with its checkpoint, as the hub has them."""
    import pytorch_lightning
    import yaml
    from comet.models import RegressionMetric
    from tokenizers import Tokenizer, models, pre_tokenizers

    place = tmp_path_factory.mktemp("comet")
    encoder = place / "encoder"
    encoder.mkdir()
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save(str(encoder / "words.json"))
    transformers.XLMRobertaTokenizerFast(tokenizer_file=str(encoder / "words.json")).save_pretrained(encoder)
    transformers.XLMRobertaConfig(
        vocab_size=len(WORDS) + 1,
        max_position_embeddings=66,
        type_vocab_size=1,
        initializer_range=0.5,
        **SIZES,
    ).save_pretrained(encoder)
    torch.manual_seed(1)
    model = RegressionMetric(
        pretrained_model=str(encoder),
        hidden_sizes=[8],
        final_activation="Sigmoid",
        load_pretrained_weights=False,
    )
    trainer = pytorch_lightning.Trainer(logger=False, enable_checkpointing=False, accelerator="cpu")
    trainer.strategy.connect(model)
    (place / "checkpoints").mkdir()
    trainer.save_checkpoint(place / "checkpoints" / "model.ckpt", weights_only=True)
    (place / "hparams.yaml").write_text(
        yaml.safe_dump({**model.hparams, "class_identifier": "regression_metric"})
    )
    return place


def test_grades_are_comets_own_scores_with_the_voter_as_reference(comet, comet_folder):
    grades = Comet(str(comet_folder), source=SOURCE).matrix(columns(TEXTS), columns(TEXTS, "voters"))
    model = comet.load_from_checkpoint(str(comet_folder / "checkpoints" / "model.ckpt"))
    for row, voter in enumerate(TEXTS):
        for column, candidate in enumerate(TEXTS):
            asked = [{"src": SOURCE, "mt": candidate, "ref": voter}]
            [alone] = model.predict(asked, batch_size=1, gpus=0, progress_bar=False).scores
            assert grades[row, column] == pytest.approx(alone, abs=1e-5)
    assert np.ptp(grades) > 1e-3  # the model tells texts apart
    assert np.abs(grades - grades.T).max() > 1e-4  # and who is the reference


def test_comet_writes_nothing_and_warns_of_nothing(comet_folder, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rv.elect(TEXTS, similarity=Comet(str(comet_folder), source=SOURCE))
    assert capfd.readouterr() == ("", "")


@pytest.fixture(scope="module", params=["bert", "roberta"])
def bert_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with 20 positions, in a folder that does not tell how long a text may be."""
    from tests.models.huggingface.tiny import DECODER, make_tokenizer

    pytest.importorskip("bert_score", reason="bert-score is not installed")
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


def test_grades_are_bertscores_own_f1(bert_folder):
    grades = Bertscore(str(bert_folder), layer=1).matrix(columns(TEXTS), columns(TEXTS, "voters"))
    network = transformers.AutoModel.from_pretrained(bert_folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert_folder)
    texts = [vectors(text, network, tokenizer) for text in TEXTS]
    expected = [[f1(candidate, voter) for candidate in texts] for voter in texts]
    np.testing.assert_allclose(grades, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.diag(grades), 1, rtol=0, atol=1e-6)
    assert np.ptp(grades) > 0.1  # the model tells texts apart


def vectors(text: str, network, tokenizer) -> np.ndarray:
    """Unit vectors of a text's tokens after the first layer, (tokens, size)."""
    with torch.no_grad():
        output = network(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
    states = output.hidden_states[1][0].double().numpy()
    return states / np.linalg.norm(states, axis=1, keepdims=True)


def f1(candidate: np.ndarray, voter: np.ndarray) -> float:
    """BERTScore by its definition (Zhang et al. 2020): each token has its best match."""
    cosines = candidate @ voter.T
    precision, recall = float(cosines.max(axis=1).mean()), float(cosines.max(axis=0).mean())
    return 2 * precision * recall / (precision + recall)


def test_a_text_beyond_the_models_length_is_cut_and_not_an_error(bert_folder):
    long = " ".join(["dog", "cat"] * 30)
    grades = Bertscore(str(bert_folder), layer=2).matrix(columns([long]), columns([long + " runs"], "voters"))
    np.testing.assert_allclose(grades, 1, rtol=0, atol=1e-6)


def test_a_layer_that_the_model_does_not_have_is_reported(bert_folder):
    with pytest.raises(SetupError, match=r"num_layers should be between 0 and 2"):
        rv.elect(TEXTS, similarity=f"bertscore:{bert_folder}@9")


def test_bertscore_writes_nothing(bert_folder, capfd):
    rv.elect(TEXTS, similarity=f"bertscore:{bert_folder}@2")
    assert capfd.readouterr() == ("", "")


def test_grades_are_bleurts_own_scores(tmp_path):
    library = pytest.importorskip("bleurt_pytorch", reason="pip install bleurt-pytorch, transformers below 5")
    torch.manual_seed(1)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "dog", "a"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"))
    tokenizer.save_pretrained(tmp_path)
    config = library.BleurtConfig(vocab_size=len(words), num_labels=1, **SIZES)
    model = library.BleurtForSequenceClassification(config).eval()
    model.save_pretrained(tmp_path)
    voters, candidates = ["the cat sat", "a dog", ""], ["the dog sat", "a cat"]
    grades = Bleurt(str(tmp_path)).matrix(columns(candidates), columns(voters, "voters"))
    for v, voter in enumerate(voters):
        for c, candidate in enumerate(candidates):
            with torch.no_grad():
                own = model(**tokenizer(voter, candidate, return_tensors="pt")).logits.item()
            assert grades[v, c] == (pytest.approx(own, abs=1e-6) if voter else 0)
