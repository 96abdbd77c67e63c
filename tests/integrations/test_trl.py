"""Preference pairs of `vote --to preferences` as TRL's own trainers read them, on a tiny model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rangevote.cli import run

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("trl", reason="make .venv/.tools installs it")
datasets = pytest.importorskip("datasets", reason="make .venv/.tools installs it")

BALLOT = {"source": "the dog", "candidates": ["the dog runs in house", "the dog runs", "a cat sleeps"]}


@pytest.fixture
def pairs(tmp_path: Path):
    """Eight pairs, made by the command and read as a dataset."""
    ballots, made = tmp_path / "ballots.jsonl", tmp_path / "pairs.jsonl"
    ballots.write_text("".join(json.dumps({"id": i, **BALLOT}) + "\n" for i in range(8)))
    assert run(["vote", str(ballots), "-s", "overlap_1", "--to", "preferences", "-o", str(made)]) == 0
    found = datasets.Dataset.from_json(str(made), cache_dir=str(tmp_path / "cache"))
    assert found[0]["rejected"] == "a cat sleeps"
    return found


def options(tmp_path: Path) -> dict[str, object]:
    return {
        "output_dir": str(tmp_path / "out"),
        "max_steps": 1,
        "per_device_train_batch_size": 2,
        "max_length": 32,
        "report_to": "none",
        "use_cpu": True,
        "bf16": False,
        "save_strategy": "no",
        "logging_steps": 1,
        "disable_tqdm": True,
    }


def test_direct_preference_optimisation_trains_on_the_pairs(pairs, tmp_path):
    from trl import DPOConfig, DPOTrainer

    from tests.models.huggingface.tiny import make, make_tokenizer

    make("llama").save_pretrained(tmp_path / "model")  # the reference model is loaded once more
    trainer = DPOTrainer(
        str(tmp_path / "model"),
        args=DPOConfig(**options(tmp_path)),
        train_dataset=pairs,
        processing_class=make_tokenizer(),
    )
    assert trainer.train().training_loss == pytest.approx(0.6931, abs=1e-3)  # log 2 before the first step


def test_a_reward_model_trains_on_the_pairs_and_their_margins(pairs, tmp_path):
    import transformers
    from trl import RewardConfig, RewardTrainer

    from tests.models.huggingface.tiny import DECODER, make_tokenizer

    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**DECODER, num_labels=1)
    model = transformers.LlamaForSequenceClassification(config)
    trainer = RewardTrainer(
        model,
        args=RewardConfig(**options(tmp_path)),
        train_dataset=pairs,
        processing_class=make_tokenizer(),
    )
    [batch, *_] = trainer.get_train_dataloader()
    assert batch["margin"].tolist() == pytest.approx([pairs[0]["margin"]] * 2)
    assert trainer.train().training_loss > 0
