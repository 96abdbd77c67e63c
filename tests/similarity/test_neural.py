"""comet, bertscore and metricx: how the packages are called, with modules that have their calls.

With the packages themselves: test_neural_real.py. metricx24 is on no package index: what its model is given
is what its predict.py gives it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rangevote as rv
from rangevote.errors import MissingExtra, RangevoteWarning, SetupError
from rangevote.evaluation.evaluate import compare, evaluate
from rangevote.similarity import _named
from rangevote.similarity.neural import Bertscore, Comet, Metricx, Scored
from tests.similarity.comet_stand_in import EncodingModel, JointModel, install
from tests.similarity.samples import columns

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.fixture
def model(monkeypatch, tmp_path) -> JointModel:
    loaded = JointModel()
    install(loaded, tmp_path, monkeypatch)
    return loaded


@pytest.fixture
def encoding(monkeypatch, tmp_path) -> EncodingModel:
    loaded = EncodingModel()
    install(loaded, tmp_path, monkeypatch)
    return loaded


def measure(tmp_path: Any, **options: Any) -> Comet:
    return Comet(str(tmp_path), **{"source": "die Katze", **options})


def test_the_voter_is_the_reference_and_the_candidate_the_translation(model, tmp_path):
    grades = measure(tmp_path).matrix(columns(["the cat sat"]), columns(["the cat"], "voters"))
    assert grades.tolist() == [[1.0]]
    assert model.calls[1:] == [[{"src": "die Katze", "mt": "the cat sat", "ref": "the cat"}]]
    turned = measure(tmp_path).matrix(columns(["the cat"]), columns(["the cat sat"], "voters"))
    assert turned.tolist() == [[pytest.approx(2 / 3)]]


def test_each_text_is_encoded_once_and_each_pair_estimated_once(encoding, tmp_path):
    texts = [f"w{i} w{i + 1} w{i + 2}" for i in range(100)]
    result = rv.elect([*texts, texts[0], ""], similarity=measure(tmp_path))
    assert sorted(encoding.encoder.encoded) == sorted([*texts, "die Katze"])
    assert encoding.estimated == 100 * 100
    assert result.scores[0] == result.scores[100]
    assert result.scores[101] == 0


def test_grades_from_encoded_texts_know_voter_candidate_and_source(encoding, tmp_path):
    voters, candidates = ["the cat", "a", ""], ["the cat sat", "die cat", "a"]
    grades = measure(tmp_path, batch_size=2).matrix(columns(candidates), columns(voters, "voters"))
    expected = [[1.0, 0.5 - 0.1, 0.0], [0.0, -0.1, 1.0], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(grades, expected, rtol=0, atol=1e-6)


def test_votes_counted_again_and_a_matrix_ask_the_model_nothing_new(encoding, tmp_path):
    poll = measure(tmp_path).poll(columns(["a b", "b c"]))
    poll.add(columns(["a", "b"], "voters"))
    equal = poll.tally(np.array([0.5, 0.5]))
    np.testing.assert_allclose(poll.matrix(), [[1, 0], [1, 1]], rtol=0, atol=1e-6)
    assert poll.tally(np.array([0.0, 1.0])).tolist() != equal.tolist()
    assert encoding.estimated == 4
    poll.add(columns(["a", "c d"], "voters"))
    poll.matrix()
    assert encoding.estimated == 8
    assert sorted(encoding.encoder.encoded) == ["a", "a b", "b", "b c", "c d", "die Katze"]


def test_a_model_without_references_is_not_estimated_with_them(encoding, tmp_path, monkeypatch):
    monkeypatch.setattr(EncodingModel, "requires_references", lambda self: False)
    monkeypatch.setattr(EncodingModel, "predict", JointModel.predict)
    assert measure(tmp_path).matrix(columns(["a"]), columns(["a"], "voters")).tolist() == [[1.0]]
    assert encoding.estimated == 0


def test_the_source_is_the_ballots_and_the_model_is_loaded_once(model, tmp_path):
    texts = [rv.Hypothesis(text="a b"), rv.Hypothesis(text="a")]
    ballots = [rv.Ballot(texts, source=source) for source in ("eins", "zwei")]
    measure = Comet(str(tmp_path))
    results = [rv.elect(ballots[0], similarity=measure), *rv.elect_many(ballots[1:], similarity=measure)]
    assert [call[0]["src"] if call else "loaded" for call in model.calls] == ["loaded", "eins", "zwei"]
    assert all(f"|sim:comet:{tmp_path}|" in result.signature for result in results)


def test_without_a_source_the_ballot_is_at_fault():
    with pytest.raises(rv.DataError, match=r"source: is missing, and comet:m compares translations with"):
        rv.elect(["a", "b"], similarity="comet:m")


def test_comet_is_a_metric_of_outputs_with_the_packages_own_scores(encoding, tmp_path):
    name = f"comet:{tmp_path}"
    systems = {"first": ["a b", "die c"], "second": ["a", "c"]}
    result = compare(systems, ["a b", "c"], ["die", "die Katze"], metrics=[name], resamples=50)
    for system in result.systems:
        outputs = zip(systems[system.name], ["a b", "c"], ["die", "die Katze"], strict=True)
        own = [
            measure(tmp_path, source=source).matrix(columns([text]), columns([reference], "voters")).item()
            for text, reference, source in outputs
        ]
        assert system.scores[name].value == pytest.approx(sum(own) / 2, abs=1e-6)
    assert result.systems[1].against_first[name].p is not None
    for references, sources, missing in ((["a"], None, "sources"), (None, ["die"], "references")):
        with pytest.raises(rv.UsageError, match=f"the metric .* needs {missing}; there are none"):
            compare({"first": ["a"]}, references, sources, metrics=[name])


def test_scores_beyond_1_are_cut_with_a_word_on_how_to_scale_them(model, tmp_path):
    model.scale = 2.5
    with pytest.warns(RangevoteWarning, match=r"gave 2\.5, which is cut to 1: .*scores: comet:.*@3\."):
        grades = measure(tmp_path).matrix(columns(["a"]), columns(["a"], "voters"))
    assert grades.tolist() == [[1.0]]
    scaled = measure(tmp_path, scale=5.0)
    assert scaled.matrix(columns(["a"]), columns(["a"], "voters")).tolist() == [[0.5]]


def test_the_name_of_comet_has_model_and_scale():
    for name in ("comet:Unbabel/wmt22-comet-da", "comet:Unbabel/wmt20-comet-da@4", "comet:a@b"):
        assert rv.get_similarity(name).name == name
    assert rv.get_similarity("comet:x@2.50").name == "comet:x@2.5"
    with pytest.raises(rv.UsageError, match=r"scale must be a number above 0, got 0\.0"):
        rv.get_similarity("comet:x@0")


def test_a_checkpoint_that_is_not_there_is_told(model, tmp_path):
    for place in ("/none/here", str(tmp_path / "checkpoints"), "some.ckpt"):
        with pytest.raises(SetupError, match=r"there is no checkpoint"):
            rv.elect(["a"], similarity=Comet(place, source="y"))


def test_what_comet_cannot_load_is_reported(model, monkeypatch):
    monkeypatch.setattr("rangevote.similarity.neural.is_cached", lambda name: True)
    with pytest.raises(SetupError, match=r"unbabel-comet cannot load the model .*not supported by COMET"):
        rv.elect(["a"], similarity=Comet("no/model", source="y"))


class Scorer:
    """bert-score's scorer, with words for vectors: F1 of the words."""

    made: list[Scorer] = []  # noqa: RUF012

    def __init__(self, model_type: str, num_layers: int | None) -> None:
        if num_layers is None and model_type != "roberta-large":
            raise KeyError(model_type)
        if model_type == "cannot/load":
            raise OSError("no such\n model.")
        self.calls: list[Any] = []
        Scorer.made.append(self)

    def score(self, cands: list[str], refs: list[str], batch_size: int) -> Any:
        self.calls.append((cands, refs, batch_size))
        pairs = [(set(c.split()), set(r.split())) for c, r in zip(cands, refs, strict=True)]
        return None, None, np.array([2 * len(c & r) / (len(c) + len(r)) for c, r in pairs])


