"""comet and bertscore: how the packages are called, with modules that have their calls.

With the packages themselves: test_comet_real.py and test_bertscore_real.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import rangevote as rv
from rangevote.errors import MissingExtra, RangevoteWarning, SetupError
from rangevote.evaluation.evaluate import compare
from rangevote.similarity import _named
from rangevote.similarity.neural import Bertscore, Comet
from tests.similarity.comet_stand_in import EncodingModel, JointModel, install
from tests.similarity.samples import columns

pytest.importorskip("torch")


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


def test_every_pair_of_different_texts_is_asked_once_in_one_call(model, tmp_path):
    rv.elect(["a b", "a", "a b", ""], similarity=measure(tmp_path))
    loading, *calls = model.calls
    assert loading == []
    assert [(s["ref"], s["mt"]) for s in calls[0]] == [("a b", "a b"), ("a b", "a"), ("a", "a b"), ("a", "a")]
    assert len(calls) == 1


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


def test_the_model_is_loaded_once_also_for_many_sources(model, tmp_path):
    first = measure(tmp_path, source=None)
    for source in ("x", "y", "x"):
        rv.elect(["a b", "a"], similarity=first.about(source))
    assert [call[0]["src"] if call else "loaded" for call in model.calls] == ["loaded", "x", "y", "x"]
    assert first.about(None) is first


def test_the_source_is_the_ballots(model, tmp_path):
    texts = [rv.Hypothesis(text="a b"), rv.Hypothesis(text="a")]
    ballots = [rv.Ballot(texts, source=source) for source in ("eins", "zwei")]
    measure = Comet(str(tmp_path))
    results = [rv.elect(ballots[0], similarity=measure), *rv.elect_many(ballots[1:], similarity=measure)]
    assert [call[0]["src"] for call in model.calls[1:]] == ["eins", "zwei"]
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
    with pytest.raises(rv.UsageError, match="comet needs a model"):
        rv.get_similarity("comet")
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
    """bert-score's scorer, with words for vectors: precision and recall of words, and their F1."""

    made: list[Scorer] = []  # noqa: RUF012
    shift = 0.0

    def __init__(
        self,
        model_type: str | None = None,
        num_layers: int | None = None,
        batch_size: int = 64,
        nthreads: int = 4,
        all_layers: bool = False,
        idf: bool = False,
        idf_sents: list[str] | None = None,
        device: str | None = None,
        lang: str | None = None,
        rescale_with_baseline: bool = False,
        baseline_path: str | None = None,
        use_fast_tokenizer: bool = False,
    ) -> None:
        if num_layers is None and model_type != "roberta-large":
            raise KeyError(model_type)
        self.model_type, self.num_layers, self.calls = model_type, num_layers, []
        Scorer.made.append(self)

    def score(
        self,
        cands: list[str],
        refs: list[str],
        verbose: bool = False,
        batch_size: int = 64,
        return_hash: bool = False,
    ) -> Any:
        self.calls.append((list(cands), list(refs), batch_size))
        pairs = [(set(c.split()), set(r.split())) for c, r in zip(cands, refs, strict=True)]
        precision = np.array([len(c & r) / len(c) for c, r in pairs])
        recall = np.array([len(c & r) / len(r) for c, r in pairs])
        f1 = np.array([2 * len(c & r) / (len(c) + len(r)) for c, r in pairs])
        return precision, recall, f1 + self.shift


@pytest.fixture
def scorer(monkeypatch) -> Iterator[type[Scorer]]:
    module = ModuleType("bert_score")
    module.BERTScorer = Scorer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "bert_score", module)
    monkeypatch.setattr("rangevote.similarity.neural.is_cached", lambda name: True)
    monkeypatch.setattr("rangevote.similarity.neural.quiet", nullcontext)  # transformers may not be here
    monkeypatch.setattr(Scorer, "made", [])
    monkeypatch.setattr(Scorer, "shift", 0.0)
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


def test_what_the_package_cannot_load_is_told(scorer, monkeypatch):
    def broken(self: Any, *_: Any, **__: Any) -> None:
        raise OSError("no such\n model.")

    monkeypatch.setattr(Scorer, "__init__", broken)
    with pytest.raises(SetupError, match=r"bert-score cannot load the model \(OSError: no such model\)"):
        Bertscore("cannot/load").matrix(columns(["a"]), columns(["a"], "voters"))


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        (None, MissingExtra, r"needs the package 'unbabel-comet'.*pip install unbabel-comet$"),
        ("import no_such_thing", MissingExtra, r"lacks 'no_such_thing'.*pip install no_such_thing$"),
        (
            "raise ImportError('none', name='pkg_resources')",
            MissingExtra,
            r'lacks \'pkg_resources\'.*pip install "setuptools<81"$',
        ),
        (
            "raise AttributeError('x')",
            SetupError,
            r"cannot be imported: AttributeError: x.*--upgrade unbabel",
        ),
    ],
)
def test_a_package_that_is_missing_or_broken_is_reported(monkeypatch, tmp_path, code, error, message):
    if code is None:
        monkeypatch.setitem(sys.modules, "comet", None)
    else:
        (tmp_path / "comet.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "comet", raising=False)
    with pytest.raises(error, match=message):
        rv.elect(["a"], similarity=Comet("x", source="y"))
