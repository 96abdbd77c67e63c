"""comet: what is asked of the user's package, with a module that has the calls of unbabel-comet 2.2.

With the package itself: test_comet_real.py.
"""

from __future__ import annotations

import logging
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import rangevote as rv
from rangevote.errors import MissingExtra, RangevoteWarning, SetupError
from rangevote.similarity import neural
from rangevote.similarity.neural import Comet
from tests.similarity.samples import columns, sentences, weights_for

pytest.importorskip("torch")


class Prediction(dict[str, Any]):
    """What `predict` returns: a dictionary whose keys are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class Model:
    """A metric that can be computed by hand: the share of the reference's words in the translation."""

    def __init__(self) -> None:
        self.calls: list[list[dict[str, str]]] = []
        self.scale = 1.0

    def predict(
        self,
        samples: list[dict[str, str]],
        batch_size: int = 16,
        gpus: int = 1,
        devices: Any = None,
        mc_dropout: int = 0,
        progress_bar: bool = True,
        accelerator: str = "auto",
        num_workers: int | None = None,
        length_batching: bool = True,
    ) -> Prediction:
        assert not progress_bar
        assert gpus in (0, 1)
        self.calls.append(samples)
        scores = [self.scale * self.one(**sample) for sample in samples]
        return Prediction(scores=scores, system_score=sum(scores) / len(scores))

    @staticmethod
    def one(src: str, mt: str, ref: str) -> float:
        return len(set(mt.split()) & set(ref.split())) / len(set(ref.split()))


@pytest.fixture
def model(monkeypatch, tmp_path) -> Model:
    """The module `comet`, and a checkpoint that its loader takes."""
    loaded = Model()
    module = ModuleType("comet")

    def download_model(model: str, saving_directory: Any = None, local_files_only: bool = False) -> str:
        raise KeyError(f"Model '{model}' not supported by COMET.")

    def load_from_checkpoint(
        checkpoint_path: str,
        reload_hparams: bool = False,
        strict: bool = False,
        local_files_only: bool = False,
    ) -> Model:
        assert checkpoint_path == str(tmp_path / "checkpoints" / "model.ckpt")
        loaded.calls.append([])
        return loaded

    module.download_model, module.load_from_checkpoint = download_model, load_from_checkpoint  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "comet", module)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "model.ckpt").touch()
    return loaded


def measure(tmp_path: Any, **options: Any) -> Comet:
    return Comet(str(tmp_path), **{"source": "die Katze", **options})


def test_the_voter_is_the_reference_and_the_candidate_the_translation(model, tmp_path):
    grades = measure(tmp_path).matrix(columns(["the cat sat"]), columns(["the cat"], "voters"))
    assert grades.tolist() == [[1.0]]
    assert model.calls[1:] == [[{"src": "die Katze", "mt": "the cat sat", "ref": "the cat"}]]
    turned = measure(tmp_path).matrix(columns(["the cat"]), columns(["the cat sat"], "voters"))
    assert turned.tolist() == [[pytest.approx(2 / 3)]]


def test_a_tally_is_the_weighted_sum_of_the_matrix(model, tmp_path):
    rng = np.random.default_rng(0)
    slate, roll = columns(sentences(rng, 7)), columns(sentences(rng, 11), "voters")
    weights = weights_for(rng, 11)
    expected = weights @ measure(tmp_path).matrix(slate, roll)
    np.testing.assert_allclose(measure(tmp_path).tally(slate, roll, weights), expected, rtol=0, atol=1e-12)


def test_every_pair_of_different_texts_is_asked_once_in_one_call(model, tmp_path):
    rv.elect(["a b", "a", "a b", ""], similarity=measure(tmp_path))
    loading, *calls = model.calls
    assert loading == []
    assert [(s["ref"], s["mt"]) for s in calls[0]] == [("a b", "a b"), ("a b", "a"), ("a", "a b"), ("a", "a")]
    assert len(calls) == 1


def test_many_pairs_go_in_blocks(model, tmp_path, monkeypatch):
    monkeypatch.setattr(neural, "BLOCK", 4)
    texts = ["a", "a b", "a b c", "c"]
    in_blocks = measure(tmp_path).matrix(columns(texts), columns(texts))
    assert [len(call) for call in model.calls] == [0, 4, 4, 4, 4]
    assert in_blocks.tolist() == [[Model.one("", c, v) for c in texts] for v in texts]


def test_the_empty_text_abstains(model, tmp_path):
    slate = columns(["", " ", "a"])
    assert measure(tmp_path).matrix(slate, slate).tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_the_model_is_loaded_once_also_for_many_sources(model, tmp_path):
    first = measure(tmp_path, source=None)
    for source in ("x", "y", "x"):
        rv.elect(["a b", "a"], similarity=first.about(source))
    assert [call[0]["src"] if call else "loaded" for call in model.calls] == ["loaded", "x", "y", "x"]
    assert first.about(None) is first