@pytest.fixture
def scorer(monkeypatch) -> Iterator[type[Scorer]]:
    module = ModuleType("bert_score")
    module.BERTScorer = Scorer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "bert_score", module)
    monkeypatch.setattr("rangevote.similarity.neural.is_cached", lambda name: True)
    monkeypatch.setattr(Scorer, "made", [])
    yield Scorer
    _named.cache_clear()  # measures are kept by their names, and these have a scorer that is none


def test_the_grade_is_f1_of_the_candidate_and_the_voter(scorer):
    grades = Bertscore().matrix(columns(["a b c"]), columns(["a"], "voters"))
    assert grades.tolist() == [[0.5]]
    assert scorer.made[0].calls == [(["a b c"], ["a"], 64)]


def test_a_model_whose_layer_is_not_known_says_how_to_name_it(scorer):
    with pytest.raises(rv.UsageError, match=r"not tuned which layer.*Name one: bertscore:my/model@9"):
        rv.elect(["a"], similarity="bertscore:my/model")
    with pytest.raises(rv.UsageError, match=r"layer must be a whole number from 1, got 0"):
        rv.get_similarity("bertscore:my/model@0")


def test_what_the_package_cannot_load_is_reported(scorer):
    with pytest.raises(SetupError, match=r"bert-score cannot load the model \(OSError: no such model\)"):
        Bertscore("cannot/load", layer=1).matrix(columns(["a"]), columns(["a"], "voters"))


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("comet:m", "pip install unbabel-comet"),
        ("bleurt:m", "pip install bleurt-pytorch"),
        ("metricx:m", "git clone https://github.com/google-research/metricx"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_the_command_that_brings_it(name, command, monkeypatch):
    for module in ("comet", "bleurt_pytorch", "metricx24", "metricx24.models"):
        monkeypatch.setitem(sys.modules, module, None)
    ballot = rv.Ballot([rv.Hypothesis(text="a"), rv.Hypothesis(text="b")], source="die")
    with pytest.raises(MissingExtra, match=f"which is not installed. Install it with: {command}"):
        rv.elect(ballot, similarity=name)


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        ("import no_such_thing", MissingExtra, r"lacks 'no_such_thing'.*pip install no_such_thing$"),
        ("raise ImportError(name='pkg_resources')", MissingExtra, r'pip install "setuptools<81"$'),
        ("raise AttributeError('x')", SetupError, r"imported: AttributeError: x.*--upgrade unbabel"),
    ],
)
def test_a_package_that_is_broken_is_reported(monkeypatch, tmp_path, code, error, message):
    (tmp_path / "comet.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "comet", raising=False)
    with pytest.raises(error, match=message):
        rv.elect(["a"], similarity=Comet("x", source="y"))


@pytest.mark.parametrize("name", ["comet", "bleurt", "metricx"])
def test_a_model_must_be_named(name):
    with pytest.raises(
        rv.UsageError, match=f"{name} needs a model: a name, folder or package, such as {name}:"
    ):
        rv.get_similarity(name)


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


def test_metrics_of_models_are_means_of_their_own_scores_over_outputs_and_references(metricx):
    name = f"metricx:{metricx.model}"
    result = evaluate(["a b", "a"], [["c", "c c c"], ["c"]], ["die", "die"], metrics=[name], resamples=20)
    assert result.first.scores[name].value == (((7 + 9) / 2) + 6) / 2
    assert result.first.scores[name].interval is not None
    assert result.metrics[name].best == "lowest"
    assert result.signatures[name] == f"{name}|nrefs:var"
