"""A folder in which the pages' and examples' models are: tiny ones of random weights under the real names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import chromium, new_page, watch

__all__ = ["chromium", "furnished", "models", "new_page", "place", "watch"]

#: A name on the hub that pages and examples use -> the kind of the tiny model that stands in for it.
STAND_INS = {
    "Helsinki-NLP/opus-mt-en-de": "marian",
    "HuggingFaceTB/SmolLM2-135M-Instruct": "llama",
    "nlpconnect/vit-gpt2-image-captioning": "vit-gpt2",
}
CHAT = "{% for m in messages %}user : {{ m['content'] }} {% endfor %}assistant :"


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all of them, as `save_pretrained` writes them, and with two pictures."""
    pytest.importorskip("transformers", reason="the extra 'models' is not installed")
    from tests.models.huggingface.tiny import images, make, make_processor, make_tokenizer

    place = tmp_path_factory.mktemp("models")
    for name, kind in STAND_INS.items():
        make(kind).save_pretrained(place / name)
        make_tokenizer(CHAT if kind == "llama" else None).save_pretrained(place / name)
    make_processor().save_pretrained(place / "nlpconnect/vit-gpt2-image-captioning")
    (place / "photos").mkdir()
    images()[1].save(place / "photos" / "one.png")
    images()[2].save(place / "photo.png")
    return place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in that has nothing but the examples, as a clone has them."""
    (tmp_path / "examples").symlink_to(Path(__file__).parents[2] / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def furnished(place: Path, models: Path) -> Path:
    """A folder to work in that has the models and the pictures."""
    for path in models.iterdir():
        (place / path.name).symlink_to(path)
    return place