def test_a_mixture_hands_the_source_to_its_parts(model, tmp_path):
    mixture = rv.Mixture([(0.5, measure(tmp_path, source=None)), (0.5, rv.get_similarity("overlap_1"))])
    rv.elect(["a b", "a"], similarity=mixture.about("quelle"))
    assert model.calls[1][0]["src"] == "quelle"
    plain = rv.Mixture([(1.0, rv.get_similarity("overlap_1"))])
    assert plain.about("quelle") is plain


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


def test_scores_beyond_1_are_cut_with_a_word_on_how_to_scale_them(model, tmp_path):
    model.scale = 2.5
    with pytest.warns(RangevoteWarning, match=r"gave 2\.5, which is cut to 1: .*as in comet:.*@3\."):
        grades = measure(tmp_path).matrix(columns(["a"]), columns(["a"], "voters"))
    assert grades.tolist() == [[1.0]]
    scaled = measure(tmp_path, scale=5.0)
    assert scaled.matrix(columns(["a"]), columns(["a"], "voters")).tolist() == [[0.5]]


def test_a_small_overshoot_is_cut_without_a_word(model, tmp_path):
    model.scale = 1.02
    assert measure(tmp_path).matrix(columns(["a"]), columns(["a"], "voters")).tolist() == [[1.0]]


def test_the_name_names_the_model_and_the_scale():
    for name in ("comet:Unbabel/wmt22-comet-da", "comet:Unbabel/wmt20-comet-da@4", "comet:a@b"):
        assert rv.get_similarity(name).name == name
    assert rv.get_similarity("comet:x@2.50").name == "comet:x@2.5"
    with pytest.raises(rv.UsageError, match=r"comet needs a model: a name, folder or file, as comet:"):
        rv.get_similarity("comet")
    with pytest.raises(rv.UsageError, match=r"scale must be a number above 0, got 0\.0"):
        rv.get_similarity("comet:x@0")


def test_without_the_package_the_install_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "comet", None)
    with pytest.raises(MissingExtra, match=r"needs the package 'unbabel-comet'.*pip install unbabel-comet$"):
        rv.elect(["a"], similarity=Comet("x", source="y"))


def test_a_package_that_lacks_another_is_named_with_it(monkeypatch, tmp_path):
    (tmp_path / "comet.py").write_text("import no_such_thing")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "comet", raising=False)
    with pytest.raises(
        MissingExtra, match=r"is there, but lacks 'no_such_thing'.*pip install no_such_thing$"
    ):
        rv.elect(["a"], similarity=Comet("x", source="y"))


def test_what_left_the_tools_of_packaging_is_told_by_the_version_that_has_it(monkeypatch, tmp_path):
    (tmp_path / "comet.py").write_text("raise ImportError('none', name='pkg_resources')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "comet", raising=False)
    with pytest.raises(MissingExtra, match=r'lacks \'pkg_resources\'.*pip install "setuptools<81"$'):
        rv.elect(["a"], similarity=Comet("x", source="y"))


def test_loggers_are_as_loud_as_before(model, tmp_path, monkeypatch):
    lightning, heard = logging.getLogger("lightning"), []
    lightning.setLevel(logging.DEBUG)
    predict = model.predict

    def spoken(*arguments: Any, **options: Any) -> Prediction:
        heard.append(lightning.isEnabledFor(logging.INFO))
        return predict(*arguments, **options)

    monkeypatch.setattr(model, "predict", spoken)
    rv.elect(["a"], similarity=measure(tmp_path))
    assert heard == [False]
    assert lightning.level == logging.DEBUG
    lightning.setLevel(logging.NOTSET)


def test_a_package_that_breaks_at_import_is_told(monkeypatch, tmp_path):
    (tmp_path / "comet.py").write_text("raise AttributeError('module numpy has no attribute x')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "comet", raising=False)
    with pytest.raises(
        SetupError, match=r"cannot be imported: AttributeError: module numpy.*--upgrade unbabel"
    ):
        rv.elect(["a"], similarity=Comet("x", source="y"))


def test_a_checkpoint_that_is_not_there_is_told(model, tmp_path):
    for place in ("/none/here", str(tmp_path / "checkpoints"), "some.ckpt"):
        with pytest.raises(SetupError, match=r"there is no checkpoint"):
            rv.elect(["a"], similarity=Comet(place, source="y"))


def test_what_the_package_cannot_load_is_told(model, monkeypatch):
    monkeypatch.setattr("rangevote.similarity.neural.is_cached", lambda name: True)
    with pytest.raises(SetupError, match=r"COMET cannot load the model .*not supported by COMET"):
        rv.elect(["a"], similarity=Comet("no/model", source="y"))


def test_a_model_that_gives_no_numbers_is_refused(model, tmp_path):
    model.scale = float("nan")
    with pytest.raises(SetupError, match=r"must give one finite number for each of 1 pairs"):
        rv.elect(["a"], similarity=measure(tmp_path))
