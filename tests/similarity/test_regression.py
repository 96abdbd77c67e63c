"""bleurt and metricx: how the packages are called.

The last test has bleurt-pytorch itself, and is skipped where it is not installed. metricx24 is on no package
index: what its model is given is what its predict.py gives it.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import rangevote as rv
from rangevote.errors import MissingExtra, UsageError
from rangevote.evaluation.evaluate import evaluate
from rangevote.similarity.neural import Bleurt, Metricx, Scored
from tests.similarity.samples import columns

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = ["<pad>", "</s>", "<unk>", "source:", "candidate:", "reference:", "a", "b", "c", "die"]


def tokenizer_folder(folder: Any) -> str:
    """A folder with a tokenizer of words that ends every text with </s>, as that of mT5 does."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    fast.save_pretrained(folder)
    return str(folder)


class StandIn:
    """A model of one number: how many ids there are that are not padding. Keeps what it was asked."""

    device = "cpu"
    output = "predictions"

    def __init__(self) -> None:
        self.asked: list[list[list[int]]] = []

    @classmethod
    def from_pretrained(cls, path: str) -> Any:
        cls.made = cls()  # type: ignore[attr-defined]
        return cls.made  # type: ignore[attr-defined]

    def eval(self) -> StandIn:
        return self

    def to(self, device: str) -> StandIn:
        return self

    def __call__(self, input_ids: Any, attention_mask: Any) -> Any:
        self.asked.append(input_ids.tolist())
        return SimpleNamespace(**{self.output: attention_mask.sum(dim=1).float()})


@pytest.fixture
def metricx(monkeypatch, tmp_path) -> Metricx:
    package, module = ModuleType("metricx24"), ModuleType("metricx24.models")
    module.MT5ForRegression = StandIn  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "metricx24", package)
    monkeypatch.setitem(sys.modules, "metricx24.models", module)
    return Metricx(tokenizer_folder(tmp_path))


def test_metricx_reads_source_candidate_and_reference_without_the_end_of_the_sequence(metricx):
    scores = metricx.scores([Scored("die", "a b", "c"), Scored("die", "a", "c")], {})
    texts = ["source: die candidate: a b reference: c", "source: die candidate: a reference: c <pad>"]
    assert StandIn.made.asked == [[[WORDS.index(word) for word in text.split()] for text in texts]]
    assert scores.tolist() == [7.0, 6.0]


def test_metricx_counts_errors_so_the_fewest_are_the_best_grade(metricx):
    grades = metricx.about("die").matrix(columns(["a b", "a"]), columns(["c"], "voters"))
    assert grades.tolist() == [[1 - 7 / 25, 1 - 6 / 25]]
    assert metricx.grades(torch.tensor([-1.0, 30.0]).numpy()).tolist() == [1.0, 0.0]
    ballot = rv.Ballot([rv.Hypothesis(text="a b"), rv.Hypothesis(text="a")], source="die")
    assert rv.elect(ballot, similarity=metricx).winner == "a"
    with pytest.raises(rv.DataError, match=r"source: is missing, and metricx:.* compares translations"):
        rv.elect(["a", "b"], similarity=metricx)


def test_metrics_of_models_are_means_of_their_own_scores_over_outputs_and_references(metricx):
    name = f"metricx:{metricx.model}"
    result = evaluate(["a b", "a"], [["c", "c c c"], ["c"]], ["die", "die"], metrics=[name], resamples=20)
    assert result.first.scores[name].value == (((7 + 9) / 2) + 6) / 2
    assert result.first.scores[name].interval is not None
    assert result.metrics[name].best == "lowest"
    assert result.signatures[name] == f"{name}|nrefs:var"
    with pytest.raises(UsageError, match="needs sources"):
        evaluate(["a b"], ["c"], metrics=[name])


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("bleurt:m", "pip install bleurt-pytorch"),
        ("metricx:m", "git clone https://github.com/google-research/metricx"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_the_command_that_brings_it(name, command, monkeypatch):
    for module in ("bleurt_pytorch", "metricx24", "metricx24.models"):
        monkeypatch.setitem(sys.modules, module, None)
    ballot = rv.Ballot([rv.Hypothesis(text="a"), rv.Hypothesis(text="b")], source="die")
    with pytest.raises(MissingExtra, match=f"which is not installed. Install it with: {command}"):
        rv.elect(ballot, similarity=name)


@pytest.mark.parametrize("name", ["bleurt", "metricx"])
def test_a_model_must_be_named(name):
    with pytest.raises(UsageError, match=f"{name} needs a model: a name, folder or package, such as {name}:"):
        rv.elect(["a", "b"], similarity=name)


def test_grades_are_bleurts_own_scores(tmp_path):
    library = pytest.importorskip("bleurt_pytorch", reason="pip install bleurt-pytorch, transformers below 5")
    torch.manual_seed(1)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "dog", "a"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"))
    tokenizer.save_pretrained(tmp_path)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = library.BleurtConfig(vocab_size=len(words), num_labels=1, **sizes)
    model = library.BleurtForSequenceClassification(config).eval()
    model.save_pretrained(tmp_path)
    voters, candidates = ["the cat sat", "a dog", ""], ["the dog sat", "a cat"]
    grades = Bleurt(str(tmp_path)).matrix(columns(candidates), columns(voters, "voters"))
    for v, voter in enumerate(voters):
        for c, candidate in enumerate(candidates):
            with torch.no_grad():
                own = model(**tokenizer(voter, candidate, return_tensors="pt")).logits.item()
            assert grades[v, c] == (pytest.approx(own, abs=1e-6) if voter else 0)
