"""comet by the package unbabel-comet itself, where it is installed, with a tiny model of random weights."""

from __future__ import annotations

import importlib.util
import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest

import rangevote as rv
from rangevote.similarity.neural import Comet, quiet_comet
from tests.similarity.comet_stand_in import EncodingModel, JointModel, WordEncoder
from tests.similarity.samples import columns

if importlib.util.find_spec("comet") is None:
    pytest.skip("unbabel-comet is not installed", allow_module_level=True)
with quiet_comet():
    comet = pytest.importorskip("comet", reason="unbabel-comet cannot be imported", exc_type=ImportError)

#: Of what the package and Lightning say while the model is made; what we ask of them is silent by itself.
pytestmark = pytest.mark.filterwarnings("default")
TEXTS = ["the dog runs", "a dog runs in the house", "the cat", "the dog sleeps"]
SOURCE = "der Hund rennt"
WORDS = ["<s>", "<pad>", "</s>", "<unk>", "the", "a", "dog", "cat", "runs", "der", "Hund", "rennt", "die"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A regression model of COMET's with its checkpoint, as the hub has them."""
    import pytorch_lightning
    import torch
    import yaml
    from comet.models import RegressionMetric
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import XLMRobertaConfig, XLMRobertaTokenizerFast

    place = tmp_path_factory.mktemp("comet")
    encoder = place / "encoder"
    encoder.mkdir()
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save(str(encoder / "words.json"))
    XLMRobertaTokenizerFast(tokenizer_file=str(encoder / "words.json")).save_pretrained(encoder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    XLMRobertaConfig(
        vocab_size=len(WORDS) + 1,
        max_position_embeddings=66,
        type_vocab_size=1,
        initializer_range=0.5,
        **sizes,
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


def test_grades_are_the_packages_own_scores_with_the_voter_as_reference(folder):
    grades = Comet(str(folder), source=SOURCE).matrix(columns(TEXTS), columns(TEXTS, "voters"))
    model = comet.load_from_checkpoint(str(folder / "checkpoints" / "model.ckpt"))
    for row, voter in enumerate(TEXTS):
        for column, candidate in enumerate(TEXTS):
            asked = [{"src": SOURCE, "mt": candidate, "ref": voter}]
            [alone] = model.predict(asked, batch_size=1, gpus=0, progress_bar=False).scores
            assert grades[row, column] == pytest.approx(alone, abs=1e-5)
    assert np.ptp(grades) > 1e-3  # the model tells texts apart
    assert np.abs(grades - grades.T).max() > 1e-4  # and who is the reference


def test_nothing_is_written_and_nothing_warned_of(folder, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rv.elect(TEXTS, similarity=Comet(str(folder), source=SOURCE))
    assert capfd.readouterr() == ("", "")


def test_the_stand_in_of_the_other_tests_has_the_packages_own_arguments():
    regression, encoder = comet.models.RegressionMetric, comet.encoders.base.Encoder
    for own, stand_in in [
        (comet.models.CometModel.predict, JointModel.predict),
        (regression.get_sentence_embedding, EncodingModel.get_sentence_embedding),
        (regression.estimate, EncodingModel.estimate),
        (regression.requires_references, EncodingModel.requires_references),
        (encoder.prepare_sample, WordEncoder.prepare_sample),
    ]:
        names = list(inspect.signature(own).parameters)
        assert list(inspect.signature(stand_in).parameters) == names
    loading = inspect.signature(comet.load_from_checkpoint).parameters
    assert list(loading) == ["checkpoint_path", "reload_hparams", "strict", "local_files_only"]
    fetching = inspect.signature(comet.download_model).parameters
    assert list(fetching) == ["model", "saving_directory", "local_files_only"]
