"""bertscore: what is asked of the user's package, with a module that has the calls of bert-score 0.3.

With the package itself: test_bertscore_real.py.
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
from rangevote.errors import MissingExtra, SetupError
from rangevote.similarity import _named
from rangevote.similarity.neural import Bertscore
from tests.similarity.samples import columns, sentences, weights_for


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


def test_voter_and_candidate_may_change_places(scorer):
    texts = columns(["a b c", "a", "b d", "x"])
    grades = Bertscore().matrix(texts, texts)
    np.testing.assert_array_equal(grades, grades.T)


def test_a_tally_is_the_weighted_sum_of_the_matrix(scorer):
    rng = np.random.default_rng(0)
    slate, roll = columns(sentences(rng, 7)), columns(sentences(rng, 11), "voters")
    weights = weights_for(rng, 11)
    expected = weights @ Bertscore().matrix(slate, roll)
    np.testing.assert_allclose(Bertscore().tally(slate, roll, weights), expected, rtol=0, atol=1e-12)


def test_different_texts_are_scored_once_and_empty_ones_abstain(scorer):
    slate = columns(["a", "", "a", "b"])
    grades = Bertscore(batch_size=3).matrix(slate, slate)
    assert grades.tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]]
    assert scorer.made[0].calls == [(["a", "b", "a", "b"], ["a", "a", "b", "b"], 3)]


def test_the_scorer_is_made_once_for_many_elections(scorer):
    measure = Bertscore()
    for _ in range(3):
        rv.elect(["a b", "a"], similarity=measure)
    assert len(scorer.made) == 1
    assert len(scorer.made[0].calls) == 3


def test_a_grade_beyond_1_is_cut(scorer, monkeypatch):
    monkeypatch.setattr(Scorer, "shift", 1e-6)
    assert Bertscore().matrix(columns(["a"]), columns(["a"], "voters")).tolist() == [[1.0]]


def test_the_name_names_the_model_and_the_layer(scorer):
    for name, full in (
        ("bertscore", "bertscore:roberta-large"),
        ("bertscore:roberta-large", "bertscore:roberta-large"),
        ("bertscore:my/model@9", "bertscore:my/model@9"),
    ):
        measure = rv.get_similarity(name)
        assert measure.name == full
        assert f"|sim:{full}|" in rv.elect(["a", "b"], similarity=measure).signature
    assert (scorer.made[-1].model_type, scorer.made[-1].num_layers) == ("my/model", 9)


def test_a_model_whose_layer_is_not_known_says_how_to_name_it(scorer):
    with pytest.raises(rv.UsageError, match=r"not tuned which layer.*as in bertscore:my/model@9"):
        rv.elect(["a"], similarity="bertscore:my/model")
    with pytest.raises(rv.UsageError, match=r"layer must be a whole number from 1, got 0"):
        rv.get_similarity("bertscore:my/model@0")


def test_without_the_package_the_install_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "bert_score", None)
    with pytest.raises(MissingExtra, match=r"needs the package 'bert-score'.*pip install bert-score$"):
        rv.elect(["a"], similarity=Bertscore())


def test_what_the_package_cannot_load_is_told(scorer, monkeypatch):
    def broken(self: Any, *_: Any, **__: Any) -> None:
        raise OSError("no such\n model.")

    monkeypatch.setattr(Scorer, "__init__", broken)
    with pytest.raises(SetupError, match=r"bert-score cannot load the model \(OSError: no such model\)"):
        rv.elect(["a"], similarity=Bertscore())


def test_what_the_package_cannot_grade_is_told(scorer, monkeypatch):
    def broken(self: Any, *_: Any, **__: Any) -> None:
        raise OverflowError("int too big to convert")

    monkeypatch.setattr(Scorer, "score", broken)
    with pytest.raises(SetupError, match=r"cannot grade by this model \(OverflowError: int too big"):
        rv.elect(["a"], similarity=Bertscore())


def test_a_folder_may_be_in_the_users_own(scorer, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine").mkdir()
    result = rv.elect(["a b", "a"], similarity="bertscore:~/mine@2")
    assert scorer.made[0].model_type == str(tmp_path / "mine")
    assert "|sim:bertscore:~/mine@2|" in result.signature


def test_a_model_that_is_not_here_is_told_at_once_where_there_is_no_network(scorer, monkeypatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("rangevote.similarity.neural.is_cached", lambda name: False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(SetupError, match=r"HF_HUB_OFFLINE forbids to fetch it"):
        rv.elect(["a"], similarity=Bertscore())
