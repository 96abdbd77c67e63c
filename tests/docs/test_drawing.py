"""The picture of the home page is what its script draws, from the numbers of an election."""

from __future__ import annotations

import runpy
from xml.etree import ElementTree

from tests.docs.blocks import DOCS
from tests.figure1 import CAPTIONS, PROBABILITIES, TOTAL, WINNER

DRAWN = (DOCS / "assets" / "election.svg").read_text(encoding="utf-8")


def test_the_picture_is_the_one_that_its_script_draws():
    assert runpy.run_path(str(DOCS / "site" / "picture.py"))["drawing"]() == DRAWN


def test_the_picture_shows_every_caption_of_figure_1_and_who_was_elected():
    texts = ["".join(element.itertext()) for element in ElementTree.fromstring(DRAWN).iter()]
    shown = [text.partition("  ←")[0] for text in texts]
    for caption, probability in zip(CAPTIONS, PROBABILITIES, strict=True):
        assert caption in shown
        assert f"{probability / TOTAL:.3f}" in shown
    assert f"{WINNER}  ← elected" in texts
    assert f"{CAPTIONS[0]}  ← most likely" in texts
